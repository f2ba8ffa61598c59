"""How much the last-level cache of a device holds: what decides whether a second pass over some records finds them there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lanewise.target import is_gpu

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL_BYTES = 32 << 20  # of a CPU whose system does not tell
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def last_level_bytes(device: str) -> int:
    """The size of the L2 cache of a GPU, or of the largest cache of a CPU (`USUAL_BYTES` where the system does not tell)."""
    if is_gpu(device):
        from lanewise.models.devices import device_model

        return device_model(device).l2_bytes
    return cpu_cache_bytes(CACHES) or USUAL_BYTES


def cpu_cache_bytes(folder: Path) -> int:
    """The largest cache that Linux lists in a folder of `index*/size` files, in bytes; 0 for none."""
    sizes = [path.read_text(encoding="ascii").strip() for path in folder.glob("index*/size")]
    return max((int(s.rstrip("KMG")) * _UNITS.get(s[-1], 1) for s in sizes if s), default=0)
