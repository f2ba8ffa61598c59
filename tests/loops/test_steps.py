"""`lw.steps`: the bits of plain loops for all patterns, however runs are divided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loops.loop_problems import PROBLEMS


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
