"""Bytes on a device: checked allocation, and arrays of any library brought there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from lanewise.errors import ArgumentError, DeviceError
from lanewise.layouts import ALIGNMENT
from lanewise.runtime import cuda
from lanewise.target import is_gpu


def available_memory(device: str) -> int:
    """Bytes that can be allocated now."""
    if is_gpu(device):
        return cuda.free_memory(device)
    import psutil

    return int(psutil.virtual_memory().available)


def require_memory(device: str, nbytes: int, what: str) -> None:
    """Refuse, before anything is allocated, what cannot fit; raises `DeviceError` with both figures."""
    if nbytes > (available := available_memory(device)):
        raise DeviceError(f"{what} needs {nbytes:,} bytes on {device!r}, and {available:,} are available")


def allocate(device: str, nbytes: int, what: str, *, zeroed: bool = True) -> Any:
    """Bytes, aligned for every layout: a NumPy array on the host, a CuPy array on a GPU.

    zeroed: without it a GPU's memory holds anything, for those who write all of it. Raises `DeviceError` with what is needed and
    what there is.
    """
    if is_gpu(device):
        data = _on_gpu(device, nbytes, what)
        if zeroed:
            with cuda.use(device):
                data.fill(0)
        return data
    if nbytes > 1 << 20:  # small ones always fit, and asking costs more than allocating
        require_memory(device, nbytes, what)
    try:
        raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
    except MemoryError as error:  # a limit of the process, which nobody says beforehand
        raise DeviceError(f"{what} needs {nbytes:,} bytes on {device!r}, which cannot be allocated") from error
    return _aligned(raw, nbytes)


def allocate_pinned(nbytes: int, what: str) -> Any:
    """Zeroed bytes of the host that the system never moves, which GPUs copy from and to without a detour; aligned for every layout.

    Raises `DeviceError` where there is no room for them.
    """
    require_memory("cpu", nbytes, what)
    raw = cuda.pinned(nbytes + ALIGNMENT, what)
    raw.fill(0)
    return _aligned(raw, nbytes)


def _aligned(raw: Any, nbytes: int) -> Any:
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Several pieces of memory in one allocation: `pieces[name]` is a view of its bytes, `addresses[name]` where they begin."""

    whole: Any
    addresses: Mapping[str, int]
    sizes: Mapping[str, int]

    def __getitem__(self, name: str) -> Any:
        start = self.addresses[name] - address(self.whole)
        return self.whole[start : start + self.sizes[name]]


def allocate_pieces(device: str, sizes: Mapping[str, int], what: str) -> Pieces:
    """Pieces of that many bytes each, aligned for every layout; not zeroed on a GPU."""
    starts = list(accumulate((-(-n // ALIGNMENT) * ALIGNMENT for n in sizes.values()), initial=0))
    whole = allocate(device, starts[-1], what, zeroed=False)
    first = address(whole)
    return Pieces(whole, {name: first + start for name, start in zip(sizes, starts, strict=False)}, sizes)


def address(array: Any) -> int:
    """Where the elements of an array on any device begin."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _on_gpu(device: str, nbytes: int, what: str) -> Any:
    """A GPU's allocator refuses what does not fit, and asking the driver first takes longer than allocating."""
    try:
        return cuda.allocate(device, nbytes)
    except DeviceError:
        require_memory(device, nbytes, what)
        raise


def overlap(a: Any, b: Any) -> bool:
    """Whether the bytes of two arrays (both on the host, or both on one GPU) have any in common, by their first and last one."""

    def ends(x: Any) -> tuple[int, int]:
        start = address(x)
        return start, start + int(x.nbytes)

    (first, last), (start, stop) = ends(a), ends(b)
    return first < stop and start < last


def copy_bytes(device: str, to: Any, source: Any) -> None:
    """Copy a whole contiguous array to another one of as many bytes; on a GPU on the current stream, so that a graph may hold it."""
    if is_gpu(device):
        cuda.copy_within(device, address(to), address(source), int(source.nbytes))
    else:
        to[...] = source


def array_module(device: str) -> Any:
    """NumPy or CuPy."""
    return cuda.cupy() if is_gpu(device) else np


def bring(value: Any, device: str) -> Any:
    """An array-like (NumPy, CuPy, DLPack, `__cuda_array_interface__`, lists) as an array of the device's library."""
    on_gpu = hasattr(value, "__cuda_array_interface__") or (
        hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray) and value.__dlpack_device__()[0] == 2
    )
    if is_gpu(device):
        with cuda.use(device):
            return _of_gpu(value) if on_gpu else cuda.cupy().asarray(value)
    if on_gpu:
        return cuda.cupy().asnumpy(_of_gpu(value))
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        return np.from_dlpack(value)
    result = np.asarray(value)
    if result.dtype.kind not in "biuf":
        raise ArgumentError(f"an array of numbers is needed, found {type(value).__name__} with dtype {result.dtype}")
    return result


def _of_gpu(value: Any) -> Any:
    """An array of another library on a GPU, as one of CuPy that lies in the same memory.

    By DLPack if there is a choice: the producer makes our stream wait for what still fills the array. `__cuda_array_interface__` need not
    say which stream that is, and JAX, which fills arrays behind the caller's back, does not.
    """
    module = cuda.cupy()
    if isinstance(value, module.ndarray) or not hasattr(value, "__dlpack__"):
        return module.asarray(value)
    return module.from_dlpack(value)


def to_host(value: Any) -> Any:
    """A NumPy array with the contents of a device array."""
    return value if isinstance(value, (np.ndarray, np.generic)) else cuda.cupy().asnumpy(value)


def read_only(array: Any) -> Any:
    """An array that was made for its reader: on the host nobody can write to it and hope for an effect. CuPy has no such arrays."""
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array
