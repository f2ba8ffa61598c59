"""Memory of NVIDIA GPUs: lent to users, pinned on the host, copied from one GPU to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.runtime import cuda
from lanewise.support.errors import DeviceError


class Loan:
    """Memory of a device that somebody was given. It lives as long as any array has a part of it, of CuPy or of another library."""

    __slots__ = ("__weakref__", "_memory")

    def __init__(self, memory: Any) -> None:
        self._memory = memory


def leased(data: Any, loan: Loan | None) -> tuple[Any, Loan]:
    """The same bytes as an array whose memory belongs to a loan, and that loan: the last one, if there is one."""
    module = cuda.cupy()
    if loan is None or loan._memory is not data:  # pyright: ignore[reportPrivateUsage]
        loan = Loan(data)
    memory = module.cuda.UnownedMemory(data.data.ptr, data.nbytes, loan, data.data.device_id)
    return module.ndarray(data.shape, data.dtype, module.cuda.MemoryPointer(memory, 0)), loan


def pinned(nbytes: int, what: str) -> Any:
    """Bytes of the host that the system never moves, as an array of NumPy; raises `DeviceError` where the driver has none."""
    module = cuda.cupy()
    try:
        memory = module.cuda.alloc_pinned_memory(nbytes)
    except module.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"{what} needs {nbytes:,} bytes of pinned memory, which the driver does not have: {error}"
        ) from error
    return np.frombuffer(memory, np.uint8, nbytes)


def moved(array: Any, device: str) -> Any:
    """An array of CuPy on `device`: itself where it lies there, else a copy, which is there when this returns."""
    if (source := cuda.device_of(array)) == device:
        return array
    with cuda.use(source):
        whole = cuda.cupy().ascontiguousarray(array)
    result = cuda.library(device).empty(whole.shape, whole.dtype)
    copy_across(result, whole)
    return result


def copy_across(to: Any, source: Any) -> None:
    """Copy a contiguous array of a GPU to another one, on any GPU. Between two of them it is there when this returns."""
    if (device := cuda.device_of(to)) == (other := cuda.device_of(source)):
        return cuda.copy_within(device, int(to.data.ptr), int(source.data.ptr), int(source.nbytes))
    cuda.synchronize(other)
    with cuda.use(device):
        to.data.copy_from_device_async(source.data, int(source.nbytes))
    return cuda.synchronize(device)
