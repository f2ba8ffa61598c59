"""A call of a pairwise kernel over a search: rebuild the structure, gather the fields in its order,
walk through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import Pattern, Work
from lanewise.language import types as t
from lanewise.language.record import Leaf, Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import (
    Arguments,
    bind_value_array,
    flatten_uniforms,
    make_outputs,
)
from lanewise.launch.compiled import Call, Compiled, Tunable
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.result_memory import check_beside_records, check_in_place
from lanewise.launch.shaped_arrays import check_results_apart, writable_checks
from lanewise.launch.sized import Result
from lanewise.launch.support import (
    Uses,
    bind_record,
    index_type,
    layouts_of,
    machine_of,
    uses_of,
    value_type,
)
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.launch.tasks import Buffer, Role
from lanewise.layouts import SoAoAS
from lanewise.passes.index_tests import OUTSIDE
from lanewise.patterns.call_tasks import RESULT, examination, outside_buffer
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.base import (
    ORDER,
    POSITIONS,
    RADIUS2,
    TARGET_POSITIONS,
    Search,
    Structure,
    Walked,
    radius2,
    reach,
)
from lanewise.patterns.search.build import (
    SEARCH,
    SearchArguments,
    Side,
    build_search,
    inverse_period,
    period,
)
from lanewise.patterns.search.elsewhere import CallElsewhere
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.picker import Picked, SearchPicker
from lanewise.patterns.search.points import Points, points_of
from lanewise.patterns.search.repeated import RepeatedSearches, SearchedLaunch
from lanewise.patterns.search.tree.arguments import (
    TARGET_ORDER,
    TARGET_SORTED,
    TreeArguments,
)
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.tree.structure import TreeStructure
from lanewise.patterns.search.tuning.job import Choice
from lanewise.patterns.search.watched import Guard, Look, Unsound
from lanewise.patterns.search.worlds import Periodic
from lanewise.patterns.tables.ranges import TableTests, proved_with_values, smallest
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.same_elements import are_same, shared_elements
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import on
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.patterns.search.tuning.job import SearchJob


def structure_of(call: Call) -> Structure:
    """The structure of a bound call over a search.

    Raises `ArgumentError` for a call over all pairs, which has none.
    """
    launch: Any = call.launch
    if not isinstance(launch, SearchedLaunch):
        raise ArgumentError(f"{call.compiled.name} runs over all pairs: it has no search structure")
    return launch.structure


def without_look(call: Call) -> Call:
    """A bound call over a search that looks at no positions, for whoever does so afterwards."""
    launch: Any = call.launch
    return replace(call, launch=launch.unguarded()) if isinstance(launch, SearchedLaunch) else call


@dataclass(frozen=True, slots=True)
class _Specialisation:
    """A call that is ready to be compiled."""

    classified: Arguments
    picked: Picked
    places: Points
    sources: Points
    structure: Structure
    arguments: SearchArguments | TreeArguments
    reference: ir.Kernel
    # what the sorted copies hold, by parameter; nothing where elements stay in their own order
    copied: Mapping[str, tuple[Leaf, ...]]
    environment: dict[str, Any]


class Searched:
    """What a pairwise kernel over a search compiles and binds. Compiled kernels are kept; each
    bound call has a structure of its own.
    """

    def __init__(
        self, name: str, signature: Signature, lowered: Lowered, search: Search, kernel: Tunable
    ) -> None:
        self.name, self.signature, self.lowered, self.search, self.kernel = (
            name,
            signature,
            lowered,
            search,
            kernel,
        )
        precision, axes = check_positions(signature, search.position)
        self._far = (
            FarFields(signature, lowered, search, axes) if isinstance(search, Tree) else None
        )
        if self._far is not None:
            self.search = search = self._far.search
        self._programs = Programs()
        self._reference: dict[
            tuple[SearchArguments | TreeArguments, Scalar], ir.Kernel
        ] = {}  # by what they are specialised to: quicker than by themselves
        self._picker, self._repeated = (
            SearchPicker(name, search, self.reference, self.forget),
            RepeatedSearches(),
        )
        self._records = [n for n, kind in signature.parameters.items() if isinstance(kind, Record)]
        self._reach = reach(search, precision, axes)

    def compile(
        self, arguments: Arguments, plan: Plan | None, bind: Callable[..., Call]
    ) -> Compiled:
        """The kernel for these arguments, without running it."""
        return self._compile(self._specialisation(arguments, plan), plan, bind)

    def call(
        self,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        out: Any,
        classify: Callable[[tuple[Any, ...], Mapping[str, Any]], Arguments],
        bound_by: Callable[..., Call],
    ) -> tuple[Any, ...]:
        """Run with the default or the tuned plan; the results. `classify`: the arguments,
        checked.
        """
        points: tuple[Points, Points] | None = None
        repeatable = out is None or not self.signature.arrays
        if repeatable and (match := self._repeated.find(arguments, named)):
            kept, matched = match
            if out is None and kept.watched is not None:
                matched.sized, usual = kept.watched, matched.sized
                try:
                    return kept.call.run(matched, None)
                except Unsound:  # what is wrong is said below, or nothing is wrong any more
                    matched.sized = usual
            points = kept.again()
            arrays = matched.complete()
            records = {n: arrays[n] for n in self._records}
            self._check(records, points)
            pick = (
                partial(self._pick_again, records, points[1])
                if self._picker.looks(points[1])
                else None
            )
            if kept.fits(points[1], pick):
                return kept.call.run(matched, out)
            self._repeated.discard(kept)
        classified = classify(arguments, named)
        with on(classified.device):
            s = self._specialisation(classified, None, points=points)
            call = self._bound(s, out, None, partial(bound_by, plan=None), once=True)
        launch: Any = call.launch
        count = len(next(iter(classified.records.values())))
        results = [Result(n, kind, count) for n, kind in result_arrays(self.lowered)]
        both = (s.places, s.sources)
        looks = (
            self._looks(both) if s.structure.settled and not self._picker.looks(s.sources) else ()
        )
        if not proved_with_values(self.lowered, self.signature):
            self._repeated.remember(
                self.signature,
                arguments,
                named,
                classified,
                launch,
                results,
                both,
                s.picked,
                looks,
                self._uses(classified),
                call.compiled.tasks.memory(call.compiled.environment),
            )
        with on(classified.device):
            call.launch()
        return call.results

    def forget(self) -> None:
        """Make every call anew: another structure or plan was found to be faster."""
        self._repeated.forget()

    def _uses(self, arguments: Arguments) -> dict[str, Uses]:
        """What is used of the targets and of the sources, by parameter: of both where they are,
        too.
        """
        return {
            n: uses_of(self.lowered, n, r.record).and_reads(r.record, self.search.position)
            for n, r in arguments.records.items()
        }

    def _pick_again(self, records: dict[str, RecordArray], sources: Points) -> Picked:
        return self._picker.pick(
            Arguments(records=records, device=sources.device), sources, None, None
        )

    def bind(
        self,
        arguments: Arguments,
        out: Any,
        plan: Plan | None,
        bind: Callable[..., Call],
        choice: Choice | None = None,
    ) -> Call:
        """A call with its structure and its memory. `choice`: instead of what is asked for, or was
        tuned.
        """
        with on(arguments.device):
            s = self._specialisation(arguments, plan, choice)
            call = self._bound(s, out, plan, bind)
        launch: Any = call.launch
        chosen = choice is None and self._picker.looks(s.sources)
        if isinstance(launch, SearchedLaunch) and (chosen or not s.structure.settled):
            return replace(call, launch=self._following(s, launch, call.results, plan, bind))
        return call

    def _following(
        self,
        s: _Specialisation,
        launch: SearchedLaunch,
        results: tuple[Any, ...],
        plan: Plan | None,
        bind: Callable[..., Call],
    ) -> SearchedLaunch:
        """The launch, which knows that of a plain call on the elements where they are by then."""

        def follow() -> SearchedLaunch | None:
            with on(s.classified.device):
                points = s.sources.again()
                both = (points if s.places is s.sources else s.places.again(), points)
                self._check(s.classified.records, both)
                if self._picker.looks(points):
                    picked = self._picker.pick(s.classified, points, plan, None)
                    fits = (picked.search, picked.plan) == (s.picked.search, s.picked.plan)
                else:
                    fits = True
                if fits and s.structure.fits(points):
                    return None
                again = self._specialisation(s.classified, plan, None, points=both)
                bound: Any = self._bound(again, results, plan, bind).launch
                return self._following(again, bound, results, plan, bind)

        return replace(launch, follow=follow)

    def _bound(
        self,
        s: _Specialisation,
        out: Any,
        plan: Plan | None,
        bind: Callable[..., Call],
        once: bool = False,
    ) -> Call:
        """once: it runs now, and its positions were looked at just now."""
        classified, compiled = s.classified, self._compile(s, plan, bind)
        target = next(iter(classified.records.values()))
        named = result_arrays(self.lowered)
        results = make_outputs(
            self.name, [kind for _, kind in named], len(target), classified.device, out
        )
        uses = self._uses(classified)
        if out is not None:
            check_in_place(self.name, results, {}, ())
            check_beside_records(self.name, results, classified.records, uses, own_only=False)
        bound = {n: bind_record(r, uses[n]) for n, r in classified.records.items()}
        for order, name in _orders(s.structure):
            bound[name] = bind_value_array(order, t.I32)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named, results, strict=True)}
        bound |= {**s.structure.arrays, **s.structure.clean}
        bound |= {n: bind_value_array(a, kind) for n, (a, kind) in classified.added.items()}
        if out is not None:
            check_results_apart(
                self.name, results, {n: classified.added[n][0] for n in self.signature.arrays}
            )
        lease = get_device(classified.device).lease(f"a bound call of {self.name}")
        launches = compiled.tasks.bound(bound, s.environment, lease)
        orders = len(s.structure.tasks()) if s.structure.every > 1 else 0
        launch = SearchedLaunch(s.structure, launches, _builds(s.structure), orders=orders)
        if once:
            return Call(launch, tuple(results), compiled)
        asked = writable_checks(f"{self.name}: out", *results) if out is not None else ()
        return Call(
            launch.guarded(classified.device, self._guards(s)),
            tuple(results),
            compiled,
            asked=asked,
        )

    def _guards(self, s: _Specialisation) -> tuple[Guard, ...]:
        """What looks at the positions of a bound call each time."""
        looked = [*zip(s.classified.records, (s.places, s.sources), strict=True)][
            s.places is s.sources :
        ]
        return tuple(
            Guard(f"{self.name}: {n!r}", p, self.search.world, self._reach)
            for n, p in looked
            if p.count
        )

    # ------------------------------------------------------------ what a call is

    def _specialisation(
        self,
        classified: Arguments,
        requested: Plan | None,
        choice: Choice | None = None,
        points: tuple[Points, Points] | None = None,
    ) -> _Specialisation:
        """points: those of targets and sources, where they are checked already."""
        if points is None:
            target, source = classified.records.values()
            sources = points_of(source, self.search.position)
            points = (
                sources if are_same(target, source) else points_of(target, self.search.position),
                sources,
            )
            self._check(classified.records, points)
        places, sources = points
        picked = self._picker.pick(classified, sources, requested, choice)
        search, structure = picked.search, picked.search.structure(places, sources)
        copied = self._copied(classified, structure)
        index = index_type(classified.device)
        arguments = self._arguments(classified, search, structure, copied, index)
        return _Specialisation(
            classified,
            picked,
            places,
            sources,
            structure,
            arguments,
            self._made(arguments, index),
            copied,
            self._environment(classified, search, sources, structure),
        )

    def _check(self, records: Mapping[str, RecordArray], points: tuple[Points, Points]) -> None:
        """Refuse positions that no search can use."""
        places, sources = points
        target, source = records
        if places is not sources:
            places.check(f"{self.name}: {target!r}", self.search.world, self._reach)
        sources.check(f"{self.name}: {source!r}", self.search.world, self._reach)

    def _looks(self, points: tuple[Points, Points]) -> tuple[Look, ...]:
        """What `_check` asks of positions."""
        different = dict.fromkeys(p for p in points if p.count)  # targets may be the sources
        return tuple((p, p.bounds(self.search.world, self._reach)) for p in different)

    def _environment(
        self, arguments: Arguments, search: Search, sources: Points, structure: Structure
    ) -> dict[str, Any]:
        real = sources.precision.dtype.type
        values: dict[str, Any] = {count_of(n): len(r) for n, r in arguments.records.items()}
        values |= flatten_uniforms(self.signature, arguments.uniforms) | arguments.lengths
        values[RADIUS2] = radius2(search, sources.precision)
        if isinstance(search.world, Periodic):
            for axis, size in enumerate(search.world.size):
                values |= {period(axis): real(size), inverse_period(axis): real(1 / size)}
        return values | dict(structure.uniforms)

    def copied(self, arguments: Arguments) -> tuple[Leaf, ...]:
        """The leaves that the kernel reads of sources (and of targets that are the same array), the
        position first.
        """
        (target_name, target), (source_name, source) = arguments.records.items()
        names = [source_name, *([target_name] if are_same(target, source) else [])]
        return self._read(source, names)

    def _copied(self, arguments: Arguments, structure: Structure) -> dict[str, tuple[Leaf, ...]]:
        """What is read of the elements that are put in order, by parameter."""
        target_name, source_name = arguments.records
        copied: dict[str, tuple[Leaf, ...]] = {}
        if structure.order is not None:
            copied[source_name] = self.copied(arguments)
        if structure.target_order is not None:
            copied[target_name] = self._read(arguments.records[target_name], [target_name])
        return copied

    def _read(self, array: RecordArray, names: Sequence[str]) -> tuple[Leaf, ...]:
        """The leaves of an array that the function reads as one of these parameters, behind those
        of its position.
        """
        used, leaves = {p.name for p in self.lowered.function.parameters}, array.record.leaves
        place = [x for x in leaves if x.field == self.search.position]
        rest = (x for x in leaves if any(f"{n}.{x.name}" in used for n in names))
        return tuple(dict.fromkeys((*place, *rest)))

    def reference(
        self,
        arguments: Arguments,
        search: Search,
        structure: Structure,
        copied: tuple[Leaf, ...],
        index: Scalar,
    ) -> ir.Kernel:
        """The kernel before any decision about it. `copied`: what the sorted copy of the sources
        holds, if there is one.
        """
        sorted_source = {next(reversed(arguments.records)): copied} if copied else {}
        made = self._arguments(arguments, search, structure, sorted_source, index)
        return self._made(made, index)

    def elsewhere(self, arguments: Arguments, device: str) -> CallElsewhere:
        """What a call of these arguments, which lie on the host, runs on a device that need not be
        there.
        """
        s = self._specialisation(arguments, None)
        classified, index = replace(arguments, device=device), index_type(device)
        made = self._arguments(classified, s.picked.search, s.structure, s.copied, index)
        s = replace(s, classified=classified, arguments=made, reference=self._made(made, index))
        text = f"{s.structure.describe()} ({s.picked.why})"
        turns = s.structure.turns()
        tasks = partial(self._tasks, s)
        return CallElsewhere(s.reference, s.environment, turns, text, tasks)

    def _made(self, arguments: SearchArguments | TreeArguments, index: Scalar) -> ir.Kernel:
        if (arguments, index) not in self._reference:
            if isinstance(arguments, TreeArguments):
                assert self._far is not None
                made = self._far.walk(arguments, index)
            else:
                made = build_search(self.lowered, arguments, index)
            self._reference[arguments, index] = made
        return self._reference[arguments, index]

    def _arguments(
        self,
        arguments: Arguments,
        search: Search,
        structure: Structure,
        copied: Mapping[str, tuple[Leaf, ...]],
        index: Scalar,
    ) -> SearchArguments | TreeArguments:
        (target_name, target), (source_name, source) = arguments.records.items()
        identical, ordered = are_same(target, source), structure.order is not None
        sides = {n: Side(n, r.record.leaves, r.layout) for n, r in arguments.records.items()}
        for n, leaves in copied.items():
            sides[n] = Side(n, leaves, SoAoAS())
        if ordered and identical:
            sides[target_name] = Side(target_name, copied[source_name], SoAoAS())
        uniforms = tuple((n, value_type(self.signature.parameters[n])) for n in arguments.uniforms)
        place = tuple(x for x in source.record.leaves if x.field == search.position)
        parts = shared_elements(target, source) is not None
        if isinstance(structure, TreeStructure):
            both = sides[target_name], sides[source_name]
            order, leaf = structure.terms, structure.shape.leaf
            return TreeArguments(
                *both,
                uniforms,
                place,
                identical,
                order,
                leaf,
                parts=parts,
                estimated=structure.accuracy is not None,
            )
        assert isinstance(structure, Walked)
        return SearchArguments(
            sides[target_name],
            sides[source_name],
            uniforms,
            place,
            structure.walk(index),
            identical,
            ordered,
            search.radius is not None,
            isinstance(search.world, Periodic),
            search.k,
            tuple(self.signature.arrays.items()),
            parts,
        )

    def picked(self, arguments: Arguments) -> Picked:
        """The structure and the plan that a call gets, tuned or not, and why.

        Nothing is compiled.
        """
        target, source = arguments.records.values()
        sources = points_of(source, self.search.position)
        self._check(
            arguments.records,
            (
                sources if are_same(target, source) else points_of(target, self.search.position),
                sources,
            ),
        )
        return self._picker.pick(arguments, sources, None, None)

    def tuning_job(
        self, arguments: Arguments, plan: Plan | None, bind: Callable[..., Call]
    ) -> SearchJob:
        """What is measured for a call.

        Raises `ArgumentError` for a search that leaves no choice, and for arguments that do not
        fit.
        """
        from lanewise.tuning.compare import positive

        asked = plan or Plan()
        default = complete_search_plan(asked, arguments.device)

        @cache
        def sums() -> Searched:
            """Of the sizes of what is added."""
            sizes = replace(self.lowered, function=positive(self.lowered.function))
            return Searched(self.name, self.signature, sizes, self.search, self.kernel)

        return self._picker.tuning_job(
            arguments,
            asked,
            default,
            lambda choice: self.bind(arguments, None, asked, bind, choice),
            lambda choice: sums().bind(arguments, None, asked, bind, choice),
        )

    # ------------------------------------------------------------ making it run

    def _compile(
        self, s: _Specialisation, requested: Plan | None, bind: Callable[..., Call]
    ) -> Compiled:
        device = s.classified.device
        complete = complete_search_plan(s.picked.plan, device, s.reference.pattern)
        executable = self._programs.get(
            s.arguments, lambda: s.reference, complete, device, requested=requested
        )
        return Compiled(
            self.name,
            executable,
            bind,
            layouts_of(s.classified.records),
            s.environment,
            s.reference,
            self.kernel,
            self._tasks(s, executable, self._programs),
            f"{s.structure.describe()} ({s.picked.why})",
            s.picked.tuned,
            s.structure.turns,
            requested,
        )

    def _tasks(self, s: _Specialisation, kernel: Executable, programs: Programs) -> TaskList:
        """All that a call runs: what fills the structure, puts the sources in its order, tests
        indices, and walks.

        It keeps no array of a call.
        """
        device, tests = s.classified.device, s.classified.tests
        target, source = s.classified.records
        parts = s.structure.parts({POSITIONS: source, TARGET_POSITIONS: target}, device)
        buffers, walked = dict[str, Buffer](), dict[str, str]()
        for name, leaves in s.copied.items():
            order, copy = (ORDER, SORTED) if name == source else (TARGET_ORDER, TARGET_SORTED)
            gather = self._gather(s, name, s.classified.records[name], programs)
            parts.append(Renamed(gather, {ORDER: order, SORTED: copy}, {COUNT: count_of(name)}))
            walked[name] = copy
            if s.reference.identical:
                walked[target] = copy
            buffers[copy] = Buffer(
                copy,
                Role.TEMPORARY,
                SoAoAS().arrange(leaves),
                ir.Local(count_of(name), t.I64),
                what=f"the sorted copy of {name!r}",
            )
        if isinstance(s.structure, TreeStructure):
            assert self._far is not None
            assert isinstance(s.arguments, TreeArguments)
            moments = self._far.moments(programs, s.arguments, s.structure, device, walked)
            parts += moments
            buffers |= self._far.buffers(s.arguments)
        if tests is not None:
            parts += [
                Renamed(self._tests(s, programs), {RESULT: OUTSIDE, **walked}),
                examination(tests, device),
            ]
            buffers |= outside_buffer(ir.Local(count_of(next(iter(s.classified.records))), t.I64))
        parts.append(Renamed(kernel, walked) if walked else kernel)
        return TaskList(self.name, device, tuple(parts), buffers)

    def _tests(self, s: _Specialisation, programs: Programs) -> Executable:
        """The kernel that tests indices, which walks through the same structure."""
        tests, device = s.classified.tests, s.classified.device
        assert isinstance(tests, TableTests)
        assert isinstance(s.arguments, SearchArguments)  # functions over trees read no tables
        arguments = s.arguments
        function, index = tests.lowered, index_type(device)
        return programs.get(
            (arguments, tests.tested),
            lambda: smallest(build_search(function, arguments, index)),
            complete_plan(None, programs.machine(device), Work(SEARCH, 1)),
            device,
        )

    def _gather(
        self, s: _Specialisation, name: str, source: RecordArray, programs: Programs
    ) -> Executable:
        """What fills the sorted copy."""
        device, record, layout = s.classified.device, source.record, source.layout
        copied = s.copied[name]
        return programs.get(
            (name, record, layout, copied),
            lambda: build_gather(name, record.leaves, layout, copied, SoAoAS(), index_type(device)),
            complete_plan(None, programs.machine(device), Work(ELEMENTWISE, 1)),
            device,
        )


def _builds(structure: Structure) -> int:
    """How many launches of a call come before its walk."""
    return len(structure.tasks()) + len(_orders(structure))


def _orders(structure: Structure) -> list[tuple[Any, str]]:
    """The orders that a structure has, and their names."""
    orders = ((structure.order, ORDER), (structure.target_order, TARGET_ORDER))
    return [(order, name) for order, name in orders if order is not None]


@lru_cache
def complete_search_plan(
    requested: Plan | None, device: str, pattern: Pattern = SEARCH
) -> CompletePlan:
    """What the user requests, and defaults for a kernel over a walk, whatever its number of targets
    is.
    """
    return complete_plan(requested, machine_of(device), Work(pattern, 1))


def check_positions(signature: Signature, field: str) -> tuple[Scalar, int]:
    """The type of coordinates, and how many axes there are; raises `CompileError` with a caret.

    Both records have the field, with one type, a vector of two or three floats.
    """
    kinds: list[t.Vector] = []
    for argument in signature.source.tree.args.args[:2]:
        record = signature.parameters[argument.arg]
        assert isinstance(record, Record)
        position = record.field(field)
        if position is None:
            raise signature.source.error(
                f"{record.name} has no field {field!r}, which says where an element is",
                argument,
                found=str(record),
                wanted=f"{field}: lw.vec3, or lw.vec2, lw.dvec2, lw.dvec3",
                hint="position='place' of the search names another field",
            )
        if (
            not isinstance(position.type, t.Vector)
            or not position.type.element.is_float
            or position.type.length > 3
        ):
            raise signature.source.error(
                f"a search needs positions of two or three floats, and {record.name}.{field} is a "
                f"{position.type}",
                argument,
                found=f"{field}: {position.type}",
                wanted="lw.vec2, lw.vec3, lw.dvec2 or lw.dvec3",
            )
        kinds.append(position.type)
    if kinds[0] != kinds[1]:
        raise signature.source.error(
            "targets and sources of a search have positions of one type",
            signature.source.tree.args.args[1],
            found=f"{kinds[0]} and {kinds[1]}",
            wanted=f"{kinds[0]} in both records",
        )
    return kinds[0].element, kinds[0].length
