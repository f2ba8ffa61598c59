"""The family of a naive kernel over arrays is that of the zoo which draws such kernels, and nothing else has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.families import family_of
from lanewise.language.target import CUDA
from lanewise.passes import constant_folding, dead_code, normal_form
from tests.fuzz.texts import executed
from tests.patterns.reductions import columns, reference, rows, several, softmax
from tests.zoo.generate import SMALL, generate

QUICK, MANY = 16, 400


def found(kernel: Any, given: dict[str, Any], grid: tuple[int, ...]) -> str | None:
    text = reference(kernel, [given[n] for n in kernel.signature.arrays], grid)
    return family_of(normal_form.apply(dead_code.apply(constant_folding.apply(text)), CUDA))


@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s < QUICK else pytest.mark.slow) for s in range(MANY)])
def test_kernels_of_the_zoo_are_told_apart(seed: int) -> None:
    case = generate(seed)
    given, grid = case.arguments(SMALL)
    with executed(case.text, f"zoo_{seed}.py") as names:
        family = found(names.kernel, given, grid)
    if case.family == "row" and family is None:  # a copy: k is an index of threads, and no loop is left
        assert "s = " not in case.text
        assert "m = " not in case.text
    else:
        assert family == case.family


def made(kernel: Any) -> dict[str, Any]:
    arrays = kernel.signature.arrays
    return {n: np.ones((8,) * kind.rank, kind.element.dtype) for n, kind in arrays.items()}


@lw.threadwise
def transposed(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    r[y, x] = a[x, y] + a[x, y + 1] + a[x + 1, y]


@lw.threadwise
def gathered(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[lw.i32(a[y, k]), x]
    r[y, x] = s


@lw.threadwise
def added(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    r[y, x] = a[y, x] + b[y, x]


@lw.threadwise
def wide(y: lw.index, x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], r: lw.Array2[lw.f64]):
    s = lw.f64(0.0)
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    r[y, x] = s


@lw.threadwise
def three(
    y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array1[lw.f32], r: lw.Array2[lw.f32]
):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x] * c[k]
    r[y, x] = s


@lw.threadwise
def strange(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = a[y, 0]
    while s < 1.0:
        s = s * 1.5 + 0.1
    r[y] = s


@pytest.mark.parametrize("kernel", [transposed, gathered, added, wide, three, strange, columns, several])
def test_others_have_no_family(kernel: Any) -> None:
    """Other accesses, other types, more arrays than were measured, loops that data end."""
    assert found(kernel, made(kernel), (6,) * len(kernel.signature.indices)) is None


@pytest.mark.parametrize("kernel", [rows, softmax])
def test_rows_that_others_write(kernel: Any) -> None:
    assert found(kernel, made(kernel), (6,)) == "row"
