"""What lists of lw.steps may not hold, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.loops.loop_problems import attract, flow, full_of, grains, move

BODIES = grains(4)
CALL = attract.bind(BODIES, BODIES, 0.01)
SITES = full_of("pull", "cpu")


@lw.stencil(lw.D2Q5)
def blow(t: lw.Field[lw.f32], wind: lw.f32) -> lw.f32:
    return t[0] + wind * (t[1] - t[0])


AIR = blow.sites((6, 8), t=1.0, device="cpu")
SPLIT_AIR = blow.sites((16, 8), t=1.0, device="cpu*2")


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("calls", "named", "text"),
    [
        ([], {}, "lw.steps: the list is empty; wanted a bound call at least"),
        (CALL, {}, "lw.steps: wanted a list of bound calls, found <bound call of attract on cpu>"),
        ([CALL, attract], {}, "call 1 is <lanewise pairwise kernel attract>, which is not bound to arrays; wanted a bound call: kernel.bind(...)"),
        ([attract.gradient("position")], {}, "which is not bound to arrays"),
        ([CALL.compiled], {}, "which is not bound to arrays"),
        ([flow], {}, "which counts no steps; wanted a stepper: flow.stepper(sites, ...)"),
        ([flow.compile(SITES, omega=0.5)], {}, "which counts no steps; wanted a stepper"),
        ([lw.steps([CALL])], {}, "call 0 is a separate loop, <loop of attract on cpu, step 0>; wanted its calls in this list"),
        ([[CALL], [CALL]], {}, "call 0 is a list; with cycle=m there are m lists"),
        ([CALL, 3], {}, "call 1 is 3; wanted a bound call (kernel.bind(...)), a stepper of sites, lw.every(k, ...) or a function without arguments"),
        ([CALL, lambda n: None], {}, "which takes 'n', and a loop calls its functions without arguments; wanted a function without, which can read loop.step"),
        ([[CALL]], {"cycle": 2}, "cycle=2 takes as many lists, one for each step of a cycle; found 1"),
        ([[CALL], []], {"cycle": 2}, "list 1 of cycle=2: the list is empty"),
        ([[CALL], [attract]], {"cycle": 2}, "call 0 of list 1 is"),
        ([[CALL]], {"cycle": 1.0}, "lw.steps: cycle is an integer, found 1.0"),
        ([lw.every(31, nothing), lw.every(37, nothing)], {}, "come again after 1,147 steps only"),
        ([lw.every(10**12, nothing)], {}, "come again after 1,000,000,000,000 steps only"),
        ([CALL, move.bind(BODIES, np.zeros((4, 2)), 0.1, 0.0)], {}, "call 1, move, was bound to a copy of 'force': what is written there later the loop would not see; wanted a contiguous array of the parameter's type on cpu"),
        ([move.bind(BODIES, np.zeros((2, 4), np.float32).T, 0.1, lw.by_step(float))], {}, "call 0, move, was bound to a copy of 'force'"),
        ([blow.stepper(AIR, wind=np.ones((6, 8)))], {}, "call 0, blow, was bound to a copy of 'wind'"),
        ([blow.stepper(SPLIT_AIR, wind=np.ones((16, 8), np.float32))], {}, "lw.steps: call 0, blow, has copies of 'wind' on the parts of a mesh (2 x cpu): what is written there later the loop would not see; wanted a single value for all sites, or sites on one device"),
        ([lw.couple(blow.stepper(AIR, wind=np.ones((6, 8))))], {}, "call 0, couple(blow), was bound to a copy of 'wind'"),
        ([[lw.every(4, CALL, at=1)], [CALL]], {"cycle": 2}, "call 0 of list 0 runs in no step: lw.every(4, ..., at=1) and cycle=2 have none in common"),
        ([CALL], {"structures": "kept"}, "structures is \"follow\" or \"keep\", found 'kept'"),
        ([CALL], {"profile": 1}, "profile is an lw.Profile(), found 1"),
    ],
)  # fmt: skip
def test_lists(calls: Any, named: Any, text: str) -> None:
    with pytest.raises(lw.ArgumentError) as raised:
        lw.steps(calls, **named)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "named", "text"),
    [
        ((0, nothing), {}, "lw.every: k is at least 1, found 0"),
        ((2.0, nothing), {}, "lw.every: k is an integer, found 2.0"),
        ((3, nothing), {"at": 3}, "no step n has n % 3 == 3; wanted at from 0 to 2"),
        ((3, lw.every(2, nothing)), {}, "lw.every(3, lw.every(2, ...)): wanted one of them"),
    ],
)
def test_every(arguments: Any, named: Any, text: str) -> None:
    with pytest.raises(lw.ArgumentError) as raised:
        lw.every(*arguments, **named)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1.5,), "lw.steps: steps is an integer, found 1.5"),
        ((-1,), "-1 steps requested; wanted from 0 to"),
        ((1, 7), "callback is a function, found 7"),
        ((1, nothing, 0), "every is at least 1, found 0"),
    ],
)
def test_runs(arguments: Any, text: str) -> None:
    loop = lw.steps([CALL])
    with pytest.raises(lw.ArgumentError) as raised:
        loop.run(*arguments)
    assert text in str(raised.value)
    assert loop.step == 0


def test_the_step_is_a_whole_number() -> None:
    loop = lw.steps([CALL])
    with pytest.raises(lw.ArgumentError, match=r"integer, found 0\.5"):
        loop.step = 0.5  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(lw.ArgumentError, match="the step of a loop is from 0 to"):
        loop.step = -1
    with pytest.raises(AttributeError, match="cycle"):
        loop.cycle = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_arrays_that_are_taken_as_they_are() -> None:
    """Of the right type: a loop sees what is written to them."""
    wind = np.zeros((6, 8), np.float32)
    air = blow.sites((6, 8), t=np.arange(48.0).reshape(6, 8), device="cpu")
    loop = lw.steps([blow.stepper(air, wind=wind)])
    before = np.array(blow.field(air, "t"))
    loop.run(3)
    assert np.array_equal(before, blow.field(air, "t"))
    wind[:] = 0.5
    loop.run(1)
    assert not np.array_equal(before, blow.field(air, "t"))
