"""Devices by name: "cpu", "cuda", "cuda:1", "python"; which one is the default, and what is missing
for CUDA.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from lanewise.language.target import TARGETS, UNKNOWN
from lanewise.support.checks import shown
from lanewise.support.errors import DeviceError
from lanewise.support.installation import install
from lanewise.support.interrupts import interrupts_wait

_DEFAULT: ContextVar[str] = ContextVar("lanewise_device", default="cpu")
CUDA_MODULES = {"cupy": "cupy-cuda13x", "cuda.core": "cuda-core", "cuda.bindings": "cuda-bindings"}


def default_device() -> str:
    """The device of arrays that name none."""
    return _DEFAULT.get()


@contextmanager
def device(name: str) -> Generator[None]:
    """Make `name` the default device within the `with` block (of this thread or task).

    Arrays made without `device=` lie there; existing arrays stay where they are. name: "cpu"; the
    first GPU "cuda" (or "cuda:0"), the others "cuda:1", "cuda:2", ...; "python", the interpreter.
    Meshes such as "cuda:*" cannot be the default: pass them as `device=`. Raises `DeviceError` for
    an unknown name, and for a device that is missing.
    """
    token = _DEFAULT.set(resolve(name))
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def resolve(name: str | None) -> str:
    """The canonical name of a usable device; raises `DeviceError` when it is unknown or missing.

    Nothing ever falls back to another one.
    """
    name = default_device() if name is None else name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DeviceError(
            f"a device is named by a string such as 'cpu' or 'cuda:1', found {shown(name)}"
        )
    if name in TARGETS and TARGETS[name].host_memory:
        return name
    if re.fullmatch(r"cuda(?::\d+)?", name) is None:
        raise DeviceError(UNKNOWN.format(name))
    check_not_forked()
    if problems := missing_for_cuda():
        raise DeviceError(
            f"device {name!r} cannot be used:\n" + "\n".join(f"  - {p}" for p in problems)
        )
    number = cuda_number(name)
    if number >= (count := cuda_device_count()):
        raise DeviceError(
            f"device {name!r} does not exist: this machine has {count} "
            f"GPU{'s' if count > 1 else ''}, numbered from 0"
        )
    return cuda_name(number)


def cuda_name(number: int) -> str:
    """The canonical name of a CUDA device: "cuda", "cuda:1", ..."""
    return f"cuda:{number}" if number else "cuda"


@cache
def cuda_number(name: str) -> int:
    """The number of a CUDA device."""
    return int(name.partition(":")[2] or 0)


_STARTED_IN: list[int] = []  # the process in which the CUDA driver was started; empty before


def cuda_started() -> None:
    """Note that this process uses the CUDA driver; raises `DeviceError` in a child forked after its
    parent had done so.
    """
    check_not_forked()
    if not _STARTED_IN:
        _STARTED_IN.append(os.getpid())


def cuda_is_started() -> bool:
    """Whether this process, or one that it was forked from, uses the CUDA driver."""
    return bool(_STARTED_IN)


def check_not_forked() -> None:
    """Raises `DeviceError` where CUDA would crash or hang: the driver's state does not survive a
    fork.
    """
    if _STARTED_IN and _STARTED_IN[0] != os.getpid():
        raise DeviceError(
            "CUDA cannot be used in this process: it was forked from one that had used CUDA before "
            "; "
            'start it with multiprocessing.get_context("spawn"), or use CUDA first in the child'
        )


@cache
def missing_for_cuda() -> tuple[str, ...]:
    """What keeps CUDA from working here, each with its remedy; empty when it works."""
    problems = []
    for module, package in CUDA_MODULES.items():
        if not _importable(module):
            problems.append(f"the package {package} is not installed: {install('cuda')}")
    if not problems and cuda_device_count() == 0:
        problems.append(
            f"no GPU was found ({_driver_problem()}): an NVIDIA GPU with driver 580 or newer is "
            "needed"
        )
    return tuple(problems)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@interrupts_wait()
def _driver_problem() -> str:
    from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:
        return "the NVIDIA driver is not installed"
    return (
        "no problem reported"
        if status == driver.CUresult.CUDA_SUCCESS
        else f"the driver says {status.name}"
    )


@cache
@interrupts_wait()
def cuda_device_count() -> int:
    """How many GPUs the driver shows; 0 without driver, and without the package that asks it."""
    if not _importable("cuda.bindings"):
        return 0
    from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    try:
        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            return 0
        cuda_started()
        status, count = driver.cuDeviceGetCount()
    except RuntimeError:
        return 0
    return int(count) if status == driver.CUresult.CUDA_SUCCESS else 0


_SHARING = [1]  # processes that share the cores of this one


def share_cores(processes: int) -> None:
    """Say that so many processes, this one among them, use the same cores."""
    _SHARING[0] = max(1, processes)


def cpu_threads() -> int:
    """Threads that CPU kernels run on: `$LANEWISE_THREADS`, or this process's part of the cores
    that it may use.
    """
    if chosen := os.environ.get("LANEWISE_THREADS"):
        if not chosen.isdigit() or int(chosen) < 1:
            raise DeviceError(f"LANEWISE_THREADS={chosen!r}: wanted an integer from 1 on")
        return int(chosen)
    return max(1, cores() // _SHARING[0])


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
