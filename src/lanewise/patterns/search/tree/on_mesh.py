"""Calls over a tree on a mesh: every part walks for some groups of all targets, and gets the
results of the rows that lie there.

    first round:  all sources (and targets) to all parts; of each part: the tree, its walk
    second round: what every part has left, in the order of the tree, to all; of each: its rows
Trees and groups are those of one device (`dealt.py`), and so are the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.launch.arguments import (
    Arguments,
    bind_value_array,
    make_outputs,
    shape_of_result,
)
from lanewise.launch.compiled import Call
from lanewise.launch.joined import Bound
from lanewise.launch.result_memory import check_results
from lanewise.launch.sent import Sent
from lanewise.launch.shaped_arrays import writable_checks
from lanewise.launch.support import index_type, machine_of
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.launch.tasks import Buffer, Exchange, Role
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.mesh_launch import Brought, GroupRounds, MeshRound
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.base import ORDER
from lanewise.patterns.search.checked_positions import Places
from lanewise.patterns.search.tree.arguments import TARGET_ORDER, TreeArguments
from lanewise.patterns.search.tree.dealt import BLOCK, PARTS, Dealt
from lanewise.patterns.search.tree.home import FIRST, ROOM, ROWS, build_home, of_all
from lanewise.patterns.search.tree.structure import TreeStructure
from lanewise.planning.plan import Plan
from lanewise.records.split_array import SplitArray
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import Need, allocate, bring, joined, on, require_together
from lanewise.runtime.mesh import Mesh

if TYPE_CHECKING:
    from lanewise.patterns.search.searched import Searched

REMEDY = "call it for parts of the targets one after the other, or take devices with more memory"
Kinds = Sequence[tuple[str, t.ValueType]]


@dataclass(frozen=True, slots=True)
class Share:
    """The call of a part, whose results are those of its groups in the order of the tree.

    places: of all targets and sources, on its device. order: of the targets. pieces: whether the
    groups of a part follow each other.
    """

    call: Call
    dealt: Dealt
    places: Places
    order: Any
    pieces: bool


def tree_rounds(
    searched: Searched,
    mesh: Mesh,
    lengths: tuple[int, ...],
    given: Sequence[Arguments],
    outputs: Sequence[Any],
    brought: Brought,
    plan: Plan | None,
    runs: bool,
) -> GroupRounds:
    """What a call runs. given: of each part of this process, with all targets and sources, which
    are there. outputs: what its own rows are written to, or None. runs: it runs now, and once.

    Raises `DeviceError` where results of all do not fit.
    """
    looks = None if runs else mesh.own[-1]
    shares = [
        _share(searched, arguments, plan, part, mesh.parts, looks=part == looks)
        for part, arguments in zip(mesh.own, given, strict=True)
    ]
    kinds, dealt = result_arrays(searched.lowered), shares[0].dealt
    rooms = _rooms(searched.name, mesh, kinds, dealt)
    left = [s.call.results for s in shares]
    pieces = shares[0].pieces
    exchange = _bringing(searched.name, mesh, kinds, dealt, left, rooms, pieces=pieces)
    rows = mesh.own_rows(lengths)
    parts = zip(shares, mesh.devices, rows, outputs, strict=True)
    last = tuple(
        _home(searched, kinds, share, rooms[device], device, own, out)
        for share, device, own, out in parts
    )
    rounds = (
        MeshRound(brought, tuple(share.call for share in shares)),
        MeshRound(exchange, last, f"results of {searched.name} by rows"),
    )
    return GroupRounds(rounds, partial(_compare, searched, given[0], shares[0], mesh.rank == 0))


def _share(
    searched: Searched,
    arguments: Arguments,
    plan: Plan | None,
    part: int,
    parts: int,
    *,
    looks: bool,
) -> Share:
    """looks: it looks at positions before every run. All parts have the same ones, and the host
    waits for what is found: the last part looks, while the others are at work.
    """
    with on(arguments.device):
        s = searched.specialiser.specialise(arguments, plan)
        tree = s.structure
        assert isinstance(tree, TreeStructure), "targets and sources are there"
        assert isinstance(s.arguments, TreeArguments)
        dealt = (Dealt.in_pieces if tree.pairs else Dealt.in_turn)(s.places.count, parts)
        numbers = dealt.values(part, s.arguments.group)
        if tree.pairs:
            numbers |= dealt.nodes(part, tree.shape, tree.slices)
        s = searched.specialiser.dealt(s, numbers)
        call = searched.bound(s, None, plan, once=not looks, count=dealt.places(part))
        order = tree.target_order if tree.targets_ordered else tree.order
        return Share(call, dealt, (s.places, s.sources), order, bool(tree.pairs))


def _home(
    searched: Searched,
    kinds: Kinds,
    share: Share,
    rooms: Sequence[Any],
    device: str,
    rows: range,
    out: Any,
) -> Call:
    """What a part takes of the results of all: those of its rows."""
    dealt, index = share.dealt, index_type(device)
    numbers = {COUNT: dealt.targets, FIRST: rows.start, ROWS: len(rows)}
    numbers |= {ROOM: dealt.room, PARTS: dealt.parts, BLOCK: dealt.block}
    name, types = searched.name, [kind for _, kind in kinds]
    with on(device):
        results = make_outputs(name, types, len(rows), device, out)
        if out is not None:
            check_results(name, results, {}, {})
        plan = complete_plan(None, machine_of(device), Work(ELEMENTWISE, 1))
        kernel = searched.programs.get("home", lambda: build_home(name, kinds, index), plan, device)
        order = ORDER if share.call.compiled.reference.identical else TARGET_ORDER
        bound = {order: bind_value_array(share.order, t.I32)}
        for (n, kind), result, room in zip(kinds, results, rooms, strict=True):
            bound[n] = bind_value_array(result, kind)
            bound[of_all(n)] = bind_value_array(room, kind)
        reference = kernel.program.reference
        tasks = TaskList(reference.name, device, (Renamed(kernel, {ORDER: order}),))
        launch = tasks.bound(bound, numbers)
    compiled = replace(
        share.call.compiled,
        executable=kernel,
        tasks=tasks,
        environment=numbers,
        reference=reference,
        search="",
        turns=dict[str, float],
    )
    asked = writable_checks(f"{name}: out", *results) if out is not None else ()
    return Call(launch, tuple(results), compiled, asked)


def _compare(
    searched: Searched,
    arguments: Arguments,
    share: Share,
    says: bool,
    results: tuple[SplitArray, ...],
    run: Callable[[], None] | None,
) -> None:
    """Compare a first call of a kind with all pairs. run: makes the results, which are afterwards
    what they were; None where they are there.
    """
    comparison = searched.comparison
    if comparison is None or not comparison.is_new(arguments, share.places):
        return
    before = [] if run is None else [_copied(part, there) for part, there in _parts(results)]
    try:
        if run is not None:
            run()
        whole = tuple(r.numpy() for r in results)
        comparison.compare(arguments, share.places, whole, says=says)
    finally:
        for (part, device), own in zip(_parts(results), before, strict=False):
            with on(device):
                part[...] = own


def _parts(results: tuple[SplitArray, ...]) -> Iterator[tuple[Any, str]]:
    """Each part of these, and its device."""
    for result in results:
        yield from zip(result.parts, result.mesh.devices, strict=True)


def _copied(part: Any, device: str) -> Any:
    with on(device):
        return part.copy()


Rooms = dict[str, list[Any]]


def _rooms(name: str, mesh: Mesh, kinds: Kinds, dealt: Dealt) -> Rooms:
    """Memory of each device for the results of all targets, part by part."""
    devices, count = tuple(dict.fromkeys(mesh.devices)), dealt.room * dealt.parts
    what = f"results of all parts of {name}"
    shapes = [shape_of_result(kind, count) for _, kind in kinds]
    sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in shapes]
    needs = [Need(device, nbytes, what) for device in devices for nbytes in sizes]
    require_together(f"a call of {name} on a mesh", needs, REMEDY)
    rooms: Rooms = {}
    for device in devices:
        with on(device):
            rooms[device] = [
                allocate(device, nbytes, what).view(dtype).reshape(shape)
                for (shape, dtype), nbytes in zip(shapes, sizes, strict=True)
            ]
    return rooms


def _bringing(
    name: str,
    mesh: Mesh,
    kinds: Kinds,
    dealt: Dealt,
    left: Sequence[Sequence[Any]],
    rooms: Rooms,
    *,
    pieces: bool,
) -> Brought:
    """What brings the results that every part has left to all devices. pieces: see
    `ResultsToAll`.
    """
    results = _ResultsOfAll(mesh, dealt, tuple(left), rooms)
    run = results if mesh.everywhere else Moves(tuple(results.moves()))
    sources = {
        f"results of part {part} of {name}{_number(n, kinds)}": result.reshape(-1)
        for part, some in zip(mesh.own, left, strict=True)
        for n, result in enumerate(some)
    }
    targets = {
        f"results of all parts of {name} on {device}{_number(n, kinds)}": room.reshape(-1)
        for device, some in rooms.items()
        for n, room in enumerate(some)
    }
    title = f"results of {name}"
    row = sum(room.nbytes // max(len(room), 1) for room in next(iter(rooms.values())))
    nbytes = row * dealt.targets * len(rooms)
    law = ResultsToAll(title, row, pieces=pieces)
    exchange = Exchange(title, tuple(sources), tuple(targets), run, nbytes, (law,))
    roles = {n: Buffer(n, Role.ARGUMENT) for n in sources}
    roles |= {n: Buffer(n, Role.TEMPORARY, what=title) for n in targets}
    return Brought(exchange, Bound(Tasks(title, roles, (exchange,)), sources | targets, exchange))


def _number(n: int, kinds: Kinds) -> str:
    return f", {n}" if len(kinds) > 1 else ""


@dataclass(frozen=True, slots=True)
class ResultsToAll:
    """Results of so many bytes per target, which every device gets from all parts. pieces: whether
    the groups of a part follow each other.
    """

    name: str
    row: int
    pieces: bool

    def __call__(self, rows: Sequence[int]) -> Sent:
        parts, deal = range(len(rows)), Dealt.in_pieces if self.pieces else Dealt.in_turn
        dealt = deal(sum(rows), len(rows))
        each = [dealt.places(p) * self.row for p in parts]
        return Sent(self.name, {(p, q): each[p] for p in parts for q in parts}, shared=True)


@dataclass(frozen=True, slots=True, eq=False)
class _ResultsOfAll:
    """What parts have left, in the order of the tree, and the rooms of all devices for it."""

    mesh: Mesh
    dealt: Dealt
    left: tuple[Sequence[Any], ...]
    rooms: Rooms

    def _places(self, part: int) -> slice:
        begin = part * self.dealt.room
        return slice(begin, begin + self.dealt.places(part))

    def moves(self) -> Iterator[Move]:
        """From part to part of this process."""
        mesh = self.mesh
        for part, device, some in zip(mesh.own, mesh.devices, self.left, strict=True):
            if not self.dealt.places(part):
                continue
            for n, result in enumerate(some):
                take = partial(_flat, result)
                for there, rooms in self.rooms.items():
                    to = rooms[n][self._places(part)]
                    yield Move(device, take, there, to.reshape(-1))

    def __call__(self) -> None:
        """Between processes: all results come to each of them."""
        counts = [self.dealt.places(part) for part in range(self.mesh.parts)]
        ends = np.cumsum([0, *counts])
        for n in range(len(self.left[0])):
            whole = self.mesh.gather(joined([some[n] for some in self.left]), counts)
            for device, rooms in self.rooms.items():
                there = bring(whole, device)
                with on(device):
                    for part in range(self.mesh.parts):
                        rooms[n][self._places(part)] = there[ends[part] : ends[part + 1]]


def _flat(result: Any) -> Any:
    return result.reshape(-1)
