"""How devices reach each other: what stands between two of them, and how fast copies go."""

from __future__ import annotations

from typing import Any

from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cuda_number
from lanewise.runtime.memory import address
from lanewise.support.errors import DeviceError
from lanewise.support.interrupts import interrupts_wait

ONE_DEVICE = "one device"
HOST_MEMORY = "memory of the host"
NVLINK = "NVLink"
PEER = "PCIe, peer access"
STAGED = "through the host, no peer access"
BETWEEN_PROCESSES = "MPI, through memory of the host"
RATES = {NVLINK: 350e9, PEER: 25e9, STAGED: 10e9, BETWEEN_PROCESSES: 5e9}
"""Bytes a second, for predictions: of NVLink measured between two NVIDIA H100 (16 MiB and more),
of the others what PCIe of generation 5 and copies through the host reach.
"""
SENT = 64 << 20  # bytes of a copy that is timed
TIMED = 8  # copies


def link_between(one: str, other: str) -> str:
    """What copies from one device to another go over."""
    if get_device(one).target.host_memory or get_device(other).target.host_memory:
        return HOST_MEMORY
    if one == other:
        return ONE_DEVICE
    a, b = cuda_number(one), cuda_number(other)
    if not cuda.cupy().cuda.runtime.deviceCanAccessPeer(a, b):
        return STAGED
    return NVLINK if _has_atomics(a, b) else PEER


def _has_atomics(one: int, other: int) -> bool:
    """Whether a GPU can add to the memory of another one, which NVLink alone lets it."""
    with interrupts_wait():
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    wanted = driver.CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
    status, found = driver.cuDeviceGetP2PAttribute(
        wanted, driver.CUdevice(one), driver.CUdevice(other)
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(
            f"the link from cuda:{one} to cuda:{other} is unknown: the driver says {status.name}"
        )
    return bool(found)


def copy_rate(source: str, target: str) -> float:
    """Bytes a second of copies from one GPU to another one, or between a GPU and pinned memory of
    the host; takes some milliseconds.
    """
    to, at = _room(target, beside=source), _room(source, beside=target)
    pinned = any(get_device(d).target.host_memory for d in (source, target))
    gpu = source if get_device(target).target.host_memory else target

    def copies() -> None:
        for _ in range(TIMED):
            if pinned:
                cuda.copy_pinned(gpu, address(to), address(at), SENT)
            else:
                cuda.receive(to, at)

    with cuda.use(gpu):
        copies()  # the first ones open the link
    return TIMED * SENT / get_device(gpu).seconds(copies)


def _room(device: str, *, beside: str) -> Any:
    """Memory of a device; pinned where that is the host. beside: the other end of the copies."""
    there = get_device(device)
    if there.target.host_memory:
        return get_device(beside).pinned(SENT, "a copy that is timed")
    room = there.allocate(SENT, zeroed=True)
    there.synchronize()
    return room
