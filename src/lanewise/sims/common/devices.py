"""What products ask of devices: which exist, where arrays lie, how much memory, how fast copies,
when kernels are compiled.

No other module of a product imports `lanewise.runtime` for it. Devices are names such as "cuda:1".
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

from lanewise.language.target import CPU, CUDA, is_compiled, is_gpu, target_of
from lanewise.primitives.changes import remembered
from lanewise.primitives.remembered_bandwidth import remembered_bandwidth
from lanewise.runtime.compile_workers import settle, side_by_side
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cuda_device_count, cuda_number, resolve
from lanewise.runtime.memory import (
    address,
    array_module,
    available_memory,
    bring,
    device_of,
    module_of,
    on,
    read_only,
    require_memory,
    to_host,
    together,
)
from lanewise.runtime.mesh import device_of_rank, first_of, is_mesh, place_of
from lanewise.support.errors import DeviceError

__all__ = [
    "CPU",
    "CUDA",
    "address",
    "array_module",
    "available_memory",
    "bring",
    "check_compiled",
    "cuda_device_count",
    "cuda_number",
    "device_of",
    "device_of_rank",
    "first_of",
    "get_device",
    "is_compiled",
    "is_gpu",
    "is_mesh",
    "module_of",
    "on",
    "other_device",
    "place_of",
    "read_only",
    "release_memory",
    "remembered",
    "remembered_bandwidth",
    "require_memory",
    "resolve",
    "same_kind",
    "settle",
    "side_by_side",
    "target_of",
    "to_host",
    "together",
    "visible_cards",
]


def same_kind(one: str, other: str) -> bool:
    """Whether two devices run the same generated code, and so give the same bits."""
    return target_of(one) is target_of(other)


def other_device(path: Path, before: str, after: str) -> str:
    """Why a run resumed on another kind of device differs; "" on the same kind."""
    if same_kind(before, after):
        return ""
    return f"{path} was computed on {before}; on {after} the last places differ"


def visible_cards() -> list[str]:
    """The GPUs of this machine as CUDA_VISIBLE_DEVICES names them."""
    if (listed := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [g.strip() for g in listed.split(",") if g.strip()]
    return [str(n) for n in range(cuda_device_count())]


def release_memory(device: str) -> int:
    """Give a GPU's memory that no array has any more back to other processes: the pool of this one
    would keep it. Returns the bytes that arrays still have.
    """
    gc.collect()  # what arrays belong to may be in cycles
    if target_of(device).host_memory:
        return 0
    with on(device):
        pool = array_module(device).get_default_memory_pool()
        pool.free_all_blocks()
        return int(pool.used_bytes())


def check_compiled(product: str, device: str) -> None:
    """Refuse, with `DeviceError`, to tune a product where kernels are interpreted."""
    if not is_compiled(device):
        raise DeviceError(
            f"{product}: the device 'python' interprets kernels and has no plans to compare; "
            "move the arrays to 'cpu' or 'cuda'"
        )
