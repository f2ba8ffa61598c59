"""Functions that do nothing else but add what one array holds where another one says: elementwise,
or threadwise with one index.

    def deposit(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
        lw.scatter_add(sums, place, v)

    def deposited(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32],
                  sums: lw.Array1[lw.f32]):
        lw.scatter_add(sums, place[i], v[i])

Their calls go in two passes over buckets of places, where no plan asks for the kernel: on a GPU of
float32 at places of int32 and of one number for all, on a CPU of floats (`primitives.float_sums`)
and of integers (`primitives.whole_sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.analysis.affine import nest_of
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import extent_of, length_of
from lanewise.language.exact_sums import FORMATS
from lanewise.language.target import target_of
from lanewise.language.types import F32, I32, I64, Scalar
from lanewise.launch.arguments import Arguments
from lanewise.launch.tasks import Primitive, changing, reading
from lanewise.patterns.words import words_of
from lanewise.primitives import buckets, direct_sums, float_sums, own_sums, whole_sums


@dataclass(frozen=True, slots=True)
class PlainSum:
    """What such a function adds to, where, and how much: parameters, or one integer for all.

    exact: it is a sum of floats.
    """

    array: str
    place: str
    value: str | int
    kinds: tuple[Scalar, Scalar]  # of places and values
    exact: bool


def plain_sum(body: ir.Block, index: str | None = None) -> PlainSum | None:
    """What the statements for an element, or for a value of an index, add, if that is all that they
    do.
    """
    # arrays of which the index says the element, by the variable that holds it
    rows: dict[str, str] = {}
    rest: list[ir.Statement] = []
    for s in body:
        match s:
            case ir.LoadRecord():
                pass
            case ir.LoadElement(array=array, indices=(ir.Local(name=i),), name=name, more=()) if (
                i == index
            ):
                rows[name] = array
            case _:
                rest.append(s)
    match rest:
        case [ir.ScatterElement(indices=(ir.Local(name=place, type=at),)) as scatter, *others] if (
            all(isinstance(s, ir.Return) and not s.values for s in others)
        ):
            return _sum(scatter, place, at, rows, index)
        case _:
            return None


def _sum(
    scatter: ir.ScatterElement, place: str, at: Any, rows: Mapping[str, str], index: str | None
) -> PlainSum | None:
    match scatter.operation, scatter.value:
        case "add", value if value.type.is_float:
            return None  # not exactly: in their order, by the kernel
        case "add" | "sum", ir.Local(name=value, type=kind):
            pass
        case "add", ir.Literal(value=int(value), type=kind) if not isinstance(
            scatter.value.value, bool
        ):
            pass
        case _:
            return None
    if at not in (I32, I64):
        return None
    if index is not None:
        if place not in rows or (isinstance(value, str) and value not in rows):
            return None
        place, value = rows[place], rows[value] if isinstance(value, str) else value
    return PlainSum(scatter.array, place, value, (at, kind), scatter.operation == "sum")


def bucket_sentence(reference: ir.Kernel) -> str:
    """What `explain()` says of a kernel that buckets may stand for; nothing of others."""
    indices, body = nest_of(reference)
    threads = reference.pattern.over_points
    found = plain_sum(body, indices[0] if threads else None) if len(indices) == 1 else None
    if found is None:
        return ""
    on_cpu = (
        f"on a CPU {buckets.HOST_FEW:,} values or more go to buckets of neighbouring elements "
        "first, which the caches of a core hold, "
        "where no plan was chosen"
    )
    if not found.exact:
        on_cpu += f"; integers of {buckets.HOST_CACHED >> 20} MiB or less need none"
    else:
        few = direct_sums.most_elements(found.kinds[1].dtype.name)
        on_cpu += f"; with {few:,} elements or fewer they go to these directly"
    if (device := _on_gpu(found)) is None:
        return on_cpu
    return (
        f"on a GPU {buckets.FEW:,} values or more go to buckets of {device.ROOM:,} neighbouring "
        "elements first, and are added in "
        f"shared memory, where there are at most {device.ROOM * buckets.BUCKETS:,} elements and no "
        f"plan was chosen; {on_cpu}"
    )


def _on_gpu(found: PlainSum) -> Any:
    """The module whose buckets of a GPU take such a sum; None where none does."""
    if isinstance(found.value, int):
        return None if found.exact else whole_sums
    return float_sums if found.exact and found.kinds == (I32, F32) else None


def prefer_buckets(lowered: Lowered, arguments: Arguments) -> None:
    """Have a call of an elementwise function go over buckets, where it can and where that pays."""
    if (found := plain_sum(lowered.function.body)) is not None:
        _prefer(found, arguments.arrays, arguments.lengths, arguments, None)


def prefer_buckets_of_threads(lowered: Lowered, index: str, arguments: Arguments) -> None:
    """The same of a threadwise function of one index."""
    if (found := plain_sum(lowered.function.body, index)) is not None:
        rows = {n: array for n, (array, _) in arguments.added.items()}
        _prefer(found, rows, arguments.totals, arguments, extent_of(index))


def _prefer(
    found: PlainSum,
    rows: Mapping[str, Any],
    lengths: Mapping[str, int],
    arguments: Arguments,
    extent: str | None,
) -> None:
    """rows: arrays of places and values by name, of which as many are meant as `extent` says."""
    if found.place not in rows or (isinstance(found.value, str) and found.value not in rows):
        return
    count = None if extent is None else lengths[extent]
    places = rows[found.place][:count]
    values = rows[found.value][:count] if isinstance(found.value, str) else None
    elements = lengths[length_of(found.array, 0)]
    if values is not None and len(values) != len(places):
        return
    target = target_of(arguments.device)
    if not target.host_memory:
        device = _on_gpu(found)
        if device is not None and device.fits_on_gpu(len(places), elements):
            arguments.buckets = _buckets(found, extent, _OnDevice(found))
    elif target.compiled and _pays_on_host(found, len(places), elements):
        arguments.buckets = _buckets(found, extent, _OnHost(found))


def _pays_on_host(found: PlainSum, count: int, elements: int) -> bool:
    cached = not found.exact and elements * found.kinds[1].size <= buckets.HOST_CACHED
    return not cached and buckets.fits_on_host(count, elements)


def _buckets(found: PlainSum, extent: str | None, run: _OnDevice | _OnHost) -> Primitive:
    """The two passes, as a task. Sums of floats go to their words, and read the array besides."""
    reads = [found.place, *([found.value] if isinstance(found.value, str) else [])]
    to = words_of(found.array) if found.exact else found.array
    rows = [found.array] if found.exact else []
    counts = () if extent is None else (extent,)
    accesses = (*reading(*reads, *rows), *changing(to))
    return Primitive("sums by buckets", run, accesses, (*reads, to, *rows), counts, waits=True)


@dataclass(frozen=True, slots=True)
class _OnDevice:
    found: PlainSum

    def __call__(self, places: Any, *others: Any) -> None:
        places, values, number, to, rows = _taken(self.found, places, *others)
        if values is not None:
            float_sums.add_on_gpu(places, values, to, rows.size)
        else:
            whole_sums.add_on_gpu(places, to, number=number)


@dataclass(frozen=True, slots=True)
class _OnHost:
    found: PlainSum

    def __call__(self, places: Any, *others: Any) -> None:
        places, values, number, to, rows = _taken(self.found, places, *others)
        if self.found.exact:
            planes = own_sums.planes_of(FORMATS[rows.dtype.name], to)
            float_sums.add_on_host(places, values, planes, rows)
        else:
            whole_sums.add_on_host(places, values, to, number=number)


def _taken(found: PlainSum, places: Any, *others: Any) -> tuple[Any, Any, int, Any, Any]:
    """Places, values or a number for all, what is added to, and the floats where these are
    words.
    """
    rest = list(others)
    values, number = (rest.pop(0), 1) if isinstance(found.value, str) else (None, found.value)
    to, rows = rest.pop(0), rest.pop(0) if found.exact else None
    count = rest.pop() if rest else None
    return places[:count], None if values is None else values[:count], number, to, rows
