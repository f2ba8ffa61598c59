"""Every kernel for a CPU in both languages: `python -m pytest -p tests.both_texts ...` finds where their bits differ.

A plugin of pytest. Each launch runs the kernel of LLVM's text, then on the same memory that of Python's text, and compares all bytes of
all arrays; a test in which they differ fails. Of several threads that write
one array one would see what the other restores: run with LANEWISE_THREADS=1.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from lanewise.emit.numba import emit_numba
from lanewise.launch import executable, kept_programs
from lanewise.runtime import cpu

TEXTS: dict[str, str] = {}
COUNTS: Counter[str] = Counter()
DIFFERENT: list[str] = []


class Both:
    """A kernel that runs twice."""

    def __init__(self, name: str, one: Any, other: Any) -> None:
        self.name, self.one, self.other = name, one, other

    def __call__(self, *arguments: Any) -> None:
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        before = [a.copy() for a in arrays]
        self.one(*arguments)
        found = [a.copy() for a in arrays]
        for a, b in zip(arrays, before, strict=True):
            if a.tobytes() != b.tobytes():
                a[...] = b
        self.other(*arguments)
        COUNTS["runs"] += arguments[-1] > arguments[-2]
        for n, (a, f) in enumerate(zip(arrays, found, strict=True)):
            if a.tobytes() != f.tobytes():
                where = np.flatnonzero(bits(a) != bits(f))
                some = [(int(i), f.reshape(-1)[i], a.reshape(-1)[i]) for i in where[:4]]
                DIFFERENT.append(
                    f"{self.name}: array {n}, {len(where)} of {a.size} elements; place, LLVM, Python: {some}"
                )
                a[...] = f


def bits(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements of an array as whole numbers."""
    return a.reshape(-1).view(f"u{a.itemsize}")


def pytest_configure(config: pytest.Config) -> None:
    generated, load = executable.generated_text, cpu.load_kernel

    def generated_text(reference: Any, plan: Any, kernel: Any, device: str, *, locations: bool) -> str:
        text = generated(reference, plan, kernel, device, locations=locations)
        if device == "cpu" and not locations:
            TEXTS[cpu.code_of(text)] = emit_numba(
                kernel, "both", fast_math=plan.fast_math, vector_bits=plan.vector_bits, locations=False
            )
        return text

    def load_kernel(text: str, name: str) -> Any:
        kernel, other = load(text, name), TEXTS.get(cpu.code_of(text))
        if other is None:
            return kernel
        COUNTS["kernels"] += 1
        return Both(name, kernel, load(other, name))

    executable.generated_text = kept_programs.generated_text = generated_text  # type: ignore[assignment]
    cpu.load_kernel = load_kernel
    kept_programs.entry_name = lambda *_: None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def compared() -> Any:
    """A test fails whose kernels gave different bits."""
    DIFFERENT.clear()
    yield
    if DIFFERENT:
        pytest.fail("different bits:\n" + "\n".join(DIFFERENT[:8]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"both texts: {dict(COUNTS)}")
