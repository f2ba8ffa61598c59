"""Points: the positions of elements as a search sees them, whatever their layout, without a
copy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.language.types import Scalar
from lanewise.launch.arguments import values_arrangement
from lanewise.layouts import Arrangement
from lanewise.patterns.search.worlds import Bounded, World
from lanewise.primitives.survey import SAMPLE, Survey, sampled, survey, survey_text
from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.binding import places_of, side_of
from lanewise.records.field_views import FieldViews
from lanewise.records.two_sides import bits_of
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, on, to_host
from lanewise.support.errors import ArgumentError

__all__ = ["SAMPLE", "Points", "extent_of", "form_of", "points_of", "points_of_values"]

T = TypeVar("T")
_UNBOUNDED = (-math.inf, math.inf)
_FEW_ROWS = 1024  # up to here one pass over all axes is quicker than one over each
FLAT = 2.0**-10  # of its extent, below which a form has no thickness
Bounds = list[tuple[float, float]]  # of coordinates, one an axis


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`count` positions in the memory of an array of records (or of a plain array of vectors).

    data: the bytes of the whole array on `device`; arrangement: where its leaves lie; leaves: those
    of the position, one an axis; precision: their type, f32 or f64. what: they are, for errors;
    before: how many elements of the caller's array there are before them, for errors too.
    """

    data: Any
    arrangement: Arrangement
    count: int
    device: str
    leaves: tuple[str, ...]
    precision: Scalar
    what: str = "position"
    before: int = 0
    # about the positions, each taken once
    _facts: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    # what holds wherever the elements are
    _memory: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def dimension(self) -> int:
        return len(self.leaves)

    def again(self) -> Points:
        """The same elements, which may lie elsewhere now: nothing is known of their positions."""
        return Points(
            self.data,
            self.arrangement,
            self.count,
            self.device,
            self.leaves,
            self.precision,
            self.what,
            self.before,
            {},
            self._memory,
        )

    def lying_in(self, memory: Any) -> Points:
        """As many elements, which lie in the same way in other memory: bytes on the host, an
        address on a GPU; or in that of such points, which are given back.
        """
        if isinstance(memory, Points):
            return memory
        if isinstance(memory, int):
            if memory == address(self.data):
                return self
            ends = self.arrangement.ends(self.arrangement.starts(self.count), self.count)
            memory = get_device(self.device).array_at(memory, max(ends, default=0), np.uint8)
        return replace(self, data=memory, _facts={}, _memory={})

    def columns(self) -> list[Any]:
        """One array of shape (count,) an axis, on the device: a view of the memory, but in blocks
        (AoSoA) a copy.
        """
        return [view.reshape(-1)[: self.count] for view in self.fixed("views", Points._views)]

    def _views(self) -> list[Any]:
        views = FieldViews(self.data, self.device, self.arrangement, self.count)
        return [views.blocks(leaf) for leaf in self.leaves]

    def table(self) -> Any:
        """The coordinates as one view of shape (count, axes) on the host; None where they have no
        common strides.
        """
        return self.fixed("table", Points._table)

    def _table(self) -> Any:
        buffers = [
            self.arrangement.buffers[self.arrangement.slot(leaf).buffer] for leaf in self.leaves
        ]
        places = [self.arrangement.address(leaf, 0, self.count) for leaf in self.leaves]
        gaps = {b - a for a, b in itertools.pairwise(places)}
        if (
            not gaps
            or len({(b.width, b.block) for b in buffers}) > 1
            or buffers[0].width > 1
            or len(gaps) > 1
        ):
            return None
        (gap,), block = gaps, buffers[0].block
        return np.ndarray(
            (self.count, self.dimension), self.precision.dtype, self.data, places[0], (block, gap)
        )

    def addresses(self) -> list[int]:
        """Where the coordinates of the first element lie in memory, one address an axis."""
        return self.fixed("addresses", Points._addresses)

    def _addresses(self) -> list[int]:
        first, starts = address(self.data), self.arrangement.starts(self.count)
        slots = (self.arrangement.slot(leaf) for leaf in self.leaves)
        return [first + starts[s.buffer] + s.offset for s in slots]

    def at(self, index: int) -> tuple[float, ...]:
        """The position of one element, on the host."""
        with on(self.device):
            return tuple(float(to_host(c[index : index + 1])[0]) for c in self.columns())

    def sample(self) -> Points:
        """At most `SAMPLE` of the points, on the host: evenly from the whole array, but in no step
        with what repeats in it.

        It is taken once: who chooses a structure and who makes it look at the same positions.
        """
        return self.once("sample", Points._sample)

    def once(self, name: str, find: Callable[[Points], T]) -> T:
        """What is found out about the positions, the first time that it is requested."""
        if name not in self._facts:
            self._facts[name] = find(self)
        return self._facts[name]

    def fixed(self, name: str, find: Callable[[Points], T]) -> T:
        """What is found out about their memory, the first time that it is requested."""
        if name not in self._memory:
            self._memory[name] = find(self)
        return self._memory[name]

    def _sample(self) -> Points:
        if not target_of(self.device).host_memory:
            return points_of_values(self._survey([_UNBOUNDED] * self.dimension).sample, "cpu")
        columns, places = self.columns(), sampled(self.count)
        return points_of_values(
            np.stack(columns if places is None else [c[places] for c in columns], axis=1), "cpu"
        )

    def survey_text(self) -> str:
        """The CUDA text of the kernel that looks at them."""
        return survey_text(self.arrangement.unpinned, self.leaves, self.precision)

    def _survey(self, bounds: Bounds) -> Survey:
        return survey(
            self.device,
            self.survey_text(),
            self.addresses(),
            self.count,
            self.precision.dtype,
            bounds,
        )

    def check(self, name: str, world: World, reach: float = math.inf) -> None:
        """Raise `ArgumentError` for the first position that is not finite, or that lies outside a
        bounded world or beyond `reach`.

        reach: the largest coordinate that the arithmetic of a search holds. A world of other axes
        bounds nothing here: searches refuse it. On a GPU a sample comes by the same transfer, as
        those who choose a structure ask for one.
        """
        if not self.count:
            return
        if not target_of(self.device).host_memory or not self._surely_within(
            *self._common(world, reach)
        ):
            self._refuse(name, world, reach, *self._look(self.bounds(world, reach)))

    def bounds(self, world: World, reach: float) -> Bounds:
        """The lowest and the highest coordinate along every axis that `check` lets through."""
        return _within(self._ends(world), reach)

    def _bounded(self, world: World) -> Bounded | None:
        return world if isinstance(world, Bounded) and len(world.low) == self.dimension else None

    def _ends(self, world: World) -> Bounds:
        """The lowest and the highest coordinate along every axis."""
        bounded = self._bounded(world)
        return (
            [_UNBOUNDED] * self.dimension
            if bounded is None
            else list(zip(bounded.low, bounded.high, strict=True))
        )

    def _common(self, world: World, reach: float) -> tuple[float, float]:
        """Bounds that every axis has."""
        bounded = self._bounded(world)
        return (
            (-reach, reach)
            if bounded is None
            else (max(-reach, *bounded.low), min(reach, *bounded.high))
        )

    def _refuse(
        self, name: str, world: World, reach: float, bad: int | None, outside: int | None
    ) -> None:
        if bad is not None:
            raise ArgumentError(
                f"{name}: the {self.what} of element {self.before + bad} is "
                f"{_text(self.at(bad))}; a search needs finite numbers"
            )
        if outside is None:
            return
        place = self.at(outside)
        if any(
            not low <= x <= high for x, (low, high) in zip(place, self._ends(world), strict=True)
        ):
            raise ArgumentError(
                f"{name}: element {self.before + outside} at {_text(place)} lies outside the "
                f"{world}; choose a larger one, or lw.Open()"
            )
        wider = "float64, or " if self.precision == t.F32 else ""
        raise ArgumentError(
            f"{name}: the position of element {self.before + outside} is {_text(place)}; distances "
            f"in {self.precision} are held for coordinates up "
            f"to {reach:.2g}: use {wider}another unit of length"
        )

    def _look(self, bounds: Bounds) -> tuple[int | None, int | None]:
        """The first element that is not finite, and the first outside the bounds."""
        if not target_of(self.device).host_memory:
            seen = self._survey(bounds)
            # brought by the same transfer
            self._facts["sample"] = points_of_values(seen.sample, "cpu")
            return seen.unsound, seen.outside
        columns, kind = self.columns(), self.precision.dtype.type
        with np.errstate(over="ignore"):  # bounds of float64 beyond float32 bound nothing
            ends: list[tuple[Any, Any]] = [(kind(low), kind(high)) for low, high in bounds]
        with np.errstate(invalid="ignore"):
            # without a copy; NaN where there is one
            extremes = [(c.min(), c.max()) for c in columns]
        sound = all(np.isfinite(low) and np.isfinite(high) for low, high in extremes)
        if sound and all(
            a <= low and high <= b for (low, high), (a, b) in zip(extremes, ends, strict=True)
        ):
            return None, None
        unsound = _first([np.isfinite(c) for c in columns])
        return unsound, _first(
            [(c >= a) & (c <= b) for c, (a, b) in zip(columns, ends, strict=True)]
        )

    def _surely_within(self, low: float, high: float) -> bool:
        """Whether all coordinates on the host are finite and lie within the same bounds: quick, as
        it does not ask which one does not.

        Numbers side by side are looked at in one pass; strided ones go by their sizes, which takes
        a third of the time of both ends.
        """
        if self._has_coordinates_only():
            (start,) = self.arrangement.starts(self.count)
            values = self.data[
                start : start + self.count * self.dimension * self.precision.size
            ].view(self.precision.dtype)
            least, most = float(values.min()), float(values.max())
        else:
            table = self.table()
            if table is None or self.count > _FEW_ROWS:
                parts = [np.abs(column).max() for column in self.columns()]
            else:
                parts = [np.abs(table).max()]
            most = float(np.max(parts) if len(parts) > 1 else parts[0])  # NaN where there is one
            least = -most
        return low <= least and most <= high and -math.inf < least and most < math.inf

    def _has_coordinates_only(self) -> bool:
        buffers, size = self.arrangement.buffers, self.dimension * self.precision.size
        return len(buffers) == 1 and (buffers[0].width, buffers[0].block) == (1, size)


