"""No plan asks for what no machine has: every field has limits, and so has the code that a plan may ask for."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import DECLARED, NEUTRAL, Plan
from lanewise.support.errors import PlanError

NUMBERS = [f.name for f in fields(Plan) if DECLARED[f.name].limits is not None]
ABSURD: list[Any] = [-1, -(2**64), 10**6 + 2**20, 2**31, 2**63, 2**64, 10**30, sys.maxsize]
WRONG: list[Any] = [1.5, "8", (4,), float("nan"), np.array([4, 8]), object()]


class Thing(lw.Record):
    x: lw.f32


@lw.pairwise
def add(a: Thing, b: Thing) -> lw.f32:
    return a.x * b.x


@lw.elementwise
def double(a: Thing) -> lw.f32:
    return 2 * a.x


@lw.threadwise
def multiply(i: lw.index, j: lw.index, x: lw.Array2[lw.f32], y: lw.Array2[lw.f32], z: lw.Array2[lw.f32]):
    total = 0.0
    for k in range(x.shape[1]):
        total += x[i, k] * y[k, j]
    z[i, j] = total


def test_every_whole_number_has_limits() -> None:
    for name, kind in get_type_hints(Plan).items():
        if name in DECLARED:
            limited = int in get_args(kind)
            assert (DECLARED[name].limits is not None) == limited, name


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beyond_the_limits_are_refused(name: str) -> None:
    limits = DECLARED[name].limits
    assert limits is not None
    least, most = limits
    for value in [*ABSURD, least - 1, most + 1]:
        with pytest.raises(
            PlanError, match=rf"^Plan\({name}={value}\): wanted a whole number from {least:,} to {most:,}$"
        ):
            Plan(**{name: value})
    for value in (least, most, getattr(NEUTRAL, name)):
        assert getattr(Plan(**{name: value}), name) == value
    for value in (
        v for o in (DECLARED[name],) for v in (*o.cuda, *o.cpu, *o.items, *o.items_cpu, *o.points, *o.points_cpu)
    ):
        assert least <= value <= most


@pytest.mark.parametrize("name", [f.name for f in fields(Plan)])
def test_values_of_other_types_are_refused(name: str) -> None:
    for value in WRONG:
        if name in NUMBERS or not isinstance(value, bool):
            with pytest.raises(PlanError, match=rf"Plan\({name}="):
                Plan(**{name: value})


def test_code_that_would_be_too_long_is_refused() -> None:
    with pytest.raises(PlanError) as refused:
        Plan(targets=16, rows=64, unroll=8)
    assert str(refused.value) == (
        "Plan(targets=16, rows=64, unroll=8): targets x rows x unroll are 8,192 copies of a statement; wanted at most 4,096"
    )


LONG = [
    Plan(targets=4096),
    Plan(targets=65),
    Plan(across=16, targets=16, rows=64),
    Plan(targets=64, rows=64),
    Plan(tile=2**20, targets=2),
]


@pytest.mark.parametrize("plan", LONG, ids=str)
def test_no_call_is_compiled_for_minutes(plan: Plan) -> None:
    """Where a kernel has no use for so many copies it refuses them, and compiles nothing before."""
    things, x = Thing.array(x=np.ones(10)), np.ones((40, 40), "f4")
    began = time.process_time()
    for call in (
        lambda: add(things, things, plan=plan),
        lambda: double(things, plan=plan),
        lambda: multiply(x, x.copy(), x.copy(), grid=(40, 40), plan=plan),
    ):
        with contextlib.suppress(PlanError):
            call()
    assert time.process_time() - began < 60
