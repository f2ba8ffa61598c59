"""The first run of what is tuned: that its copies are made in time, that it ends, and that its
results tell right plans from wrong ones.
"""

from __future__ import annotations

import math
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lanewise.support.errors import LanewiseError

R = TypeVar("R")

STEP = 0.1  # seconds after which Ctrl-C is heard
COPIES = 3  # of what a kernel changes: to run on, of what it gave, and of the bytes of that
SLOWEST = 50e6  # bytes a second: no host copies more slowly
SAMPLE = 1 << 24  # bytes


def run_in_time(
    name: str,
    run: Callable[[], R],
    seconds: float,
    leave: Callable[[], Callable[[], None]] = lambda: _nothing,
) -> R:
    """Run in another thread; raises `LanewiseError` where that takes longer than tuning may.

    Nothing can end a kernel that runs: its thread continues. leave: called when the caller no
    longer waits; what it gives is called in that thread at the end of the run.
    """
    results: list[R] = []
    errors: list[BaseException] = []
    turn, ended = threading.Lock(), threading.Event()
    late: list[Callable[[], None]] = []

    def attempt() -> None:
        try:
            results.append(run())
        except BaseException as error:  # raised again where it is waited for
            errors.append(error)
        with turn:
            ended.set()
        for last in late:
            last()

    end = time.perf_counter() + seconds
    threading.Thread(target=attempt, name="lanewise-first-run", daemon=True).start()
    try:
        while not ended.wait(min(STEP, max(0.0, end - time.perf_counter()))):
            if time.perf_counter() >= end:
                raise LanewiseError(
                    f"{name} cannot be tuned: its first run has not ended after {seconds:.3g} s, "
                    "all the time that tuning has; it is still running. A loop of it may never "
                    "end, or it takes too long: tune with fewer elements, or with more seconds"
                )
    except BaseException:
        with turn:
            if not ended.is_set():
                late.append(leave())
        raise
    if errors:
        raise errors[0]
    return results[0]


def _nothing() -> None:
    """What is to do at the end of a run that leaves nothing behind."""


def check_copying(name: str, nbytes: int, seconds: float, times: int = COPIES) -> None:
    """Raises `LanewiseError` where copying this, so many times, takes longer than tuning may."""
    if times * nbytes <= SLOWEST * seconds:
        return
    needed = times * nbytes / copying_rate()
    if needed > seconds:
        raise LanewiseError(
            f"{name} cannot be tuned in {seconds:.3g} s: before any plan is compared it copies "
            f"{nbytes:,} bytes {times} times, about {needed:.3g} s at the rate of this machine; "
            f"tune with fewer elements, or with seconds={math.ceil(4 * needed)} or more"
        )


def copying_rate() -> float:
    """Bytes a second that the host copies to memory that it has not used yet."""
    source, best = np.ones(SAMPLE, np.uint8), 0.0
    for _ in range(3):
        target = np.frombuffer(mmap.mmap(-1, SAMPLE), np.uint8)
        start = time.perf_counter()
        target[...] = source
        best = max(best, SAMPLE / (time.perf_counter() - start))
    return best


def check_finite(name: str, results: Sequence[np.ndarray[Any, Any]]) -> None:
    """Raises `LanewiseError` for floats of which none is finite."""
    floats = [a for a in results if a.dtype.kind == "f" and a.size]
    if floats and not any(np.isfinite(a).any() for a in floats):
        raise LanewiseError(
            f"{name} cannot be tuned: none of the {sum(a.size for a in floats):,} numbers that it "
            "computes is finite, so that wrong plans look like right ones; pass arguments with "
            "finite results"
        )
