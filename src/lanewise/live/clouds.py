"""Scenes of record arrays: points, or arrows where there is a heading."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.frontend.helpers import HelperFunction
from lanewise.language import values
from lanewise.live.boxes import FrameBox, sending_order, without_outliers
from lanewise.live.frame import FrameHeader, encode
from lanewise.live.protocol import FLAGS
from lanewise.live.quantise import MOST, quantise_headings, quantise_points
from lanewise.live.scenes import Asked
from lanewise.patterns.elementwise.kernel import Elementwise, elementwise
from lanewise.records.arrays import RecordArray, class_of
from lanewise.records.binding import places_of
from lanewise.records.field_views import FieldViews
from lanewise.runtime.memory import array_module, on, to_host
from lanewise.support.errors import InputError

SAMPLE = 4096  # elements that say where nearly all are


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How the records of an array are shown, in expressions of one record `e` as kernels have them.

    position, heading: of three numbers; no heading: points. values: by the names of what colours.
    chosen: a function of one record, which expressions know by that name.
    """

    position: str
    values: Mapping[str, str]
    heading: str = ""
    chosen: HelperFunction | None = None


class CloudScene:
    """The records of an array as points or arrows.

    rows: on the device, the caller's row of the record at each place in memory; None: as they lie.
    """

    def __init__(
        self,
        array: RecordArray,
        shown: Shown,
        about: Mapping[str, Any],
        moment: Callable[[], tuple[int, float]],
        rows: Callable[[], Any] = lambda: None,
    ) -> None:
        places: Any = places_of(array)
        if not isinstance(places, FieldViews):
            raise InputError("a view shows an array on one device; this one lies on a mesh")
        self._array, self._shown, self._moment, self._rows = array, shown, moment, rows
        kind = "arrows" if shown.heading else "points"
        self._about = {"kinds": [kind], "fields": list(shown.values), **about}
        self._looks: dict[str, Elementwise] = {}
        self._box, self._range = FrameBox(), ("", math.inf, -math.inf)
        self._order = self._seen = np.empty(0, np.int32)  # all rows in order, and those last sent
        self._here: Any = None  # that on the device
        self._number = 0  # of the order: another one where other elements are sent

    @property
    def about(self) -> Mapping[str, Any]:
        return self._about

    @property
    def moment(self) -> tuple[int, float]:
        return self._moment()

    def frames(self, asked: Asked) -> list[bytes]:
        """One frame, of points or of arrows."""
        array = self._array
        if not len(array):
            return [encode(FrameHeader(kind=self._about["kinds"][0], step=self.moment[0]))]
        with on(array.device):
            columns = self._look(asked.field)(array)
            at, dropped = self._sent(columns)
            return [self._framed(columns, at[: asked.points], len(array) - dropped, asked)]

    def picked(self, place: int) -> dict[str, Any]:
        """The row and the fields of one record."""
        if not 0 <= place < len(self._seen):
            return {}
        row = int(self._seen[place])
        where = (
            row if (rows := self._rows()) is None else int(np.flatnonzero(to_host(rows) == row)[0])
        )
        with on(self._array.device):
            one = self._array[where : where + 1].copy()
            fields = {f.name: to_host(getattr(one, f.name))[0] for f in one.record.fields}
        return {"row": row, **{n: np.asarray(v).tolist() for n, v in fields.items()}}

    def _look(self, field: str) -> Elementwise:
        """The kernel that reads what frames need, as float32."""
        found = self._looks.get(field)
        if found is None:
            shown = self._shown
            found = self._looks[field] = _reading(
                class_of(self._array),
                shown.position,
                shown.values[field],
                shown.heading,
                shown.chosen,
            )
        return found

    def _sent(self, columns: tuple[Any, ...]) -> tuple[Any, int]:
        """The places in memory in the order in which they are sent, without records that are not
        finite; how many those are.
        """
        count, module = len(self._array), array_module(self._array.device)
        if len(self._order) != count or self._here is None:
            self._order = sending_order(count)
            self._here = module.asarray(self._order)
        rows, at = self._rows(), self._here
        if rows is not None:
            places = module.empty_like(rows)
            places[rows] = module.arange(count, dtype=rows.dtype)
            at = places[at]
        total = sum(c.sum(dtype=np.float64) for c in columns)
        if math.isfinite(float(total)):
            self._see(self._order)
            return at, 0
        fine = module.ones(count, bool)
        for c in columns:
            fine &= module.isfinite(c)
        sent = fine[at]
        kept = at[sent]
        self._see(self._order[to_host(sent)])
        return kept, count - len(kept)

    def _see(self, rows: Any) -> None:
        """These are sent, in this order: another number where it is another one."""
        if rows is not self._seen and not np.array_equal(rows, self._seen):
            self._number += 1
        self._seen = rows

    def _framed(self, columns: tuple[Any, ...], at: Any, total: int, asked: Asked) -> bytes:
        module, count = array_module(self._array.device), len(at)
        kind = self._about["kinds"][0]
        width = 3 if kind == "arrows" else 2
        rows = module.empty((len(self._array), width), np.uint32)
        step, time = self.moment
        clamped, low, high = False, 0.0, 0.0
        if count:
            clamped = self._bound(columns[:3], at, all_finite=total == len(self._array))
            low, high = self._ranged(columns[3], at, asked, total)
            origin, extent = self._box.origin, self._box.extent
            per_length = tuple(MOST / e for e in extent)
            per_value = MOST / (high - low) if high > low else 0.0
            quantise_points(
                *columns[:4], rows, grid=len(rows), origin=origin, per_length=per_length, low=low,
                per_value=per_value,
            )  # fmt: skip
            if kind == "arrows":
                quantise_headings(*columns[4:], rows, grid=len(rows))
        header = FrameHeader(
            kind=kind, flags=FLAGS["clamped"] * clamped, components=4 * width,
            order=self._number % 256, count=count, total=total, step=step, time=time,
            origin=self._box.origin, extent=self._box.extent, low=low, high=high,
        )  # fmt: skip
        sent = np.ascontiguousarray(to_host(rows.take(at, axis=0)))
        return encode(header, sent.reshape(-1).view(np.uint8).data)

    def _bound(self, positions: tuple[Any, ...], at: Any, *, all_finite: bool) -> bool:
        """Have a box of the positions; whether it leaves some outside."""
        bounds: list[tuple[float, float]] = []
        clamped = False
        for column in positions:
            some = column if all_finite else column[at]
            wide = float(some.min()), float(some.max())
            near, cut = without_outliers(wide, to_host(column[at[:SAMPLE]]))
            clamped |= cut
            bounds.append(near)
        self._box = self._box.holding(tuple(bounds))
        return clamped

    def _ranged(self, column: Any, at: Any, asked: Asked, total: int) -> tuple[float, float]:
        """The range of values: as it was asked for, else the least and greatest so far."""
        some = column if total == len(self._array) else column[at]
        field, low, high = self._range
        if field != asked.field:
            low, high = math.inf, -math.inf
        low, high = min(low, float(some.min())), max(high, float(some.max()))
        self._range = asked.field, low, high
        return low if asked.low is None else asked.low, high if asked.high is None else asked.high


