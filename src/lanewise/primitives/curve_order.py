"""The kernels of the curve order on a GPU, for points of some layout, precision and world.

The texts are in `curve_text`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lanewise.language.types import F32, F64, Scalar
from lanewise.layouts import Arrangement
from lanewise.primitives import radix_sort
from lanewise.primitives.curve_text import (
    BOX_THREADS,
    BOXES,
    FAN,
    KEY_THREADS,
    KEYS,
    SAMPLE,
    SAMPLES,
    SEGMENTS,
    UPPER,
    UPPER_THREADS,
)
from lanewise.runtime.cuda_spelling import literal

KEY_BITS = {2: 15, 3: 10}  # an axis
_SPELLING = {F32: "float", F64: "double"}
_TEXTS = {
    "curve_sample": SAMPLE,
    "curve_keys": KEYS,
    "curve_sort": radix_sort.SORT,
    "curve_boxes": BOXES,
    "curve_upper": UPPER,
}
THREADS = {
    "curve_sample": SAMPLES,
    "curve_keys": KEY_THREADS,
    "curve_sort": radix_sort.THREADS,
    "curve_boxes": BOX_THREADS,
    "curve_upper": UPPER_THREADS,
}
"""Of a block of each kernel."""


@dataclass(frozen=True, slots=True)
class Period:
    """A periodic world: its size along every axis, and where it begins."""

    size: tuple[float, ...]
    origin: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CurveKind:
    """What a text depends on of points.

    margin: by how much boxes are larger than what they hold. period: None in other worlds.
    """

    arrangement: Arrangement
    leaves: tuple[str, ...]
    precision: Scalar
    margin: float
    period: Period | None

    @property
    def dimension(self) -> int:
        return len(self.leaves)


@lru_cache(maxsize=64)
def texts(points: CurveKind, leaf: int, keys: int, sort: int) -> dict[str, str]:
    """The text of every kernel. keys, sort: elements that a thread of these kernels handles."""
    items = {"curve_keys": keys, "curve_sort": sort}
    return {
        name: _defines(points, leaf, items.get(name, 1)) + _coordinates(points) + text
        for name, text in _TEXTS.items()
    }


def _defines(points: CurveKind, leaf: int, items: int) -> str:
    numbers = {
        "AXES": points.dimension,
        "BITS": KEY_BITS[points.dimension],
        "LEAF": leaf,
        "FAN": FAN,
        "ITEMS": items,
        "SAMPLES": SAMPLES,
        "SEGMENTS": SEGMENTS,
        "BINS": radix_sort.BINS,
        "PASSES": radix_sort.PASSES,
        "THREADS": radix_sort.THREADS,
        "KEY_THREADS": KEY_THREADS,
        "BOX_THREADS": BOX_THREADS,
        "UPPER_THREADS": UPPER_THREADS,
        "MARGIN": literal(points.margin, points.precision),
        "INFINITE": "real(__int_as_float(0x7f800000))",
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*lines, f"typedef {_SPELLING[points.precision]} real;", ""])


def _coordinates(points: CurveKind) -> str:
    """`raw`: a coordinate as it lies in memory; `coordinate`: within the world; `wrapping_margin`:
    what wrapping rounds away.
    """
    cases: list[str] = []
    for axis, leaf in enumerate(points.leaves):
        slot = points.arrangement.slot(leaf)
        buffer = points.arrangement.buffers[slot.buffer]
        place = f"i * {buffer.block}LL"
        if buffer.width > 1:
            place = f"i / {buffer.width} * {buffer.block}LL + i % {buffer.width} * {slot.stride}"
        cases.append(f"    if (axis == {axis}) return *(const real *)({'xyz'[axis]} + {place});\n")
    columns = "const char *x, const char *y, const char *z"
    head = "__device__ __forceinline__ real"
    return (
        f"\n{head} raw(int axis, {columns}, long long i)\n{{\n{''.join(cases)}    return "
        "real(0);\n}\n"
        f"\n{head} coordinate(int axis, {columns}, long long i)\n{{\n{_wrap(points)}}}\n"
        f"\n{head} wrapping_margin(int axis, {columns}, long long i)\n{{\n{_lost(points)}}}\n"
    )


def _wrap(points: CurveKind) -> str:
    period = points.period
    if period is None:
        return "    return raw(axis, x, y, z, i);\n"
    text = "    const real place = raw(axis, x, y, z, i);\n"
    for axis in range(points.dimension):
        size, inverse, origin = (
            literal(v, points.precision)
            for v in (period.size[axis], 1 / period.size[axis], period.origin[axis])
        )
        text += (
            f"    if (axis == {axis}) return place - {size} * floor((place - {origin}) * "
            f"{inverse});\n"
        )
    return text + "    return place;\n"


def _lost(points: CurveKind) -> str:
    period = points.period
    if period is None:
        return "    return real(0);\n"
    largest = max(*period.size, *(abs(o) for o in period.origin))
    return (
        "    return MARGIN * (fabs(raw(axis, x, y, z, i)) + "
        f"{literal(largest, points.precision)});\n"
    )
