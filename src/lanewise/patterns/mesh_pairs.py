"""Pairs of one array on a mesh, each computed once for both bodies.

Every part has a copy of all rows, and takes some groups of tasks (`passes/reciprocity/groups.py`)
for all of them. What it leaves are sums of each group for all rows. Each part gets those of its
rows, of all groups, and adds them in the order of groups. Groups do not depend on the parts, so
neither do bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.compiler.pipeline import Program
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.ir.pattern import COMBINE
from lanewise.language.target import target_of
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.executable import Executable
from lanewise.launch.forms import MAX_GRID_ELEMENTS
from lanewise.launch.joined import Bound
from lanewise.launch.sent import Sent
from lanewise.launch.shaped_arrays import writable_checks
from lanewise.launch.task_list import BoundArray, TaskList
from lanewise.launch.tasks import Buffer, Exchange, Role
from lanewise.launch.tasks import Sequence as Tasks
from lanewise.passes import self_term
from lanewise.passes.reciprocity.groups import GROUPS, PART, PARTS, groups_of_part, part_values
from lanewise.patterns.mesh_launch import Brought, MeshRound
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import Need, allocate, bring, joined, on, require_together
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.patterns.calls import Calls

SHARED = "shared"  # of what a kernel is specialised to: the parts of a mesh share the pairs
REMEDY = "take Plan(reciprocity='off'), which keeps no sums, or more GPUs"


def shared_plan(
    calls: Calls, whole: Arguments, wish: Plan, complete: Any, count: int
) -> CompletePlan | None:
    """The plan of a call whose parts share the pairs of one array; None where they do not: the user
    wishes it, the function has nothing to share, or there are too many rows for sums of groups.

    whole: the arguments of a call over all rows. complete: makes a plan of a wish for such a call.
    Raises `ArgumentError` for plans whose sums would depend on the number of parts.
    """
    if wish.reciprocity not in (None, "off") and not target_of(whole.device).has_blocks:
        raise ArgumentError(
            f"{calls.name}: Plan(reciprocity={wish.reciprocity!r}) is for GPUs: on a mesh of CPUs "
            "each row sums all of its pairs; leave reciprocity out"
        )
    if wish.reciprocity in ("scratch", "ordered"):
        raise ArgumentError(
            f"{calls.name}: sums of Plan(reciprocity={wish.reciprocity!r}) are those of one GPU; "
            "on a mesh it is 'grouped', whose sums are the same for every number of parts, or 'off'"
        )
    if wish.reciprocity == "off" or not groups_fit(count):
        return None
    if wish.reciprocity is None and complete(wish, whole).reciprocity == "off":
        return None
    return complete(replace(wish, reciprocity="grouped"), whole)


def groups_fit(count: int) -> bool:
    """Whether sums of all groups, of so many rows, can be counted."""
    return count * GROUPS <= MAX_GRID_ELEMENTS


def of_part(arguments: Arguments, part: int, mesh: Mesh) -> Arguments:
    """The arguments of a call over all rows as those of a part, which takes some of the pairs."""
    arguments.variant = (*arguments.variant, SHARED)
    arguments.lengths |= part_values(part, mesh.parts)
    return arguments


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of some groups, for some rows, in memory of a part: `array` is as kernels know it."""

    array: ir.ArrayArgument
    groups: int
    rows: int
    data: BoundArray
    device: str

    @classmethod
    def of(cls, array: ir.ArrayArgument, groups: int, rows: int, device: str, what: str) -> Sums:
        nbytes = array.arrangement.nbytes(groups * rows)
        data = allocate(device, nbytes, what, zeroed=False)
        return cls(array, groups, rows, BoundArray(data, array.arrangement, groups * rows), device)

    def columns(self) -> Iterator[Any]:
        """Each leaf as an array (groups, rows)."""
        count, lies = self.groups * self.rows, self.array.arrangement
        starts = lies.starts(count)
        for leaf in self.array.leaves:
            kind, start = np.dtype(leaf.type.dtype), starts[lies.slot(leaf.name).buffer]
            column = self.data.data[start : start + count * kind.itemsize].view(kind)
            yield column.reshape(self.groups, self.rows)


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The kernels of a part: those of its tasks, and those that add what all have left."""

    compiled: Compiled
    tasks: TaskList
    adding: TaskList
    sums: tuple[ir.ArrayArgument, ...]

    @classmethod
    def of(cls, compiled: Compiled) -> _Kernels:
        executable = compiled.executable
        last = [k.pattern is COMBINE for k in executable.program.kernels]
        first = _some(executable, [not x for x in last])
        kernels = first.program.kernels
        sums = tuple(k.array(s.array) for k in kernels for s in k.scratch if not s.zeroed)
        buffers = {a.name: Buffer(a.name, Role.RESULT, a.arrangement) for a in sums}
        name, device = compiled.name, executable.device
        tasks = TaskList(name, device, (first,), buffers)
        return cls(compiled, tasks, TaskList(name, device, (_some(executable, last),)), sums)

    def with_tasks(self, tasks: TaskList, environment: Mapping[str, Any]) -> Compiled:
        """What is known of one of the two, for a call with these numbers."""
        (executable,) = tasks.parts
        assert isinstance(executable, Executable)
        return replace(
            self.compiled, executable=executable, tasks=tasks, environment=dict(environment)
        )


def _some(executable: Executable, chosen: Sequence[bool]) -> Executable:
    """Those of its kernels."""

    def of(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(v for v, wanted in zip(values, chosen, strict=True) if wanted)

    program = executable.program
    return replace(
        executable,
        program=_with_kernels(program, of(program.kernels)),
        cubins=of(executable.cubins) if executable.cubins else (),
        kernels=of(executable.kernels) if executable.kernels else (),
    )


def _with_kernels(program: Program, kernels: tuple[ir.Kernel, ...]) -> Program:
    return replace(program, kernels=kernels)


def shared_rounds(
    calls: Calls,
    mesh: Mesh,
    lengths: tuple[int, ...],
    wholes: Sequence[Arguments],
    rows: Sequence[Arguments],
    outputs: Sequence[Any],
    plan: Plan,
    sources: Brought,
) -> tuple[MeshRound, MeshRound]:
    """A call whose parts share pairs: tasks after the sources, and sums after the sums of others.

    wholes: the arguments of each part of this process, over all rows, see `of_part`. rows: those of
    a call for its own rows. Raises `DeviceError` where sums do not fit.
    """
    kernels: list[_Kernels] = []
    for arguments in wholes:
        with on(arguments.device):  # where machine code is loaded
            kernels.append(_Kernels.of(calls.specialise(arguments, plan)))
    target, source = (count_of(n) for n in wholes[0].records)
    count = sum(lengths)
    merged = kernels[0].compiled.plan.targets
    groups = [groups_of_part(count, merged, p, mesh.parts) for p in range(mesh.parts)]
    held, got = _memory(calls.name, mesh, lengths, kernels, groups)
    first, last = list[Call](), list[Call]()
    for n, (own, kernel) in enumerate(zip(mesh.own, kernels, strict=True)):
        environment = calls.subject.environment(wholes[n])
        proof = kernel.compiled.executable.program.self_term
        self_term.check(calls.name, kernel.compiled.plan.self_term, proof, environment)
        bound = calls.subject.bound(wholes[n])
        bound |= {s.array.name: s.data for s in held[n]}
        launch = kernel.tasks.bound(bound, environment)
        first.append(Call(launch, (), kernel.with_tasks(kernel.tasks, environment)))
        results, written = calls.outputs(rows[n], outputs[n])
        numbers = {target: lengths[own], source: count}
        adds = kernel.adding.bound({s.array.name: s.data for s in got[n]} | written, numbers)
        asked = writable_checks(f"{calls.name}: out", *results) if outputs[n] is not None else ()
        numbers = {k: v for k, v in environment.items() if k not in (PART, PARTS)} | numbers
        last.append(Call(adds, results, kernel.with_tasks(kernel.adding, numbers), asked))
    first[0] = replace(first[0], asked=tuple(wholes[0].asked))
    brought = (
        None if held is got else _bringing(calls.name, mesh, lengths, groups, merged, held, got)
    )
    adding = f"sums of {kernels[0].compiled.name}"
    return MeshRound(sources, tuple(first)), MeshRound(brought, tuple(last), adding)


Memory = Sequence[Sequence[Sums]]


def _memory(
    name: str,
    mesh: Mesh,
    lengths: tuple[int, ...],
    kernels: Sequence[_Kernels],
    groups: Sequence[range],
) -> tuple[Memory, Memory]:
    """The sums that parts leave, for all rows, and those that they add, of all groups. Of one part
    they are the same.
    """
    every, count = sum(map(len, groups)), sum(lengths)
    what = f"sums of groups of pairs of {name}"
    own = list(zip(mesh.own, mesh.devices, kernels, strict=True))
    alone = mesh.parts == 1
    needs = [
        Need(device, a.arrangement.nbytes(size), what)
        for part, device, kernel in own
        for a in kernel.sums
        for size in (len(groups[part]) * count, 0 if alone else every * lengths[part])
    ]
    require_together(f"a call of {name} on a mesh", needs, REMEDY)
    held = [[Sums.of(a, len(groups[p]), count, d, what) for a in k.sums] for p, d, k in own]
    if alone:
        return held, held
    return held, [[Sums.of(a, every, lengths[p], d, what) for a in k.sums] for p, d, k in own]


def _bringing(
    name: str,
    mesh: Mesh,
    lengths: tuple[int, ...],
    groups: Sequence[range],
    merged: int,
    held: Memory,
    got: Memory,
) -> Brought:
    """What brings the sums of a part's rows from all parts that have some."""
    moves = SumsOfAll(mesh, lengths, tuple(groups), held, got)
    run = moves if mesh.everywhere else Moves(tuple(moves.moves()))
    title = f"sums of {name}"
    left = {f"sums of part {n} of {name}{_number(k)}": s.data.data for n, k, s in _each(held)}
    into = {f"sums for part {n} of {name}{_number(k)}": s.data.data for n, k, s in _each(got)}
    row = sum(leaf.type.size for s in got[0] for leaf in s.array.leaves)
    law = SumsToOwners(title, row, merged)
    nbytes = law(lengths).total(mesh.places)
    exchange = Exchange(title, tuple(left), tuple(into), run, nbytes, (law,))
    roles = {n: Buffer(n, Role.ARGUMENT) for n in left}
    roles |= {n: Buffer(n, Role.TEMPORARY, what=title) for n in into}
    return Brought(exchange, Bound(Tasks(title, roles, (exchange,)), {**left, **into}, exchange))


