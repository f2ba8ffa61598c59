"""What products ask of searches beyond calls over them: the structure that a call has, what chose
it, and the order in which it has elements. No public object holds these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.launch.tuned_plans import has_entries
from lanewise.loops.orders import is_order
from lanewise.patterns.part_rooms import Rooms, in_rooms
from lanewise.patterns.search import World
from lanewise.patterns.search.automatic import choose
from lanewise.patterns.search.base import MOST_NEIGHBORS, Structure
from lanewise.patterns.search.builders.geometry import ends_of
from lanewise.patterns.search.near_rows import (
    Chooses,
    NearRows,
    bytes_in_rooms,
    in_cells,
    list_lengths,
    lists_near,
    over_parts,
)
from lanewise.patterns.search.part_orders import PartOrders, structures_over
from lanewise.patterns.search.picker import Picked
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.reordering import Moved, reorder_task
from lanewise.patterns.search.searched_launch import structure_of, without_look
from lanewise.patterns.search.tree.choice import TreeChoice, choice_from, choice_of
from lanewise.patterns.search.tree.on_mesh import ResultsToAll
from lanewise.patterns.search.tree.tail import (
    errors_of_parts,
    median_and_most,
    relative,
    spread,
)
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import to_host
from lanewise.sims.common.loops import Task

__all__ = [
    "MOST_NEIGHBORS",
    "Chooses",
    "Move",
    "Moves",
    "NearRows",
    "PartOrders",
    "ResultsToAll",
    "Rooms",
    "Structure",
    "TreeChoice",
    "World",
    "bytes_in_rooms",
    "choice_from",
    "choice_of",
    "errors_of_parts",
    "in_cells",
    "in_rooms",
    "is_order",
    "laid",
    "list_lengths",
    "lists_near",
    "median_and_most",
    "order_of",
    "over_parts",
    "picked",
    "relative",
    "reorder_call",
    "spread",
    "structure_of",
    "structures_over",
    "without_look",
]


def picked(
    kernel: lw.Pairwise,
    search: lw.Search,
    targets: lw.RecordArray,
    sources: lw.RecordArray,
    *,
    tuned: bool,
    values: Mapping[str, Any],
) -> Picked:
    """The search with a structure that a call of a kernel gets for an automatic one: with `tuned`
    as tuned for such calls, else by rules for where the sources are.
    """
    if not (tuned and has_entries(kernel.__name__)):
        return Picked(*choose(search, points_of(sources, search.position)), None)
    over = kernel.using(search)
    assert over.searched is not None
    given = over._calls.given((targets, sources), values)  # pyright: ignore[reportPrivateUsage]
    return over.searched.picked(given)


def laid(search: lw.Search, elements: lw.RecordArray) -> lw.Search:
    """The search, with its cells in an open world over the box of where these elements are: the
    order of sums follows from them.
    """
    if (
        isinstance(search, lw.StaticGrid | lw.CellArray)
        and isinstance(search.world, lw.Open)
        and search.over is None
        and len(elements)
    ):
        return replace(search, over=ends_of(points_of(elements, search.position)))
    return search


def order_of(call: lw.Call) -> NDArray[np.int32]:
    """The order of elements that a call over a tree had when it was called by hand, on the host."""
    return np.array(to_host(device_order_of(call)), np.int32)


def device_order_of(call: lw.Call) -> Any:
    """The same where the elements are."""
    return structure_of(call).order


def reorder_call(structure: Structure, device: str, arrays: Mapping[str, tuple[Any, Any]]) -> Task:
    """What builds a structure of the present positions and brings arrays into its order, as a call
    of a loop. arrays: by name, each with as much spare memory; the first is that of the sources.
    """
    moved = [Moved.of(name, array, spare) for name, (array, spare) in arrays.items()]
    return reorder_task(structure, device, moved)
