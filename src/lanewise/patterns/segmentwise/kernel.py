"""`@segmentwise`: for every cell, the sum of a function over the items of its segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.attributes import sealed
from lanewise.checks import plain_function
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.launch.arguments import Arguments, classify_arguments, describe
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.support import value_type
from lanewise.naming import by_name
from lanewise.patterns.calls import Calls, Wing
from lanewise.patterns.segmentwise.build import SegmentwiseArguments, build_segmentwise
from lanewise.patterns.segmentwise.names import CELLS, DENSE, FIRST, ITEMS, LAST, SEGMENTS, first_of, last_of
from lanewise.patterns.segmentwise.pattern import SEGMENTWISE
from lanewise.plan import Plan, check_plan
from lanewise.ragged import RaggedArray, padding
from lanewise.record import Record
from lanewise.runtime.memory import overlap, to_host
from lanewise.types import I64, Scalar

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning

LONGEST = 2**31 - 1  # of a row, whose indices have 32 bits


def _owners(signature: Signature) -> tuple[str | None, str]:
    """The parameter of the dense axis, if there is one, and that of the item."""
    records = [n for n, kind in signature.parameters.items() if isinstance(kind, Record)]
    return (records[0], records[1]) if len(records) == 2 else (None, records[0])


def _build(lowered: Lowered, signature: Signature, given: Arguments, index: Scalar) -> ir.Kernel:
    dense, item = _owners(signature)
    layouts = {n: (n, r.record, r.layout) for n, r in given.records.items()}
    kinds = {n: value_type(signature.parameters[n]) for n in given.uniforms if n in signature.parameters}
    arguments = SegmentwiseArguments(layouts[dense] if dense else None, layouts[item], signature.rows, kinds)
    return build_segmentwise(lowered, arguments, index)


def _counts(name: str, arguments: Arguments) -> Mapping[str, int]:
    segments = len(arguments.added[FIRST][0])
    items = max(1, int(arguments.totals["items"]) // max(1, segments))
    lengths = {
        count_of(n): len(r) for n, r in arguments.records.items()
    }  # no counts of the kernel: what models look up
    if len(arguments.records) == 1:
        return {SEGMENTS: segments, **lengths, ITEMS: items}
    dense = len(next(iter(arguments.records.values())))
    return {CELLS: dense * segments, SEGMENTS: segments, DENSE: dense, **lengths, ITEMS: items}


def _checked(signature: Signature) -> Signature:
    """A segmentwise function takes one or two records first, then rows and values, and returns something."""
    source = signature.source
    kinds = [signature.parameters.get(n) for n in signature.names]
    records = [isinstance(k, Record) for k in kinds]
    count = sum(records)
    if not 1 <= count <= 2 or not all(records[:count]):
        found = ", ".join(
            f"{n}: {k if k is not None else f'lw.Row[lw.{signature.rows[n]}]'}"
            for n, k in zip(signature.names, kinds, strict=True)
        )
        raise source.error(
            "a segmentwise function starts with its item, or with a record of the dense axis and its item", source.tree,
            found=found or "no parameters", wanted="item: Sft, or template: Template, item: Sft; then rows and uniform arguments",
        )  # fmt: skip
    if not signature.results:
        raise source.error(
            "a segmentwise function returns what one item gives to one cell",
            source.tree,
            found="no result",
            wanted="-> lw.f32",
        )
    return signature


def _arguments(signature: Signature, given: Mapping[str, Any]) -> Arguments:
    """The flat records and values of the ragged arguments, with the offset vectors as arrays of the kernel's."""
    kernel = signature.source.name
    dense, item = _owners(signature)
    items = _ragged(f"{kernel}: {item!r}", given[item], signature.parameters[item], "")
    flat = {n: v for n, v in given.items() if n not in signature.rows} | {item: items.data}
    result = classify_arguments(signature, flat, arrays_allowed=False)
    if isinstance(given.get(dense or ""), RaggedArray):
        raise ArgumentError(f"{kernel}: {dense!r} has a record for each place of the dense axis, found a ragged array")
    ends = items.offsets[-1]
    result.added |= {FIRST: (ends[:-1], I64), LAST: (ends[1:], I64)}
    count = _count(items)
    for name, kind in signature.rows.items():
        place = f"{kernel}: {name!r}"
        row = _ragged(place, given[name], kind, ", with a list for each item")
        if row.device != items.device:
            raise ArgumentError(
                f"{place} lies on {row.device!r}, and the items on {items.device!r}; move it with .to(device)"
            )
        if len(row.offsets[-1]) - 1 != count:
            raise ArgumentError(
                f"{place} has {len(row.offsets[-1]) - 1:,} lists; wanted one for each of the {count:,} items"
            )
        begins = row.offsets[-1]
        result.added |= {first_of(name): (begins[:-1], I64), last_of(name): (begins[1:], I64)}
        result.added[name] = (_with_padding(row), kind)
        result.beyond[name] = len(row.data)
    result.totals["items"] = count
    return result


