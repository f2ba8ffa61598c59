"""On a CPU, targets lie side by side in SIMD lanes where sources cannot: for every such reduction, and whatever the
function is.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.fuzz.texts import executed

BODIES = {
    "straight": ["e = lw.exp(-g)"],
    "division on one side": ["e = 0.0", "if q < 0.25:", "    e = 1.0 / g"],
    "exponentials on both sides": [
        "if target.kind == source.kind:",
        "    e = lw.exp(-g)",
        "else:",
        "    e = lw.log(g)",
    ],
    "early return": ["if q > 0.5:", "    return {early}", "e = lw.exp(-g)"],
    "counted loop": ["e = 0.0", "for k in range(3):", "    e += lw.exp(-g * lw.f32(k))"],
    "loop of the source's": ["e = 0.0", "for k in range(source.kind):", "    e += g * lw.f32(k)"],
}
REDUCTIONS = {
    "lw.Min[lw.f32]": "e",
    "lw.Max[lw.f32]": "e",
    "lw.ArgMin[lw.f32]": "e",
    "lw.KMin[lw.f32, 3]": "e",
    "tuple[lw.Min[lw.f32], lw.f32]": "e, q",
}
TEXT = """
@lw.record
class Item:
    position: lw.vec2
    kind: lw.i32


@lw.pairwise
def kernel(target: Item, source: Item) -> {result}:
    d = source.position - target.position
    q = lw.dot(d, d)
    g = q + 0.0625
{body}
    return {value}
"""
QUICK = {
    ("division on one side", "lw.Min[lw.f32]"),
    ("counted loop", "lw.ArgMin[lw.f32]"),
    ("early return", "lw.KMin[lw.f32, 3]"),
}


@pytest.mark.parametrize(
    ("body", "reduction"),
    [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in product(BODIES, REDUCTIONS)],
)
def test_targets_lie_side_by_side(body: str, reduction: str) -> None:
    value = REDUCTIONS[reduction]
    lines = "\n".join(f"    {line}" for line in BODIES[body]).format(early=value.replace("e", "g"))
    with executed(TEXT.format(result=reduction, body=lines, value=value), "lanes_of_targets.py") as names:
        rng = np.random.default_rng(1)
        given = {"position": rng.random((45, 2)), "kind": rng.integers(0, 4, 45)}
        found = []
        for device in ("cpu", "python"):
            items = names.Item.array(**given, device=device)
            out = names.kernel(items, items)
            found.append(out if isinstance(out, tuple) else (out,))
        items = names.Item.array(**given)
        assert names.kernel.bind(items, items).compiled.plan.across == 256
    for fast, exact in zip(*found, strict=True):
        np.testing.assert_allclose(fast, exact, rtol=1e-6)
