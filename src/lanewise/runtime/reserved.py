"""Memory that is named and never touched: for calls that are described and not run."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from lanewise.support.errors import DeviceError

# of Linux: what is not touched counts for nothing (Python has a name for it from 3.13 on)
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def reserved(nbytes: int) -> Any:
    """Bytes of the host, zeros, which take addresses and no memory until they are touched.

    Raises `DeviceError` where there are not so many addresses.
    """
    if not nbytes or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(nbytes, np.uint8)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)
    except (OSError, OverflowError) as error:
        raise DeviceError(f"there are no {nbytes:,} bytes of addresses for one array") from error
