"""Read-only arrays of NumPy are read where they lie: a bound call sees what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw


@lw.elementwise
def doubled(a: lw.f32) -> lw.f32:
    return a * 2


@lw.elementwise
def both(a: lw.vec3) -> tuple[lw.f32, lw.f32]:
    return a.x, a.y + a.z


@lw.threadwise
def squares(x: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[x] = a[x] * a[x]


@lw.threadwise
def total(y: lw.index, x: lw.index, a: lw.Array2[lw.f32]) -> lw.f32:
    return a[y, x]


@lw.elementwise
def looked_up(i: lw.i32, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i] + 1


@lw.record
class Item:
    weight: lw.f32


@lw.elementwise
def beside(item: Item, a: lw.f32) -> lw.f32:
    return item.weight + a


Bound = Any  # a bound call
SHAPES = {"sums": (5, 8), "vectors": (40, 3)}
CASES: dict[str, Callable[[Any], Bound]] = {
    "elements": doubled.bind,
    "vectors": both.bind,
    "records beside": lambda a: beside.bind(Item.array(weight=np.ones(len(a), np.float32)), a),
    "threads": lambda a: squares.bind(a, np.zeros(len(a), np.float32), grid=len(a)),
    "tables": lambda a: looked_up.bind(np.arange(len(a), dtype=np.int32), a),
    "sums": lambda a: total.bind(a, grid=a.shape),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("looped", [False, True], ids=["bound", "in a loop"])
def test_a_bound_call_sees_what_becomes_of_them(case: str, looped: bool) -> None:
    base = np.resize(np.arange(40, dtype=np.float32), SHAPES.get(case, (40,)))
    locked = base.view()
    locked.flags.writeable = False
    out = np.zeros(40, np.float32)
    call = squares.bind(locked, out, grid=40) if case == "threads" else CASES[case](locked)
    loop = lw.steps([call]) if looped else None
    for n in range(3):
        base[...] = base * 2 + n
        if loop is not None:
            loop.run(1)
        found = call() if loop is None else call.results
        plain = CASES[case](base.copy())
        wanted = plain()
        if case == "threads":
            found, wanted = out, base * base
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for one, other in pairs:
            np.testing.assert_array_equal(np.squeeze(one), other)
    assert not locked.flags.writeable


def test_written_arrays_are_refused_as_before() -> None:
    a, out = np.ones(4, np.float32), np.ones(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(lw.ArgumentError, match="read-only"):
        squares(a, out, grid=4)
