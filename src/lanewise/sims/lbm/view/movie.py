"""The animation of a flow: speed or vorticity, in 3-D on the middle plane across z.

Colours must mean the same in all frames, and which range suits them is known only at the end. So
the values wait in an unnamed temporary file, 2 bytes a pixel and compressed, and are drawn then.
"""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import writing
from lanewise.io.source import FilePath
from lanewise.plot.movie import MovieWriter
from lanewise.plot.raster import Scale, colour, colour_table, picture_size, resample
from lanewise.plot.text import ColourKey, text_strip
from lanewise.sims.lbm.view.slices import (
    Quantity,
    ReferenceScale,
    checked_quantity,
    label,
    middle_slice,
    unit_of,
    value_range,
)
from lanewise.support.errors import ArgumentError

LONGEST, SHORTEST = 1280, 640
"""Range of the longer side in pixels: films are seen at the size of a screen, or on a web page."""

LETTERS = 15
"""Height of the caption's letters in pixels."""

USUAL = 95.0
"""Percentile of the frames' ranges that all frames get.

A few wild ones, at the start or of a blow-up, say nothing.
"""

STEPS = 32767


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A frame in the file: its compressed bytes, the value of STEPS, and what was found of it."""

    length: int
    peak: float
    high: float
    step: int


class FlowMovie:
    """Collects a flow's frames, and draws them at the end. To be used in a `with` block."""

    def __init__(
        self,
        path: FilePath,
        title: str,
        *,
        quantity: Quantity = "vorticity",
        solid: NDArray[np.bool_] | None = None,
        reference: ReferenceScale | None = None,
        limits: tuple[float, float] | None = None,
        periodic: str = "",
        fps: float = 25.0,
        overwrite: bool = False,
    ) -> None:
        """Check everything that writing will need, as `MovieWriter`; the other arguments are those
        of `plot_flow`.

        `title` is followed by the step of each frame.
        """
        self._movie = MovieWriter(path, fps, overwrite)
        if limits is not None and not limits[0] < limits[1]:
            raise ArgumentError(
                f"the values at the ends of the colours are {limits}; wanted growing ones"
            )
        self._quantity: Quantity = checked_quantity(quantity)
        self._title, self._solid = title, solid
        self._reference, self._limits, self._periodic = reference, limits, periodic
        with writing(path):
            self._values = tempfile.TemporaryFile(dir=self._movie.path.resolve().parent)  # noqa: SIM115 (__exit__ closes it)
        self._frames: list[_Waiting] = []
        self._shape: tuple[int, int] = (0, 0)
        self._blocked: NDArray[np.bool_] | None = None

    def __enter__(self) -> FlowMovie:
        return self

    def add(self, velocity: NDArray[Any], step: int) -> None:
        """The next frame: velocity (ny, nx, 2) or (nz, ny, nx, 3) in lattice units after `step`
        steps.

        Raises:
            ArgumentError: a shape that does not fit, or a fluid site with a value that is not
            finite.
        """
        shown = middle_slice(velocity, self._solid, self._quantity, "z", self._periodic)
        if not self._frames:
            self._shape, self._blocked = _two(shown.values.shape), shown.solid
        if shown.values.shape != self._shape:
            raise ArgumentError(
                f"frame {len(self._frames)} has {shown.values.shape} sites; wanted {self._shape}"
            )
        values, _ = resample(shown.values, self._blocked, self._stored())
        peak = float(np.abs(values).max()) or 1.0
        packed = np.round(values * (STEPS / peak)).astype(np.int16)
        with writing(self._movie.path):
            length = self._values.write(zlib.compress(packed.data, 1))
        self._frames.append(_Waiting(length, peak, value_range((shown,), self._quantity)[1], step))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Draw and write whatever frames there are, also of a run that was interrupted."""
        with self._values, self._movie as movie:
            if not self._frames:
                return
            scale, size = self._scale(), self._size()
            key = self._key(scale)
            fluid = (
                None if self._blocked is None else resample(self._blocked, self._blocked, size)[1]
            )
            self._values.seek(0)
            for frame in self._frames:
                movie.add(self._drawn(frame, scale, size, fluid, key))

    def _size(self) -> tuple[int, int]:
        return picture_size(self._shape, LONGEST, SHORTEST)

    def _stored(self) -> tuple[int, int]:
        """What waits: the pixels where they are fewer than the sites, else the sites."""
        return min(self._size(), self._shape)

    def _scale(self) -> Scale:
        if self._limits is not None:
            unit = unit_of(self._quantity, self._reference)
            return Scale(self._limits[0] * unit, self._limits[1] * unit, self._quantity)
        high = float(np.percentile([frame.high for frame in self._frames], USUAL))
        return Scale(0.0 if self._quantity == "speed" else -high, high, self._quantity)

    def _key(self, scale: Scale) -> ColourKey:
        unit = unit_of(self._quantity, self._reference)
        low, high = (f"{value / unit:.3g}".replace("-", "−") for value in (scale.low, scale.high))
        return ColourKey(
            label(self._quantity, self._reference), low, high, colour_table(scale.colours)
        )

    def _drawn(
        self,
        frame: _Waiting,
        scale: Scale,
        size: tuple[int, int],
        fluid: NDArray[np.float32] | None,
        key: ColourKey,
    ) -> NDArray[np.uint8]:
        """The caption above the picture."""
        packed = np.frombuffer(zlib.decompress(self._values.read(frame.length)), np.int16)
        stored = self._stored()
        values = packed.reshape(stored).astype(np.float32) * np.float32(frame.peak / STEPS)
        field = values if stored == size else resample(values, self._blocked, size)[0]
        rgb = colour(field, fluid, scale, size[1] / self._shape[1])
        return np.concatenate(
            [text_strip(f"{self._title}, step {frame.step:,}", size[1], LETTERS, key), rgb]
        )


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    height, width = shape
    return height, width
