"""What the tests of panels share: recurrences as users write them, what they compute, and running programs of several
launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.ir.series import launches, whole

Array = np.ndarray[Any, Any]


@lw.threadwise
def forward(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    for i in range(a.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * b[k, x]
        b[i, x] = s / a[i, i]


@lw.threadwise
def apart(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    n = len(a)
    for i in range(n):
        s = b[i, x]
        for k in range(i):
            s -= a[i, k] * c[k, x]
        c[i, x] = s / a[i, i]


@lw.threadwise
def backward(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    n = a.shape[0]
    for i in range(n - 1, -1, -1):
        s = b[i, x]
        for k in range(i + 1, n):
            s -= a[k, i] * b[k, x]
        b[i, x] = s / a[i, i]


@lw.threadwise
def turned(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    n = a.shape[0]
    for j in range(n):
        i = n - 1 - j
        s = b[i, x]
        for k in range(i + 1, n):
            s -= a[k, i] * b[k, x]
        b[i, x] = s / a[i, i]


@lw.threadwise
def rows(x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64]):
    for i in range(len(a)):
        s = 0.0
        for k in range(i):
            s += a[i, k] * b[x, k]
        b[x, i] = (b[x, i] - s) / a[i, i]


@lw.threadwise
def longest(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    """Of all chains that end at i: the heaviest, and how often a weight is counted."""
    for i in range(1, len(b)):
        best = b[i, x]
        total = 0.0
        for k in range(0, i):
            best = lw.max(best, b[k, x] + a[i, k])
            total += a[i, k]
        b[i, x] = best + 0.001 * total


@lw.threadwise
def chained(x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    """A round begins with what the one before it wrote, and scales with what its own place was."""
    for i in range(1, len(b)):
        s = 0.5 * b[i - 1, x]
        f = b[i, x]
        for k in range(i):
            s += f * a[i, k] * b[k, x]
        b[i, x] = s + f


@dataclass(frozen=True)
class Case:
    """A recurrence. `make` gives its arguments for n rounds and m threads, `expect` what they become."""

    kernel: Any
    make: Callable[[np.random.Generator, int, int], dict[str, Any]]
    expect: Callable[..., dict[str, Array]]

    @property
    def name(self) -> str:
        return self.kernel.__name__


def lower(rng: np.random.Generator, n: int, kind: Any = np.float32) -> Array:
    """A matrix that is well conditioned; what lies above the diagonal is not to be read."""
    a = rng.normal(size=(n, n)) / max(1, n) ** 0.5
    a[np.triu_indices(n, 1)] = np.nan
    a[np.diag_indices(n)] = 2 + rng.random(n)
    return a.astype(kind)


def _system(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    return {"a": lower(rng, n), "b": rng.normal(size=(n, m)).astype(np.float32)}


def _solved(a: Array, b: Array) -> Array:
    return np.linalg.solve(np.tril(np.nan_to_num(a)).astype(np.float64), b.astype(np.float64)) if b.size else b


def _back(a: Array, b: Array) -> dict[str, Array]:
    return {"b": np.linalg.solve(np.nan_to_num(a).T.astype(np.float64), b.astype(np.float64)) if b.size else b}


def _chains(a: Array, b: Array) -> dict[str, Array]:
    b = b.astype(np.float64)
    for i in range(1, len(b)):
        b[i] = np.maximum(b[i], (b[:i] + a[i, :i, None]).max(axis=0)) + 0.001 * a[i, :i].astype(np.float64).sum()
    return {"b": b}


def _chained(a: Array, b: Array) -> dict[str, Array]:
    a, b = a.astype(np.float64), b.astype(np.float64)
    for i in range(1, len(b)):
        b[i] = 0.5 * b[i - 1] + b[i] * (a[i, :i] @ b[:i]) + b[i]
    return {"b": b}


def _scaled(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    return {"a": lower(rng, n) / np.float32(max(1, n)), "b": rng.uniform(-1, 1, (n, m)).astype(np.float32) / 2}


def _forward(a: Array, b: Array) -> dict[str, Array]:
    return {"b": _solved(a, b)}


def _apart(a: Array, b: Array, c: Array) -> dict[str, Array]:
    return {"c": _solved(a, b)}


def _rows(a: Array, b: Array) -> dict[str, Array]:
    return {"b": _solved(a, b.T).T}


def _with_output(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    return {**_system(rng, n, m), "c": np.full((n, m), np.nan, np.float32)}


def _system_of_rows(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    return {"a": lower(rng, n, np.float64), "b": rng.normal(size=(m, n))}


CASES = [
    Case(forward, _system, _forward),
    Case(apart, _with_output, _apart),
    Case(backward, _system, _back),
    Case(turned, _system, _back),
    Case(rows, _system_of_rows, _rows),
    Case(longest, _system, _chains),
    Case(chained, _scaled, _chained),
]


def copies(given: Mapping[str, Array]) -> dict[str, Array]:
    return {n: a.copy() for n, a in given.items()}


def run_program(kernels: Sequence[ir.Kernel], given: Mapping[str, Array], environment: Mapping[str, Any]) -> int:
    """Interpret the launches of kernels of any stage; written arrays change. The number of launches."""
    flat = {n: a.reshape(-1) for n, a in given.items()}
    for kernel in kernels:
        for s in kernel.scratch:
            kind = kernel.array(s.array).leaves[0].type.dtype
            flat[s.array] = np.full(whole(s.length, environment), np.nan, kind)
    count = 0
    for number, counts in launches(kernels, environment):
        _run(kernels[number], flat, counts)
        count += 1
    return count


def _run(kernel: ir.Kernel, flat: Mapping[str, Array], counts: Mapping[str, Any]) -> None:
    kinds = {p.name: p.type.dtype.type for p in kernel.counts + kernel.uniforms}
    values = {n: kinds[n](v) if n in kinds else v for n, v in counts.items()}
    named = {a.name: a for a in kernel.arrays}
    memories = {n: ArrayMemory(a.view(np.uint8), named[n].arrangement, a.size) for n, a in flat.items() if n in named}
    buffers = {b.name: flat[b.array] for b in kernel.buffers if b.space == "global"}
    Interpreter(kernel, values, memories, buffers).run()