def _each(memory: Memory) -> Iterator[tuple[int, int, Sums]]:
    return ((n, k, s) for n, some in enumerate(memory) for k, s in enumerate(some))


def _number(k: int) -> str:
    return f", {k}" if k else ""


@dataclass(frozen=True, slots=True)
class SumsToOwners:
    """Sums of so many bytes per row, which go from the parts that have their groups to those that
    have the row. targets: of a thread.
    """

    name: str
    row: int
    targets: int

    def __call__(self, rows: Sequence[int]) -> Sent:
        parts, count = range(len(rows)), sum(rows)
        if len(parts) == 1:
            return Sent(self.name, {})
        each = [len(groups_of_part(count, self.targets, p, len(parts))) for p in parts]
        return Sent(self.name, {(p, q): each[p] * rows[q] * self.row for p in parts for q in parts})


def sums_of_pairs(program: Program) -> SumsToOwners | None:
    """What a call brings whose parts share pairs; None of any other program."""
    if program.plan.reciprocity != "grouped":
        return None
    kernels = [k for k in program.kernels if k.pattern is not COMBINE]
    sums = [k.array(s.array) for k in kernels for s in k.scratch if not s.zeroed]
    row = sum(leaf.type.size for a in sums for leaf in a.leaves)
    return SumsToOwners(f"sums of {program.reference.name}", row, program.plan.targets)