def _count(items: RaggedArray) -> int:
    return int(to_host(items.offsets[-1][-1:])[0])


def _with_padding(row: RaggedArray) -> Any:
    """All values of the rows, and what follows the last row."""
    data, pad = row.data, padding(row)
    whole = row._memory[: data.nbytes + pad.nbytes].view(data.dtype)  # pyright: ignore[reportPrivateUsage]
    return whole.reshape(-1, data.shape[1]) if data.ndim == 2 else whole


def _ragged(place: str, value: Any, kind: Record | t.ValueType, note: str) -> RaggedArray:
    name = kind.name if isinstance(kind, Record) else f"lw.{kind}"
    if not isinstance(value, RaggedArray):
        found = f"an array of {value.record.name}" if isinstance(value, RecordArray) else describe(value)
        raise ArgumentError(f"{place} must be lw.ragged(...) of {name}{note}, found {found}")
    if value.kind != kind:
        raise ArgumentError(f"{place} must be lw.ragged(...) of {name}{note}, found {value!r}")
    if not value.is_whole:
        raise ArgumentError(f"{place} is a part of another ragged array; make it one of its own with .copy()")
    return value


def _alike(arguments: Arguments) -> int:
    """The length of the dense axis."""
    return len(next(iter(arguments.records.values()))) if len(arguments.records) == 2 else 1


WING = Wing(SEGMENTWISE, _build, _counts, check=_checked, arguments=_arguments, rows=True, alike=_alike)


