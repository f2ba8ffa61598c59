"""Calls over arrays on a mesh: each part runs the kernel for its own rows.

What a part needs of the others comes to it before: by pattern nothing (elements), or all sources
(pairs). The plan is that of a call over all rows, so results have the same bits for every number
of parts. Where targets and sources are one array, the targets of a part are rows of its copy of
all sources, and `lw.same` knows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.compiler.default_plans import complete_plan
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.launch.arguments import Arguments, name_arguments
from lanewise.launch.compiled import Call
from lanewise.launch.copied import is_copy
from lanewise.launch.steps.unwritten import marked_unwritten
from lanewise.launch.support import machine_of
from lanewise.patterns.mesh_engines import BindGroups, Compare, DividedEngine
from lanewise.patterns.mesh_launch import Brought, MeshLaunch, MeshRound
from lanewise.patterns.mesh_pairs import of_part, shared_plan, shared_rounds
from lanewise.patterns.mesh_sources import all_sources, brought_together
from lanewise.patterns.skeleton import Division
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.moves import share_memory
from lanewise.records.same_elements import are_same
from lanewise.records.split_array import SplitArray, split_values
from lanewise.records.split_rows import SplitRows, split_rows
from lanewise.runtime.mesh import Mesh
from lanewise.runtime.transport import lead
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.patterns.calls import Calls


def rows_of(value: Any) -> SplitRows | None:
    """Where the rows of an array of records lie, if that is a mesh."""
    return split_rows(storage_of(value)) if isinstance(value, RecordArray) else None


def mesh_of(values: Iterable[Any]) -> Mesh | None:
    """The mesh of a call, by its arguments: every call over a search asks, also one that finds
    itself kept, so that this is one function.
    """
    for value in values:
        if type(value) is RecordArray:
            places = value._storage.placement  # pyright: ignore[reportPrivateUsage]
            if type(places) is SplitRows:
                return places.mesh
        elif type(value) is SplitArray:
            return value.mesh
    return None


def refuse_mesh(name: str, mesh: Mesh) -> ArgumentError:
    """Of what runs over arrays on one device."""
    return ArgumentError(
        f"{name}: some arrays lie on a mesh ({mesh}), where elementwise and pairwise functions are "
        "called and bound, and nothing else; .to(device) brings arrays to one device"
    )


def bind_on_mesh(
    calls: Calls,
    engine: DividedEngine,
    mesh: Mesh,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    out: Any,
    plan: Plan | None = None,
    *,
    runs: bool = False,
) -> Call:
    """A call whose arrays lie on a mesh, with its memory bound; each result is a `SplitArray`.

    engine: binds the calls of parts. runs: it runs now, and its results are there afterwards.

    Raises `ArgumentError` for functions and arguments that cannot be divided.
    """
    call, compare = _bound(calls, engine, mesh, positional, named, out, plan, runs=runs)
    launch = call.launch
    assert isinstance(launch, MeshLaunch)
    if runs:
        launch.first()
    if compare is not None:
        compare(call.results, None if runs else launch.first)
    return call


def _bound(
    calls: Calls,
    engine: DividedEngine,
    mesh: Mesh,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    out: Any,
    plan: Plan | None,
    *,
    runs: bool,
) -> tuple[Call, Compare | None]:
    """The call, and what compares its results when it is the first one of a kind."""
    division = _division(calls, mesh)
    options = {n: named[n] for n in calls.skeleton.options if n in named}
    own = {n: v for n, v in named.items() if n not in options}
    values = name_arguments(calls.signature, positional, own)
    shared: list[Arguments] = []
    groups: BindGroups | None = None
    match division:
        case Division.ROWS:
            lengths, parts, brought = *_by_rows(calls, mesh, values), None
        case Division.TARGETS:
            groups = _groups(engine, values)
            lengths, parts, brought, same = _by_targets(
                calls, engine, mesh, values, whole=groups is not None
            )
            if same and engine is calls:
                shared = [calls.given((), p | options) for p in _over_all(parts)]
    given = [calls.given((), part | options) for part in parts]
    for arguments in given:
        arguments.divided = True
    if engine is calls:  # a search has the plan of any number of targets
        plan, shares = _plan_of_all(calls, given[0], shared, plan, sum(lengths), mesh)
        shared = shared if shares else []
    outputs = _outputs(calls, mesh, lengths, out)
    rounds: tuple[MeshRound, ...]
    compare: Compare | None = None
    if groups is not None:
        assert brought is not None
        bound = groups(mesh, lengths, given, outputs, brought, plan, runs)
        rounds, compare = bound.rounds, bound.compare
    elif shared:
        assert plan is not None
        assert brought is not None
        wholes = [of_part(a, n, mesh) for n, a in zip(mesh.own, shared, strict=True)]
        rounds = shared_rounds(calls, mesh, lengths, wholes, given, outputs, plan, brought)
    else:
        pairs = zip(given, outputs, strict=True)
        rounds = (
            MeshRound(brought, tuple(engine.bind_part(a, output, plan) for a, output in pairs)),
        )
    if not runs:
        pairs = zip(rounds[-1].calls, outputs, strict=True)
        last = tuple([marked_unwritten(call, output) for call, output in pairs])
        rounds = (*rounds[:-1], replace(rounds[-1], calls=last))
    pieces = zip(*(call.results for call in rounds[-1].calls), strict=True)
    results = tuple(SplitArray(mesh, piece, lengths) for piece in pieces)
    if out is not None:
        results = out if isinstance(out, tuple) else (out,)
    launch = MeshLaunch(mesh, lengths, rounds)
    compiled = replace(rounds[0].calls[0].compiled, divided=launch.divided())
    return Call(launch, results, compiled, copied=_copied(values, parts, given)), compare


def call_on_mesh(
    calls: Calls,
    engine: DividedEngine,
    mesh: Mesh,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    out: Any,
) -> tuple[Any, ...]:
    """Run a call whose arrays lie on a mesh; its results. See `bind_on_mesh`."""
    return bind_on_mesh(calls, engine, mesh, positional, named, out, runs=True).results


def _groups(engine: DividedEngine, values: Mapping[str, Any]) -> BindGroups | None:
    """What shares groups of targets, where there are any, and sources."""
    target, source, *_ = values.values()
    some = isinstance(target, RecordArray) and isinstance(source, RecordArray)
    return engine.groups if some and len(target) and len(source) else None


def _copied(
    values: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], given: Sequence[Arguments]
) -> tuple[str, ...]:
    """The parameters whose arrays some part has a copy of, and does not see what is written to
    them.
    """
    found: set[str] = set()
    for part, arguments in zip(parts, given, strict=True):
        for name, taken in arguments.unflattened.items():
            whole = values[name]
            theirs = part[name] if isinstance(whole, SplitArray) else whole
            if len(taken) and is_copy(theirs, taken):
                found.add(name)
    return tuple(sorted(found))


def _division(calls: Calls, mesh: Mesh) -> Division:
    """How a call is divided. Raises `ArgumentError` where it asks for what no part knows."""
    division = calls.skeleton.division
    if division is None:
        raise refuse_mesh(calls.name, mesh)
    if numbered := calls.lowered.numbered:
        what = f"asks for the index of {', '.join(sorted(numbered))}, which parts count anew"
    elif arrays := calls.signature.arrays:
        what = f"has arrays with indices ({', '.join(arrays)}), which no part has as a whole"
    else:
        return division
    raise ArgumentError(
        f"{calls.name} {what}: it runs over arrays on one device; .to(device) brings them there"
    )


def _plan_of_all(
    calls: Calls,
    given: Arguments,
    wholes: Sequence[Arguments],
    plan: Plan | None,
    count: int,
    mesh: Mesh,
) -> tuple[Plan, bool]:
    """The plan of a call over so many rows: orders of sums follow from it. Of several processes,
    whose processors may differ, the first chooses it. And whether parts share pairs; else these are
    taken one way, as what a part would add to the rows of another one, that one does itself.

    wholes: arguments of calls over all rows, of pairs of one array.
    """
    wish = plan or Plan()

    def complete(wish: Plan, arguments: Arguments) -> CompletePlan:
        work = replace(calls.subject.work(arguments), targets=max(1, count))
        return complete_plan(wish, machine_of(arguments.device), work)

    def choose() -> tuple[Plan, bool]:
        chosen = shared_plan(calls, wholes[0], wish, complete, count) if wholes else None
        if chosen is not None:
            return Plan(**chosen.as_dict()), True
        off = calls.skeleton.division is Division.TARGETS and wish.reciprocity is None
        one_way = replace(wish, reciprocity="off") if off else wish
        return Plan(**complete(one_way, given).as_dict()), False

    return lead(mesh.transport, choose)


def _rows_on(calls: Calls, mesh: Mesh, name: str, value: Any) -> SplitRows:
    """The rows of an argument, which has to lie on the mesh."""
    rows = rows_of(value)
    if rows is None or rows.mesh != mesh:
        lies = "on one device" if rows is None else f"on another mesh ({rows.mesh})"
        raise ArgumentError(
            f"{calls.name}: {name!r} lies {lies}, and other arrays of the call on a mesh "
            f"({mesh}); .to(mesh) brings it there"
        )
    return rows


def _parts_of(array: RecordArray, rows: SplitRows) -> Iterator[RecordArray]:
    """The records of each part, as its own array."""
    return (RecordArray(part, class_of(array)) for part in rows.parts)


def _by_rows(
    calls: Calls, mesh: Mesh, values: Mapping[str, Any]
) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """How many rows each part has, and its arguments: its rows of every array."""
    kinds = calls.signature.parameters
    lengths: dict[str, tuple[int, ...]] = {}
    for name, value in values.items():
        if isinstance(kinds[name], Record) and isinstance(value, RecordArray):
            lengths[name] = _rows_on(calls, mesh, name, value).lengths
        elif isinstance(value, SplitArray):
            if value.mesh != mesh:  # a copy would not follow what is written to it later
                raise ArgumentError(
                    f"{calls.name}: {name!r} lies on another mesh ({value.mesh}), and other arrays "
                    f"of the call on a mesh ({mesh}); .numpy() is a copy that goes there"
                )
            lengths[name] = value.lengths
    first = next(iter(lengths.values()))
    for name, found in lengths.items():
        if found != first:
            raise ArgumentError(
                f"{calls.name}: the parts of {next(iter(lengths))!r} have {_listed(first)} rows, "
                f"and those of {name!r} {_listed(found)}: both have to be divided alike"
            )
    parts: list[dict[str, Any]] = [{} for _ in mesh.devices]
    for name, value in values.items():
        for part, own in zip(parts, _own_rows(calls, mesh, name, value, first), strict=True):
            part[name] = own
    return first, parts


def _own_rows(
    calls: Calls, mesh: Mesh, name: str, value: Any, lengths: tuple[int, ...]
) -> Iterator[Any]:
    """What each part has of an argument."""
    kind = calls.signature.parameters[name]
    if isinstance(value, RecordArray):
        yield from _parts_of(value, _rows_on(calls, mesh, name, value))
        return
    axes = 0 if isinstance(kind, Record) else len(t.shape_of(kind))
    if isinstance(kind, Record) or np.ndim(value) <= axes:
        yield from (value for _ in mesh.devices)
        return
    if len(value) != sum(lengths):
        raise ArgumentError(
            f"{calls.name}: the arrays differ in length: {name} has {len(value):,}, and those on "
            f"the mesh have {sum(lengths):,}"
        )
    yield from split_values(value, mesh, lengths).parts


def _over_all(parts: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The arguments of parts of pairs of one array, with all rows as targets as well."""
    for part in parts:
        target, source, *_ = part
        yield part | {target: part[source]}


