"""Threads that surely meet are refused before a call: exactly those that a look at all threads finds, in grids that are small."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.threadwise import meetings
from lanewise.support.errors import ArgumentError


@lw.threadwise
def shift(i: lw.index, n: lw.i32, c: lw.Array1[lw.f32]):
    c[i] += c[i + n]


@lw.threadwise
def halves(i: lw.index, c: lw.Array1[lw.f32]):
    c[i // 2] = 1.0


@lw.threadwise
def twice(i: lw.index, c: lw.Array1[lw.f32]):
    c[i] = 1.0
    c[i + 1] = 2.0


@lw.threadwise
def normed(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):
    c[y, x] = c[y, x] / c[0, 0]


@lw.threadwise
def red(i: lw.index, c: lw.Array1[lw.f32]):
    if i % 2 == 0:
        c[i] = c[i + 1]


@lw.threadwise
def swapped(i: lw.index, c: lw.Array1[lw.f32]):
    k = 2 * i
    a = c[k]
    c[k] = c[k + 1]
    c[k + 1] = a


@lw.threadwise
def anywhere(i: lw.index, p: lw.Array1[lw.i32], c: lw.Array1[lw.f32]):
    k = p[i]
    c[k] = c[i]


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def test_what_is_said() -> None:
    with pytest.raises(ArgumentError) as error:
        shift(4, zeros(16), grid=8)
    text = str(error.value)
    assert "shift: threads meet at an element that one of them writes" in text
    assert "    c[i] += c[i + n]\n    ^^^^\n" in text
    assert "found: i = 4 writes c[4], and i = 0 reads it in line 20, c[i + n], with grid=8" in text
    assert "wanted: separate elements for every thread, as nothing says which thread comes first" in text
    assert (
        "hint: write to another array, or let a condition leave one of the threads out; sums of many threads are lw.scatter_add"
        in text
    )
    with pytest.raises(ArgumentError, match=r"found: i = 0 writes c\[0\], and i = 1 also writes it, with grid=4"):
        halves(zeros(2), grid=4)
    with pytest.raises(
        ArgumentError, match=r"i = 1 writes c\[1\], and i = 0 also writes it, in line 31, c\[i \+ 1\], with grid=8"
    ):
        twice(zeros(9), grid=8)
    with pytest.raises(
        ArgumentError, match=r"y = 0, x = 0 writes c\[0, 0\], and y = 0, x = 1 reads it in line 36, c\[0, 0\]"
    ):
        normed(zeros(3, 4) + 1, grid=(3, 4))


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_what_is_no_race_runs(device: str) -> None:
    with lw.device(device):
        c = np.arange(16, dtype=np.float32)
        shift(8, c, grid=8)
        assert c.tolist() == [*range(8, 24, 2), *range(8, 16)]
        shift(4, c, grid=1)
        normed(zeros(1, 1) + 1, grid=(1, 1))
        shift(1, zeros(5), grid=0)
        c = np.arange(8, dtype=np.float32)
        red(c, grid=7)
        swapped(c, grid=4)
        assert c.tolist() == [1, 1, 3, 3, 5, 5, 7, 7]
        anywhere(np.arange(4, dtype=np.int32), zeros(4), grid=4)


def test_another_value_is_looked_at_again() -> None:
    c = zeros(16)
    for _ in range(3):
        shift(8, c, grid=8)
    for n in (7, 1, 4):
        with pytest.raises(ArgumentError, match="threads meet"):
            shift(n, c, grid=8)
    shift(8, c, grid=8)


def test_threads_that_are_far_apart() -> None:
    c = zeros(1, 1)
    n = 4 * meetings.THREADS
    for away in (1, meetings.THREADS // 2 - 1, n - 1):
        with pytest.raises(ArgumentError, match="threads meet"):
            shift(away, np.resize(c, 2 * n), grid=n)
    shift(n, np.resize(c, 2 * n), grid=n)


NUMBERS = st.integers(-3, 3)


@settings(max_examples=60, deadline=None)
@given(
    extents=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    indices=st.tuples(*[st.tuples(NUMBERS, NUMBERS, st.integers(0, 4), st.sampled_from(["", "// 2", "% 3"]))] * 4),
)
def test_what_is_found_is_what_there_is(extents: tuple[int, int], indices: Any) -> None:
    """c[w0, w1] = c[r0, r1], with sums, quotients and rests as indices."""
    values = {"y": np.arange(extents[0])[:, None], "x": np.arange(extents[1])[None]}
    forms = [f"(({a} * y) + ({b} * x) + {c}) {rest}".strip() for a, b, c, rest in indices]
    found = [np.broadcast_to(eval(f, {}, values), extents) for f in forms]
    low = [min(int(found[d].min()), int(found[d + 2].min())) for d in range(2)]
    high = [max(int(found[d].max()), int(found[d + 2].max())) for d in range(2)]
    moved = [f"{f} + ({-low[d % 2]})" for d, f in enumerate(forms)]
    text = (
        "def kernel(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):\n"
        f"    c[{moved[0]}, {moved[1]}] = c[{moved[2]}, {moved[3]}] + 1.0\n"
    )
    writes = list(zip(found[0].reshape(-1).tolist(), found[1].reshape(-1).tolist(), strict=True))
    reads = list(zip(found[2].reshape(-1).tolist(), found[3].reshape(-1).tolist(), strict=True))
    pairs = itertools.permutations(range(len(writes)), 2)
    race = any(writes[a] == writes[b] or writes[a] == reads[b] for a, b in pairs)
    array = zeros(high[0] - low[0] + 1, high[1] - low[1] + 1)
    run = lw.threadwise(text_function(text))
    refused = False
    with lw.device("python"):
        try:
            run(array, grid=extents)
        except lw.CompileError:  # whatever the grid is
            return
        except ArgumentError:
            refused = True
    assert refused == race, text


def text_function(text: str) -> Any:
    """A function of its text."""
    import linecache

    name = f"<kernel {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"lw": lw}
    exec(compile(text, name, "exec"), space)
    return space["kernel"]
