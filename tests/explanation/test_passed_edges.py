"""What is said of accesses that wrap, or stay at edges: how neighbours lie away from the edges, against the places
themselves.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.explanation.threads import thread_accesses
from tests.fuzz.texts import executed

H, W = 96, 80


def text_of(place: tuple[str, str]) -> str:
    return (
        "@lw.threadwise\n"
        "def k(y: lw.index, x: lw.index, u: lw.Array2[lw.f32], c: lw.Array2[lw.f32], h: lw.i32):\n"
        f"    n, w = u.shape\n    c[y, x] = u[{', '.join(place)}]\n"
    )


@st.composite
def place(draw: st.DrawFn, index: str, length: str) -> tuple[str, str]:
    """An index of one dimension, and the edge that it has."""
    shift = draw(st.integers(5, 11))
    inner = draw(st.sampled_from([f"{index} + {shift}", f"2 * {index} + {shift}", f"{length} - {index} - {shift}"]))
    match draw(st.integers(0, 4)):
        case 0:
            return f"({inner} + {length}) % {length}", "wraps"
        case 1:
            return f"lw.clamp({inner}, 0, {length} - 1)", "ends"
        case 2:
            return f"lw.max(lw.min({inner}, {length} - 1), 0)", "ends"
        case 3:
            return f"({inner} + {length} - 1) % {length}", "wraps"
        case _:
            return inner, ""


@settings(max_examples=4 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_neighbours_lie_as_is_said(data: st.DataObject) -> None:
    first, second = data.draw(st.sampled_from([("y", "x"), ("x", "y"), ("y", "y")]))
    (row, at_row), (column, at_column) = data.draw(place(first, "n")), data.draw(place(second, "w"))
    with executed(text_of((row, column)), "edges.py") as names:
        u, c = np.zeros((H, W), np.float32), np.zeros((H, W), np.float32)
        reference: Any = names.k.compile(u, c, 1, grid=(2, 2)).reference
        _, (read, _) = thread_accesses(reference)
    wanted = {i: e for i, e in ((first, at_row), (second, at_column)) if e}
    if first == second and at_row and at_column:
        assert read["edges"].keys() == wanted.keys()
    else:
        assert read["edges"] == wanted
    steps = _steps(row, column)
    if first == "x":
        assert read["pattern"] == "strided by rows"
        return
    assert len(steps) == 1
    (step,) = steps
    said = {0: "broadcast", 1: "coalesced", -1: "coalesced"}.get(step, "strided")
    assert (read["pattern"], read["stride"]) == (said, step)


def _steps(row: str, column: str) -> set[int]:
    """How far the places of neighbouring threads lie apart, away from the edges."""
    names = {"y": 10, "n": H, "w": W, "lw": _Words}
    places = [eval(f"({row}) * 10_000 + {column}", {**names, "x": x}) for x in range(5, 20)]
    return {b - a for a, b in itertools.pairwise(places)}


class _Words:
    min, max = min, max

    @staticmethod
    def clamp(x: int, low: int, high: int) -> int:
        return max(low, min(x, high))


SENTENCES = {
    "(y + h - 1) % h, x": "read, coalesced, wraps along y",
    "y, (x + 1) % w": "read, coalesced, wraps along x",
    "lw.max(y - 1, 0), lw.min(x + 1, w - 1)": "read, coalesced, stays at the edges of y and x",
    "(y + 1) % h, lw.clamp(x, 1, w - 2)": "read, coalesced, wraps along y, stays at the edges of x",
    "(x + 1) % w, y": "read, strided by rows, wraps along x",
    "x % 2, y": "read, gathered",
}


@pytest.mark.parametrize("place", SENTENCES)
def test_the_sentence(place: str) -> None:
    text = text_of(("0", "0")).replace("0, 0]", f"{place}]")
    with executed(text, "edges.py") as names:
        u = np.zeros((W, W), np.float32)
        explanation = str(names.k.compile(u, u.copy(), W, grid=(W, W)).explain())
    assert f"u[{place.replace('lw.', '')}] {SENTENCES[place]}\n" in explanation


@lw.threadwise
def copied(y: lw.index, x: lw.index, u: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = u[y, x]


@pytest.mark.parametrize("size", [16, 512, 2048])
def test_a_kernel_without_loops_has_none_that_data_decide(size: int) -> None:
    """Rows that begin within a line, and stores past the caches, are decided by each call, and not by data."""
    u = np.zeros((size, size), np.float32)
    assert "depends on data" not in str(copied.compile(u, u.copy(), grid=u.shape).explain())
