"""Public values that are no functions, classes or numbers: dictionaries by name, and tuples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ABOUT = {
    "boids.BOUNDARIES": "The worlds by name, as [`Boundary`](#boidsboundary).",
    "boids.SEMANTICS": (
        "What `semantics=` takes: in `sync` all steer, then all move; in `seq` one after another, "
        "in place; `thesis` is `sync` with the differences of the thesis."
    ),
    "boids.STARTS": "The arrangements at the start, by name, which `make_state` takes.",
    "gravity.INITIAL_CONDITIONS": (
        "The initial conditions by name, which `make_initial_conditions` takes."
    ),
    "gravity.INTEGRATORS": (
        "The integrators by name, as [`Integrator`](#gravityintegrator), with their `order`."
    ),
    "lbm.CASES": (
        'The named flows, as [`Case`](#lbmcase): `CASES["cylinder"].setup(re=20, size=10)` has '
        "what `Simulation` takes. [Flow](../lbm.md#cases) describes them."
    ),
    "waves.DETECTORS": "The built-in detectors by name, as [`Detector`](#wavesdetector).",
}
"""What each one is: values have no docstring of their own."""


def text_of_value(name: str, value: Any) -> str:
    """A sentence, and the names with what each of them is."""
    lines = [ABOUT[name], ""]
    for key in value:
        about = getattr(value[key], "description", "") if isinstance(value, Mapping) else ""
        lines.append(f"- `{key}`: {about}" if about else f"- `{key}`")
    return "\n".join(lines)


def is_value(value: Any) -> bool:
    """Whether its docstring is that of its type."""
    return isinstance(value, Mapping | tuple)
