"""`@segmentwise`: for every cell, the sum of a function over the items of its segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.types import I64, Scalar
from lanewise.launch.arguments import Arguments, classify_arguments, describe
from lanewise.launch.by_step import has_by_step
from lanewise.launch.compiled import Call
from lanewise.launch.steps.unwritten import marked_unwritten
from lanewise.launch.support import uses_of, value_type
from lanewise.patterns.kernels import AbstractKernel, unpacked
from lanewise.patterns.segmentwise.build import SegmentwiseArguments, build_segmentwise
from lanewise.patterns.segmentwise.names import (
    CELLS,
    DENSE,
    FIRST,
    ITEMS,
    LAST,
    SEGMENTS,
    first_of,
    last_of,
)
from lanewise.patterns.segmentwise.pattern import SEGMENTWISE
from lanewise.patterns.segmentwise.repeated import Places, ragged_slots
from lanewise.patterns.skeleton import Skeleton
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import keep_layouts, places_of
from lanewise.records.ragged import RaggedArray, check_of, entries, views
from lanewise.runtime.memory import overlap
from lanewise.support.attributes import sealed
from lanewise.support.checks import plain_function
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.naming import by_name


def _owners(signature: Signature) -> tuple[str | None, str]:
    """The parameter of the dense axis, if there is one, and that of the item."""
    records = [n for n, kind in signature.parameters.items() if isinstance(kind, Record)]
    return (records[0], records[1]) if len(records) == 2 else (None, records[0])


def _build(
    lowered: Lowered, signature: Signature, classified: Arguments, index: Scalar
) -> ir.Kernel:
    dense, item = _owners(signature)
    layouts = {n: (n, r.record, r.layout) for n, r in classified.records.items()}
    kinds = {
        n: value_type(signature.parameters[n])
        for n in classified.uniforms
        if n in signature.parameters
    }
    arguments = SegmentwiseArguments(
        layouts[dense] if dense else None, layouts[item], signature.rows, kinds
    )
    return build_segmentwise(lowered, arguments, index)


def _counts(name: str, arguments: Arguments) -> Mapping[str, int]:
    segments = len(arguments.added[FIRST][0])
    items = max(1, int(arguments.totals["items"]) // max(1, segments))
    # no counts of the kernel: what models look up
    lengths = {count_of(n): len(r) for n, r in arguments.records.items()}
    if len(arguments.records) == 1:
        return {SEGMENTS: segments, **lengths, ITEMS: items}
    dense = len(next(iter(arguments.records.values())))
    return {CELLS: dense * segments, SEGMENTS: segments, DENSE: dense, **lengths, ITEMS: items}


def _checked(signature: Signature) -> Signature:
    """A segmentwise function takes one or two records first, then rows and values, and returns
    something.
    """
    source = signature.source
    kinds = [signature.parameters.get(n) for n in signature.names]
    records = [isinstance(k, Record) for k in kinds]
    count = sum(records)
    if not 1 <= count <= 2 or not all(records[:count]):
        described = ", ".join(
            f"{n}: {k if k is not None else f'lw.Row[lw.{signature.rows[n]}]'}"
            for n, k in zip(signature.names, kinds, strict=True)
        )
        raise source.error(
            "a segmentwise function starts with its item, or with a record of the dense axis and "
            "its item",
            source.tree,
            found=described or "no parameters",
            wanted="item: Item, or group: Group, item: Item, which are records; then rows and "
            "uniform arguments",
            hint="lists of plain numbers are the field of a record (@lw.record class Item: value: "
            "lw.f32), or rows of an item "
            "(numbers: lw.Row[lw.f32])",
        )
    if not signature.results:
        raise source.error(
            "a segmentwise function returns what one item gives to one cell",
            source.tree,
            found="no result",
            wanted="-> lw.f32",
        )
    return signature


def _arguments(signature: Signature, arguments: Mapping[str, Any]) -> Arguments:
    """The flat records and values of the ragged arguments, with the offset vectors as arrays of the
    kernel's.
    """
    kernel = signature.source.name
    dense, item = _owners(signature)
    items = _ragged(f"{kernel}: {item!r}", arguments[item], signature.parameters[item], "")
    flat = {n: v for n, v in arguments.items() if n not in signature.rows} | {item: items.data}
    result = classify_arguments(signature, flat, arrays_allowed=False)
    if isinstance(arguments.get(dense or ""), RaggedArray):
        raise ArgumentError(
            f"{kernel}: {dense!r} has a record for each place of the dense axis, found a ragged "
            "array"
        )
    begins, ends, _ = views(items)
    result.asked.append(check_of(items, kernel, item))
    result.added |= {FIRST: (begins, I64), LAST: (ends, I64)}
    count = entries(items)
    for name, kind in signature.rows.items():
        place = f"{kernel}: {name!r}"
        row = _ragged(place, arguments[name], kind, ", with a list for each item")
        if row.device != items.device:
            raise ArgumentError(
                f"{place} lies on {row.device!r}, and the items on {items.device!r}; move it with "
                ".to(device)"
            )
        if len(row.offsets[-1]) - 1 != count:
            raise ArgumentError(
                f"{place} has {len(row.offsets[-1]) - 1:,} lists; wanted one for each of the "
                f"{count:,} items"
            )
        begins, ends, values = views(row)
        result.asked.append(check_of(row, kernel, name))
        result.added |= {
            first_of(name): (begins, I64),
            last_of(name): (ends, I64),
            name: (values, kind),
        }
        result.beyond[name] = entries(row)
    result.totals["items"] = count
    return result


def _ragged(place: str, value: Any, kind: Record | t.ValueType, note: str) -> RaggedArray:
    name = kind.name if isinstance(kind, Record) else f"lw.{kind}"
    if not isinstance(value, RaggedArray):
        described = (
            f"an array of {value.record.name}"
            if isinstance(value, RecordArray)
            else describe(value)
        )
        raise ArgumentError(f"{place} must be lw.ragged(...) of {name}{note}, found {described}")
    if value.kind != kind:
        raise ArgumentError(f"{place} must be lw.ragged(...) of {name}{note}, found {value!r}")
    if not value.is_whole:
        raise ArgumentError(
            f"{place} is a part of another ragged array; make it independent with .copy()"
        )
    return value


def _alike(arguments: Arguments) -> int:
    """The length of the dense axis."""
    return len(next(iter(arguments.records.values()))) if len(arguments.records) == 2 else 1


SKELETON = Skeleton(
    SEGMENTWISE, _build, _counts, check=_checked, arguments=_arguments, rows=True, alike=_alike
)


@sealed()
class Segmentwise(AbstractKernel):
    """A kernel over segments.

    Its function takes a record of the dense axis (optional), one item of a segment, rows of values
    that belong to the item, and uniform arguments. Its results are summed over the items of each
    segment.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(SKELETON, function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (Segmentwise, (self.python,)))

    @brief
    def __call__(
        self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any
    ) -> Any:
        """The sums of all cells: an array of shape (dense, *segments) or (dense, *segments,
        components), or a tuple of them.

        `segments` are the axes of the ragged items above their innermost lists, where all lists of
        a level are of one length: (stacks, detectors) for items by stack and detector. Else it is
        one axis with the innermost lists, one after the other. Without a dense axis the shape
        begins there.

        out: an array, or a tuple of them, that takes the results. plan: an `lw.Plan` for this call,
        instead of the tuned or the default one.
        """
        if plan is not None:
            return self.bind(*arguments, out=out, plan=plan, **named)()
        calls = self._calls
        calls.made += 1
        calls.notice()
        repeated = calls.repeated[None]
        if match := repeated.find(arguments, named, calls.settles):
            again, matched = match
            if out is None:
                return unpacked(again.run(matched, None))
            self._check_out(out, matched.sized.results[0].axes)
            self._check_apart(out, matched.complete())
            again.run(matched, out)
            return (
                out
                if isinstance(out, tuple) and len(out) != 1
                else unpacked(_several(out, len(self.lowered.results)))
            )
        classified, ragged = self._classified(arguments, named), self._ragged(arguments, named)
        call = self._bound(classified, out, None)
        results, own = call(), ragged_slots(ragged, self._reads())
        del call  # see `Calls.call`
        calls.remember(repeated, arguments, named, classified, own=own, classify=self._classified)
        return results

    def _classified(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
        """The arguments of a call, checked, with the axes of its results."""
        classified = self._calls.given(positional, named)
        classified.axes = self._axes(classified, positional, named)
        return classified

    @brief
    def bind(
        self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any
    ) -> Call:
        """A call with bound arguments and memory, to run many times."""
        if has_by_step(arguments, named):
            return self._bind_by_step(arguments, named, out, plan)
        classified = self._given(arguments, named, plan)
        keep_layouts(classified.records.values(), f"a call of {self.__name__} was bound to it")
        classified.axes = self._axes(classified, arguments, named)
        return marked_unwritten(self._bound(classified, out, plan), out)

    def _bound(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        self._check_out(out, arguments.axes)
        read = {n: a for n, (a, _) in arguments.added.items()} | {
            n: places_of(r).data for n, r in arguments.records.items()
        }
        self._check_apart(out, read)
        return self._calls.bind(arguments, out, plan)

    def _reads(self) -> dict[str, int]:
        """The fields that it reads of its items."""
        _, item = _owners(self.signature)
        kind = self.signature.parameters[item]
        return {item: uses_of(self.lowered, item, kind).reads} if isinstance(kind, Record) else {}

    def _ragged(
        self, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> dict[str, tuple[Places, RaggedArray]]:
        """The ragged arguments of a call, by parameter, and what the kernel calls their parts."""
        _, item = _owners(self.signature)
        values = dict(zip(self.signature.names, positional, strict=False)) | dict(named)
        rows = {n: ((first_of(n), last_of(n), n), values[n]) for n in self.signature.rows}
        return {item: ((FIRST, LAST, item), values[item])} | rows

    def _axes(
        self, arguments: Arguments, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[int, ...]:
        """The axes of the results before those of a vector."""
        dense, item = _owners(self.signature)
        names = self.signature.names
        items: RaggedArray = named[item] if item in named else positional[names.index(item)]
        outer = items.outer_shape or (len(items.offsets[-1]) - 1,)
        return (len(arguments.records[dense]), *outer) if dense else outer

    def _check_apart(self, out: Any, read: Mapping[str, Any]) -> None:
        """A cell is written while others read: results have their own memory."""
        if out is None:
            return
        for o in out if isinstance(out, tuple) else (out,):
            if shared := [
                n
                for n, a in read.items()
                if overlap(o, a.data if isinstance(a, RecordArray) else a)
            ]:
                name = shared[0].removeprefix("$")
                raise ArgumentError(
                    f"{self.__name__}: out shares memory with {name!r}; give it its own memory"
                )

    def _check_out(self, out: Any, shape: tuple[int, ...]) -> None:
        """Refuse the caller's arrays where they have not the shape of the results."""
        if out is None:
            return
        for o, kind in zip(
            _several(out, len(self.lowered.results)), self.lowered.results, strict=True
        ):
            expected = (*shape, *t.shape_of(kind))
            if getattr(o, "shape", None) != expected or not o.flags.c_contiguous:
                raise ArgumentError(
                    f"{self.__name__}: out must be a contiguous array of shape {expected}, found "
                    f"{describe(o)}"
                )


def _several(out: Any, count: int) -> tuple[Any, ...]:
    """The arrays that a caller gives for the results; None for each that lanewise makes."""
    arrays = (None,) * count if out is None else out if isinstance(out, tuple) else (out,)
    if len(arrays) != count:
        raise ArgumentError(
            f"out: wanted {'one array' if count == 1 else f'a tuple of {count} arrays'}, found "
            f"{len(arrays)}"
        )
    return arrays


@brief
def segmentwise(function: Callable[..., Any]) -> Segmentwise:
    """Make a kernel of a function of one item of a list: its results are summed over each list.

    The function takes a record of the dense axis, if there is one, one item of `lw.ragged`, rows
    of values (`lw.Row`), and uniform arguments.

        class Spot(lw.Record):
            value: lw.f32

        @lw.segmentwise
        def total(spot: Spot, weight: lw.f32) -> lw.f32:
            return weight * spot.value

        spots = Spot.array(value=[1.0, 2.0, 3.0])
        lists = lw.ragged(spots, counts=[2, 1])
        sums = total(lists, 2.0)  # (2,) float32: 6 and 6

    Raises `CompileError` at the first call if the function contains something that the language
    does not have, `ArgumentError` for arguments that do not fit.
    """
    return Segmentwise(plain_function("segmentwise", function))
