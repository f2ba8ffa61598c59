"""Whether a run is shared with other threads: decided by how long its first part takes, here by a clock of the test."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest

from lanewise.runtime import cpu


@dataclass
class Clock:
    """A clock that goes on as elements are computed, each in so many seconds."""

    each: float
    now: float = 0.0
    elements: list[tuple[int, int]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> float:
        return self.now

    def kernel(self, begin: int, end: int) -> None:
        with self.lock:
            self.elements.append((begin, end))
            self.now += (end - begin) * self.each

    def counts(self, extent: int) -> np.ndarray:
        counts = np.zeros(extent, int)
        for begin, end in self.elements:
            assert begin < end
            counts[begin:end] += 1
        return counts


@pytest.fixture
def shared(monkeypatch):
    """How many other threads were asked."""
    asked = []
    pool = cpu._pool

    def counted(threads):
        asked.append(threads)
        return pool(threads)

    monkeypatch.setattr(cpu, "_pool", counted)
    monkeypatch.setattr(cpu, "cpu_threads", lambda: 2)
    return asked


@pytest.mark.parametrize("seed", range(40))
def test_a_second_thread_runs_where_it_pays(seed, shared, monkeypatch):
    """Each element is computed once, whoever does it; work that takes less than handing it over stays here."""
    rng = np.random.default_rng(seed)
    grain, pieces = int(rng.integers(1, 20_000)), 10 ** rng.uniform(-1, 2.6)
    extent = max(1, int(grain * pieces))
    clock = Clock(10 ** rng.uniform(-10.5, -5))
    monkeypatch.setattr(cpu, "perf_counter", clock)
    cpu.run_range(clock.kernel, (), extent, grain)
    assert (clock.counts(extent) == 1).all()
    if extent <= grain:
        assert not shared
    elif extent >= cpu.SURE * grain:
        assert shared
    else:
        first = clock.elements[0][1]
        if first * clock.each < cpu.READABLE and first < grain:
            first = grain
        assert bool(shared) == cpu.pays((extent - first) * clock.each)


def test_what_is_short_is_not_shared(shared, monkeypatch):
    """250,000 elements in 60 microseconds: most of that would be handing over."""
    clock = Clock(60e-6 / 250_000)
    monkeypatch.setattr(cpu, "perf_counter", clock)
    cpu.run_range(clock.kernel, (), 250_000, 16_384)
    assert not shared
    assert len(clock.elements) == 3


def test_a_launch_that_was_short_is_timed_again_once_it_is_long(shared, monkeypatch):
    """Runs like it are one piece; loops whose length follows from data may be longer the next time."""
    clock, extent = Clock(60e-6 / 250_000), 250_000
    monkeypatch.setattr(cpu, "perf_counter", clock)
    launch = cpu.RangeLaunch(clock.kernel, extent, 16_384)
    pieces = []
    for _ in range(cpu.SAMPLES + 2):
        launch(())
        pieces.append(len(clock.elements))
        assert (clock.counts(extent) == 1).all()
        clock.elements.clear()
    assert pieces == [3] * cpu.SAMPLES + [1, 1]
    assert not shared
    clock.each *= 100
    for _ in range(2):
        launch(())
        assert (clock.counts(extent) == 1).all()
        clock.elements.clear()
    assert shared


@pytest.mark.parametrize("pieces", [2, 3, 5, 40])
@pytest.mark.parametrize("grain", [1, 7, 300])
def test_no_piece_of_a_launch_that_is_known_to_be_long_runs_alone_first(pieces, grain, shared, monkeypatch):
    """The first of two pieces is half of the work. Now and then it is timed again, and may be short by then: however
    long handing over takes, which many cores make longer than the work.
    """
    clock, extent, alone = Clock(1e-3 / grain), pieces * grain, []
    monkeypatch.setattr(cpu, "perf_counter", clock)
    monkeypatch.setattr(cpu, "begin", lambda *given, begin=cpu.begin: alone.append(given[2]) or begin(*given))
    launch = cpu.RangeLaunch(clock.kernel, extent, grain)
    for n in range(1, cpu.SAMPLES + cpu.TIMED_AGAIN + 1):
        launch(())
        assert (clock.counts(extent) == n).all()
    assert len(alone) == cpu.SAMPLES
    assert len(shared) >= cpu.TIMED_AGAIN
    clock.each *= 1e-6
    asked = len(shared)
    for _ in range(cpu.SAMPLES + 3):
        launch(())
    assert len(alone) == 2 * cpu.SAMPLES
    assert len(shared) == asked


@pytest.mark.parametrize("slabs", [2, 3, 8, 64])
@pytest.mark.parametrize("each", [1e-6, 20e-6, 101e-6, 1e-3])
def test_slabs_are_shared_where_it_pays(slabs, each, shared, monkeypatch):
    clock = Clock(each)
    monkeypatch.setattr(cpu, "perf_counter", clock)
    run = cpu.slab_run([cpu.Slabbed(clock.kernel, (), tuple(range(slabs + 1)))])
    for n in range(1, 6):
        run()
        assert (clock.counts(slabs) == n).all()
    # of two slabs one is left, as long as the first one is timed
    assert bool(shared) == cpu.pays(each * (slabs - 1))


@pytest.mark.parametrize("bounds", [(0, 0, 40, 80), (0, 1, 40, 80), (0, 40, 40, 80), (0, 0, 0, 0), (0, 80, 80)])
def test_slabs_with_few_places_say_nothing_of_the_others(bounds, shared, monkeypatch):
    """A first slab that is all walls takes no time; the others are shared all the same."""
    clock = Clock(10e-6)
    monkeypatch.setattr(cpu, "perf_counter", clock)
    run = cpu.slab_run([cpu.Slabbed(clock.kernel, (), bounds)])
    for n in range(1, 6):
        run()
        assert (clock.counts(bounds[-1]) == n).all()
    places = np.diff(bounds)
    assert bool(shared) == cpu.pays(clock.each * (places.sum() - places.max()))


def test_threads_of_all_numbers_are_those_of_one_pool(monkeypatch):
    monkeypatch.setenv("LANEWISE_THREADS", "7")
    before = threading.active_count()
    for extent in range(1, 200_000, 20_000):
        cpu.run_priced(lambda begin, end: None, (), extent, 100.0)
    assert threading.active_count() - before <= 6


def test_a_caller_waits_for_no_thread_that_has_nothing_left_to_do(monkeypatch):
    """The pool is busy with something else, such as a frame of a view: the caller does all of it."""
    monkeypatch.setenv("LANEWISE_THREADS", "2")
    goes_on, begun = threading.Event(), threading.Event()

    def busy():
        begun.set()
        assert goes_on.wait(20)

    other = cpu._pool(1).submit(busy)
    assert begun.wait(20)
    done, memory = [], np.zeros(1)
    cpu.run_range(lambda _, begin, end: done.append((begin, end)), (memory,), cpu.SURE * 2, 1)
    assert sum(end - begin for begin, end in done) == cpu.SURE * 2
    gone = weakref.ref(memory)
    del memory
    assert gone() is None, "threads that are late hold the memory of a call that is over"
    assert not other.done()
    goes_on.set()
    other.result()
