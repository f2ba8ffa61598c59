"""Points: the positions of elements as a search sees them, whatever their layout, without a copy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.errors import ArgumentError
from lanewise.field_views import FieldViews
from lanewise.layouts import Arrangement
from lanewise.patterns.values import value_array
from lanewise.runtime.memory import array_module, to_host
from lanewise.search.worlds import Bounded, World
from lanewise.types import Scalar

SAMPLE = 4096  # positions that say where all of them are, well enough to choose a structure and the box of a grid
GOLDEN_SECTION = 0.6180339887498949
_STEPS = np.sort(np.arange(SAMPLE) * GOLDEN_SECTION % 1)  # from 0 to 1, with nearly the same gaps, and no period


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`count` positions in the memory of an array of records (or of a plain array of vectors).

    data: the bytes of the whole array on `device`; arrangement: where its leaves lie; leaves: those of the position, one an
    axis; precision: their type, f32 or f64.
    """

    data: Any
    arrangement: Arrangement
    count: int
    device: str
    leaves: tuple[str, ...]
    precision: Scalar
    _samples: list[Points] = field(default_factory=list["Points"], repr=False)  # the one that was taken, if it was

    @property
    def dimension(self) -> int:
        return len(self.leaves)

    def columns(self) -> list[Any]:
        """One array of shape (count,) an axis, on the device: a view of the memory, but in blocks (AoSoA) a copy."""
        views = FieldViews(self.data, self.device, self.arrangement, self.count)
        return [views.blocks(leaf).reshape(-1)[: self.count] for leaf in self.leaves]

    def at(self, index: int) -> tuple[float, ...]:
        """The position of one element, on the host."""
        return tuple(float(to_host(c[index : index + 1])[0]) for c in self.columns())

    def sample(self) -> Points:
        """At most `SAMPLE` of the points, on the host: evenly from the whole array, but in no step with what repeats in it.

        It is taken once: who chooses a structure and who makes it look at the same positions.
        """
        if not self._samples:
            self._samples.append(self._sample())
        return self._samples[0]

    def _sample(self) -> Points:
        columns = self.columns()
        if self.count > SAMPLE:
            module, places = array_module(self.device), (_STEPS * self.count).astype(np.int64)
            places = module.asarray(places[np.diff(places, prepend=-1) > 0])  # each of them once
            columns = [module.take(c, places) for c in columns]
        return points_of_values(np.stack([to_host(c) for c in columns], axis=1), "cpu")

    def check(self, name: str, world: World) -> None:
        """Raise `ArgumentError` for the first position that is not finite, or that lies outside a bounded world."""
        module, columns = array_module(self.device), self.columns()
        found = _first(module, [~module.isfinite(c) for c in columns])
        if found is not None:
            raise ArgumentError(
                f"{name}: the position of element {found} is {_text(self.at(found))}; a search needs finite numbers"
            )
        if isinstance(world, Bounded):
            kind = self.precision.dtype.type
            outside = [(c < kind(a)) | (c > kind(b)) for c, a, b in zip(columns, world.low, world.high, strict=True)]
            found = _first(module, outside)
            if found is not None:
                raise ArgumentError(
                    f"{name}: element {found} at {_text(self.at(found))} lies outside the {world}; choose a larger one, "
                    "or lw.Open()"
                )


def points_of(array: RecordArray, field: str) -> Points:
    """The points of a field of an array of records; the field is a vector of two or three floats."""
    kind = next(f.type for f in array.record if f.name == field)
    return Points(
        array.data, array.arrangement, len(array), array.device, t.leaves(field, kind), t.scalar_of(kind)
    )  # fmt: skip


def points_of_values(values: Any, device: str) -> Points:
    """The points of a contiguous array of shape (n, 2) or (n, 3), float32 or float64, on `device`."""
    scalar = t.from_dtype(values.dtype)
    assert scalar is not None
    kind = t.Vector(scalar, int(values.shape[1]))
    arrangement = value_array("", kind, written=False).arrangement
    return Points(
        values.reshape(-1).view("uint8"), arrangement, len(values), device, tuple(s.leaf for s in arrangement.slots), scalar
    )  # fmt: skip


def _first(module: Any, tests: list[Any]) -> int | None:
    """The first element for which any of the tests holds."""
    found = tests[0]
    for test in tests[1:]:
        found = found | test
    return int(module.argmax(found)) if bool(found.any()) else None


def _text(position: tuple[float, ...]) -> str:
    return f"({', '.join(f'{np.float64(x):g}' for x in position)})"
