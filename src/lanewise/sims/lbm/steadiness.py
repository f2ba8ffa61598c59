"""Whether a flow has settled: how much its velocity changes while it crosses its own length."""

from __future__ import annotations

from typing import Any

from lanewise.runtime.memory import array_module

FLOORS = {"f16": 1e-3, "f32": 2e-6, "f64": 1e-12}
"""Changes that rounding alone keeps up, for each storage type: no tolerance below them can be met."""


class Steadiness:
    """Compares the velocity with the one that it was shown before. `change` is the last result."""

    def __init__(self, tolerance: float, every: int, device: str) -> None:
        self.tolerance, self.every, self.change = tolerance, max(1, every), float("nan")
        self._module = array_module(device)
        self._before: Any = None

    def settled(self, velocity: Any) -> bool:
        """Whether no component has changed by more than the tolerance, relative to the largest one."""
        if self._before is not None:
            largest = float(self._module.abs(velocity).max())
            difference = float(self._module.abs(velocity - self._before).max())
            self.change = difference / largest if largest else 0.0
        self._before = velocity
        return self.change < self.tolerance