@cache
def _reading(
    cls: type[Any], position: str, value: str, heading: str, chosen: HelperFunction | None
) -> Elementwise:
    """A kernel of one record: what frames need of it, as float32 of shape (n,) each."""
    parts = [f"({position}).{c}" for c in "xyz"] + [value]
    parts += [f"({heading}).{c}" for c in "xyz"] if heading else []
    kinds = ", ".join(["f32"] * len(parts))
    text = f"def look(e: record) -> tuple[{kinds}]:\n    return (\n"
    text += "".join(f"        f32({part}),\n" for part in parts) + "    )\n"
    file = f"<view of {cls.__name__}: {value}, {position}, {heading}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {name: getattr(values, name) for name in ("f32", "vec3", "length", "dot", "sqrt")}
    namespace: dict[str, Any] = {**names, "record": cls, "chosen": chosen}
    exec(compile(text, file, "exec"), namespace)
    return elementwise(namespace["look"])


def shown_by_default(record: Any) -> Shown:
    """Positions where a field has that name, headings where one has, colours by every number and
    by the length of every vector.
    """
    kinds = {f.name: str(f.type) for f in record.fields}
    vectors = [n for n, k in kinds.items() if k in ("vec3", "dvec3")]
    if "position" not in vectors:
        raise InputError(
            f"a view of {record.name} needs a field position of three numbers; found "
            f"{', '.join(kinds)}"
        )
    numbers = {n: f"e.{n}" for n, k in kinds.items() if k in ("f32", "f64", "i32", "u32")}
    lengths = {f"|{n}|": f"length(e.{n})" for n in vectors}
    return Shown(position="e.position", values={**numbers, **lengths})
