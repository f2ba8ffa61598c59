"""Which layout a record gets: the default of a device, and the one that fits the kernels that use the records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lanewise.advice.choice import Candidate, LayoutChoice
from lanewise.advice.cost import Access, MemoryModel, cost, memory_model
from lanewise.advice.grouping import hot_cold
from lanewise.advice.uses import accesses_of
from lanewise.checks import checked, shown
from lanewise.errors import ArgumentError
from lanewise.layouts.aoas import AoAS
from lanewise.layouts.aos import AoS
from lanewise.layouts.aosoa import AoSoA
from lanewise.layouts.base import Arrangement, Layout
from lanewise.layouts.default import default_layout
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS
from lanewise.record import Leaf, Record, RecordValue
from lanewise.target import TARGETS

COUNT = 1_000_000  # records, when the caller names no number


@checked()
def choose_layout(
    record: Any,
    kernels: Sequence[Any],
    *,
    device: str | None = None,
    count: int | None = None,
    current: Layout | None = None,
) -> LayoutChoice:
    """The layout of `record` for the kernels of one step, by predicted time.

    Args:
        record: a record class, or an array of records (whose device, length and layout are then the defaults).
        kernels: kernels made by `@lw.elementwise` or `@lw.pairwise`, or `lw.Use(kernel, pattern=..., weight=...)`.
        device: "cpu" (default) or "cuda"; without a GPU "cuda" is planned for an NVIDIA H200, which the choice names.
        count: records of an array (default 1,000,000).
        current: the layout to compare with (default: that of the array, or the device's default).

    Returns:
        The choice: `layout` is the best candidate, or `current` when no change is worth making.

    Raises:
        ArgumentError: no record, no kernel, a kernel that does not use the record, an unknown device or count.
    """
    own, array = _record(record)
    where: str = device or (array.device if array is not None else "cpu")
    planned = TARGETS.get(where.partition(":")[0])
    if planned is None or not planned.compiled:
        raise ArgumentError(f"choose_layout plans for 'cpu' or 'cuda', found {shown(where)}")
    number: int = count if count is not None else len(array) if array is not None else COUNT
    if number < 1:
        raise ArgumentError(f"choose_layout needs the number of records, from 1 on, found {number}")
    before: Layout = current or (array.layout if array is not None else default_layout(own, where))
    accesses, model = accesses_of(own, kernels), memory_model(where)
    layouts = candidates(own.leaves, accesses, model, number, before)
    rows = sorted((evaluate(x, own.leaves, accesses, model, number) for x in layouts), key=Candidate.rank)
    return LayoutChoice(own.name, where, model.name, number, tuple(accesses), before, tuple(rows))


def candidates(
    leaves: tuple[Leaf, ...], accesses: Sequence[Access], model: MemoryModel, count: int, current: Layout
) -> list[Layout]:
    """The five layouts, the hot and cold grouping, and the current layout, each once."""

    def score(layout: Layout) -> float:
        return evaluate(layout, leaves, accesses, model, count).seconds

    grouped = hot_cold(leaves, accesses, score)
    layouts: dict[Any, Layout] = {}
    # Of candidates that nothing tells apart, the first is the best one.
    for layout in (current, SoAoAS(), SoA(), grouped, AoS(), AoAS(16), AoSoA(TARGETS[model.kind].lanes)):
        layouts.setdefault(layout.arrange(leaves), layout)  # two names of one arrangement are one candidate
    return list(layouts.values())


def evaluate(
    layout: Layout, leaves: tuple[Leaf, ...], accesses: Sequence[Access], model: MemoryModel, count: int
) -> Candidate:
    """The predicted time of a step under a layout: the sum over the accesses, each as often as it happens."""
    arrangement = layout.arrange(leaves)
    costs = [cost(arrangement, a, model, count) for a in accesses]
    return Candidate(
        layout,
        sum(a.weight * c.seconds for a, c in zip(accesses, costs, strict=True)),
        sum(a.weight * c.traffic.nbytes for a, c in zip(accesses, costs, strict=True)),
        sum(a.weight * c.traffic.instructions for a, c in zip(accesses, costs, strict=True)),
        arrangement.nbytes(count),
        _copies(arrangement, leaves),
        sum(a.weight * c.traffic.lines for a, c in zip(accesses, costs, strict=True)),
        tuple(c.limiter for c in costs),
    )


def _copies(arrangement: Arrangement, leaves: tuple[Leaf, ...]) -> int:
    """How many fields no single stride reaches."""
    copies = 0
    for field in dict.fromkeys(leaf.field for leaf in leaves):
        own = [leaf.name for leaf in leaves if leaf.field == field]
        buffers = {arrangement.slot(name).buffer for name in own}
        blocks = {(arrangement.buffers[b].width, arrangement.buffers[b].block) for b in buffers}
        gaps = {b - a for a, b in pairwise(arrangement.address(name, 0, 1) for name in own)}
        copies += len(blocks) > 1 or next(iter(blocks))[0] != 1 or len(gaps) > 1
    return copies


def _record(given: Any) -> tuple[Record, Any]:
    """The record, and the array of records if one was given."""
    from lanewise.arrays import RecordArray

    if isinstance(given, RecordArray):
        return given.record, given
    if isinstance(given, type) and issubclass(given, RecordValue):
        return given.__record__, None
    raise ArgumentError(f"choose_layout takes a record class or an array of records, found {shown(given)}")
