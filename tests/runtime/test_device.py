"""Devices: what callers ask is the same for all of them, and a GPU's work is put on that GPU."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.target import TARGETS, target_of
from lanewise.layouts import ALIGNMENT
from lanewise.models.devices import device_model
from lanewise.runtime import cuda
from lanewise.runtime.cuda_device import Cuda
from lanewise.runtime.device import MAKERS, Device, get_device
from lanewise.runtime.device_facts import Facts
from lanewise.runtime.host_device import HostDevice
from lanewise.runtime.memory import address, allocate, allocate_beside
from lanewise.runtime.occupancy import Limits
from lanewise.support.errors import DeviceError
from tests.launch import stand_in_gpu

DEVICES = [get_device("cpu"), get_device("python"), get_device("cuda:98")]


def test_every_target_has_a_device_and_devices_are_made_once() -> None:
    assert MAKERS.keys() == TARGETS.keys()
    for name in (*TARGETS, "cuda:1"):
        device = get_device(name)
        assert (device.name, device.target.name) == (name, name.partition(":")[0])
        assert get_device(name) is device
    with pytest.raises(DeviceError, match="unknown device 'tpu'; wanted 'cpu', 'cuda'"):
        get_device("tpu")


@pytest.mark.parametrize("kind", [HostDevice, Cuda])
def test_members_have_the_signatures_of_the_protocol(kind: type[Any]) -> None:
    for name in (n for n in vars(Device) if not n.startswith("_")):
        wanted, found = getattr(Device, name), getattr(kind, name)
        if name == "name" or isinstance(wanted, property):
            continue
        assert list(inspect.signature(found).parameters.items()) == [
            (n, p.replace(annotation=inspect.signature(found).parameters[n].annotation))
            for n, p in inspect.signature(wanted).parameters.items()
        ], name


@pytest.mark.parametrize("name", ["cpu", "python"])
def test_the_host_does_everything_at_once(name: str) -> None:
    host = get_device(name)
    data = host.allocate(40, zeroed=False)
    assert (data.dtype, data.shape, address(data) % ALIGNMENT) == (np.uint8, (40,), 0)
    source = np.arange(40, dtype=np.uint8)
    host.copy(data, source)
    assert np.array_equal(data, source)
    host.clear(address(data) + 8, 16)
    assert data.nonzero()[0].tolist() == [*range(1, 8), *range(24, 40)]
    with host.use(), host.fetching(128), host.lease("a test"):
        assert host.arrays is np
        assert not host.is_capturing()
        host.synchronize()
    calls: list[int] = []

    def work(number: int) -> None:
        calls.append(number)
        time.sleep(2e-3)  # on a busy machine it takes longer, and never less

    assert host.seconds(lambda: work(1)) >= 2e-3
    assert host.stopwatch([lambda: work(2)], 1.0)() >= 2e-3
    assert calls == [1, 2]
    assert host.facts() is None
    assert host.identity().threads == host.units() == host.machine().multiprocessors
    assert host.machine().kind == "cpu"
    with pytest.raises(DeviceError, match=f"'mine' is a kernel of threads in blocks, which '{name}' does not have"):
        host.load("", "mine", 32)


def test_a_loan_of_the_host_lives_as_long_as_the_memory_stays() -> None:
    host, data = get_device("cpu"), np.zeros(8, np.uint8)
    lent, loan = host.lend(data, None)
    assert host.lend(data, loan)[1] is loan
    lent[0] = 7
    assert data[0] == 7
    assert host.lend(data.copy(), loan)[1] is not loan


def test_what_no_device_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: HostDevice, nbytes: int, *, zeroed: bool) -> Any:
        raise MemoryError

    monkeypatch.setattr(HostDevice, "allocate", full)
    with pytest.raises(DeviceError, match="a test needs 8 bytes on 'cpu', which cannot be allocated"):
        allocate("cpu", 8, "a test")


def test_a_gpu_is_asked_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    launches, gpu = stand_in_gpu.put_in(monkeypatch), get_device(stand_in_gpu.DEVICE)
    assert (gpu.title(), gpu.architecture(), gpu.units()) == ("stand-in", "sm_90", 132)
    assert (gpu.machine().kind, gpu.machine().multiprocessors, gpu.machine().copies) == ("cuda", 132, True)
    assert gpu.free_memory() == 1 << 36
    data = gpu.allocate(16, zeroed=True)
    assert data.host.tolist() == [0] * 16
    other = gpu.arrays.asarray(np.arange(16, dtype=np.uint8))
    gpu.copy(data, other)
    assert data.host.tolist() == list(range(16))
    text = 'extern "C" __global__ void mine_kernel(int *a) { *a = 1; }'
    gpu.load(text, "mine", 32).launch((1, 1), (address(data),))
    assert launches.since() == ["mine"]
    assert not gpu.overcommits


def test_work_for_a_gpu_goes_to_that_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every member that asks the driver hands on the name of the device."""
    asked: list[tuple[str, str]] = []

    def noted(name: str) -> Callable[..., Any]:
        def note(*given: Any) -> None:
            asked.append((name, next(x for x in given if isinstance(x, str) and x.startswith("cuda"))))

        return note

    names = (
        "synchronize", "is_capturing", "lease", "use", "free_memory", "multiprocessors", "device_name", "architecture",
    )  # fmt: skip
    for name in names:
        monkeypatch.setattr(cuda, name, noted(name))
    gpu = get_device("cuda:1")
    asking = (gpu.synchronize, gpu.is_capturing, gpu.use, gpu.free_memory, gpu.units, gpu.title, gpu.architecture)
    for ask in asking:
        ask()
    gpu.lease("a test")
    assert sorted(asked) == sorted((name, "cuda:1") for name in names)


