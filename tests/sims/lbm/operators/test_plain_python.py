"""Operators are ordinary Python, too, and what is put together from functions has a text that tools find."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.sims.lbm.operators import OPERATORS, in_sequence, renamed, specialise
from tests.sims.lbm.operators.arrays import Vectors, on_arrays
from tests.sims.lbm.operators.test_conservation import each_lattice, some_flow


@each_lattice
@pytest.mark.parametrize("name", list(OPERATORS))
def test_plain_python_is_what_tests_run_on_arrays(lattice: Lattice, name: str) -> None:
    f, force = some_flow(lattice, sites=5), [1e-3, 2e-3, 3e-3][: lattice.dimension]
    g = f.copy()
    function = OPERATORS[name].make(lattice, "f64", forced=True)
    vector = lw.dvec2 if lattice.dimension == 2 else lw.dvec3
    function(f, omega=1.7, force=vector(*force), **OPERATORS[name].parameters)
    on_arrays(function)(g, omega=1.7, force=Vectors(force), **OPERATORS[name].parameters)
    np.testing.assert_array_equal(f, g)


def maker(fast: bool):  # type: ignore[no-untyped-def]
    scale = 2.0

    def kernel(f: lw.populations, x: lw.f32, y: lw.f32):
        """Text."""
        total = x if fast else y
        if not fast:
            total = total + 1
        f[0] = scale * total

    return kernel


def test_switches_are_decided_and_unread_parameters_left_out() -> None:
    fast, slow = specialise(maker(True)), specialise(maker(False))
    assert (
        inspect.getsource(fast)
        == "def kernel(f: lw.populations, x: lw.f32):\n    total = x\n    f[0] = scale * total\n"
    )
    assert list(inspect.signature(slow).parameters) == ["f", "y"]
    f = np.zeros(1)
    slow(f, y=3.0)
    assert f[0] == 8.0


def test_functions_in_sequence_share_parameters_and_nothing_else() -> None:
    a, limit = 3.0, 10.0

    def first(f: lw.populations, x: lw.f32, total: lw.f32):
        a = x + total
        f[0] = a

    def second(f: lw.populations, x: lw.f32, y: lw.f32):
        total = f[0] * x
        f[1] = total + a + y + limit

    both = in_sequence(first, second)
    assert both.__name__ == "first_second"
    assert list(inspect.signature(both).parameters) == ["f", "x", "total", "y"]
    f = np.zeros(2)
    both(f, x=2.0, total=5.0, y=1.0)
    assert f.tolist() == [7.0, 14 + 3 + 1 + 10]


def test_parameters_are_renamed_and_locals_make_way() -> None:
    def kernel(f: lw.populations, x: lw.f32):
        speed = 2 * x
        f[0] = speed + x

    other = renamed(kernel, {"x": "speed"})
    f = np.zeros(1)
    other(f, speed=3.0)
    assert f[0] == 9.0
    assert list(inspect.signature(other).parameters) == ["f", "speed"]


def test_the_same_arguments_give_the_same_function() -> None:
    assert OPERATORS["trt"].make(lw.D2Q9) is OPERATORS["trt"].make(lw.D2Q9, "f32")
