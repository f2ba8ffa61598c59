"""Kernels with loops that threads may share, and what the tests of their passes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.names import extent_of, length_of
from lanewise.ir.values import value_array
from lanewise.ir.verify import verify_kernel
from lanewise.language.types import from_dtype
from lanewise.launch.task_list import BoundArray
from tests.harness import run_kernel

Array = np.ndarray[Any, Any]
F32 = np.float32


@lw.threadwise
def rows(y: lw.index, a: lw.Array2[lw.f32], x: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * x[k]
    r[y] = s


@lw.threadwise
def columns(j: lw.index, a: lw.Array2[lw.f32], x: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, j] * x[k]
    r[j] = s


@lw.threadwise
def softmax(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    m = a[y, 0]
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k] - m)
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[y, k] - m) / s


@lw.threadwise
def several(
    y: lw.index, a: lw.Array2[lw.f32], low: lw.Array1[lw.f32], high: lw.Array1[lw.f32], many: lw.Array1[lw.i32]
):
    least = a[y, 0]
    most = least
    n = 0
    for k in range(1, a.shape[1]):
        if a[y, k] < least:
            least = a[y, k]
        e = a[y, k]
        if most <= e:
            most = e
        if e > 0.5:
            n += 1
    low[y] = least
    high[y] = most
    many[y] += n


@lw.threadwise
def total(y: lw.index, x: lw.index, a: lw.Array2[lw.f32]) -> lw.f32:
    return a[y, x]


@lw.threadwise
def positive(x: lw.index, a: lw.Array1[lw.f32], floor: lw.f32) -> lw.f32:
    if a[x] < floor:
        return 0.0
    return a[x]


@lw.threadwise
def count(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.i32]) -> lw.i32:
    return a[z, y, x]


def reference(kernel: Any, arguments: Sequence[Any], grid: Any, *, multiple: int = 1, **named: Any) -> ir.Kernel:
    """The reference kernel; with `multiple` that of arrays whose rows begin at multiples of that many elements, where
    they do.
    """
    calls = kernel._calls
    made = calls.subject.reference(calls.given(tuple(arguments), {"grid": grid, **named}))
    lengths = {n: v.shape[-1] for n, v in zip(kernel.signature.names, arguments, strict=False)}
    fits = {n for n, length in lengths.items() if length and length % multiple == 0}
    narrow = {a.name for a in made.arrays if a.leaves[0].type.size == 4}
    return replace(
        made, arrays=tuple(replace(a, multiple=multiple if a.name in fits & narrow else 1) for a in made.arrays)
    )


def run(kernels: Sequence[ir.Kernel], kernel: Any, arguments: Sequence[Array], grid: Any, **named: Any) -> list[Array]:
    """Interpret kernels in order on copies of the arguments: those, and the sum of a kernel that has one."""
    extents = grid if isinstance(grid, tuple) else (grid,)
    index = np.int32
    environment: dict[str, Any] = {
        extent_of(i): index(n) for i, n in zip(kernel.signature.indices, extents, strict=True)
    }
    environment |= named
    arrays = {n: a.copy() for n, a in zip(kernel.signature.arrays, arguments, strict=True)}
    for name, a in arrays.items():
        environment |= {length_of(name, d): index(n) for d, n in enumerate(a.shape)}
    if kernel.signature.results:
        whole = all(np.issubdtype(a.dtype, np.integer) for a in arguments)
        arrays["$result"] = np.full(1, 77, np.int64 if whole else np.float64)
    bound = {
        n: BoundArray(
            a.reshape(-1).view(np.uint8), value_array(n, from_dtype(a.dtype), written=True).arrangement, a.size
        )  # pyright: ignore[reportArgumentType]
        for n, a in arrays.items()
    }
    for k in kernels:
        verify_kernel(k)
        run_kernel(k, bound, environment)
    return list(arrays.values())


def inputs(kernel: Any, m: int, n: int) -> tuple[tuple[Array, ...], Any]:
    """Arguments of a kernel over a matrix of m x n, and the grid."""
    rng = np.random.default_rng(m * 100 + n)
    a = rng.normal(size=(m, n)).astype(F32)
    if kernel is rows:
        return (a, rng.normal(size=n).astype(F32), np.full(m, np.nan, F32)), m
    if kernel is columns:
        return (a, rng.normal(size=m).astype(F32), np.full(n, np.nan, F32)), n
    if kernel is softmax:
        return (a, np.full_like(a, np.nan)), m
    if kernel is several:
        return (a, np.full(m, np.nan, F32), np.full(m, np.nan, F32), np.arange(m, dtype=np.int32)), m
    return (a,), (m, n)


def expected(kernel: Any, arguments: tuple[Array, ...]) -> list[Array]:
    """What a call writes, by NumPy in float64."""
    a = arguments[0].astype(np.float64)
    if kernel is rows:
        return [a @ arguments[1]]
    if kernel is columns:
        return [a.T @ arguments[1]]
    if kernel is softmax:
        e = np.exp(a - a.max(axis=1, keepdims=True))
        return [e / e.sum(axis=1, keepdims=True)]
    if kernel is several:
        return [a.min(axis=1), a.max(axis=1), arguments[3] + (a[:, 1:] > 0.5).sum(axis=1)]
    return [np.array([a.sum()])]
