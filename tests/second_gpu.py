"""GPU tests on the second of two GPUs, while the first one is the current device: `python -m tests.cuda_suite --second`.

A plugin of pytest. "cuda" is the second GPU then, and "cuda:1" the first one. What tests make with functions of CuPy lies on the second
one, too, and memory of the first one is refused to lanewise: whatever it allocates or computes on the current device, and not where its
arguments lie, fails. After each test the first GPU has to be the current one still.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

SWAPPED = {0: 1, 1: 0}


def _number(name: str) -> int:
    number = int(name.partition(":")[2] or 0)
    return SWAPPED.get(number, number)


def _name(number: int) -> str:
    number = SWAPPED.get(number, number)
    return f"cuda:{number}" if number else "cuda"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:  # which import lanewise
    from lanewise.runtime import devices

    devices.cuda_number, devices.cuda_name = functools.cache(_number), _name
    from lanewise.runtime import cuda

    cupy = cuda.cupy()
    import cupyx  # noqa: F401  (it takes functions of the real one)

    cupy.cuda.runtime.setDevice(0)
    pool = cupy.cuda.MemoryPool()

    def malloc(size: int) -> Any:
        if size and cupy.cuda.runtime.getDevice() == 0 and _asked_by_lanewise():
            raise AssertionError(f"{size} bytes are allocated on the current device, where no argument lies")
        return pool.malloc(size)

    cupy.cuda.set_allocator(malloc)
    sys.modules["cupy"] = cuda.library("cuda")  # type: ignore[assignment]


def _asked_by_lanewise() -> bool:
    """Whether lanewise is nearer in the stack than a test."""
    frame = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("lanewise."):
            return True
        if name.startswith("tests.") and name != __name__:
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return False


def pytest_configure(config: pytest.Config) -> None:
    # Tests compute with arrays of CuPy on the current device, which reaches the other one's memory.
    config.addinivalue_line("filterwarnings", r"ignore:The device where the array resides::tests\.")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    from lanewise.runtime import cuda

    runtime = cuda.cupy().cuda.runtime
    current = runtime.getDevice()
    runtime.setDevice(0)
    # JAX makes its own device the current one.
    assert current == 0 or "jax" in sys.modules, f"device {current} is the current one after the test"
