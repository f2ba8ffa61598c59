"""LANEWISE_CHECKS=1 tests the indices of every call of a program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.task_list import TaskList
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Buffer, Role, Sequence
from lanewise.patterns import call_tasks, skeleton


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


def test_tasks_of_tested_calls_are_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each is compiled; other calls do not read their statements."""
    seen: list[str] = []

    def verified(sequence: Sequence) -> Sequence:
        seen.append(sequence.name)
        return verify(sequence)

    monkeypatch.setattr(call_tasks, "verify", verified)
    a, plain = np.ones(5, np.float32), lw.elementwise(twice.python)
    plain(a)
    assert not seen
    fresh = lw.threadwise(gather.python)
    fresh(PLACES, a, C, grid=2, checks=True)
    assert set(seen) == {"gather"}
    monkeypatch.setenv("LANEWISE_CHECKS", "1")
    skeleton.checks_everywhere.cache_clear()
    seen.clear()
    plain = lw.elementwise(twice.python)
    for _ in range(3):
        plain(a)
    assert seen == ["twice"]


def test_tasks_that_are_not_sound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CHECKS", "1")
    monkeypatch.setattr(TaskList, "sequence", Sequence("twice", {"x": Buffer("x", Role.RESULT)}, ()))
    with pytest.raises(lw.VerificationError, match="twice: nothing writes the result 'x'"):
        lw.elementwise(twice.python)(A)
