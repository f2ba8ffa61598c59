"""Which positions a search refuses: the first that is not finite, the first outside, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.points import Points, points_of, points_of_values
from lanewise.patterns.search.worlds import Bounded, World
from lanewise.support.errors import ArgumentError


@lw.record
class Place:
    at: lw.vec3


@lw.record
class Marked:
    mark: lw.i32
    at: lw.dvec2


ODD = (np.nan, np.inf, -np.inf, 1e30, -1e30, 7.0, -7.0)
WORLDS = (lw.Open(), lw.Bounded((-5, -5, -5), (5, 6, 6)), lw.Bounded((-1, -9, -3), (1, 9, 1)))


def _points(values: np.ndarray[Any, Any], way: str) -> Points:
    if way == "values":
        return points_of_values(np.ascontiguousarray(values), "cpu")
    layout = {"SoA": lw.SoA(), "AoS": lw.AoS(), "AoSoA": lw.AoSoA(8)}[way]
    record: Any = Place if values.shape[1] == 3 else Marked
    filled = {"at": values} if record is Place else {"at": values, "mark": np.arange(len(values))}
    return points_of(record.array(**filled, layout=layout), "at")


def _wanted(values: np.ndarray[Any, Any], world: World, reach: float) -> str | None:
    """Element by element."""
    for n, place in enumerate(values):
        if not np.isfinite(place).all():
            return f"position of element {n} is"
    for n, place in enumerate(values):
        low, high = (world.low, world.high) if isinstance(world, Bounded) and len(world.low) == len(place) else ((), ())
        if any(not a <= x <= b for a, x, b in zip(low, place, high, strict=False)):
            return f"element {n} at"
        if np.abs(place).max() > reach:
            return f"position of element {n} is"
    return None


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(["values", "SoA", "AoS", "AoSoA"]), st.sampled_from([2, 3]),
    st.sampled_from(WORLDS), st.sampled_from([float("inf"), 1e20, 6.5]), st.lists(st.sampled_from(ODD), max_size=2),
)  # fmt: skip
def test_the_first_position_that_does_not_fit_is_named(
    seed: int, count: int, way: str, axes: int, world: World, reach: float, odd: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (count, axes)).astype(np.float32 if axes == 3 else np.float64)
    for x in odd:
        values[rng.integers(count), rng.integers(axes)] = x
    points, wanted = _points(values, way), _wanted(values, world, reach)
    if wanted is None:
        points.check("call", world, reach)
    else:
        with pytest.raises(ArgumentError, match=wanted):
            points.check("call", world, reach)
