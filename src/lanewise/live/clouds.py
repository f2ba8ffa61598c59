"""Scenes of record arrays: points, or arrows where there is a heading."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.frontend.helpers import HelperFunction
from lanewise.language import values
from lanewise.live.boxes import FrameBox, sending_order, whole_shares, without_outliers
from lanewise.live.frame import Frame, FrameHeader, encode
from lanewise.live.groups import KIND, NestedGroups
from lanewise.live.protocol import FLAGS
from lanewise.live.quantise import (
    MOST,
    bound_columns,
    bring_arrows,
    bring_points,
    quantise_headings,
    quantise_points,
)
from lanewise.live.scales import SeenRange, ValueSpan, scale_column
from lanewise.live.scenes import Asked, FrameOrLater, LaterFrames, tell
from lanewise.patterns.elementwise.kernel import Elementwise, elementwise
from lanewise.patterns.kernels import take_say
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray, class_of
from lanewise.records.binding import open_owners, places_of
from lanewise.records.field_views import FieldViews
from lanewise.runtime.aside import Aside
from lanewise.runtime.memory import array_module, module_of, on, to_host
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError

SAMPLE = 4096  # elements that say where nearly all are, at least
KEPT = 3  # orders before the newest one
MOST_SCALE = 1e38  # a number of float32
LANES = 4096  # threads of a device that bound a column


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
    groups: whose boxes are shown on request; their order is one of places in memory.
    """

    def __init__(
        self,
        array: RecordArray,
        shown: Shown,
        about: Mapping[str, Any],
        moment: Callable[[], tuple[int, float]],
        rows: Callable[[], Any] = lambda: None,
        groups: NestedGroups | None = None,
    ) -> None:
        places: Any = places_of(array)
        if not isinstance(places, FieldViews):
            raise InputError("a view shows an array on one device; this one lies on a mesh")
        self._array, self._shown, self._moment, self._rows = array, shown, moment, rows
        self._kind, self._width = ("arrows", 3) if shown.heading else ("points", 2)  # of u32
        kinds = [self._kind] if groups is None else [self._kind, KIND]
        self._about = {"kinds": kinds, "fields": list(shown.values), **about}
        self._groups = groups
        self._looks: dict[str, Elementwise] = {}
        self._aside = Aside(array.device, "a view", "show a part of the records")
        self._required = 0  # bytes of a copy, for whose frames there is memory
        self._box, self._range = FrameBox(), SeenRange()
        self._order = self._seen = np.empty(0, np.int32)  # all rows in order, and those last sent
        self._fine = np.empty(0, np.bool_)  # which rows those are; of one element: all
        self._here: Any = None  # on the device, the place of each row; below 0: it is not sent
        self._words: Any = None  # on the device, what rows are made of, as elements lie
        self._number = 0  # of the order: another one where other elements are sent
        self._orders: dict[int, Any] = {}  # the last ones, by number: frames of them are picked in

    def coloured(self, colour: str | HelperFunction) -> CloudScene:
        """The same, coloured at first by a field or by a function of one record. Raises
        `InputError` for a field that it has not.
        """
        values, chosen = self._shown.values, self._shown.chosen
        if isinstance(colour, HelperFunction):
            chosen, name, text = colour, f"{colour.__name__}()", "chosen(e)"
        else:
            name = colour if colour in values else f"|{colour}|"
            if name not in values:
                vectors = (v.strip("|") for v in values if v.startswith("|"))
                raise InputError(unknown("field", colour, [*values, *vectors]))
            text = values[name]
        shown = replace(self._shown, values={name: text, **values}, chosen=chosen)
        about = {**self._about, "fields": list(shown.values)}
        return CloudScene(self._array, shown, about, self._moment, self._rows, self._groups)

    @property
    def about(self) -> Mapping[str, Any]:
        return self._about

    @property
    def moment(self) -> tuple[int, float]:
        return self._moment()

    def frames(self, asked: Asked) -> list[FrameOrLater]:
        """One frame, of points or of arrows, made of a copy of what it needs; boxes, if asked."""
        count = len(self._array)
        if not count:
            step, time = self.moment
            return [encode(FrameHeader(kind=self._kind, step=step, time=time))]
        look, kept = self._look(asked.field), self._kept(asked)
        shape = 7 if self._shown.heading else 4, count
        size = 4 * math.prod(shape)
        nbytes = size + 4 * count * len(kept)
        if self._required < nbytes:
            row = 4 * self._width
            self._aside.require(nbytes, row * min(count, asked.points), row * count)
            self._required = nbytes

        def parts(there: Any) -> tuple[Any, dict[str, Any]]:
            whole = there[size:nbytes].view(np.int32).reshape(len(kept), count)
            columns = there[:size].view(np.float32).reshape(shape)
            return columns, dict(zip(kept, whole, strict=True))

        def read(there: Any) -> None:
            columns, copies = parts(there)
            # A call with a plan is not counted, so what is open about a layout stays as it is.
            plan = Plan() if open_owners([self._array]) else None
            look(self._array, out=tuple(columns), plan=plan)
            for name, copy in copies.items():
                copy[...] = kept[name]

        moment, seen = self.moment, self._aside.copied(nbytes, read)

        def later() -> list[Frame]:
            with self._aside.working(seen):
                columns, copies = parts(seen.memory)
                made = self._made(columns, copies.get("rows"), moment, asked)
                if self._groups is not None and "order" in copies:
                    made.append(self._groups.frame(columns, copies["order"], self._box, moment))
                return made

        return [LaterFrames(later, partial(self._aside.drop, seen))]

    def _kept(self, asked: Asked) -> dict[str, Any]:
        """Besides the records, what frames need a copy of: int32, shape (n,), on the device."""
        kept = {"rows": self._rows()}
        if self._groups is not None and KIND in asked.kinds:
            kept["order"] = self._groups.order()
        return {name: array for name, array in kept.items() if array is not None}

    def _made(
        self, columns: Any, rows: Any, moment: tuple[int, float], asked: Asked
    ) -> list[Frame]:
        """The frame of records that look like that, and what is said of their colours. rows: the
        caller's, of each place in memory.
        """
        least, most = _extremes(columns)
        fine = bool(np.isfinite(least).all() and np.isfinite(most).all())
        place, total = self._placed(columns, rows, all_finite=fine)
        count, module, values = columns.shape[1], array_module(self._array.device), columns[3]
        if 0 < total < count:
            some = module.ascontiguousarray(columns[:, place >= 0])
            (least, most), values = _extremes(some), some[3]
        near = to_host(columns[:3, :: max(1, count // SAMPLE) | 1])
        sent, told = whole_shares(asked.points, total), {"not finite": count - total}
        if not sent:
            step, time = moment
            return [encode(FrameHeader(
                kind=self._kind, components=4 * self._width, order=self._number, total=total,
                step=step, time=time, origin=self._box.origin, extent=self._box.extent,
            )), *tell(told)]  # fmt: skip
        span = self._range.span(module, values, float(least[3]), float(most[3]), asked)
        header = self._header(least, most, near, moment, span, sent, total)
        scale_column(columns[3], span)
        return [self._framed(header, columns, place, span.ends), *tell({**span.told, **told})]

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """The row and the fields of one record."""
        sent = self._seen if order is None else self._orders.get(order)
        if sent is None or not 0 <= place < len(sent):
            return {}
        row, rows = int(sent[place]), self._rows()
        found = [row] if rows is None else np.flatnonzero(to_host(rows) == row).tolist()
        where = found[0] if found else len(self._array)
        if where >= len(self._array):  # gone since its frame was sent
            return {}
        with on(self._array.device):
            one = self._array[where : where + 1].copy()
            fields = {f.name: to_host(getattr(one, f.name))[0] for f in one.record.fields}
        return {"row": row, **{n: np.asarray(v).tolist() for n, v in fields.items()}}

    def _look(self, field: str) -> Elementwise:
        """The kernel that reads what frames need of the records, with this value."""
        look, shown = self._looks.get(field), self._shown
        if look is None:
            look = self._looks[field] = _reading(
                class_of(self._array),
                shown.position,
                shown.values[field],
                shown.heading,
                shown.chosen,
            )
        return look

    def _placed(self, columns: Any, rows: Any, *, all_finite: bool) -> tuple[Any, int]:
        """At which place each record is sent, int32, below 0 for those that are not finite; how
        many are sent.
        """
        count, module = columns.shape[1], array_module(self._array.device)
        if len(self._order) != count:
            self._order = sending_order(count)
            self._fine = np.empty(0, np.bool_)
        fine = np.ones(1, np.bool_)
        if not all_finite:
            seen = to_host(module.isfinite(columns).all(axis=0))
            fine = np.empty_like(seen)
            fine[slice(None) if rows is None else to_host(rows)] = seen
        if not np.array_equal(fine, self._fine):
            kept = self._order if all_finite else self._order[fine[self._order]]
            places = np.full(count, -1, np.int32)
            places[kept] = np.arange(len(kept), dtype=np.int32)
            self._here, self._fine = module.asarray(places), fine
            self._see(kept)
        return self._here if rows is None else self._here[rows], len(self._seen)

    def _see(self, rows: Any) -> None:
        """These are sent, in this order: another number where it is another one."""
        if not np.array_equal(rows, self._seen):
            self._number = (self._number + 1) % 256
        self._seen = rows
        older = [n for n in self._orders if n != self._number][-KEPT:]
        self._orders = {**{n: self._orders[n] for n in older}, self._number: rows}

    def _header(
        self, least: Any, most: Any, near: Any, moment: tuple[int, float], span: ValueSpan,
        sent: int, total: int,
    ) -> FrameHeader:  # fmt: skip
        """What is said of a frame, and how its rows are made.

        near: positions of some of the records.
        """
        step, time = moment
        clamped = self._bound(least, most, near)
        return FrameHeader(
            kind=self._kind, flags=FLAGS["clamped"] * clamped | span.flags,
            components=4 * self._width, order=self._number, count=sent, total=total,
            step=step, time=time, origin=self._box.origin, extent=self._box.extent,
            low=span.low, high=span.high, scale=span.number,
        )  # fmt: skip

    def _framed(
        self, header: FrameHeader, columns: Any, place: Any, ends: tuple[float, float]
    ) -> Frame:
        """The frame of the first rows of the order. ends: the scaled values 0 and 65535 of rows."""
        count, shape = columns.shape[1], (header.count, self._width)
        low, high = ends
        # of values that differ by less than that many steps of float32, all are the lowest
        per_value = min(MOST / (high - low), MOST_SCALE) if high > low else 0.0

        if self._words is None or self._words.shape[1] != count:
            self._words = None
            self._words = array_module(self._array.device).empty((self._width, count), np.uint32)
        words: Any = self._words

        def fill(there: Any) -> None:
            rows = there.view(np.uint32).reshape(shape)
            quantise_points(
                *columns[:4], *words[:2], grid=count, origin=header.origin,
                per_length=tuple(MOST / e for e in header.extent), low=low,
                per_value=per_value,
            )  # fmt: skip
            if self._width > 2:
                quantise_headings(*columns[4:], words[2], grid=count)
                bring_arrows(place, *words, rows, grid=count)
            else:
                bring_points(place, *words, rows, grid=count)

        return self._aside.brought(encode(header), 4 * header.count * self._width, fill)

    def _bound(self, least: Any, most: Any, near: Any) -> bool:
        """Have a box of the positions; whether it leaves some outside."""
        bounds: list[tuple[float, float]] = []
        clamped = False
        for low, high, some in zip(least[:3].tolist(), most[:3].tolist(), near, strict=True):
            kept, cut = without_outliers((low, high), some[np.isfinite(some)])
            clamped |= cut
            bounds.append(kept)
        self._box = self._box.holding(tuple(bounds))
        return clamped


def _extremes(columns: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The least and the greatest number of each column, on the host; NaN, or the infinite ones,
    where some are not finite.
    """
    if isinstance(columns, np.ndarray):
        return columns.min(axis=1), columns.max(axis=1)
    count, lanes = columns.shape[0], min(LANES, columns.shape[1])
    partial = module_of(columns).empty((2, count, lanes), np.float32)
    bound_columns(columns, partial[0], partial[1], grid=(count, lanes))
    least, most = to_host(partial)
    return least.min(axis=1), most.max(axis=1)


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
    look = elementwise(namespace["look"])
    take_say(look)
    return look


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
