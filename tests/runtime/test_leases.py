"""Ctrl-C where Python looks for signals in a call: the memory that calls lease is free afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.lease import Lease


class Weight(lw.Record):
    mass: lw.f32


@lw.elementwise
def deposit(weight: Weight, one: lw.Array1[lw.f32], other: lw.Array1[lw.f64]):
    lw.scatter_add(one, 0, weight.mass)
    lw.scatter_add(other, 0, lw.f64(weight.mass))


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
    thread.join(60)  # patience: it is there at once, or never
    return not thread.is_alive()


def next_stream(last: int | None) -> int:
    return 1 if last is None else last + 1


@pytest.mark.parametrize("follow", [None, next_stream], ids=["host", "follows a stream"])
def test_turns_are_free_wherever_ctrl_c_comes(follow: Callable[[Any], Any] | None) -> None:
    lease = Lease("a call", follow)

    def use() -> None:
        with lease:
            len("work")

    at = 1
    while interrupted(use, at):
        assert free(use), at
        at += 1
    assert at > 3


def test_bound_sums_begin_anew_wherever_ctrl_c_came() -> None:
    one, other = np.zeros(1, np.float32), np.zeros(1)
    call = deposit.bind(Weight.array(mass=np.ones(5)), one, other)
    call()
    at = 1
    while interrupted(call, at):
        one[:] = other[:] = 0
        call()
        assert (one[0], other[0]) == (5, 5), at
        at += 1
    assert at > 10
