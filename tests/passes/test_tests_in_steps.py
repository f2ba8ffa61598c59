"""Tests that are made in steps: one expression with the same truth, where nothing but cheap values is between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.passes import tests_in_steps
from tests.patterns.reductions import reference, run

Row = lw.Array2[lw.f32]


@lw.threadwise
def both(y: lw.index, x: lw.index, a: Row, c: Row):
    s = 0.0
    for k in range(3):
        if 0 <= y + k - 1 < a.shape[0] and 0 <= x - k < a.shape[1]:
            s += a[y + k - 1, x - k]
    c[y, x] = s


@lw.threadwise
def either(y: lw.index, x: lw.index, a: Row, c: Row):
    if not (0 < y - 1 < a.shape[0] - 3) or x * 2 - 1 < 3 or 2 < x + y < 9:
        c[y, x] = a[y, x]
    else:
        c[y, x] = -a[y, x]


@lw.threadwise
def three(y: lw.index, x: lw.index, a: Row, c: Row):
    if 0 < x - 1 < 8 and (0 < y - 1 < 4 or 2 <= x + y - 3 < 5) and 1 < x - y + 4 < 20:
        c[y, x] = a[y, x]


@lw.threadwise
def loaded(y: lw.index, x: lw.index, a: Row, c: Row):
    """The second side is read where the first one allows it."""
    s = 0.0
    if x > 0 and 0.0 < a[y, x - 1] + 1.0 < 3.0:
        s = 1.0
    c[y, x] = s


@lw.threadwise
def kept(y: lw.index, x: lw.index, a: Row, c: Row):
    """What the branch changes is read behind it."""
    p = 3
    t = x > y
    if t:
        p = x - y
        t = p > 2
    c[y, x] = a[y, x] + p if t else lw.f32(p)


STEPS = {both: 0, either: 0, three: 0, loaded: 1, kept: 1}


def steps(kernel: ir.Kernel) -> int:
    """Branches that say of a test whether it holds."""
    return sum(
        isinstance(s, ir.If)
        and bool(s.then)
        and isinstance(s.then[-1], ir.Assign)
        and isinstance(s.condition, ir.Local | ir.Unary)
        and s.then[-1].value.type.kind == "b"
        for s in statements(kernel.body)
    )


@pytest.mark.parametrize("kernel", STEPS, ids=lambda k: k.__name__)
def test_steps_of_a_test_are_one_expression(kernel: Any) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=(7, 11)).astype(np.float32), np.zeros((7, 11), np.float32)]
    naive = reference(kernel, arrays, (7, 11))
    together = tests_in_steps.apply(naive)
    assert steps(naive) >= 1
    assert steps(together) == STEPS[kernel]
    found, wanted = (run((k,), kernel, arrays, (7, 11))[1] for k in (together, naive))
    np.testing.assert_array_equal(found, wanted)
