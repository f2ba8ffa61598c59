"""Booleans among the arguments of functions on a CPU: arguments that follow them are whole, whatever the function does
with them.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import lanewise as lw

X = np.arange(5, dtype=np.float32)
Q = X % 2 == 0


class Body(lw.Record):
    q: lw.bool
    x: lw.f32


@lw.elementwise
def chosen(f: lw.f32, q: lw.bool) -> lw.f32:
    g = 0.0 if q else f
    z = lw.zeros(lw.f32, 2)
    z[lw.i32(f) & 1] = g
    return z[0] + z[1]


@lw.elementwise
def taken(q: lw.bool, f: lw.f32) -> tuple[lw.f32, lw.bool]:
    z = lw.zeros(lw.f32, 3)
    for k in range(3):
        z[k] = f * lw.f32(k)
    return z[1 if q else 2], not q


@lw.elementwise
def field(b: Body) -> lw.f32:
    z = lw.zeros(lw.f32, 2)
    z[1 if b.q else 0] = b.x
    return z[1]


@lw.pairwise
def apart(a: Body, b: Body) -> lw.f32:
    if lw.same(a, b):
        return 0.0
    z = lw.zeros(lw.f32, 2)
    z[1 if b.q else 0] = b.x
    return z[1] - z[0] if a.q else z[0]


@lw.threadwise
def each(x: lw.index, q: lw.Array1[lw.bool], f: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    z = lw.zeros(lw.f32, 2)
    z[1 if q[x] else 0] = f[x]
    c[x] = z[1]


@pytest.fixture(autouse=True)
def _on_a_cpu():
    with lw.device("cpu"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_a_local_array_after_a_truth_value():
    np.testing.assert_array_equal(chosen(X, Q), np.where(Q, 0, X))
    values, others = taken(Q, X)
    np.testing.assert_array_equal(values, np.where(Q, X, 2 * X))
    np.testing.assert_array_equal(others, ~Q)


@pytest.mark.quick("SoA", "AoSoA(4)")
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(4), lw.AoAS(), lw.SoAoAS()], ids=str)
def test_fields_that_are_truth_values(layout):
    bodies = Body.array(q=Q, x=X, layout=layout)
    np.testing.assert_array_equal(field(bodies), np.where(Q, X, 0))
    pairs = np.where(Q, X, 0)[None] - np.where(~Q, X, 0)[None]
    pairs = np.where(Q[:, None], pairs, np.where(~Q, X, 0)[None])
    np.fill_diagonal(pairs, 0)
    for plan in (lw.Plan(), lw.Plan(targets=1), lw.Plan(targets=4)):
        np.testing.assert_array_equal(apart(bodies, bodies, plan=plan), pairs.sum(1))


def test_threads():
    c = np.zeros_like(X)
    each(Q, X, c, grid=5)
    np.testing.assert_array_equal(c, np.where(Q, X, 0))


@pytest.mark.parametrize("order", list(itertools.permutations(("q: lw.bool", "p: lw.bool", "f: lw.f32"))), ids=str)
def test_truth_values_at_any_place(order, tmp_path):
    path = tmp_path / "permuted.py"
    path.write_text(
        f"import lanewise as lw\n\n@lw.elementwise\ndef permuted({', '.join(order)}) -> lw.f32:\n"
        "    z = lw.zeros(lw.f32, 2)\n    z[1 if q else 0] = f\n    return z[0] if p else z[1]\n",
        encoding="utf-8",
    )
    namespace = {"__name__": "permuted", "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    given = {"q": Q, "p": X > 2, "f": X}
    wanted = np.where(X > 2, np.where(Q, 0, X), np.where(Q, X, 0))
    np.testing.assert_array_equal(namespace["permuted"](*(given[o[0]] for o in order)), wanted)


def test_literals_of_two_signs_are_two_forms_of_a_helper():
    with np.errstate(all="ignore"):
        up, down = signed(np.ones(2, np.float32))
    assert (up > 0).all()
    assert (down < 0).all()


@lw.function
def inverse(a, b):
    return 1.0 / (a * b)


@lw.elementwise
def signed(v: lw.f32) -> tuple[lw.f32, lw.f32]:
    return inverse(v, 0.0), inverse(v, -0.0)
