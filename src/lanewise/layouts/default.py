"""The layout of arrays that name none."""

from __future__ import annotations

from lanewise.layouts.base import Layout
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS
from lanewise.record import Record
from lanewise.target import is_gpu


def default_layout(record: Record, device: str) -> Layout:
    """SoA for SIMD units, whose lanes read neighbours; SoAoAS for GPUs, whose threads read up to 16 bytes at once."""
    del record
    return SoAoAS() if is_gpu(device) else SoA()
