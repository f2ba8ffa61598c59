"""Device names, the default device, and what is said when one is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lanewise as lw
from lanewise.runtime import devices, memory
from lanewise.support.errors import DeviceError


def test_the_default_is_the_cpu_and_with_changes_it() -> None:
    assert devices.default_device() == "cpu"
    with lw.device("python"):
        assert devices.resolve(None) == "python"
        with lw.device("cpu"):
            assert devices.resolve(None) == "cpu"
        assert devices.resolve(None) == "python"
    assert devices.resolve(None) == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", "cuda0", "tpu:1"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(DeviceError) as error:
        devices.resolve(name)
    assert str(error.value) == (
        f"unknown device {name!r}; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)"
    )


def test_a_missing_gpu_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ("the package cupy-cuda13x is not installed",))
    with pytest.raises(DeviceError) as error:
        devices.resolve("cuda")
    assert str(error.value) == "device 'cuda' cannot be used:\n  - the package cupy-cuda13x is not installed"


def test_a_gpu_number_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ())
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 2)
    assert devices.resolve("cuda:1") == "cuda:1"
    assert devices.resolve("cuda:0") == "cuda"
    with pytest.raises(DeviceError, match=r"device 'cuda:2' does not exist: this machine has 2 GPUs, numbered from 0"):
        devices.resolve("cuda:2")


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "cuda:*", "cuda:0,1", "cuda:0-1", "cuda*2"])
def test_without_the_packages_every_gpu_is_refused(name: str) -> None:
    """As after an installation without extras: with what is missing, and how to get it."""
    call = (
        "import sys; sys.modules |= {'cuda': None, 'cupy': None}\n"
        "from lanewise.runtime import devices, mesh\n"
        "assert devices.cuda_device_count() == 0\n"
        "try:\n"
        f"    mesh.place_of({name!r})\n"
        "except devices.DeviceError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "cannot be used" in lines[0]
    assert len(lines) == 1 + len(devices.CUDA_MODULES)


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000)
    with pytest.raises(DeviceError) as error:
        memory.allocate("cpu", 3_000_000, "a test")
    assert str(error.value) == "a test needs 3,000,000 bytes on 'cpu', and 2,000,000 are available"


def test_importing_lanewise_touches_neither_llvm_nor_cuda() -> None:
    """An interactive user waits for this on every start."""
    check = (
        "import sys, lanewise;"
        "heavy = {'llvmlite', 'cupy', 'cuda', 'matplotlib', 'h5py', 'rich', 'typer', 'psutil'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
