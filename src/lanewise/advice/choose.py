"""Which layout a record gets: the default of a device, and the one that fits the kernels that use
the records.

Fields are grouped by the procedure of the Gravit study (section 6): fields of like access frequency
form structures, structures wider than a load are divided, each becomes an array. What the study
decides by hand is decided by a cost here: whether two groups are better as one, and whether a group
keeps its fields whole or fills its loads with components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from lanewise.advice.choice import Candidate, LayoutChoice
from lanewise.advice.cost import ArrayUse, MemoryModel, cost, memory_model
from lanewise.advice.uses import accesses_of
from lanewise.language.record import Leaf, Record, RecordValue
from lanewise.language.target import TARGETS
from lanewise.layouts.aoas import AoAS
from lanewise.layouts.aos import AoS
from lanewise.layouts.aosoa import AoSoA
from lanewise.layouts.base import VECTOR_BYTES, Arrangement, Layout
from lanewise.layouts.named import default_layout
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS
from lanewise.records.arrays import RecordArray
from lanewise.support.checks import checked, shown
from lanewise.support.errors import ArgumentError

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
        record: a record class, or an array of records (whose device, length and layout are then the
        defaults).
        kernels: kernels made by `@lw.elementwise` or `@lw.pairwise`, or `lw.Use(kernel,
        pattern=..., weight=...)`.
        device: "cpu" (default) or "cuda"; without a GPU "cuda" is planned for an NVIDIA H200, which
        the choice names.
        count: records of an array (default 1,000,000).
        current: the layout to compare with (default: that of the array, or the device's default).

    Returns:
        The choice, whose `layout` is the best candidate, or `current` if no change is worth making.

    Raises:
        ArgumentError: no record, no kernel, a kernel that does not use the record, an unknown
        device or count.
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
    return choice_among(layouts, own, where, accesses, model, number, before)


def choice_among(
    layouts: Sequence[Layout],
    record: Record,
    device: str,
    accesses: Sequence[ArrayUse],
    model: MemoryModel,
    count: int,
    current: Layout,
) -> LayoutChoice:
    """Every candidate with its cost, the best first."""
    rows = sorted(
        (evaluate(x, record.leaves, accesses, model, count) for x in layouts), key=Candidate.rank
    )
    named = record.name, device, model.name, count
    return LayoutChoice(*named, tuple(accesses), current, tuple(rows))


def candidates(
    leaves: tuple[Leaf, ...],
    accesses: Sequence[ArrayUse],
    model: MemoryModel,
    count: int,
    current: Layout,
) -> list[Layout]:
    """The five layouts, the hot and cold grouping, and the current layout, each once."""

    def score(layout: Layout) -> float:
        return evaluate(layout, leaves, accesses, model, count).seconds

    grouped = hot_cold(leaves, accesses, score)
    layouts: dict[Any, Layout] = {}
    # Of candidates that nothing tells apart, the first is the best one.
    for layout in (current, SoAoAS(), SoA(), grouped, AoS(), AoAS(16), AoSoA(model.target.lanes)):
        # two names of one arrangement are one candidate
        layouts.setdefault(layout.arrange(leaves), layout)
    return list(layouts.values())


def evaluate(
    layout: Layout,
    leaves: tuple[Leaf, ...],
    accesses: Sequence[ArrayUse],
    model: MemoryModel,
    count: int,
) -> Candidate:
    """The predicted time of a step under a layout: the sum over the accesses, each as often as it
    happens.
    """
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


def _record(subject: Any) -> tuple[Record, Any]:
    """The record, and the array of records if one was given."""
    from lanewise.records.arrays import RecordArray

    if isinstance(subject, RecordArray):
        return subject.record, subject
    if isinstance(subject, type) and issubclass(subject, RecordValue):
        return subject.__record__, None
    raise ArgumentError(
        f"choose_layout takes a record class or an array of records, found {shown(subject)}"
    )


def layout_advice(records: Mapping[str, RecordArray], kernel: Any) -> str:
    """A sentence for each record that the model expects to be faster in another layout; nothing if
    there is none.
    """
    sentences: dict[str, str] = {}
    for array in records.values():
        choice = choose_layout(array, [kernel])
        if choice.worth_changing:
            sentences[array.record.name] = (
                f"another layout for {array.record.name} may help: {choice.verdict}"
            )
    return "; ".join(sentences.values())


Group = tuple[Leaf, ...]
Score = Callable[[Layout], float]
WORTH = 1e-3  # a merge that gains less changes nothing
WORTH_DIVIDING = 0.02  # a field in two arrays is no view any more: that must pay


def by_frequency(leaves: Sequence[Leaf], accesses: Sequence[ArrayUse]) -> list[Group]:
    """Whole fields with the same role in every access, in order of declaration; fields that nothing
    uses come last.
    """
    groups: dict[tuple[tuple[bool, bool], ...], list[Leaf]] = {}
    for field in dict.fromkeys(leaf.field for leaf in leaves):
        own = [leaf for leaf in leaves if leaf.field == field]
        names = {leaf.name for leaf in own}
        signature = tuple(
            (not names.isdisjoint(a.read), not names.isdisjoint(a.written)) for a in accesses
        )
        groups.setdefault(signature, []).extend(own)
    cold = tuple((False, False) for _ in accesses)
    return [tuple(g) for s, g in groups.items() if s != cold] + [
        tuple(g) for s, g in groups.items() if s == cold
    ]


def hot_cold(leaves: Sequence[Leaf], accesses: Sequence[ArrayUse], score: Score) -> SoAoAS:
    """The grouped layout with the least score that merging groups and dividing fields reaches."""
    merged = _merged(by_frequency(leaves, accesses), score)
    pieces = [whole_fields(g) for g in merged]
    for n, group in enumerate(merged):
        trial = [*pieces[:n], by_components(group), *pieces[n + 1 :]]
        if score(layout_of(trial)) < (1 - WORTH_DIVIDING) * score(layout_of(pieces)):
            pieces = trial
    return layout_of(pieces)


def _merged(groups: list[Group], score: Score) -> list[Group]:
    """Join the pair of groups that gains most, until none gains."""
    while len(groups) > 1:
        now = score(layout_of([whole_fields(g) for g in groups]))
        trials = [_join(groups, a, b) for a, b in combinations(range(len(groups)), 2)]
        best = min(trials, key=lambda t: score(layout_of([whole_fields(g) for g in t])))
        if score(layout_of([whole_fields(g) for g in best])) >= (1 - WORTH) * now:
            break
        groups = best
    return groups


def _join(groups: list[Group], a: int, b: int) -> list[Group]:
    return [*groups[:a], groups[a] + groups[b], *groups[a + 1 : b], *groups[b + 1 :]]


def whole_fields(group: Group) -> list[Group]:
    """First fit of whole fields, of one size, into loads of at most 16 bytes."""
    pieces: list[list[Leaf]] = []
    for field in dict.fromkeys(leaf.field for leaf in group):
        own = [leaf for leaf in group if leaf.field == field]
        for piece in pieces:
            if piece[0].type == own[0].type and _nbytes(piece) + _nbytes(own) <= VECTOR_BYTES:
                piece.extend(own)
                break
        else:
            pieces.append(own)
    return [tuple(p) for p in pieces]


def by_components(group: Group) -> list[Group]:
    """Loads of 16 bytes, then 8, then single values, of one type each and without padding."""
    pieces: list[Group] = []
    for kind in dict.fromkeys(leaf.type for leaf in group):
        left = [leaf for leaf in group if leaf.type == kind]
        while left:
            lanes = max(
                n for n in (1, 2, 4) if n == 1 or (n <= len(left) and n * kind.size <= VECTOR_BYTES)
            )
            pieces.append(tuple(left[:lanes]))
            left = left[lanes:]
    return pieces


def layout_of(pieces: Sequence[Sequence[Group]]) -> SoAoAS:
    """The layout whose structures are these pieces; fields that are whole are named as fields."""
    flat = [piece for group in pieces for piece in group]
    sizes: dict[str, int] = {}
    for leaf in (leaf for piece in flat for leaf in piece):
        sizes[leaf.field] = sizes.get(leaf.field, 0) + 1
    return SoAoAS([_names(piece, sizes) for piece in flat])


def _names(piece: Group, sizes: dict[str, int]) -> list[str]:
    names: list[str] = []
    for leaf in piece:
        whole = sum(x.field == leaf.field for x in piece) == sizes[leaf.field]
        names.append(leaf.field if whole else leaf.name)
    return list(dict.fromkeys(names))


def _nbytes(piece: Sequence[Leaf]) -> int:
    return sum(leaf.type.size for leaf in piece)
