"""Random programs of assignments, branches and loops: as ordinary Python, in the interpreter, and compiled.

All float values are small multiples of 1/8 and every assignment wraps them back, so that arithmetic is exact in
float32, float64 and with fused operations: the three ways must agree to the bit, and so must every branch that depends
on them.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.ways import agree
from tests.written import module

FLOAT = st.sampled_from(["x", "y", "d", "v.x", "v.zy.y", "0.5", "2", "-1.25"])
WHOLE = st.sampled_from(["n", "m", "k", "j", "7", "-3"])


def float_expression(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return FLOAT
    inner = float_expression(depth - 1)
    return st.one_of(
        FLOAT,
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), FLOAT),
        st.builds("({} if {} else {})".format, inner, condition(0), inner),
        st.builds("lw.{}({}, {})".format, st.sampled_from(["min", "max"]), inner, FLOAT),
        st.builds("lw.dot(lw.vec2({}, 1), v.xz)".format, FLOAT),
        st.builds("toggled({}, {})".format, inner, FLOAT),
        st.builds("lw.floor({})".format, inner),
    )


def whole_expression(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return WHOLE
    inner = whole_expression(depth - 1)
    return st.one_of(
        WHOLE,
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "&", "|", "^"]), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["//", "%"]), st.sampled_from(["5", "-3", "8"])),
        st.builds("({} {} {})".format, inner, st.sampled_from(["<<", ">>"]), st.integers(0, 4)),
        st.builds("~{}".format, inner),
    )


def condition(depth: int) -> st.SearchStrategy[str]:
    compared = st.one_of(
        st.builds("{} {} {}".format, FLOAT, st.sampled_from(["<", ">=", "=="]), FLOAT),
        st.builds("{} {} {} < 40".format, WHOLE, st.sampled_from(["<", "!=", ">"]), WHOLE),
    )
    if depth == 0:
        return compared
    inner = condition(depth - 1)
    return st.one_of(
        compared,
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("not ({})".format, inner),
    )


ASSIGNMENT = st.one_of(
    st.builds("x = lw.f32(wrapped({}))".format, float_expression(2)),
    st.builds("y = lw.f64(wrapped({}))".format, float_expression(2)),
    st.builds("n = lw.i32(({}) % 1000)".format, whole_expression(2)),
    st.builds("m = ({}) % 77 - 30".format, whole_expression(2)),
    st.builds("a[({}) % 4] += 1".format, whole_expression(1)),
    st.builds("k = a[{}] + {}".format, st.integers(0, 3), st.integers(-2, 2)),
    st.builds("x, y = lw.f32(y), wrapped({})".format, float_expression(1)),
    st.builds("v = lw.vec3(v.yz, wrapped({}))".format, float_expression(1)),
)


def statement(depth: int, loop: bool) -> st.SearchStrategy[list[str]]:
    leave = (
        [st.builds(lambda c, s: [f"if {c}:", f"    {s}"], condition(0), st.sampled_from(["break", "continue"]))]
        if loop
        else []
    )
    early = st.builds(lambda c, e: [f"if {c}:", f"    return wrapped({e}), y, n, -1"], condition(1), FLOAT)
    simple = [ASSIGNMENT.map(lambda line: [line])] * 4
    if depth == 0:
        return st.one_of(*simple, *leave)
    body = block(depth - 1, loop)
    return st.one_of(
        *simple, *leave, early,
        st.builds(lambda c, a, b: [f"if {c}:", *_in(a), "else:", *_in(b)], condition(1), body, body),
        st.builds(lambda c, a: [f"if {c}:", *_in(a)], condition(1), body),
        st.builds(lambda r, a: [f"for j{depth} in range({r}):", *_in([f"j = j{depth}", *a])],
                  st.sampled_from(["4", "n % 5", "5, 0, -2", "m % 3, 6, 2"]), block(depth - 1, True)),
        st.builds(lambda c, a: [f"turns{depth} = 0", f"while turns{depth} < 5 and ({c}):", *_in([f"turns{depth} += 1", *a])],
                  condition(0), block(depth - 1, True)),
    )  # fmt: skip


def block(depth: int, loop: bool) -> st.SearchStrategy[list[str]]:
    return st.lists(statement(depth, loop), min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


HEAD = """
@lw.function
def wrapped(value):
    return lw.clamp(lw.floor(value * 8) * 0.125, -16, 16)

@lw.function
def toggled(value, other):
    if value < other:
        return -value
    return value

@lw.elementwise
def kernel(x: lw.f32, d: lw.f64, v: lw.vec3, n: lw.i32) -> tuple[lw.f64, lw.f64, lw.i64, lw.i32]:
    y = d
    m = lw.i64(n) * 3
    k = 1
    j = lw.i64(0)
    a = lw.zeros(lw.i32, 4)
"""


def check(lines: list[str], *, cpu: bool) -> None:
    source = (
        HEAD
        + "\n".join(_in([*lines, "return x + v.z, y, n + m, a[0] + 10 * a[1] + 100 * a[2] + 1000 * a[3] + k"]))
        + "\n"
    )
    rng = np.random.default_rng(7)
    agree(
        module(source).kernel, cpu=cpu, x=rng.integers(-16, 16, 6) / np.float32(8), d=rng.integers(-16, 16, 6) / 8,
        v=(rng.integers(-16, 16, (6, 3)) / 8).astype(np.float32), n=rng.integers(-50, 50, 6).astype(np.int32),
    )  # fmt: skip


@given(lines=block(3, False))
def test_interpreted_as_python(lines: list[str]) -> None:
    check(lines, cpu=False)


@settings(max_examples=8)
@given(lines=st.lists(block(3, False), min_size=4, max_size=4).map(lambda blocks: [line for b in blocks for line in b]))
def test_compiled_as_interpreted(lines: list[str]) -> None:
    check(lines, cpu=True)