def points_of(array: RecordArray, field: str) -> Points:
    """The points of a field of an array of records; the field is a vector of two or three
    floats.
    """
    read_field(array, field)
    places, (leaves, precision) = places_of(array), _leaves_of(array.record, field)
    before, device = storage_of(array).before, array.device
    return Points(
        places.data, places.arrangement, places.count, device, leaves, precision, before=before
    )


def read_field(array: RecordArray, field: str) -> None:
    """Bring a field of an array up to date that was changed on its other side."""
    if (side := side_of(array)).sides is not None:
        side.read(bits_of(array.record)[field])


@lru_cache(maxsize=64)
def _leaves_of(record: Record, field: str) -> tuple[tuple[str, ...], Scalar]:
    kind = next(f.type for f in record if f.name == field)
    return tuple(t.leaves(field, kind)), t.scalar_of(kind)


def points_of_values(values: Any, device: str) -> Points:
    """The points of a contiguous array of shape (n, axes), float32 or float64, on `device`."""
    scalar, arrangement, names = _values(values.dtype, int(values.shape[1]))
    return Points(values.reshape(-1).view("uint8"), arrangement, len(values), device, names, scalar)


def extent_of(points: Points) -> int:
    """How far a sample of points reaches, in powers of four; 0 where there are none."""
    if not points.count:
        return 0
    sides = [np.ptp(np.asarray(c, np.float64)) for c in points.sample().columns()]
    return math.frexp(max(map(float, sides)))[1] // 2


