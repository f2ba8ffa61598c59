"""Work that was divided into a share for each thread runs all at once: no share is timed alone first."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from lanewise.patterns.search.builders import counting
from lanewise.primitives import direct_sums
from lanewise.primitives.exact_sums import words_for
from lanewise.runtime import cpu

SECONDS = 60.0  # after which a share that waits for the others in vain fails


class Meeting:
    """Kernels whose shares wait until every share has begun."""

    def __init__(self, shares: int, names: tuple[str, ...]) -> None:
        self.names, self.met = names, list[str]()
        self._barrier, self._own = threading.Barrier(shares, timeout=SECONDS), cpu.own_kernel

    def own_kernel(self, text: str, name: str) -> Any:
        kernel = self._own(text, name)
        if name not in self.names:
            return kernel

        def run(*arguments: Any) -> None:
            self._barrier.wait()
            self.met.append(name)
            kernel(*arguments)

        return run


@pytest.mark.parametrize("shares", [2, 3, 8])
def test_shares_run_at_once(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpu_threads", lambda: shares)
    barrier, done = threading.Barrier(shares, timeout=SECONDS), np.zeros(shares, int)

    def share(begin: int, end: int) -> None:
        barrier.wait()
        done[begin:end] += 1

    cpu.run_shares(share, (), shares)
    assert (done == 1).all()


@pytest.mark.parametrize(("shares", "threads"), [(1, 1), (1, 4), (5, 1), (5, 3), (9, 4)])
def test_every_share_runs_once_whatever_the_threads(shares: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpu_threads", lambda: threads)
    done = np.zeros(shares, int)

    def share(begin: int, end: int) -> None:
        done[begin:end] += 1

    cpu.run_shares(share, (), shares)
    assert (done == 1).all()


@pytest.mark.parametrize("shares", [2, 5])
def test_a_counting_sort_has_no_share_alone(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = Meeting(shares, ("count_shares", "fill_shares"))
    monkeypatch.setattr(cpu, "cpu_threads", lambda: shares)
    monkeypatch.setattr(counting, "own_kernel", meeting.own_kernel)
    cells = np.random.default_rng(shares).integers(0, 50, 4_000).astype(np.int32)
    starts, order = np.empty(51, np.int32), np.empty(len(cells), np.int32)
    counting.sort_by_cell(cells, starts, order, shares)
    assert meeting.met == ["count_shares"] * shares + ["fill_shares"] * shares
    np.testing.assert_array_equal(order, np.argsort(cells, kind="stable"))


@pytest.mark.parametrize("shares", [2, 5])
def test_direct_sums_have_no_share_alone(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = Meeting(shares, ("direct_sums",))
    monkeypatch.setattr(cpu, "cpu_threads", lambda: shares)
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-9)  # as many threads as there are, whatever the work
    monkeypatch.setattr(cpu, "own_kernel", meeting.own_kernel)
    places = np.arange(4_000, dtype=np.int32) % 7
    values, array = np.ones(len(places), np.float32), np.zeros(7, np.float32)
    words = words_for(array, "cpu")
    assert direct_sums.add_directly(places, values, words, array)
    assert meeting.met == ["direct_sums"] * shares
    np.testing.assert_array_equal(array, np.bincount(places))
