"""Ctrl-C where Python looks for signals in a call: the memory that calls take turns at is free afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.prepared import Turns


class Weight(lw.Record):
    mass: lw.f32


@lw.elementwise
def mass(weight: Weight, unit: lw.f32) -> lw.f32:
    return unit * weight.mass


def interrupted(work: Callable[[], object], at: int) -> bool:
    """Whether Ctrl-C came: at such a place of `work`, where a call of Python begins or one of C has ended."""
    left = [at]

    def look(frame: FrameType, event: str, argument: Any) -> None:
        del frame, argument
        if event in ("call", "c_return"):
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def free(work: Callable[[], object]) -> bool:
    """Whether another thread gets to the end of it."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()


def next_stream(last: int | None) -> int:
    return 1 if last is None else last + 1


@pytest.mark.parametrize("follow", [None, next_stream], ids=["host", "follows a stream"])
def test_turns_are_free_wherever_ctrl_c_comes(follow: Callable[[Any], Any] | None) -> None:
    turns = Turns("a call", follow)

    def use() -> None:
        with turns:
            len("work")

    at = 1
    while interrupted(use, at):
        assert free(use), at
        at += 1
    assert at > 3


def test_calls_go_on_wherever_ctrl_c_came() -> None:
    weights = Weight.array(mass=np.ones(5))

    def call() -> None:
        assert mass.sum(weights, 2.0) == 10

    for _ in range(6):
        call()
    at = 1
    while interrupted(call, at):
        assert free(call), at
        at += 1
    assert at > 10
