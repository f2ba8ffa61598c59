"""Scatters of kernels that compute what they add: each thread has memory of its own, and the bits are those of exact
sums.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import cpu


@lw.threadwise
def spread32(i: lw.index, at: lw.Array1[lw.i32], w: lw.Array1[lw.f32], o: lw.Array1[lw.f32], top: lw.Array1[lw.i32]):
    for d in range(3):
        lw.scatter_add(o, at[i] + d, w[i] * (1.0 - 0.1 * lw.f32(d)))
    lw.scatter_max(top, at[i], i * 7919 % 1009)


@lw.threadwise
def spread64(i: lw.index, at: lw.Array1[lw.i32], w: lw.Array1[lw.f64], o: lw.Array1[lw.f64], low: lw.Array1[lw.u32]):
    lw.scatter_add(o, at[i], w[i])
    if at[i] % 2 == 0:
        lw.scatter_add(o, at[i] + 1, -w[i])
    lw.scatter_min(low, at[i], lw.u32(i * 7919 % 1009))


@lw.threadwise
def counted(i: lw.index, v: lw.Array1[lw.f32], counts: lw.Array1[lw.i32], wide: lw.Array1[lw.i64]):
    b = lw.i32(v[i] * 16.0)
    lw.scatter_add(counts, b, 2147483647)
    lw.scatter_add(wide, b, i)


KINDS = ["plain", "wide", "special", "cancelling"]


def values(rng: np.random.Generator, n: int, kind: str, dtype: str) -> np.ndarray:
    v = rng.normal(size=n)
    if kind == "wide":
        v *= 2.0 ** rng.integers(-140, 100, n)
    if kind == "cancelling":
        v = np.concatenate([v, -v])[:n] if n % 2 == 0 else v
    v = v.astype(dtype)
    if kind == "special":
        v[rng.integers(0, n, 4)] = [np.nan, np.inf, -np.inf, -0.0]
    return v


def share_at_once(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Threads share from the first piece on, however short a kernel runs."""
    monkeypatch.setenv("LANEWISE_THREADS", str(threads))
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)
    monkeypatch.setattr("lanewise.primitives.own_copies.COPYING", 1e-18)


def run(kind: str, elements: int, n: int = 40_000) -> list[np.ndarray]:
    rng = np.random.default_rng(elements)
    at = rng.integers(0, elements - 2, n).astype(np.int32)
    o, top = rng.normal(size=elements).astype(np.float32), np.zeros(elements, np.int32)
    spread32(at, values(rng, n, kind, "f4"), o, top, grid=n)
    o64, low = rng.normal(size=elements), np.full(elements, 2000, np.uint32)
    spread64(at, values(rng, n, kind, "f8"), o64, low, grid=n)
    counts, wide = np.zeros(16, np.int32), np.ones(16, np.int64)
    counted(rng.random(n, np.float32), counts, wide, grid=n)
    return [o, top, o64, low, counts, wide]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("elements", [5, 3000])
def test_any_number_of_threads_gives_the_same_bits(kind: str, elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2, 3, 3):
        with monkeypatch.context() as patch:
            share_at_once(patch, threads)
            found.append([a.tobytes() for a in run(kind, elements)])
    assert found[1:] == [found[0]] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_bits_are_those_of_the_interpreter(kind: str) -> None:
    """Of which the sums are words alone."""
    here = run(kind, 20, 500)
    with lw.device("python"):
        there = run(kind, 20, 500)
    assert [a.tobytes() for a in here] == [a.tobytes() for a in there]


def test_sums_are_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    share_at_once(monkeypatch, 2)
    rng, n = np.random.default_rng(3), 20_000
    at, w = rng.integers(0, 4, n).astype(np.int32) * 2 + 1, values(rng, n, "wide", "f8")
    o, low = np.ones(9), np.zeros(9, np.uint32)
    spread64(at, w, o, low, grid=n)
    for e in range(9):
        assert o[e] == float(sum(map(Fraction, w[at == e]), Fraction(1)))


def test_no_addition_is_atomic() -> None:
    at, w = np.zeros(9, np.int32), np.ones(9, np.float32)
    text = spread32.compile(at, w, np.zeros(9, np.float32), np.zeros(9, np.int32), grid=9).source
    assert "atomicrmw" not in text
