"""Calls over a search on arrays that come and go, of any size.

A first call says which kernels run. For other arrays of its kind (records, layouts, device) only
what follows from their sizes is new: the shape of the structure, and launches that wait for arrays.
That is made once for each combination of sizes; in an open world, and where the choice of a
structure depends on positions, it is made anew when it would be another one.

Structures of all sizes lie in one memory, of which each uses the first bytes; one call at a time
does. It grows by a quarter at least, and then launches are made anew. Where that were much memory
nothing is shared: such calls are bound, as their work takes longer than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lanewise.frontend.function import Signature
from lanewise.ir.names import count_of
from lanewise.language.types import I32
from lanewise.launch.arguments import Arguments, bind_value_array, flatten_uniforms
from lanewise.launch.own_memory import OwnMemory, mender
from lanewise.launch.repeatable import Repeatable
from lanewise.launch.sized import Result, Sized, require_for_call, shapes_of
from lanewise.launch.slots import Given
from lanewise.launch.support import Uses, index_type
from lanewise.launch.task_list import BoundArray, TaskList, views_of_memory
from lanewise.patterns.search.base import POSITIONS, TARGET_POSITIONS, Structure
from lanewise.patterns.search.checked_positions import Places
from lanewise.patterns.search.picker import Picked
from lanewise.patterns.search.searched_launch import orders_of
from lanewise.patterns.search.specialised import Specialised, Specialiser
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.skeleton import pair_of
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.records.same_elements import are_parts
from lanewise.runtime.memory import Room
from lanewise.runtime.prepared import Flat, Views
from lanewise.runtime.prepared import Places as Span

MOST_BYTES = 1 << 24  # of structures, sorted copies and the like


@dataclass(frozen=True, slots=True)
class SizedSearch:
    """What follows from sizes. age: how often the shared memory had grown by then."""

    picked: Picked
    structure: Structure
    launches: Flat
    sized: Sized
    age: int


class Later:
    """Stands for the launches of a size, which are made when positions are known."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made: SizedSearch | None = None

    def launch(self, views: Views, values: Mapping[str, Any]) -> None:
        raise AssertionError("launches of a search are made before they run")


@dataclass(frozen=True, slots=True)
class Variant:
    """What calls of a kind run behind their structures, and numbers that they have in common."""

    tasks: TaskList
    numbers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Positioned:
    """Launches that read these positions. points: of targets and sources."""

    launches: Flat
    points: Places

    def launch(self, views: Views, values: Mapping[str, Any]) -> None:
        places, sources = self.points

        def all_views(name: str, at: Span) -> Sequence[Any]:
            if name == POSITIONS:
                return (sources,)
            return (places,) if name == TARGET_POSITIONS else views(name, at)

        self.launches.launch(all_views, values)


