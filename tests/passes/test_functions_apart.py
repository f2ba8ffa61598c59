"""Functions of many rounds at once: the bits of the loop that runs round by round, for any number of rounds."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.passes import free_sums, functions_apart

F32, F64 = lw.Array2[lw.f32], lw.Array2[lw.f64]


@lw.threadwise
def softly(y: lw.index, a: F32, v: F32, o: F32):
    most = -1e30
    total = 0.0
    mean = lw.zeros(lw.f32, 8)
    for j in range(v.shape[0]):
        s = 0.0
        for c in range(8):
            s += a[y, c] * v[j, c]
        larger = max(most, s)
        old = lw.exp(most - larger)
        new = lw.exp(s - larger)
        total = total * old + new
        for c in range(8):
            mean[c] = mean[c] * old + new * v[j, c]
        most = larger
    for c in range(8):
        o[y, c] = mean[c] / total


@lw.threadwise
def leaks(y: lw.index, a: F64, v: F64, o: F64):
    """A filter whose weights are functions of data; every state is written."""
    x = a[y, 0]
    for j in range(v.shape[0]):
        x = x * lw.exp(-abs(v[j, 0]) * lw.log(1.5 + v[j, 1] * v[j, 1])) + lw.sin(v[j, 2])
        o[y, j] = x


@lw.threadwise
def before_and_after(y: lw.index, a: F32, v: F32, o: F32):
    """Of a variable that the arguments need the last part reads the old value and the new one."""
    p = a[y, 0]
    total = 0.0
    product = 1.0
    for j in range(v.shape[0]):
        total = total * 0.5 + p
        p = 0.75 * p + v[j, 0]
        w = lw.tanh(p) + lw.cos(0.1 * lw.f32(j))
        if w > 0.5:
            product = product * 1.125 + p
        else:
            total -= w
        p = p - 0.25
        total = lw.sqrt(abs(total)) + p
    o[y, 0] = total
    o[y, 1] = product
    o[y, 2] = p


@lw.threadwise
def walks(y: lw.index, a: F64, v: F64, o: F64):
    """Whether a step is taken depends on a function of the sum so far: nothing to take out there."""
    x = a[y, 0]
    steps = 0
    for j in range(3, v.shape[0]):
        x = x + 0.1 * lw.sin(x) + lw.pow(abs(v[j, 0]), 0.3)
        for c in range(2):
            x = 0.5 * x + v[j, c]
        steps += 1
    o[y, 0] = x
    o[y, 1] = steps


@lw.threadwise
def chaotic(y: lw.index, a: F64, v: F64, o: F64):
    x = a[y, 0]
    for j in range(v.shape[0]):
        x = lw.sin(x + v[j, 0])
    o[y, 0] = x


@lw.threadwise
def in_place(y: lw.index, a: F64, v: F64, o: F64):
    x = a[y, 0]
    for j in range(1, v.shape[0]):
        x = 0.5 * x * x + lw.exp(-o[y, j - 1])
        o[y, j] = x


TAKEN = {softly: 2, leaks: 2, before_and_after: 2, walks: 1}
LEFT = (chaotic, in_place)
ROUNDS = (0, 1, 3, 31, 32, 35, 70)


def data(kernel, rounds, special=False):
    kind = np.float32 if kernel in (softly, before_and_after) else np.float64
    rng = np.random.default_rng(rounds)
    a, v = (rng.standard_normal((n, 8)).astype(kind) for n in (3, rounds))
    if special and rounds:
        v[rng.integers(0, rounds, 3), rng.integers(0, 3, 3)] = np.nan, np.inf, -np.inf
    return {"a": a, "v": v, "o": np.zeros((3, max(8, rounds)), kind)}


def run(kernel, given):
    found = {n: x.copy() for n, x in given.items()}
    with np.errstate(all="ignore"):
        lw.threadwise(kernel.python)(**found, grid=3, plan=lw.Plan(across=0))
    return found["o"]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special values"])
@pytest.mark.parametrize("kernel", [*TAKEN, *LEFT], ids=lambda k: k.__name__)
def test_bits_are_those_of_the_loop(kernel, special, monkeypatch):
    found = [run(kernel, data(kernel, n, special)) for n in ROUNDS]
    monkeypatch.setattr(functions_apart, "apply", lambda k: k)
    for n, o in zip(ROUNDS, found, strict=True):
        np.testing.assert_array_equal(o, run(kernel, data(kernel, n, special)), err_msg=f"{n} rounds")


@pytest.mark.parametrize("kernel", [*TAKEN, *LEFT], ids=lambda k: k.__name__)
def test_they_are_what_python_computes(kernel):
    for n in (35,):
        given = data(kernel, n)
        wanted = {k: x.copy() for k, x in given.items()}
        with lw.device("python"):
            lw.threadwise(kernel.python)(**wanted, grid=3)
        np.testing.assert_allclose(run(kernel, given), wanted["o"], rtol=2e-4 if given["a"].itemsize == 4 else 1e-11)


def changed(kernel):
    given = data(kernel, 40)
    reference = free_sums.apply(kernel.compile(**given, grid=3).reference)
    return reference, functions_apart.apply(reference)


@pytest.mark.parametrize("kernel", TAKEN, ids=lambda k: k.__name__)
def test_functions_stand_in_rounds_of_their_own(kernel):
    """In a loop that has nothing else in it."""
    loops = [s for s in statements(changed(kernel)[1].body) if isinstance(s, ir.For) and s.role == "lanes"]
    assert len(loops) == 3
    assert len(loops[1].body) == TAKEN[kernel]
    assert all(isinstance(s, ir.SetElement) for s in loops[1].body)


@pytest.mark.parametrize("kernel", LEFT, ids=lambda k: k.__name__)
def test_what_needs_the_value_of_the_round_before_stays_as_it_is(kernel):
    before, after = changed(kernel)
    assert before == after
