"""A loop whose first step would read results that nothing has filled is refused; every other one runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw

KINDS: dict[str, Any] = {"f4": lw.f32, "f8": lw.f64, "i4": lw.i32, "i8": lw.i64, "u4": lw.u32}


@lw.record
class Body:
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.elementwise
def kick(body: Body, a: lw.vec3, dt: lw.f32):
    body.velocity += dt * a


@lw.pairwise
def force(target: Body, source: Body) -> lw.vec3:
    d = source.position - target.position
    return source.mass * d


def made(name: str) -> tuple[Any, Any]:
    kind = KINDS[name]

    @lw.elementwise
    def produce(x: kind) -> kind:
        return x + x

    @lw.elementwise
    def consume(y: kind) -> kind:
        return y + y

    return produce, consume


def bound(kind: str, count: int, device: str) -> tuple[Any, Any]:
    produce, consume = made(kind)
    with lw.device(device):
        x = np.ones(count, kind)
        first = produce.bind(x)
        return first, consume.bind(first.results[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_results_that_nothing_has_filled(kind: str, count: int) -> None:
    first, second = bound(kind, count, "cpu")
    with pytest.raises(lw.ArgumentError) as error:
        lw.steps([second, first]).run(3)
    assert str(error.value) == (
        "lw.steps: consume reads the results of produce, which has not run yet: nothing is in "
        "them. Call produce once before the loop, put it before consume, or fill its results"
    )


READY: dict[str, Callable[[Any, Any], Any]] = {
    "called once": lambda first, second: (first(), lw.steps([second, first]))[1],
    "in order": lambda first, second: lw.steps([first, second]),
    "filled": lambda first, second: (first.results[0].fill(3), lw.steps([second, first]))[1],
    "run by a loop": lambda first, second: (lw.steps([first]).run(1), lw.steps([second, first]))[1],
}


@pytest.mark.parametrize("way", READY)
@pytest.mark.parametrize("kind", KINDS)
def test_every_other_loop_runs(way: str, kind: str) -> None:
    first, second = bound(kind, 5, "cpu")
    READY[way](first, second).run(2)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, kind))


def test_one_function_twice_and_results_of_calls_outside() -> None:
    produce, _ = made("f4")
    first = produce.bind(np.ones(5, "f4"))
    second = produce.bind(first.results[0])
    with pytest.raises(lw.ArgumentError, match="produce reads the results of produce, which has not run yet"):
        lw.steps([second, first]).run(1)
    with pytest.raises(lw.ArgumentError, match="produce reads the results of a bound call that has not run"):
        lw.steps([second]).run(1)
    first()
    lw.steps([second]).run(1)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, "f4"))


def test_calls_that_write_into_the_results_of_others() -> None:
    (f, g), (h, _) = made("f4"), made("f4")
    a = f.bind(np.ones(5, "f4"))
    b = g.bind(a.results[0], out=a.results[0])
    c = h.bind(a.results[0])
    lw.steps([a, c, b]).run(1)
    np.testing.assert_array_equal(c.results[0], np.full(5, 4, "f4"))


def test_what_a_function_fills_nobody_knows() -> None:
    first, second = bound("f4", 5, "cpu")
    lw.steps([lambda: first.results[0].fill(2), second]).run(1)
    np.testing.assert_array_equal(second.results[0], np.full(5, 4, "f4"))


def test_a_kick_before_the_first_force() -> None:
    n = 6
    bodies = Body.array(position=np.ones((n, 3), "f4"), velocity=np.zeros((n, 3), "f4"), mass=np.ones(n, "f4"))
    forces = force.bind(bodies, bodies)
    kicks = kick.bind(bodies, forces.results[0], 0.5)
    with pytest.raises(lw.ArgumentError, match="kick reads the results of force, which has not run yet"):
        lw.steps([kicks, forces]).run(1)
    with pytest.raises(lw.ArgumentError, match="has not run yet"):
        lw.steps([[kicks], [forces, kicks]], cycle=2).run(4)
    lw.steps([[forces, kicks], [kicks]], cycle=2).run(4)
    lw.steps([kicks, forces]).run(1)
