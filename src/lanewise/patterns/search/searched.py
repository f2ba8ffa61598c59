"""A call of a pairwise kernel over a search: rebuild the structure, gather the fields in its order, walk through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import Work
from lanewise.launch.arguments import Arguments, bind_value_array, flatten_uniforms, make_outputs
from lanewise.launch.compiled import Call, Compiled, Tunable
from lanewise.launch.executable import BoundArray, Executable, Launch
from lanewise.launch.support import bind_record, compile_kernel, index_type, layouts_of, machine_of, value_type
from lanewise.layouts import SoAoAS
from lanewise.patterns.elementwise.pattern import ELEMENTWISE
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.base import ORDER, RADIUS2, Search, Structure, radius2, reach
from lanewise.patterns.search.build import SearchArguments, Side, build_search, inverse_period, period
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.pattern import SEARCH
from lanewise.patterns.search.picker import Picked, SearchPicker
from lanewise.patterns.search.points import Points, points_of
from lanewise.patterns.search.tuning.lookup import Choice
from lanewise.patterns.search.worlds import Periodic
from lanewise.plan import Decisions, Plan
from lanewise.plans import complete_plan
from lanewise.record import Leaf, Record
from lanewise.runtime import cuda
from lanewise.runtime.memory import allocate
from lanewise.runtime.turns import Turns
from lanewise.types import Scalar

if TYPE_CHECKING:
    from lanewise.patterns.search.tuning.job import SearchJob


@dataclass(frozen=True, slots=True)
class SearchedLaunch:
    """The launches of one call: those of the structure, the gather of what the kernel reads, the kernel itself.

    The structure's memory is this call's own, and every call fills it anew: threads that share the call take turns.
    """

    structure: Structure
    parts: tuple[Callable[[], object], ...]
    turns: Turns

    def __call__(self) -> None:
        with self.turns:
            for part in self.parts:
                part()


def structure_of(call: Call) -> Structure:
    """The structure of a bound call over a search. Raises `ArgumentError` for a call over all pairs, which has none."""
    launch: Any = call.launch
    if not isinstance(launch, SearchedLaunch):
        raise ArgumentError(f"{call.compiled.name} runs over all pairs: it has no search structure")
    return launch.structure


@dataclass(frozen=True, slots=True)
class _Specialisation:
    """A call that is ready to be compiled."""

    given: Arguments
    picked: Picked
    sources: Points
    structure: Structure
    arguments: SearchArguments
    naive: ir.Kernel
    copied: tuple[Leaf, ...]  # what the sorted copy holds; nothing where sources stay in their own order
    environment: dict[str, Any]


class Searched:
    """What a pairwise kernel over a search compiles and binds. Compiled kernels are kept; each bound call has a structure of its own."""

    def __init__(self, name: str, signature: Signature, lowered: Lowered, search: Search, kernel: Tunable) -> None:
        self.name, self.signature, self.lowered, self.search, self.kernel = name, signature, lowered, search, kernel
        self._compiled: dict[Any, Executable] = {}
        self._naive: dict[
            tuple[SearchArguments, Scalar], ir.Kernel
        ] = {}  # by what they are specialised to: quicker than by themselves
        self._picker = SearchPicker(name, search, self.naive)
        check_positions(signature, search.position)

    def compile(self, given: Arguments, plan: Plan | None, bind: Callable[..., Call]) -> Compiled:
        """The kernel for these arguments, without running it."""
        return self._compile(self._specialisation(given, plan), plan, bind)

    def bind(
        self, given: Arguments, out: Any, plan: Plan | None, bind: Callable[..., Call], choice: Choice | None = None
    ) -> Call:
        """A call with its structure and its memory. `choice`: instead of what is asked for, or was tuned."""
        s = self._specialisation(given, plan, choice)
        compiled = self._compile(s, plan, bind)
        target, source = given.records.values()
        named = result_arrays(self.lowered)
        results = make_outputs(self.name, [kind for _, kind in named], len(target), given.device, out)
        bound = {n: bind_record(r) for n, r in given.records.items()}
        parts: list[Callable[[], object]] = [*s.structure.launches()]
        if s.structure.order is not None:
            order = bind_value_array(s.structure.order, t.I32)
            bound[ORDER] = order
            copy, gather = self._gather(s, next(reversed(given.records)), source, order)
            parts.append(gather)
            bound |= dict.fromkeys(given.records if s.naive.identical else [next(reversed(given.records))], copy)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named, results, strict=True)}
        bound |= s.structure.arrays
        used = {a.name for a in s.naive.arrays}
        parts.append(compiled.executable.prepare({n: b for n, b in bound.items() if n in used}, s.environment))
        turns = cuda.turns(f"a bound call of {self.name}", given.device)
        return Call(SearchedLaunch(s.structure, tuple(parts), turns), tuple(results), compiled)

    # ------------------------------------------------------------ what a call is

    def _specialisation(self, given: Arguments, wanted: Plan | None, choice: Choice | None = None) -> _Specialisation:
        target, source = given.records.values()
        places, sources = (points_of(r, self.search.position) for r in (target, source))
        identical = target.data is source.data
        for name, points in list(zip(given.records, (places, sources), strict=True))[int(identical) :]:
            furthest = reach(self.search, points.precision, points.dimension)
            points.check(f"{self.name}: {name!r}", self.search.world, furthest)
        picked = self._picker.pick(given, sources, wanted, choice)
        search, structure = picked.search, picked.search.make(sources)
        copied = self.copied(given) if structure.order is not None else ()
        index = index_type(given.device)
        arguments = self._arguments(given, search, structure, copied, index)
        return _Specialisation(
            given, picked, sources, structure, arguments, self._made(arguments, index), copied,
            self._environment(given, search, sources, structure),
        )  # fmt: skip

    def _environment(self, given: Arguments, search: Search, sources: Points, structure: Structure) -> dict[str, Any]:
        real = sources.precision.dtype.type
        values: dict[str, Any] = {count_of(n): len(r) for n, r in given.records.items()}
        values |= flatten_uniforms(self.signature, given.uniforms)
        values[RADIUS2] = radius2(search, sources.precision)
        if isinstance(search.world, Periodic):
            for axis, size in enumerate(search.world.size):
                values |= {period(axis): real(size), inverse_period(axis): real(1 / size)}
        return values | dict(structure.uniforms)

    def copied(self, given: Arguments) -> tuple[Leaf, ...]:
        """The leaves that the kernel reads of sources (and of targets that are the same array), the position first."""
        (target_name, target), (source_name, source) = given.records.items()
        used = {p.name for p in self.lowered.function.parameters}
        names = [source_name, *([target_name] if target.data is source.data else [])]
        place = [x for x in source.record.leaves if x.field == self.search.position]
        return (*place, *(
            x for x in source.record.leaves if x not in place and any(f"{n}.{x.name}" in used for n in names)
        ))  # fmt: skip

    def naive(
        self, given: Arguments, search: Search, structure: Structure, copied: tuple[Leaf, ...], index: Scalar
    ) -> ir.Kernel:
        """The kernel before any decision about it. `copied`: what the sorted copy of the sources holds, if there is one."""
        return self._made(self._arguments(given, search, structure, copied, index), index)

    def _made(self, arguments: SearchArguments, index: Scalar) -> ir.Kernel:
        if (arguments, index) not in self._naive:
            self._naive[arguments, index] = build_search(self.lowered, arguments, index)
        return self._naive[arguments, index]

    def _arguments(
        self, given: Arguments, search: Search, structure: Structure, copied: tuple[Leaf, ...], index: Scalar
    ) -> SearchArguments:
        (target_name, target), (source_name, source) = given.records.items()
        identical, ordered = target.data is source.data, structure.order is not None
        sides = {n: Side(n, r.record.leaves, r.layout) for n, r in given.records.items()}
        if ordered:
            sides[source_name] = Side(source_name, copied, SoAoAS())
            if identical:
                sides[target_name] = Side(target_name, copied, SoAoAS())
        return SearchArguments(
            sides[target_name], sides[source_name],
            tuple((n, value_type(self.signature.parameters[n])) for n in given.uniforms),
            tuple(x for x in source.record.leaves if x.field == search.position),
            structure.walk(index), identical, ordered, search.radius is not None, isinstance(search.world, Periodic), search.k,
        )  # fmt: skip

    def tuning_job(self, given: Arguments, plan: Plan | None, bind: Callable[..., Call]) -> SearchJob:
        """What is measured for a call. Raises `ArgumentError` for a search that leaves no choice, and for arguments that do not fit."""
        wanted = plan or Plan()
        default = complete_search_plan(wanted, given.device, len(next(iter(given.records.values()))))
        return self._picker.tuning_job(
            given, wanted, default, lambda choice: self.bind(given, None, wanted, bind, choice)
        )

    # ------------------------------------------------------------ making it run

    def _compile(self, s: _Specialisation, wanted: Plan | None, bind: Callable[..., Call]) -> Compiled:
        device = s.given.device
        complete = complete_search_plan(s.picked.plan, device, len(next(iter(s.given.records.values()))))
        key = (s.arguments, complete, device)
        if key not in self._compiled:
            self._compiled[key] = compile_kernel(s.naive, complete, device, wanted=wanted)
        return Compiled(
            self.name,
            self._compiled[key],
            bind,
            layouts_of(s.given.records),
            s.environment,
            s.naive,
            self.kernel,
            f"{s.structure.describe()} ({s.picked.why})",
            s.picked.tuned,
        )

    def _gather(
        self, s: _Specialisation, name: str, source: RecordArray, order: BoundArray
    ) -> tuple[BoundArray, Launch]:
        """The sorted copy, and the launch that fills it."""
        device, arrangement = s.given.device, SoAoAS().arrange(s.copied)
        key = (name, source.record, source.layout, s.copied, device)
        if key not in self._compiled:
            naive = build_gather(name, source.record.leaves, source.layout, s.copied, SoAoAS(), index_type(device))
            plan = complete_plan(None, machine_of(device), Work(ELEMENTWISE, len(source)))
            self._compiled[key] = compile_kernel(naive, plan, device)
        nbytes = arrangement.nbytes(len(source))
        copy = BoundArray(allocate(device, nbytes, f"the sorted copy of {name!r}"), arrangement, len(source))
        arrays = {name: bind_record(source), ORDER: order, SORTED: copy}
        return copy, self._compiled[key].prepare(arrays, {COUNT: len(source)})


def complete_search_plan(wanted: Plan | None, device: str, targets: int) -> Decisions:
    """What the user wishes, and defaults for a kernel over a walk."""
    return complete_plan(wanted, machine_of(device), Work(SEARCH, targets))


def check_positions(signature: Signature, field: str) -> None:
    """Both records have the field, with one type, a vector of two or three floats; raises `CompileError` with a caret."""
    kinds: list[t.ValueType] = []
    for argument in signature.source.tree.args.args[:2]:
        record = signature.parameters[argument.arg]
        assert isinstance(record, Record)
        found = record.field(field)
        if found is None:
            raise signature.source.error(
                f"{record.name} has no field {field!r}, which says where an element is", argument, found=str(record),
                wanted=f"{field}: lw.vec3, or lw.vec2, lw.dvec2, lw.dvec3",
                hint="position='place' of the search names another field",
            )  # fmt: skip
        if not isinstance(found.type, t.Vector) or not found.type.element.is_float or found.type.length > 3:
            raise signature.source.error(
                f"a search needs positions of two or three floats, and {record.name}.{field} is a {found.type}", argument,
                found=f"{field}: {found.type}", wanted="lw.vec2, lw.vec3, lw.dvec2 or lw.dvec3",
            )  # fmt: skip
        kinds.append(found.type)
    if kinds[0] != kinds[1]:
        raise signature.source.error(
            "targets and sources of a search have positions of one type", signature.source.tree.args.args[1],
            found=f"{kinds[0]} and {kinds[1]}", wanted=f"{kinds[0]} in both records",
        )  # fmt: skip
