"""LANEWISE_CHECKS=1 tests the indices of every call of a program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns import skeleton


@lw.threadwise
def gather(i: lw.index, place: lw.Array1[lw.i32], a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[i] = a[place[i]]


@lw.elementwise
def looked_up(place: lw.i32, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[place]


@lw.elementwise
def twice(x: lw.f32) -> lw.f32:
    return 2.0 * x


class Grain(lw.Record):
    place: lw.i32


@lw.pairwise
def weighed(a: Grain, b: Grain, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[b.place]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    skeleton.checks_everywhere.cache_clear()
    yield
    skeleton.checks_everywhere.cache_clear()


A, C = np.ones(4, np.float32), np.zeros(2, np.float32)
PLACES = np.array([0, 4], np.int32)


def test_every_call_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CHECKS", "1")
    grains = Grain.array(place=PLACES)
    for _ in range(2):  # a call like an earlier one, too
        with pytest.raises(lw.VerificationError, match="the index is 4"):
            gather(PLACES, A, C, grid=2)
        with pytest.raises(lw.VerificationError, match="the index is 4"):
            looked_up(PLACES, A)
        with pytest.raises(lw.VerificationError, match="the index is 4"):
            weighed(grains, grains, A)
    gather(PLACES, np.ones(5, np.float32), C, grid=2)
    np.testing.assert_array_equal(C, 1)
    np.testing.assert_array_equal(twice(A), 2)  # has nothing to test


@pytest.mark.parametrize("value", ["", "0"])
def test_others_are_not(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LANEWISE_CHECKS", value)
    assert not skeleton.checks_everywhere()


def test_what_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CHECKS", "yes")
    with pytest.raises(lw.ArgumentError, match=r"LANEWISE_CHECKS='yes': wanted 1"):
        twice(A)