def test_what_a_driver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those of `cudaDeviceAttr`."""
    told = {
        13: 1_980_000, 36: 3_201_000, 37: 6144, 38: 60 << 20, 39: 2048, 81: 228 << 10, 82: 65_536, 97: 227 << 10, 106: 32,
        111: 1024, 12: 65_535,
    }  # fmt: skip
    stand_in_gpu.put_in(monkeypatch)

    def attribute(number: int, device: int) -> int:
        assert device == 98
        return told[number]

    monkeypatch.setattr(cuda.cupy().cuda.runtime, "deviceGetAttribute", attribute, raising=False)
    facts = get_device(stand_in_gpu.DEVICE).facts()
    assert facts is not None
    assert facts == Facts(
        clock_hz=1.98e9, memory_bandwidth=2 * 3.201e9 * 6144 / 8, l2_bytes=60 << 20, threads=2048, blocks=32,
        shared_bytes=228 << 10, block_shared_bytes=227 << 10, registers=65_536, block_registers=65_535,
        reserved_shared_bytes=1024,
    )  # fmt: skip
    model = device_model.__wrapped__(stand_in_gpu.DEVICE)  # kept by nobody
    assert (model.name, model.arch, model.multiprocessors, model.clock_hz) == ("stand-in", "sm_90", 132, 1.98e9)
    assert model.limits == Limits(64, 32, 228 << 10, 227 << 10, 65_536, 65_535, 1024, 128)
    assert (model.memory_peak, model.l2_bytes, model.machine.copies) == (facts.memory_bandwidth, 60 << 20, True)


def test_memory_beside_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_gpu.put_in(monkeypatch)
    asked: list[int] = []

    def pinned(self: Cuda, nbytes: int, what: str) -> Any:
        asked.append(nbytes)
        return np.full(nbytes, 7, np.uint8)

    monkeypatch.setattr(Cuda, "pinned", pinned)
    for device, wanted in (("cpu", []), (stand_in_gpu.DEVICE, [100 + ALIGNMENT])):
        beside = allocate_beside(device, 100, "a test")
        assert (beside.shape, address(beside) % ALIGNMENT, beside.any()) == ((100,), 0, False)
        assert asked == wanted


class Mirror:
    """A host whose allocations are counted."""

    allocations = 0

    def __init__(self, name: str) -> None:
        self.name, self._host = name, HostDevice(name)

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        Mirror.allocations += 1
        return self._host.allocate(nbytes, zeroed=zeroed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for kept in (target_of, get_device):
        kept.cache_clear()
    monkeypatch.setitem(TARGETS, "mirror", replace(TARGETS["cpu"], name="mirror"))
    monkeypatch.setitem(MAKERS, "mirror", Mirror)
    yield "mirror"
    for kept in (target_of, get_device):
        kept.cache_clear()


class Body(lw.Record):
    x: lw.f32
    near: lw.i32


def test_arrays_of_another_kind_of_device(mirror: str) -> None:
    """A class and two entries: arrays are allocated there, and moved there."""
    Mirror.allocations = 0
    bodies = Body.zeros(100, device=mirror)
    assert (bodies.device, Mirror.allocations) == (mirror, 1)
    bodies.x = np.arange(100, dtype=np.float32)
    few = bodies[bodies.x % 10 == 0]
    assert (few.device, few.x.tolist()) == (mirror, list(range(0, 100, 10)))
    assert bodies[[3, 1]].x.tolist() == [3, 1]
    there = bodies.to("cpu")
    assert (there.device, there.to(mirror).device) == ("cpu", mirror)
    assert Mirror.allocations > 3
    with pytest.raises(DeviceError, match="unknown device 'miror'"):
        Body.zeros(1, device="miror")
