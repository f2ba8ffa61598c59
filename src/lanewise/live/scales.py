"""How values become the fractions that colours are chosen by: in proportion, by their logarithm, or
by their rank among all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.live.protocol import FLAGS, SCALES
from lanewise.live.quantise import find_ranks, take_logarithms
from lanewise.live.scenes import Asked
from lanewise.support.errors import InputError

RANKED = 65_536  # values among which ranks are found, at most: 0.2 % is less than one colour
LEAST = float(np.finfo(np.float32).tiny)  # with a logarithm on every device


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpan:
    """The values of a frame, as colours show them.

    low, high: what the ends of the colours mean. under, over: whether some values lie outside.
    below: how many are at or below 0, where the scale
    is logarithmic: they have the lowest colour. ordered: of ranks, values in ascending order, where
    all of them are.
    """

    scale: str
    low: float
    high: float
    under: bool = False
    over: bool = False
    below: int = 0
    ordered: Any = None

    @property
    def flags(self) -> int:
        """Those of headers."""
        return FLAGS["under"] * self.under | FLAGS["over"] * self.over

    @property
    def number(self) -> int:
        """That of the scale, in headers."""
        return SCALES.index(self.scale)

    @property
    def ends(self) -> tuple[float, float]:
        """The scaled values that are the fractions 0 and 1."""
        match self.scale:
            case "log":
                return math.log(max(self.low, LEAST)), math.log(max(self.high, LEAST))
            case "rank":
                return 0.0, 1.0
            case _:
                return self.low, self.high

    @property
    def told(self) -> dict[str, Any]:
        """What statistics say for the key of colours; empty where its ends say all."""
        if self.scale == "log":
            return {"colours": {"below": self.below}}
        if self.scale == "rank" and len(self.ordered):
            return {"colours": {"middle": float(self.ordered[len(self.ordered) // 2])}}
        return {}


class SeenRange:
    """The least and the greatest value of what is shown, so far: colours do not flicker."""

    def __init__(self) -> None:
        self._of, self._low, self._high = ("", "", 0), math.inf, -math.inf

    def span(self, module: Any, values: Any, least: float, most: float, asked: Asked) -> ValueSpan:
        """That of finite values on a device, of which these are the least and the greatest: the
        range that was requested, else the one so far. Ranks are those among values within it.

        module: of the values' arrays. Infinite `least` and `most`: there are no values.
        """
        below, ordered = 0, None
        if asked.scale == "log":
            positive = values[values >= LEAST]
            below = int(values.size - positive.size)
            least, most = (float(positive.min()), most) if positive.size else (math.inf, -math.inf)
        of = asked.field, asked.scale, asked.fitted
        if self._of != of or asked.scale == "rank":
            self._of, self._low, self._high = of, math.inf, -math.inf
        low, high = min(self._low, least), max(self._high, most)
        self._low, self._high = low, high
        if not math.isfinite(high - low):  # none of its values so far, or they are too far apart
            low, high = (0.0, 0.0) if asked.scale == "log" else (0.0, 1.0)
        low = low if asked.low is None else asked.low
        high = high if asked.high is None else asked.high
        if asked.scale == "rank":
            ordered = _ordered(module, values, low, high)
        return ValueSpan(
            scale=asked.scale, low=low, high=high, under=least < low, over=most > high,
            below=below, ordered=ordered,
        )  # fmt: skip


def _ordered(module: Any, values: Any, low: float, high: float) -> Any:
    """Values from low to high, in order: all of them, or a sample."""
    flat = values.reshape(-1)
    some = flat[:: max(1, -(-flat.size // RANKED)) | 1]
    return module.sort(some[(some >= low) & (some <= high)])


def scaled(module: Any, values: Any, span: ValueSpan) -> Any:
    """Values of an array of any kind, between `span.ends`; NaN stays NaN."""
    match span.scale:
        case "log":
            kind = np.result_type(values.dtype, np.float32)
            return module.log(module.maximum(values, max(span.low, LEAST), dtype=kind))
        case "rank":
            count = max(1, len(span.ordered))
            less, up_to = (module.searchsorted(span.ordered, values, s) for s in ("left", "right"))
            ranks = ((less + up_to) * (0.5 / count)).astype(np.float32)
            return module.where(module.isfinite(values), ranks, np.float32(np.nan))
        case _:
            return values


def scale_column(column: Any, span: ValueSpan) -> None:
    """The same for float32 numbers of shape (n,) that are not needed any more: in place."""
    match span.scale:
        case "log":
            take_logarithms(column, max(span.low, LEAST), grid=len(column))
        case "rank":
            ordered = span.ordered if len(span.ordered) else column[:1] * 0
            find_ranks(column, ordered, grid=len(column))
        case _:
            pass


def check_scale(asked: Asked) -> None:
    """Raises `InputError` for a scale that there is not, or that does not go with the range."""
    if asked.scale not in SCALES:
        raise InputError(f"no scale {asked.scale!r}; wanted one of {', '.join(SCALES)}")
    if asked.scale == "log" and any(x is not None and x <= 0 for x in (asked.low, asked.high)):
        raise InputError(
            f"a logarithmic scale has no range from {asked.low:g} to {asked.high:g}; wanted "
            "one above 0, or an automatic one"
        )
