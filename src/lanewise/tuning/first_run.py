"""The first run of what is tuned: that it ends, and that its results tell right plans from wrong
ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lanewise.support.errors import LanewiseError

R = TypeVar("R")

STEP = 0.1  # seconds after which Ctrl-C is heard


def run_in_time(name: str, run: Callable[[], R], seconds: float) -> R:
    """Run in another thread; raises `LanewiseError` where that takes longer than tuning may.

    Nothing can end a kernel that runs: its thread continues.
    """
    results: list[R] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append(run())
        except BaseException as error:  # raised again where it is waited for
            errors.append(error)

    thread = threading.Thread(target=attempt, name="lanewise-first-run", daemon=True)
    end = time.perf_counter() + seconds
    thread.start()
    while thread.is_alive():
        if (left := end - time.perf_counter()) <= 0:
            raise LanewiseError(
                f"{name} cannot be tuned: its first run has not ended after {seconds:.3g} s, all "
                "the time that tuning has; it is still running. A loop of it may never end, or it "
                "takes too long: tune with fewer elements, or with more seconds"
            )
        thread.join(min(STEP, left))
    if errors:
        raise errors[0]
    return results[0]


def check_finite(name: str, results: Sequence[np.ndarray[Any, Any]]) -> None:
    """Raises `LanewiseError` for floats of which none is finite."""
    floats = [a for a in results if a.dtype.kind == "f" and a.size]
    if floats and not any(np.isfinite(a).any() for a in floats):
        raise LanewiseError(
            f"{name} cannot be tuned: none of the {sum(a.size for a in floats):,} numbers that it "
            "computes is finite, so that wrong plans look like right ones; pass arguments with "
            "finite results"
        )
