"""The bandwidth of a copy as it was measured on this machine within the last week: measuring takes
a fifth of a second of every run.

What was measured next to other work is too small. So it is measured again where a flow turns out to
be faster than the copy, and the larger figure stays; a flow that fits the caches is faster than any
copy, so there are a few such looks and no more.
"""

from __future__ import annotations

import json
import math
import platform
import time
from dataclasses import asdict, dataclass

from lanewise.language.target import is_compiled
from lanewise.primitives.copying import copy_bandwidth
from lanewise.runtime.cache import content_key, read_entry, remove_entry, write_entry
from lanewise.runtime.device import get_device

FORMAT = 1
LASTS = 7 * 24 * 3600.0  # seconds: memory, its settings and its neighbours on the machine change
MOST_LOOKS = 3  # measurements behind one figure


@dataclass(frozen=True, slots=True)
class MeasuredBandwidth:
    """Bytes read and written a second, by so many measurements; `begun`: when the first of them
    was, in seconds since 1970.
    """

    bytes_per_second: float
    looks: int
    begun: float


def remembered_bandwidth(device: str, reached: float) -> float | None:
    """Bytes read and written a second by a copy on a device. `reached`: what a flow moved a second,
    to be compared with it.

    None for the interpreter, and for a GPU without room for two large arrays.
    """
    if not is_compiled(device):
        return None
    name, now = _entry(device), time.time()
    kept = _read(name, now)
    if kept is not None and (reached <= kept.bytes_per_second or kept.looks >= MOST_LOOKS):
        return kept.bytes_per_second
    copied = copy_bandwidth(device)
    if copied is None:
        return None
    before = MeasuredBandwidth(0.0, 0, now) if kept is None else kept
    kept = MeasuredBandwidth(max(copied, before.bytes_per_second), before.looks + 1, before.begun)
    write_entry(name, json.dumps({"format": FORMAT, **asdict(kept)}).encode())
    return kept.bytes_per_second


def _entry(device: str) -> str:
    """One file a machine, device and number of threads: users may share one home folder on several
    machines.
    """
    what = get_device(device).identity()
    facts = (f"{n}={v}" for n, v in asdict(what).items())
    return f"measured/copy-{content_key(platform.node(), device, *facts)}"


def _read(name: str, now: float) -> MeasuredBandwidth | None:
    """What is remembered and still holds. What is none of it is removed."""
    content = read_entry(name)
    if content is None:
        return None
    try:
        data = json.loads(content)
        measured = MeasuredBandwidth(
            float(data["bytes_per_second"]), int(data["looks"]), float(data["begun"])
        )
        sound = data["format"] == FORMAT and 0 < measured.bytes_per_second < math.inf
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        sound, measured = False, None
    if not sound or measured is None:
        remove_entry(name)
        return None
    return measured if 0 <= now - measured.begun < LASTS else None
