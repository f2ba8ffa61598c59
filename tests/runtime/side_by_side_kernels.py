"""Kernels that test_compile_workers.py compiles side by side, each case in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from contextlib import suppress

import numpy as np

import lanewise as lw
from lanewise.runtime import compile_workers, compiling
from lanewise.runtime.compiling import Compilation


@lw.elementwise
def square(x: lw.f32) -> lw.f32:
    return x * x


@lw.elementwise
def root(x: lw.f32) -> lw.f32:
    return lw.sqrt(x)


@lw.elementwise
def plus(x: lw.f32, y: lw.f32) -> lw.f32:
    return x + y


X = np.linspace(1, 2, 100_000, dtype=np.float32)  # enough for several threads
EXPECTED = (X * X, np.sqrt(X), X + X)


def workers() -> list[compile_workers._Worker]:
    return compile_workers._OPEN[0].workers or []


def main(case: str) -> None:
    seen: list[Compilation] = []
    with compiling.observed(seen.append), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if case == "thread":
            done = threading.Event()
            threading.Thread(target=done.wait, daemon=True).start()
        gone: list[compile_workers._Worker] = []
        with suppress(ZeroDivisionError), compile_workers.side_by_side():
            bound = [square.bind(X), root.bind(X)]
            gone = workers()[:]
            if case == "killed":
                for worker in gone:
                    os.kill(worker.process.pid, signal.SIGKILL)
            bound.append(plus.bind(X, X))
            if case == "used":
                assert np.array_equal(bound[0](), EXPECTED[0])
            if case == "broken":
                print("workers:", len(gone), "alive:", sum(w.process.is_alive() for w in gone))
                1 / 0  # noqa: B018
        print("ended:", all(w.pipe.closed for w in gone), "open:", len(compile_workers._OPEN))
        found = [call() for call in bound]
    print("equal:", all(np.array_equal(a, b) for a, b in zip(found, EXPECTED, strict=True)))
    print("workers:", len(gone), "compiled:", sorted(c.name for c in seen if not c.done))
    print("warned:", *(str(w.message) for w in warned if w.category is compile_workers.WorkerWarning))


if __name__ == "__main__":
    main(sys.argv[1])