def _by_targets(
    calls: Calls, engine: DividedEngine, mesh: Mesh, values: Mapping[str, Any], *, whole: bool
) -> tuple[tuple[int, ...], list[dict[str, Any]], Brought, bool]:
    """How many targets each part has, its arguments, which are them and all sources, what brings
    the sources, and whether they are the targets. whole: each part gets all targets.
    """
    target_name, source_name = list(values)[:2]
    target, source = values[target_name], values[source_name]
    rows = _rows_on(calls, mesh, target_name, target)
    if not isinstance(source, RecordArray):
        raise ArgumentError(
            f"{calls.name}: {source_name!r} must be an array of records, found "
            f"{type(source).__name__}"
        )
    same = are_same(target, source)
    if not same and any(mesh.transport.agree(_share(target, source))):
        raise ArgumentError(
            f"{calls.name}: {target_name!r} and {source_name!r} are parts of one array on a mesh; "
            "call it with the whole array for both, or with a .copy() of one"
        )
    reads = engine.uses(source_name).reads
    reads |= engine.uses(target_name).reads if same else 0
    uniform = {n: v for n, v in values.items() if n not in (target_name, source_name)}
    sources = all_sources(calls.name, source, mesh, reads, follows=same)
    wholes, brought = sources.wholes, sources.brought
    own = mesh.own_rows(rows.lengths)
    if not whole and not same:
        targets = list(_parts_of(target, rows))
    elif not whole:
        targets = [a[here.start : here.stop] for a, here in zip(wholes, own, strict=True)]
    elif same:
        targets = list(wholes)
    else:
        reads = engine.uses(target_name).reads
        of_all = all_sources(calls.name, target, mesh, reads, "targets", follows=True)
        targets = list(of_all.wholes)
        brought = brought_together(calls.name, brought, of_all.brought)
    parts = [
        {target_name: some, source_name: every, **uniform}
        for some, every in zip(targets, wholes, strict=True)
    ]
    if not whole:
        for some, here in zip(targets, own, strict=True):
            storage_of(some).before = here.start  # errors count as the caller does
    brought.exchange.run()  # structures are chosen by the sources that are there
    return rows.lengths, parts, brought, same


def _share(target: RecordArray, source: RecordArray) -> bool:
    return share_memory(storage_of(target).places, storage_of(source).places)


def _outputs(calls: Calls, mesh: Mesh, lengths: tuple[int, ...], out: Any) -> list[Any]:
    """What each part writes its results to; None where it has its own memory."""
    if out is None:
        return [None] * len(mesh.devices)
    outs = out if isinstance(out, tuple) else (out,)
    for one in outs:
        if not isinstance(one, SplitArray) or one.mesh != mesh or one.lengths != lengths:
            raise ArgumentError(
                f"{calls.name}: out must lie on the mesh of the call ({mesh}), with "
                f"{_listed(lengths)} rows in its parts, as the results of a call do; found "
                f"{one!r}"
            )
    pieces = zip(*(one.parts for one in outs), strict=True)
    return list(pieces) if isinstance(out, tuple) else [piece for (piece,) in pieces]


def _listed(lengths: tuple[int, ...]) -> str:
    return ", ".join(f"{n:,}" for n in lengths)
