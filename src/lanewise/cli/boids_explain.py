"""`lanewise explain boids`: what finds flockmates, and the kernels of steering and of moving."""

from __future__ import annotations

import json
from collections.abc import Mapping


def explain_boids(
    device: str, agents: int, precision: str, layout: str | None, arch: str | None, values: Mapping[str, float], *,
    source: bool, as_json: bool,
) -> None:  # fmt: skip
    """Print the explanations of both kernels, or their generated source."""
    from lanewise.sims.boids.explain import compile_boids

    search, kernels = compile_boids(device, agents, precision, layout, arch, values)
    if source and not as_json:
        print("\n\n".join(k.executable.source for k in kernels))
        return
    explanations = [k.explain() for k in kernels]
    if as_json:
        facts = [
            e.as_dict() | ({"source": k.executable.source} if source else {})
            for e, k in zip(explanations, kernels, strict=True)
        ]
        print(json.dumps({"search": search, "kernels": facts}, allow_nan=False))
        return
    print(search)
    for explanation in explanations:
        print(f"\n{explanation}")
    print(f"\nThe generated source: lanewise explain boids --source {device}")
