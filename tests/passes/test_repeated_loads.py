"""Loads in branches of what was loaded before: gone, with the same bits, and only where nothing can have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.passes import repeated_loads
from tests.patterns.reductions import reference, run

Row = lw.Array2[lw.f32]


@lw.threadwise
def product(y: lw.index, x: lw.index, a: Row, b: Row, c: Row):
    s = -1e30
    for k in range(a.shape[1]):
        if abs(a[y, k] - b[k, x]) > s:
            s = abs(a[y, k] - b[k, x])
    c[y, x] = s


@lw.threadwise
def nested(y: lw.index, x: lw.index, a: Row, b: Row, c: Row):
    s = a[y, 0]
    for k in range(a.shape[1]):
        if a[y, k] > 0.0:
            if b[k, x] < a[y, k]:
                s += a[y, k] * b[k, x]
            else:
                s -= a[y, k]
    c[y, x] = s


@lw.threadwise
def moved(y: lw.index, x: lw.index, a: Row, b: Row, c: Row):
    """The place is another one by the time of the branch."""
    j = 0
    s = 0.0
    for k in range(a.shape[1]):
        u = a[y, j]
        j += 1
        if u > 0.0 and j < a.shape[1]:
            s += a[y, j] + b[k, x]
    c[y, x] = s


@lw.threadwise
def written(y: lw.index, x: lw.index, a: Row, b: Row, c: Row):
    c[y, x] = a[y, 0] + b[0, x]
    if c[y, x] > 0.0:
        c[y, x] = 2.0 * c[y, x]


@lw.threadwise
def before(y: lw.index, x: lw.index, a: Row, b: Row, c: Row):
    """Of rounds before, whose values a branch keeps."""
    s = 0.0
    last = 0.0
    for k in range(a.shape[1]):
        s += last
        if a[y, k] > b[k, x]:
            last = a[y, k]
    c[y, x] = s


GONE = {product: 2, nested: 4, moved: 0, written: 0, before: 1}


@pytest.mark.parametrize("kernel", GONE, ids=lambda k: k.__name__)
def test_loads_of_what_is_there_go(kernel: Any) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=s).astype(np.float32) for s in ((5, 7), (7, 9), (5, 9))]
    naive = reference(kernel, arrays, (5, 9))
    less = repeated_loads.apply(naive)
    loads = [sum(isinstance(s, ir.LoadElement) for s in statements(k.body)) for k in (naive, less)]
    assert loads[0] - loads[1] == GONE[kernel]
    assert (less is naive) == (not GONE[kernel])
    found, wanted = (run((k,), kernel, arrays, (5, 9))[2] for k in (less, naive))
    np.testing.assert_array_equal(found, wanted)
