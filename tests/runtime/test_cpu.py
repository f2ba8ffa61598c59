"""Range kernels on the thread pool: every element once, whatever the sizes."""

from __future__ import annotations

import gc
import threading
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
    spans = cpu.spans(extent, threads, grain)
    assert 1 <= len(spans) <= threads
    pieces = [piece for span in spans for piece in span]
    assert [begin for begin, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] == extent
    lengths = [span[-1][1] - span[0][0] for span in spans]
    assert max(lengths) - min(lengths) <= 2 * grain
    for span in spans:
        sizes = [end - begin for begin, end in span]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size >= grain for size in sizes[:-1])


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
