"""How devices reach each other: what stands between two of them, and how fast copies go."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cuda_number
from lanewise.support.errors import DeviceError

ONE_DEVICE = "one device"
HOST_MEMORY = "memory of the host"
NVLINK = "NVLink"
PEER = "PCIe, peer access"
STAGED = "through the host, no peer access"
BETWEEN_PROCESSES = "MPI, through memory of the host"
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


def links_of(devices: Iterable[str]) -> tuple[str, ...]:
    """What the devices of a mesh are connected by, each once."""
    known = tuple(dict.fromkeys(devices))
    pairs = permutations(known, 2) if len(known) > 1 else ((d, d) for d in known)
    return tuple(dict.fromkeys(link_between(a, b) for a, b in pairs))


def _has_atomics(one: int, other: int) -> bool:
    """Whether a GPU can add to the memory of another one, which NVLink alone lets it."""
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
    """Bytes a second of copies from one GPU to another, or within one; takes some milliseconds."""
    here, there = (get_device(d).allocate(SENT, zeroed=True) for d in (source, target))
    to = get_device(target).allocate(SENT, zeroed=True) if source == target else there
    cuda.synchronize(source)
    with cuda.use(target):
        module = cuda.cupy().cuda
        cuda.receive(to, here)  # the first one opens the link
        begin, end = module.Event(), module.Event()
        begin.record()
        for _ in range(TIMED):
            cuda.receive(to, here)
        end.record()
        end.synchronize()
        return TIMED * SENT / (1e-3 * float(module.get_elapsed_time(begin, end)))
