"""Random loops beside plain calls: any calls in any order and rhythm, however runs are cut, looked at, interrupted by
errors, set and shared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.loops.loop_problems import DT, attract, flow, full_of, grains, move

RHYTHMS = (None, None, (1, 0), (2, 0), (2, 1), (3, 1), (5, 4))
LENGTHS = (0, 1, 2, 3, 7, 16, 33)


@lw.elementwise
def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
    return a * x + y


@lw.threadwise
def put(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], s: lw.f32):
    b[i] = a[i] + s


def number(n: int) -> Any:
    return np.float32(n * 7 % 5 / 8)


class World:
    """Arrays that calls of all kinds read and write, in place and beside."""

    def __init__(self, streaming: str) -> None:
        self.bodies, self.force = grains(13, "cpu"), np.ones((13, 2), np.float32)
        self.x, self.y, self.z = np.arange(7, dtype=np.float32), np.ones(7, np.float32), np.zeros(7, np.float32)
        self.sites, self.log = full_of(streaming, "cpu"), list[int]()

    def look(self, n: int) -> None:
        self.y[...] = np.mod(self.y + self.x, 3)
        self.log.append(n)

    def plain(self, name: str, n: int) -> None:
        match name:
            case "move":
                move(self.bodies, self.force, DT, 0.0)
            case "move by step":
                move(self.bodies, self.force, DT, number(n))
            case "attract":
                self.force[...] = attract(self.bodies, self.bodies, 1.0)
            case "in place":
                axpy(0.5, self.x, self.y, out=self.x)
            case "beside, by step":
                axpy(number(n), self.x, self.y, out=self.z)
            case "threads":
                put(self.x, self.z, 1.0, grid=7)
            case "flow":
                flow(self.sites, omega=0.5)
            case "another flow":
                flow(self.sites, omega=0.25)
            case _:
                self.look(n)

    def bound(self, name: str, step: Callable[[], int]) -> Any:
        match name:
            case "move":
                return move.bind(self.bodies, self.force, DT, 0.0)
            case "move by step":
                return move.bind(self.bodies, self.force, DT, lw.by_step(number))
            case "attract":
                return attract.bind(self.bodies, self.bodies, 1.0, out=self.force)
            case "in place":
                return axpy.bind(0.5, self.x, self.y, out=self.x)
            case "beside, by step":
                return axpy.bind(lw.by_step(number), self.x, self.y, out=self.z)
            case "threads":
                return put.bind(self.x, self.z, 1.0, grid=7)
            case "flow":
                return flow.stepper(self.sites, omega=0.5)
            case "another flow":
                return flow.stepper(self.sites, omega=0.25)
            case _:
                return lambda: self.look(step())

    def state(self) -> list[Any]:
        arrays = (self.bodies.position, self.bodies.velocity, self.x, self.y, self.z, flow.populations(self.sites))
        return [np.array(a).tobytes() for a in arrays] + [self.sites.step, self.log]


CALLS = ("move", "move by step", "attract", "in place", "beside, by step", "threads", "flow", "another flow", "look")


class Stop(Exception):
    pass


def run(loop: Any, rng: Random, mine: World, other: World) -> int:
    """Some steps in one of the ways to take them: how many. What is done to one world is done to the other."""
    steps, way = rng.choice(LENGTHS), rng.choice(("plain", "looks", "raises", "set", "written", "threads"))
    begin = loop.step
    if way == "looks":
        seen, every = list[int](), rng.choice((1, 2, 5))

        def note(loop: Any) -> None:
            seen.append(loop.step)

        loop.run(steps, callback=note, every=every)
        assert seen == [*range(begin + every, begin + steps + 1, every), *([begin + steps] if steps % every else [])]
    elif way == "raises" and steps:
        last = rng.randint(1, steps)

        def stop(loop: Any) -> None:
            if loop.step == begin + last:
                raise Stop

        with pytest.raises(Stop):
            loop.run(steps, callback=stop)
        return last
    elif way == "threads":
        threads = [threading.Thread(target=loop.run, args=(1,)) for _ in range(steps)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        if way == "set":
            loop.step = rng.choice((0, 1, 17, 10**6, 10**12 - 40))
        if way == "written":
            for world in (mine, other):
                world.x += 1
                world.bodies.mass = np.full(13, 0.5)
        loop.run(steps)
    return steps


def check(seed: int) -> None:
    rng = Random(seed)
    calls = [(rng.choice(CALLS), rng.choice(RHYTHMS)) for _ in range(rng.randint(1, 5))]
    mine, other = (World(streaming) for streaming in [rng.choice(("pull", "push", "in-place"))] * 2)
    made = [(mine.bound(name, lambda: loop.step), rhythm) for name, rhythm in calls]
    loop = lw.steps([c if r is None else lw.every(r[0], c, at=r[1]) for c, r in made])
    for _ in range(rng.randint(1, 5)):
        taken = run(loop, rng, mine, other)
        for n in range(loop.step - taken, loop.step):
            for name, rhythm in calls:
                if rhythm is None or n % rhythm[0] == rhythm[1]:
                    other.plain(name, n)
        assert mine.state() == other.state(), (seed, calls)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops_are_their_calls(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(1, 40))
def test_many_random_loops_are_their_calls(tens: int) -> None:
    for seed in range(20 * tens, 20 * tens + 20):
        check(seed)
