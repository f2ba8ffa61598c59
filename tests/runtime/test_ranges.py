"""An element of a range has the same bits wherever the range is cut: in vectors, and behind the last of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids.parameters import Parameters, move_values
from lanewise.sims.boids.rules import BOUNDED, SPHERE, in_cone, make_rules, record_class, truncated, urge

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


@pytest.mark.parametrize("end", [SPHERE, BOUNDED])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_agents(precision: str, end: int) -> None:
    rng = np.random.default_rng(6)
    vectors = {n: rng.standard_normal((N, 3)) for n in ("position", "forward", "up", "acceleration")}
    flock = record_class(precision).array(**vectors, speed=9 * rng.random(N))
    urges = [rng.standard_normal((N, 3)).astype(flock.position.dtype) for _ in range(3)]
    move = make_rules(precision, end, True).move
    cut_anywhere(move, flock, urges, **move_values(Parameters(), 1 / 60), world=50.0)