@dataclass(frozen=True, slots=True)
class SumsOfAll:
    """The sums of the rows of each part, from those that all parts have of all rows."""

    mesh: Mesh
    lengths: tuple[int, ...]
    groups: tuple[range, ...]
    held: Memory
    got: Memory

    def _rows(self, part: int) -> slice:
        before = [0, *accumulate(self.lengths)]
        return slice(before[part], before[part + 1])

    def moves(self) -> Iterator[Move]:
        """From part to part of this process."""
        own = self.mesh.own
        for into, there in zip(own, self.got, strict=True):
            rows = self._rows(into)
            for part, here in zip(own, self.held, strict=True):
                groups = self.groups[part]
                if not groups or rows.start == rows.stop:
                    continue
                for a, b in zip(here, there, strict=True):
                    for left, to in zip(a.columns(), b.columns(), strict=True):
                        take = partial(_rows_of, left, rows)
                        yield Move(a.device, take, b.device, to[groups.start : groups.stop])

    def __call__(self) -> None:
        """Between processes: all sums come to each of them."""
        columns = [[list(s.columns()) for s in some] for some in self.held]
        into = [[list(s.columns()) for s in some] for some in self.got]
        counts = tuple(map(len, self.groups))
        for k, first in enumerate(columns[0]):
            for leaf in range(len(first)):
                whole = self.mesh.gather(joined([some[k][leaf] for some in columns]), counts)
                for part, there, some in zip(self.mesh.own, into, self.got, strict=True):
                    with on(self.held[0][k].device):
                        rows = whole[:, self._rows(part)].copy()
                    own = bring(rows, some[k].device)
                    with on(some[k].device):
                        there[k][leaf][...] = own


def _rows_of(sums: Any, rows: slice) -> Any:
    return sums[:, rows]