def form_of(points: Points) -> tuple[int, ...]:
    """How far a sample of points reaches, how thick it is across, and how far half of it lies from
    the middle, in powers of four: a line, a sheet, a cluster and a box differ, however they lie.
    No points have no form: ().
    """
    if not points.count:
        return ()
    places = np.stack([np.asarray(c, np.float64) for c in points.sample().columns()], axis=1)
    reach = extent_of(points)
    unit = math.ldexp(1.0, 2 * reach)
    places = (places - np.median(places, axis=0)) / unit
    across = np.sqrt(np.maximum(np.linalg.eigvalsh(places.T @ places / len(places)), FLAT**2))
    half = max(float(np.median(np.linalg.norm(places, axis=1))), FLAT)
    return (reach, *[math.frexp(x)[1] // 2 for x in (*across.tolist(), half)])


@cache
def _values(dtype: Any, axes: int) -> tuple[Scalar, Arrangement, tuple[str, ...]]:
    """What all arrays of vectors of one type have in common."""
    scalar = t.from_dtype(dtype)
    assert scalar is not None
    arrangement = values_arrangement(t.Vector(scalar, axes))
    return scalar, arrangement, tuple(s.leaf for s in arrangement.slots)


def _within(ends: Bounds, reach: float) -> Bounds:
    return [(max(low, -reach), min(high, reach)) for low, high in ends]


def _first(sound: list[NDArray[np.bool_]]) -> int | None:
    """The first element for which one of the tests fails."""
    if all(bool(test.all()) for test in sound):
        return None
    return int(np.argmin(np.logical_and.reduce(sound)))


def _text(position: tuple[float, ...]) -> str:
    numbers = ", ".join(f"{np.float64(x):g}" for x in position)
    return f"({numbers})" if len(position) > 1 else numbers
