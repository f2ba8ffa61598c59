"""Elementwise functions that do nothing else but add what one array holds where another one says.

def deposit(place: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]): lw.scatter_add(sums, place, v)
On a GPU such a call goes in two passes over buckets of places (`collective.weighted_histogram`), where no plan asks for its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lanewise.collective import weighted_histogram
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of
from lanewise.launch.arguments import Arguments
from lanewise.target import is_gpu
from lanewise.types import F32, I32


@dataclass(frozen=True, slots=True)
class PlainSum:
    """The parameters of such a function: what is added to, where, and how much."""

    array: str
    place: str
    value: str


def plain_sum(body: ir.Block) -> PlainSum | None:
    """What the statements for an element add, if that is all that they do."""
    match [s for s in body if not isinstance(s, ir.LoadRecord)]:
        case [
            ir.ScatterElement(
                array=array, indices=(ir.Local(name=place, type=at),), operation="sum", value=ir.Local() as v
            ),
            *rest,
        ] if (at, v.type) == (I32, F32) and all(isinstance(s, ir.Return) and not s.values for s in rest):
            return PlainSum(array, place, v.name)
        case _:
            return None


def told(reference: ir.Kernel) -> str:
    """What `explain()` says of a kernel that buckets may stand for; nothing of others."""
    (loop,) = reference.body
    if reference.pattern.over_points or not isinstance(loop, ir.Parallel) or plain_sum(loop.body) is None:
        return ""
    return (
        f"on a GPU {weighted_histogram.FEW:,} values or more go to buckets of {weighted_histogram.ROOM:,} neighbouring elements first, and "
        f"are added in shared memory, where there are at most {weighted_histogram.MOST:,} elements and no plan was chosen"
    )


def prefer_buckets(lowered: Lowered, arguments: Arguments) -> None:
    """Have a call go in two passes, where it can and where that pays."""
    found = plain_sum(lowered.function.body)
    if found is None or not is_gpu(arguments.device) or not {found.place, found.value} <= arguments.arrays.keys():
        return
    places, values = arguments.arrays[found.place], arguments.arrays[found.value]
    words, _ = arguments.added[found.array]
    elements = arguments.lengths[length_of(found.array, 0)]
    if weighted_histogram.fits(values.size, elements):
        arguments.instead = partial(weighted_histogram.add, places, values, words, elements)
