"""Range kernels on the thread pool: every element once, whatever the sizes."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.runtime import cpu
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.written.kernel import llvm_text
from lanewise.runtime.written.kinds import kind_of
from lanewise.support.errors import DeviceError


@lw.record
class Row:
    x: lw.f32


def make_growth(rate: float) -> Any:
    @lw.elementwise
    def grow(row: Row, dt: lw.f32):
        row.x += rate * dt

    return grow


@given(extent=st.integers(1, 5000), threads=st.integers(1, 64), grain=st.integers(1, 2000))
def test_spans_cover_everything_once_and_their_pieces_shrink(extent: int, threads: int, grain: int) -> None:
    spans, least = cpu.spans(extent, threads, grain), min(grain, max(grain - grain % cpu.ROW, cpu.ROW))
    assert 1 <= len(spans) <= threads
    pieces = [piece for span in spans for piece in span]
    assert [begin for begin, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] == extent
    lengths = [span[-1][1] - span[0][0] for span in spans]
    assert max(lengths) - min(lengths) <= 2 * grain
    for span in spans:
        sizes = [end - begin for begin, end in span]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size >= least for size in sizes[:-1])


@given(
    extent=st.integers(1, 100_000), threads=st.integers(2, 9), grain=st.integers(cpu.ROW, 20_000), slow=st.booleans()
)
def test_ranges_are_cut_at_rows(extent: int, threads: int, grain: int, slow: bool) -> None:
    """So which elements are behind the last vector depends on no number of threads and on no clock."""
    cuts: set[int] = set()
    ticks = itertools.count(step=10 if slow else 1e-9)

    def kernel(begin: int, end: int) -> None:
        cuts.update((begin, end))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "cpu_threads", lambda: threads)
        patch.setattr(cpu, "perf_counter", lambda: next(ticks))
        cpu.run_range(kernel, (), extent, grain)
    assert all(cut % cpu.ROW == 0 for cut in cuts - {extent})


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_run_range_gives_each_element_to_one_thread(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_THREADS", threads)
    seen: list[int] = []
    lock = threading.Lock()

    def kernel(tag: str, begin: int, end: int) -> None:
        assert tag == "argument"
        with lock:
            seen.extend(range(begin, end))

    cpu.run_range(kernel, ("argument",), 1003, 10)
    assert sorted(seen) == list(range(1003))


@given(
    extent=st.integers(1, 3000),
    nanoseconds=st.floats(0.5, 1e6),
    threads=st.integers(1, 40),
    hand_over=st.sampled_from([1e-9, 5e-7, 5e-5]),
)
def test_priced_runs_give_each_element_to_one_thread(
    extent: int, nanoseconds: float, threads: int, hand_over: float
) -> None:
    seen = np.zeros(extent, np.int64)

    def kernel(begin: int, end: int) -> None:
        seen[begin:end] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "HANDING_OVER", hand_over)
        patch.setenv("LANEWISE_THREADS", str(threads))
        cpu.run_priced(kernel, (), extent, nanoseconds)
    assert (seen == 1).all()


@given(work=st.floats(0, 1e12), most=st.integers(1, 200))
def test_more_threads_or_fewer_would_end_later(work: float, most: int) -> None:
    """Of the times work / n + n hand-overs, that of the chosen number is the least to a whole number; little work
    is handed to no other thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANEWISE_THREADS", str(most))
        n = cpu.threads_worth(work)
    assert 1 <= n <= most
    assert n == 1 or n * n * int(cpu.HANDING_OVER * 1e9) <= work
    assert n == most or (n + 1) ** 2 * int(cpu.HANDING_OVER * 1e9) > work


def test_an_error_in_any_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_THREADS", "2")

    def kernel(begin: int, end: int) -> None:
        if end > 900:
            raise ZeroDivisionError(f"{begin}")

    with pytest.raises(ZeroDivisionError):
        cpu.run_range(kernel, (), 1000, 10)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_of_threads_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_THREADS", value)
    with pytest.raises(DeviceError, match=rf"LANEWISE_THREADS='{value}': wanted an integer from 1 on"):
        cpu_threads()


def test_generated_texts_are_loaded_once_and_given_back() -> None:
    """Equal code is one function as long as somebody holds it; its memory goes with its last holder."""
    text = llvm_text(
        "def add_kernel(x, begin, end):\n    x[begin:end] = 1\n", "add", tuple(map(kind_of, (np.ones(1), 0, 0)))
    )
    kernel: Any = cpu.load_kernel(text, "add")
    assert cpu.load_kernel(f"; another head\n{text}", "add") is kernel
    x = np.zeros(4)
    kernel(x, 0, 3)
    assert x.tolist() == [1, 1, 1, 0]
    held = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert held() is None


def test_kernels_of_dropped_functions_are_given_back() -> None:
    def drop() -> list[Any]:
        kernel = make_growth(1.5)
        rows = Row.zeros(10)  # type: ignore[attr-defined]
        call = kernel.bind(rows, 0.1)
        call()
        return [weakref.ref(x) for x in (kernel, call.compiled.executable, *call.compiled.executable.kernels)]

    held = drop()
    gc.collect()
    assert [w() for w in held] == [None] * 3


def test_nothing_runs_any_more_when_a_thread_has_failed() -> None:
    together, done = threading.Barrier(3, timeout=20), list[bool]()

    def fail() -> None:
        together.wait()
        raise MemoryError("no room")

    def last() -> None:
        together.wait()
        time.sleep(0.2)
        done.append(True)

    with pytest.raises(MemoryError, match="no room"):
        cpu.at_once([lambda: together.wait() and None, fail, last])
    assert done
