"""Texts, dates and complex numbers are no numbers: nothing that takes one reads them as such, drops
an imaginary part, or counts seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.pickled_kernels import Grain

NO_NUMBERS = [
    "1", b"1", 1 + 2j, 1 + 0j, np.complex64(1), np.datetime64(5, "s"), np.timedelta64(5, "s"), np.array(1 + 2j), np.str_("1"),
]  # fmt: skip

PLACES: dict[str, Callable[[Any], Any]] = {
    **{name: lambda x, name=name: getattr(lw, name)(x) for name in ("f32", "f64", "i32", "i64", "u32")},
    **{
        name: lambda x, name=name, n=n: getattr(lw, name)(*[x] * n)
        for name, n in (("vec2", 2), ("vec3", 3), ("dvec4", 4), ("ivec2", 2))
    },
    "all components": lambda x: lw.vec3(x),
    "a component": lambda x: lw.dvec2(1.0, x),
    "field": lambda x: Grain(mass=x),
    "vector field": lambda x: Grain(position=(0.0, 1.0, x)),
    "array of a record": lambda x: Grain.array(mass=[x]),
    "row": lambda x: setattr(Grain.zeros(1)[0], "mass", x),
    "vector row": lambda x: setattr(Grain.zeros(1)[0], "position", (x, 0, 0)),
    "periodic": lambda x: lw.Periodic((2.0, x)),
    "origin": lambda x: lw.Periodic((2.0, 2.0), origin=(0.0, x)),
    "bounded": lambda x: lw.Bounded((0.0, x), (9.0, 9.0)),
    "bounds": lambda x: lw.Bounded((0.0, 0.0), (9.0, x)),
    "cells over": lambda x: lw.StaticGrid(radius=1.0, over=((-1, x), (-1, 9))),
    "radius": lambda x: lw.Neighbors(radius=x),
    "opening angle": lambda x: lw.Tree(theta=0.5 * x if isinstance(x, int) else x),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_number_is_refused(place: str) -> None:
    PLACES[place](1)
    taken: list[Any] = []
    for value in NO_NUMBERS:
        try:
            PLACES[place](value)
        except lw.LanewiseError:
            continue
        taken.append(value)
    assert not taken, taken


@pytest.mark.parametrize("place", ["periodic", "origin", "bounded", "bounds", "cells over"])
def test_truth_values_are_no_coordinates(place: str) -> None:
    for value in (True, np.True_):
        with pytest.raises(lw.ArgumentError):
            PLACES[place](value)
