"""An element of a range has the same bits wherever the range is cut: in vectors, and after the last of them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import cpu
from lanewise.sims.boids.parameters import Parameters, move_values
from lanewise.sims.boids.rules import BOUNDED, SPHERE, in_cone, make_rules, record_class, truncated, urge
from tests.fuzz.texts import executed
from tests.runtime.branching_kernels import FIELDS, RESULTS, branching_kernel

N = 515


class Bird(lw.Record):
    place: lw.dvec3
    forward: lw.dvec3
    speed: lw.f64
    wish: lw.dvec3


@lw.elementwise
def turned(b: Bird, s: lw.dvec3, t: lw.dvec3, u: lw.dvec3, weights: lw.dvec3, world: lw.f64):
    v = urge(s, t, u, weights)
    if lw.dot(b.place, b.place) <= world * world:
        b.wish = in_cone(v, b.forward, b.speed, 9.0)


@lw.elementwise
def shortened(b: Bird, s: lw.dvec3, t: lw.dvec3, u: lw.dvec3, weights: lw.dvec3, world: lw.f64):
    v = urge(s, t, u, weights)
    if lw.dot(b.place, b.place) <= world * world:
        b.wish = truncated(v, world)


@lw.elementwise
def scaled(b: Bird, s: lw.dvec3, t: lw.dvec3, u: lw.dvec3, weights: lw.dvec3, world: lw.f64):
    v = urge(s, t, u, weights)
    if lw.dot(b.place, b.place) <= world * world:
        b.wish = v * (1 - 2 * (b.speed / 1.8) ** 4)


def cut_anywhere(kernel: Any, array: Any, values: list[Any], **numbers: Any) -> None:
    """A call on all records, and calls on a few of them each."""
    parts = {size: array.copy() for size in (7, 64)}
    kernel(array, *values, **numbers)
    for size, cut in parts.items():
        for k in range(0, N, size):
            kernel(cut[k : k + size], *(v[k : k + size] for v in values), **numbers)
        for name, column in array.numpy().items():
            assert np.array_equal(column, cut.numpy()[name]), (size, name)


@pytest.mark.parametrize("kernel", [turned, shortened, scaled], ids=lambda k: k.__name__)
def test_choices_behind_a_condition(kernel: Any) -> None:
    rng = np.random.default_rng(5)
    fields = {n: rng.standard_normal((N, 3)) for n in ("place", "forward", "wish")}
    birds = Bird.array(**fields, speed=9 * rng.random(N))
    values = [rng.standard_normal((N, 3)) for _ in range(3)]
    cut_anywhere(kernel, birds, values, weights=np.array([0.7, 0.3, 0.1]), world=2.0)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("end", [SPHERE, BOUNDED])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_agents(precision: str, end: int) -> None:
    rng = np.random.default_rng(6)
    vectors = {n: rng.standard_normal((N, 3)) for n in ("position", "forward", "up", "acceleration")}
    flock = record_class(precision).array(**vectors, speed=9 * rng.random(N))
    urges = [rng.standard_normal((N, 3)).astype(flock.position.dtype) for _ in range(3)]
    move = make_rules(precision, end, True).move
    cut_anywhere(move, flock, urges, **move_values(Parameters(), 1 / 60), world=50.0)


def same_in_ranges(
    kind: str, layout: lw.Layout, seed: int, ranges: Iterable[slice], *functions: str, bits: int = 0
) -> None:
    """All elements are in vectors in a call on 256 records; those of a short range are after the last vector.

    Kernels of `branching_kernel` write no field that they read: calls may come in any order.
    """
    rng, plan, dtype = np.random.default_rng(seed), lw.Plan(vector_bits=bits), {"f32": "f4", "f64": "f8"}[kind]
    fields = {n: rng.standard_normal(256).astype(dtype) for n in (*FIELDS, *RESULTS)}
    with executed(branching_kernel(Random(seed), kind, *functions), f"branching_{kind}_{seed}.py") as names:
        records = names.R.array(**fields, layout=layout)
        whole = np.asarray(names.kernel(records, 0.6, 1.1, plan=plan))
        wanted = {n: records.numpy()[n].copy() for n in RESULTS}
        for rows in ranges:
            few = records[rows].copy() if isinstance(layout, lw.AoSoA) else records[rows]
            found = names.kernel(few, 0.6, 1.1, plan=plan)
            assert np.array_equal(found, whole[rows], equal_nan=True), rows
            for name, column in wanted.items():
                assert np.array_equal(few.numpy()[name], column[rows], equal_nan=True), (name, rows)


LAYOUTS = {"SoA": lw.SoA(), "AoS": lw.AoS(), "AoSoA": lw.AoSoA(8)}
EVERY = [slice(first, first + length) for length in range(1, 71) for first in range(71)]
SOME = Random(1).sample(EVERY, 40)


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_that_are_used_behind_branches(layout: str, kind: str) -> None:
    """Kernels with products that LLVM fuses with sums in vectors, and not behind them."""
    for seed in (2, 14, 33, 57):
        same_in_ranges(kind, LAYOUTS[layout], seed, SOME)


OTHERS = "lw.exp(-abs({0}))", "lw.mix({0}, {1}, 0.3)", "lw.fma({0}, {1}, 0.3)", "{0} // (0.5 + abs({1}))"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bits", [0, 256, 512])
def test_random_kernels_of_branches(bits: int, layout: str, kind: str) -> None:
    if cpu.width_problem(bits):
        pytest.skip("this CPU has no such registers")
    for seed in range(1000, 1020):
        same_in_ranges(kind, LAYOUTS[layout], seed, SOME, *(OTHERS if seed % 2 else ()), bits=bits)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_range(layout: str, kind: str) -> None:
    for seed in (2, 14):
        same_in_ranges(kind, LAYOUTS[layout], seed, EVERY)
