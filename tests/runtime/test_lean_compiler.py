"""The short way through Numba: literals, what kernels share, and that nothing stays of dropped ones."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int32, int64, njit, uint32, uint64

from lanewise.runtime import cpu, lean_compiler, lean_statements
from lanewise.runtime.kernel_cache import KernelCache

HEAD = """
from numba import njit
from numba import float32 as f32
from numba import int64 as i64

"""
HELPER = """
@njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def helper(a):
    return a * f32(0.1) + f32(2.0)

"""
KERNEL = """
@njit(error_model="numpy", nogil=True)
def NAME_kernel(x, begin, end):
    for i in range(begin, end):
        value = helper(x[i])
        if value > f32(3.0):
            value = f32(3.0)
        x[i] = value PLUS
"""


def text(name: str, plus: str = "") -> str:
    return HEAD + HELPER + KERNEL.replace("NAME", name).replace("PLUS", plus)


@pytest.mark.parametrize(
    ("kind", "literal", "constant"),
    [
        (float32, 0.1, np.float32(0.1)), (float64, 0.1, np.float64(0.1)), (float32, 1, np.float32(1)),
        (int64, 2**63 - 1, np.int64(2**63 - 1)), (int64, -(2**63), np.int64(-(2**63))), (uint64, 2**64 - 1, np.uint64(2**64 - 1)),
        (uint32, 2**32 - 1, np.uint32(2**32 - 1)), (int32, -(2**31), np.int32(-(2**31))), (float32, -0.0, np.float32(-0.0)),
    ],
)  # fmt: skip
def test_literals_become_numbers_of_their_type(kind: Any, literal: float, constant: Any) -> None:
    found = lean_statements.constant_of(kind, literal)
    assert type(found) is type(constant)
    assert found.tobytes() == constant.tobytes()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int32, 2**31),
        (uint32, -1),
        (float32, 1e39),
        (int64, 1.0),
        (float64, float("nan")),
        (float64, "1"),
        (min, 1),
        (int64, True),
    ],
)
def test_what_does_not_fit_is_left_to_numba(kind: Any, value: Any) -> None:
    assert lean_statements.constant_of(kind, value) is None


def test_the_short_way_gives_the_bits_of_numba() -> None:
    x = np.random.default_rng(1).normal(size=1000).astype(np.float32) * 20
    namespace: dict[str, Any] = {"__name__": "whole"}
    exec(text("whole"), namespace)
    found, wanted = x.copy(), x.copy()
    namespace["whole_kernel"](wanted, 0, len(x))
    cpu.load_kernel(text("short"), "short")(found, 0, len(x))
    assert found.tobytes() == wanted.tobytes()


def test_kernels_share_what_they_call_and_drop_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    a, b = (cpu.load_kernel(text(n, p), n) for n, p in (("one", "+ f32(1.0)"), ("two", "")))
    helpers = [k.py_func.__globals__["helper"] for k in (a, b)]  # type: ignore[attr-defined]
    assert helpers[0] is helpers[1]
    assert helpers[0].py_func.__name__ == "helper"
    x, y = (np.ones(4, np.float32) for _ in range(2))
    a(x, 0, 4)
    b(y, 0, 4)
    assert (x[0], y[0]) == (np.float32(1) * np.float32(0.1) + 3, np.float32(1) * np.float32(0.1) + 2)
    assert len(helpers[0].overloads) == 1
    assert helpers[0] in list(lean_compiler._SHARED.values())
    shared = weakref.ref(helpers[0])
    del a, b, helpers
    gc.collect()
    assert shared() is None


def test_functions_that_differ_are_not_shared() -> None:
    a = cpu.load_kernel(text("one"), "one")
    b = cpu.load_kernel(text("two").replace("f32(0.1)", "f32(0.2)"), "two")
    c = cpu.load_kernel(text("three").replace("forceinline=True", "forceinline=False"), "three")
    helpers = {id(k.py_func.__globals__["helper"]) for k in (a, b, c)}  # type: ignore[attr-defined]
    assert len(helpers) == 3


def test_a_shared_function_is_found_in_the_cache_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a cache refer to what they call by the name of a module: one that every process has."""
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    x = np.ones(4, np.float32)
    for _ in range(2):
        kernel: Any = cpu.load_kernel(text("again"), "again")
        assert isinstance(kernel._cache, KernelCache)
        kernel(x, 0, 4)
        hits = sum(kernel.stats.cache_hits.values())
        del kernel
        gc.collect()
    assert hits == 1


def test_numba_itself_is_left_as_it_is() -> None:
    @njit
    def other(a: Any) -> Any:
        return [i for i in range(3) if i < a][-1]  # a comprehension, which the short way does not know

    cpu.load_kernel(text("any"), "any")(np.ones(1, np.float32), 0, 1)
    assert other(2) == 1