class AnySize:
    """Calls of one kind. compiled: all tasks of one, those of its structure first."""

    __slots__ = (
        "_age",
        "_compiled",
        "_own",
        "_results",
        "_rooms",
        "_specialiser",
        "_template",
        "_values",
        "_variants",
        "call",
        "match",
    )

    def __init__(
        self,
        call: Repeatable,
        template: Arguments,
        values: frozenset[str],
        specialiser: Specialiser,
        compiled: Callable[[Specialised], TaskList],
        results: Callable[[int], Sequence[Result]],
    ) -> None:
        self.call, self._template, self._values = call, template, values
        self.match = call.match
        self._specialiser, self._compiled, self._results = specialiser, compiled, results
        self._variants: dict[Any, Variant] = {}
        self._own: dict[str, OwnMemory] = {}
        self._rooms: dict[tuple[int, str], Room] = {}
        self._age = 0

    @classmethod
    def of(
        cls,
        signature: Signature,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        uses: Mapping[str, Uses],
        specialiser: Specialiser,
        compiled: Callable[[Specialised], TaskList],
        results: Callable[[int], Sequence[Result]],
    ) -> AnySize | None:
        """Calls like this one; None where what was found out about it does not hold for others:
        parts of one array, tables, and trees that are chosen by values of a call.
        """
        search = specialiser.search
        if isinstance(search, Tree) and search.accuracy is not None:
            return None
        if signature.arrays or arguments.tests is not None or arguments.variant:
            return None
        if are_parts(*arguments.records.values()):
            return None
        target = next(iter(arguments.records))

        def later(
            positional: tuple[Any, ...], named: Mapping[str, Any], matched: Given, makes: bool
        ) -> Sized:
            del positional, named, makes
            return Sized.of(Later(), results(len(matched.arrays[target])))

        call = Repeatable.of(
            signature,
            positional,
            named,
            arguments,
            later,
            identical=pair_of(arguments),
            uses=uses,
        )
        if call is None:
            return None
        values = frozenset(flatten_uniforms(signature, arguments.uniforms))
        template = replace(arguments, records={}, asked=[])
        return cls(call, template, values, specialiser, compiled, results)

    def ready(self, matched: Given, records: dict[str, RecordArray], points: Places) -> bool:
        """Have the launches of a call ready, for these positions; whether it shares memory with
        others.
        """
        later: Later = matched.sized.flat
        made, picker = later.made, self._specialiser.picker
        if made is None or picker.looks(points[1]):
            arguments = replace(self._template, records=records)
            picked = picker.pick(arguments, points[1], None, None)
        else:
            picked = made.picked  # which follows from sizes
        if made is None or not self._fits(made, points, picked):
            made = later.made = self._make(records, points, picked)
        if made is not None:
            matched.sized = made.sized.running(Positioned(made.launches, points))
        return made is not None

    def _fits(self, made: SizedSearch, points: Places, picked: Picked) -> bool:
        before = made.picked
        if made.age != self._age or (before.search, before.plan) != (picked.search, picked.plan):
            return False
        return made.structure.fits(points[1])

    def _make(
        self, records: dict[str, RecordArray], points: Places, picked: Picked
    ) -> SizedSearch | None:
        structure, device = picked.search.structure(*points), self._template.device
        if sum(need.nbytes for need in structure.memory) > MOST_BYTES:
            return None
        variant = self._variant(records, points, picked, structure)
        if variant is None:
            return None
        tasks, environment = variant.tasks, {**variant.numbers, **structure.uniforms}
        for name, array in records.items():
            environment[count_of(name)] = len(array)
        own, results = self._memory(device), self._results(points[0].count)
        needs = [*tasks.needs(environment, own), *structure.memory]
        if sum(need.nbytes for need in needs) > MOST_BYTES:
            return None
        require_for_call(tasks.name, device, results, needs)
        for n, planned in enumerate(structure.planned):
            planned.share(self._room(n, planned.device))
        arrays, beside = self._arrays(structure), tasks.reserved(environment, own)
        shapes = {n: (b.arrangement, b.count) for n, b in arrays.items()} | shapes_of(results)
        shapes |= {n: shape for n, (shape, _) in beside.items()}
        for name, array in records.items():
            places = places_of(array)
            shapes[name] = places.arrangement, places.count
        target, source = records
        shapes |= {POSITIONS: shapes[source], TARGET_POSITIONS: shapes[target]}
        parts = (*structure.parts({}, device), *tasks.parts)
        memory = {n: b.data for n, b in arrays.items()} | {n: m for n, (_, m) in beside.items()}
        views, names, kept = views_of_memory(memory, device), frozenset(memory), (*memory.items(),)
        pieces = [p for part in parts for p in part.pieces(environment, shapes)]
        buffers = tasks.sequence.buffers
        clean = [m for n, (_, m) in beside.items() if buffers[n].clean]
        clean += [data for planned in structure.planned for data in planned.clean]
        flat = Flat(
            tuple([p.closed(names, views, {}, kept) for p in pieces]),
            own.lease,
            mender(device, clean),
            tuple([planned.settle for planned in structure.planned]),
        )
        return SizedSearch(picked, structure, flat, Sized.of(flat, results), self._age)

    def _variant(
        self,
        records: dict[str, RecordArray],
        points: Places,
        picked: Picked,
        structure: Structure,
    ) -> Variant | None:
        """What runs behind such a structure; None for kernels that are bound by each call."""
        index = index_type(self._template.device)
        key = picked.search, picked.plan, structure.kind(index)
        variant = self._variants.get(key)
        if variant is None:
            arguments = replace(self._template, records=records)
            s = self._specialiser.over(arguments, picked, points, structure)
            tasks = self._compiled(s)
            behind = replace(tasks, parts=tasks.parts[len(structure.tasks()) :])
            left = {*self._values, *structure.uniforms}
            numbers = {n: v for n, v in s.environment.items() if n not in left}
            variant = self._variants[key] = Variant(behind, numbers)
        return variant if variant.tasks.resizable else None

    def _arrays(self, structure: Structure) -> dict[str, BoundArray]:
        """The memory of a structure that other tasks read, by name."""
        orders = {n: bind_value_array(order, I32) for n, order in orders_of(structure)}
        return {**structure.arrays, **structure.clean, **orders}

    def _memory(self, device: str) -> OwnMemory:
        if (own := self._own.get(device)) is None:
            what = f"a bound call of {self._specialiser.name}"
            # of several threads that come here together, all take the first one's
            own = self._own.setdefault(device, OwnMemory(what, device, self._grown))
        return own

    def _grown(self) -> None:
        self._age += 1

    def _room(self, number: int, device: str) -> Room:
        """Where the pieces of so many a plan of a structure lie."""
        key = number, device
        if key not in self._rooms:
            reserve = self._memory(device).reserve

            def named(name: str, nbytes: int, what: str, /, *, zeroed: bool) -> Any:
                return reserve(f"{number} {name}", nbytes, what, zeroed=zeroed)

            return self._rooms.setdefault(key, Room(named))
        return self._rooms[key]
