"""GPU tests on the second of two GPUs, while the first one is the current device: `python -m tests.cuda_suite
--second`.

A plugin of pytest. "cuda" is the second GPU then, and "cuda:1" the first one. What tests make with functions of CuPy
lies on the second one, too, and what they compute with an array is computed where it lies. lanewise gets no such help:
memory of the first GPU is refused to it unless it has chosen that GPU, and CuPy warns, which is an error, of arithmetic
on another GPU than the one of the array. After each test the first GPU has to be the current one still.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

SWAPPED = {0: 1, 1: 0}
MESHES = "a mesh counts its devices itself, by names that are not exchanged; files and notes say which they are"
LEFT_OUT = {
    "tests/cuda/test_second_gpu_cuda.py::test_two_gpus_in_one_call_are_refused": "takes what CuPy makes to lie on the current device",
    "tests/test_field_copies.py::test_functions_of_cupy": "calls a kernel of CuPy, which runs on the current device",
    "tests/mesh/test_flows.py::test_a_simulation_has_the_bits_and_the_file_of_one_device[blown-cuda:0]": MESHES,
    "tests/mesh/test_flows.py::test_a_simulation_has_the_bits_and_the_file_of_one_device[cavity-cuda:0]": MESHES,
    "tests/mesh/test_flows.py::test_a_simulation_has_the_bits_and_the_file_of_one_device[channel-cuda:0]": MESHES,
    "tests/cuda/test_mesh_products_cuda.py::test_what_is_said_of_devices": MESHES,
    "tests/test_libraries.py::test_an_array_over_a_tensor[cuda]": "PyTorch calls the other GPU 'cuda'",
}
"""Tests that cannot be run so, by name, and why."""
NOT_COMPUTING = frozenset(
    ("__array_priority__", "__class_getitem__", "__dlpack__", "__dlpack_device__", "__hash__", "__init__", "__len__", "__new__", "__reduce__")
)  # fmt: skip
"""Methods of arrays that are left as they are."""


class Chosen(threading.local):
    """The GPUs that `with` blocks of lanewise are about, the innermost last."""

    def __init__(self) -> None:
        self.numbers: list[int] = []


CHOSEN = Chosen()


class Noted:
    """A context of lanewise that makes a GPU the current one; while it lasts, the GPU is chosen."""

    def __init__(self, context: Any, number: int) -> None:
        self._context, self._number = context, number

    def __enter__(self) -> Any:
        CHOSEN.numbers.append(self._number)
        return self._context.__enter__()

    def __exit__(self, *exception: object) -> Any:
        CHOSEN.numbers.pop()
        return self._context.__exit__(*exception)


class Function:
    """A function of CuPy that tests call: it computes where its arrays lie, and makes arrays on the second GPU."""

    def __init__(self, found: Any, there: Callable[[Iterable[Any]], Any]) -> None:
        self._found, self._there = found, there

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if asked_by_lanewise():
            return self._found(*arguments, **named)
        with self._there((*arguments, *named.values())):
            return self._found(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._found, name)
        return Function(inner, self._there) if callable(inner) else inner


class Library:
    """CuPy as tests import it."""

    def __init__(self, module: Any, there: Callable[[Iterable[Any]], Any]) -> None:
        self._module, self._there = module, there

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, type | ModuleType) or not callable(found):
            return found
        return Function(found, self._there)


def asked_by_lanewise() -> bool:
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


def lead_to_their_arrays(kind: type[Any], there: Callable[[Iterable[Any]], Any]) -> None:
    """Let the methods of a class of arrays compute where the array lies, where a test calls them."""
    (base,) = kind.__bases__
    for name, method in vars(base).items():
        private = name.startswith("_") and not name.startswith("__")
        if callable(method) and not private and not isinstance(method, type) and name not in NOT_COMPUTING:
            setattr(kind, name, _led(method, there))


def _led(method: Any, there: Callable[[Iterable[Any]], Any]) -> Any:
    @functools.wraps(method)
    def led(self: Any, *arguments: Any, **named: Any) -> Any:
        if asked_by_lanewise():
            return method(self, *arguments, **named)
        with there((self,)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The device where the array resides")  # of another argument
            return method(self, *arguments, **named)

    return led


def number_of(name: str) -> int:
    number = int(name.partition(":")[2] or 0)
    return SWAPPED.get(number, number)


def name_of(number: int) -> str:
    number = SWAPPED.get(number, number)
    return f"cuda:{number}" if number else "cuda"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:  # which import lanewise
    from lanewise.runtime import devices

    devices.cuda_number, devices.cuda_name = functools.cache(number_of), name_of
    from lanewise.runtime import cuda

    cupy, use = cuda.cupy(), cuda.use
    import cupyx  # noqa: F401  (it takes functions of the real one)

    cuda.use = lambda device: Noted(use(device), number_of(device))  # type: ignore[assignment]
    cupy.cuda.runtime.setDevice(0)
    pool = cupy.cuda.MemoryPool()

    def malloc(size: int) -> Any:
        here = size and cupy.cuda.runtime.getDevice() == 0 and CHOSEN.numbers[-1:] != [0]
        if here and asked_by_lanewise():
            raise AssertionError(f"{size} bytes are allocated on the current device, where no argument lies")
        return pool.malloc(size)

    def there(arguments: Iterable[Any]) -> Any:
        """Where the first array among the arguments lies; the second GPU where there is none and lanewise has chosen
        none.
        """
        flat = [x for a in arguments for x in (a if isinstance(a, list | tuple) else (a,))]
        arrays = [x for x in flat if isinstance(x, cupy.ndarray)]
        if arrays:
            return cuda.use(cuda.device_of(arrays[0]))
        return cupy.cuda.Device(CHOSEN.numbers[-1]) if CHOSEN.numbers else cuda.use("cuda")

    cupy.cuda.set_allocator(malloc)
    lead_to_their_arrays(cupy.ndarray, there)
    sys.modules["cupy"] = Library(cupy, there)  # type: ignore[assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [i for i in items if i.nodeid in LEFT_OUT]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [i for i in items if i.nodeid not in LEFT_OUT]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    from lanewise.runtime import cuda

    runtime = cuda.cupy().cuda.runtime
    current = runtime.getDevice()
    runtime.setDevice(0)
    # JAX makes its own device the current one.
    assert current == 0 or "jax" in sys.modules, f"device {current} is the current one after the test"
