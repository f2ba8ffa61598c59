"""Literals that a helper makes large: a program that meant an i32 is refused, which is no failure; refused for anything else, it is one."""

from __future__ import annotations

import pytest

from lanewise.support.errors import CompileError
from tests.fuzz.campaign import Case
from tests.fuzz.literals import with_types
from tests.fuzz.trial import Trial

PROGRAM = """
@lw.function
def helper1(p0, p1):
    return {returned}


@lw.threadwise
def kernel(x: lw.index, t: lw.Array1[lw.i32], c: lw.Array1[lw.i32], w: lw.Array1[lw.i64]):
    s = t[x]
    {line}
    c[x] += s


def arguments(device):
    return [], dict(t=on(device, drawn(7, 'i4', (9,))), c=on(device, drawn(8, 'i4', (9,))), w=on(device, drawn(9, 'i8', (9,))), grid=9)
"""
LARGE = "(p0 & p0) + 1000"  # of 2147483647: 2147484647, which i32 does not hold
LINES = (
    "s = helper1({}, t[x])", "s = -helper1({}, 7)", "s += helper1({}, 7)", "s = t[x] + helper1({}, 0.5)", "c[x] = helper1({}, 7)",
    "c[x] -= helper1({}, s)", "s = lw.min(s, helper1({}, 7)) & 3", "s: lw.i32 = helper1({}, 7)", "s = helper1(helper1({}, 7), 7) if s > 0 else s",
)  # fmt: skip


def outcome(line: str, returned: str = LARGE) -> str:
    line = line.replace("s: lw.i32", "q: lw.i32")
    return Trial(Case("threadwise", 1, 0, quick=True), PROGRAM.format(returned=returned, line=line)).run()


@pytest.mark.parametrize("line", LINES)
def test_a_literal_that_became_too_large_is_no_failure(line: str) -> None:
    assert outcome(line.format(2147483647)) == "literal refused"
    assert outcome(line.format(-2147483647), "(p0 | p0) - 1000") == "literal refused"
    assert outcome(line.format(2147482647)).startswith("equal")


@pytest.mark.parametrize(
    ("line", "returned"),
    [
        ("s = w[x]", LARGE),
        ("s = helper1(w[x], 3)", LARGE),
        ("s = helper1(5, w[x])", "p1 + p0"),
        ("s = helper1(2147483647, w[x])", f"{LARGE} + p1"),
        ("s = lw.i64(2) + helper1(5, 7)", LARGE),
        ("s = 0.5", LARGE),
    ],
)
def test_what_is_wider_without_literals_is_one(line: str, returned: str) -> None:
    with pytest.raises(CompileError, match="is of type i32 since line"):
        outcome(line, returned)


def test_literals_of_helpers_with_types() -> None:
    text = "a = helper1(-3, b, 0.5) + helper2(helper3(7), lw.i64(2)) + tame(2.0)\n"
    typed = "a = helper1(lw.i32(-3), b, lw.f32(0.5)) + helper2(helper3(lw.i32(7)), lw.i64(2)) + tame(2.0)\n"
    assert with_types(text) == typed
    assert with_types(typed) is None