@sealed()
class Segmentwise:
    """A kernel over segments.

    Its function takes one item of a segment, before it a record of the dense axis if there is one, then rows of values that
    belong to the item, and uniform arguments. Its results are summed over the items of each segment.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._calls = Calls(WING, function, self, self.bind)

    @property
    def python(self) -> Callable[..., Any]:
        """Its function, as it was written."""
        return self._function

    def __repr__(self) -> str:
        return f"<lanewise segmentwise kernel {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (Segmentwise, (self.python,)))

    def __copy__(self) -> Segmentwise:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Segmentwise:
        return self

    @property
    def signature(self) -> Signature:
        return self._calls.signature

    @property
    def lowered(self) -> Lowered:
        """The typed function; raises `CompileError` for what the language does not have."""
        return self._calls.lowered

    def __call__(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Any:
        """The sums of all cells: an array of shape (dense, *segments) or (dense, *segments, components), or a tuple of them.

        `segments` are the axes of the ragged items above their innermost lists, where all lists of a level are of one length:
        (stacks, detectors) for items by stack and detector. Else it is one axis with the innermost lists, one after
        the other. Without a dense axis the shape begins there.
        """
        return self.bind(*arguments, out=out, plan=plan, **named)()

    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without running it."""
        check_plan(self.__name__, plan)
        return self._calls.compile(self._calls.given(arguments, named), plan)

    def bind(self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any) -> Call:
        """A call with its memory bound, to run many times."""
        check_plan(self.__name__, plan)
        given = self._calls.given(arguments, named)
        shape = self._shape(given, arguments, named)
        flat = self._flat(out, shape)
        self._check_apart(flat, given)
        call = self._calls.bind(given, flat, plan)
        kinds = self.lowered.results
        results = tuple(
            r.reshape(*shape, *r.shape[1:]) if o is None else o
            for r, o in zip(call.results, _several(out, len(kinds)), strict=True)
        )
        return Call(call.launch, results, call.compiled)

    def tune(self, *arguments: Any, seconds: float | None = None, plan: Plan | None = None, **named: Any) -> Tuning:
        """Measure plans for calls like this one, and use the fastest in later calls, also of other programs.

        `seconds` is about what it may take, compilation included (60 on a GPU, 120 on a CPU); the fields that `plan` fixes
        stay as they are. Raises `ArgumentError` for arguments that do not fit, `PlanError` for an illegal `plan`.
        """
        from lanewise.tuning import tune_job

        return tune_job(self.tuning_job(*arguments, plan=plan, **named), seconds)

    def tuning_job(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Job:
        """What `tune` measures: for programs that watch the search, or replay it."""
        return self._calls.job(self._calls.given(arguments, named), plan)

    def _shape(self, arguments: Arguments, positional: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[int, ...]:
        """The axes of the results before those of a vector."""
        dense, item = _owners(self.signature)
        names = self.signature.names
        items: RaggedArray = named[item] if item in named else positional[names.index(item)]
        outer = items.outer_shape or (len(items.offsets[-1]) - 1,)
        return (len(arguments.records[dense]), *outer) if dense else outer

    def _check_apart(self, out: Any, arguments: Arguments) -> None:
        """A cell is written while others read: results have memory of their own."""
        if out is None:
            return
        read = {n.removeprefix("$"): a for n, (a, _) in arguments.added.items()} | {
            n: r.data for n, r in arguments.records.items()
        }
        for o in out if isinstance(out, tuple) else (out,):
            if shared := [n for n, a in read.items() if overlap(o, a)]:
                raise ArgumentError(f"{self.__name__}: out shares memory with {shared[0]!r}; give it memory of its own")

    def _flat(self, out: Any, shape: tuple[int, ...]) -> Any:
        """The caller's arrays as a call takes them: cells along one axis."""
        if out is None:
            return None
        flat: list[Any] = []
        for o, kind in zip(_several(out, len(self.lowered.results)), self.lowered.results, strict=True):
            wanted = (*shape, kind.length) if isinstance(kind, t.Vector) else shape
            if getattr(o, "shape", None) != wanted or not o.flags.c_contiguous:
                raise ArgumentError(
                    f"{self.__name__}: out must be a contiguous array of shape {wanted}, found {describe(o)}"
                )
            cells = int(np.prod(shape, dtype=np.int64))
            flat.append(o.reshape(cells, kind.length) if isinstance(kind, t.Vector) else o.reshape(cells))
        return flat[0] if len(flat) == 1 else tuple(flat)


def _several(out: Any, count: int) -> tuple[Any, ...]:
    """The arrays that a caller gives for the results; None for each that lanewise makes."""
    given = (None,) * count if out is None else out if isinstance(out, tuple) else (out,)
    if len(given) != count:
        raise ArgumentError(
            f"out: wanted {'one array' if count == 1 else f'a tuple of {count} arrays'}, found {len(given)}"
        )
    return given


def segmentwise(function: Callable[..., Any]) -> Segmentwise:
    """Make a kernel of a function of one item: `@lw.segmentwise def power(template: Template, sft: Sft) -> lw.f32: ...`."""
    return Segmentwise(plain_function("segmentwise", function))
