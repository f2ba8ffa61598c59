"""`lw.steps`: the bits of plain loops for all patterns, however runs are divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.loops.loop_problems import DT, PROBLEMS, Grain, attract, grains, move


def same(found: list[Any], wanted: list[Any]) -> bool:
    return all(
        f.dtype == w.dtype and f.shape == w.shape and f.tobytes() == w.tobytes()
        for f, w in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bits_are_those_of_plain_calls(name: str) -> None:
    plain, looped = PROBLEMS[name]("cpu"), PROBLEMS[name]("cpu")
    before = plain.state()
    for n in range(90):
        plain.step(n)
    assert not same(before, plain.state())
    loop = looped.loop()
    for steps in (7, 0, 1, 33, 49):
        loop.run(steps)
    assert loop.step == 90
    assert same(looped.state(), plain.state())


@pytest.mark.parametrize("name", ["pairs", "by_step", "functions"])
def test_the_interpreter_has_loops_too(name: str) -> None:
    plain, looped = PROBLEMS[name]("python"), PROBLEMS[name]("python")
    for n in range(5):
        plain.step(n)
    looped.loop().run(2).run(3)
    assert same(looped.state(), plain.state())


@pytest.mark.parametrize("layout", [lw.AoS(), lw.AoSoA(8), lw.AoAS(16)], ids=str)
def test_layouts_and_sides(layout: lw.Layout) -> None:
    """Records with a second side on the host, which a function of the loop reads and writes."""
    states: list[list[Any]] = []
    for looped in (False, True):
        start = grains(40)
        bodies = Grain.array(
            position=start.position, velocity=start.velocity, mass=start.mass, layout=layout, host_layout=lw.SoA()
        )
        force = attract.bind(bodies, bodies, 0.01)
        kick = move.bind(bodies, force.results[0], DT, 0.0)

        def halve(bodies: Any = bodies) -> None:
            bodies.host.velocity = bodies.host.velocity * np.float32(0.5)

        if looped:
            lw.steps([force, kick, lw.every(3, halve)]).run(4).run(6)
        else:
            for n in range(10):
                attract(bodies, bodies, 0.01, out=force.results[0])
                move(bodies, force.results[0], DT, 0.0)
                if n % 3 == 0:
                    halve()
        states.append([np.array(bodies.position), np.array(bodies.velocity)])
    assert same(*states)
