"""A call of a pairwise kernel over a search: rebuild the structure, gather the fields in its order,
walk through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from lanewise.frontend.function import Lowered
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.launch.arguments import Arguments, bind_value_array, make_outputs
from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.programs import Programs
from lanewise.launch.repeatable import Repeatable
from lanewise.launch.repeated import Repeated
from lanewise.launch.result_memory import check_results
from lanewise.launch.shaped_arrays import writable_checks
from lanewise.launch.sized import Result, require_for_call
from lanewise.launch.slots import Given
from lanewise.launch.support import Uses, bind_record, layouts_of, uses_of
from lanewise.patterns.call_tasks import checked
from lanewise.patterns.results import result_arrays
from lanewise.patterns.search.any_size import AnySize
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.checked_positions import Places, moved_since
from lanewise.patterns.search.elsewhere import CallElsewhere
from lanewise.patterns.search.own_fields import own_fields
from lanewise.patterns.search.picker import Picked
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.repeated import Kept, RepeatedSearches
from lanewise.patterns.search.search_tasks import complete_search_plan, tasks_of_search
from lanewise.patterns.search.searched_launch import SearchedLaunch, builds_of, orders_of
from lanewise.patterns.search.specialised import Specialised, Specialiser
from lanewise.patterns.search.tree.choice import TreeChoice
from lanewise.patterns.search.tree.compared import Comparison, rows
from lanewise.patterns.search.tree.tail import calibrated_by
from lanewise.patterns.search.tree.ways import GROUP_WALK
from lanewise.patterns.search.tuning.job import Choice
from lanewise.patterns.search.watched import Unsound
from lanewise.patterns.tables.ranges import proved_with_values
from lanewise.planning.plan import Plan
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import layout_reasons
from lanewise.records.same_elements import are_same, copied_part
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import on

if TYPE_CHECKING:
    from lanewise.patterns.calls import Calls
    from lanewise.patterns.search.tuning.calibration import CalibrationJob
    from lanewise.patterns.search.tuning.job import SearchJob


class Searched:
    """What a pairwise kernel over a search compiles and binds. Compiled kernels are kept; each
    bound call has its own structure.
    """

    def __init__(self, calls: Calls, search: Search, lowered: Lowered | None = None) -> None:
        """calls: of the same function over all pairs, with which those over a tree are compared.
        lowered: instead of that function.
        """
        self.name, self.signature, self.kernel = calls.name, calls.signature, calls.kernel
        self.lowered = calls.lowered if lowered is None else lowered
        self._calls = calls
        self.specialiser = Specialiser(self.name, self.signature, self.lowered, search, self.forget)
        self.search, self._picker = self.specialiser.search, self.specialiser.picker
        self._positions, self.programs = self.specialiser.positions, Programs()
        far = self.specialiser.far
        self.comparison = None if far is None else Comparison(self.signature, far, self._every)
        self._repeated = RepeatedSearches()
        self._kinds = Repeated[AnySize]()
        kinds = self.signature.parameters.items()
        self._records = [n for n, kind in kinds if isinstance(kind, Record)]

    def _every(self, arguments: Arguments, targets: slice) -> tuple[Any, ...]:
        """The results of some targets over all pairs, with sums in float64."""
        target, source = arguments.records.values()
        given = self._calls.subject.given(
            (copied_part(target, targets), source), arguments.uniforms
        )
        call = self._calls.bind(given, None, Plan(accumulate="f64"))
        call.launch()
        return call.results

    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        """Compile the kernel for these arguments, without running it."""
        return self._compile(self.specialiser.specialise(arguments, plan), plan)

    def call(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any
    ) -> tuple[Any, ...]:
        """Run with the default or the tuned plan; the results."""
        self._calls.made += 1
        points: Places | None = None
        repeatable = out is None or not self.signature.arrays
        settles = self._calls.settles
        match = self._repeated.find(arguments, named, settles) if repeatable else None
        if match is not None and self._is_new(*match):
            self._repeated.discard(match[0])
            match = None
        if match is not None:
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
            self._positions.check(records, points)
            calibrates = self._picker.calibrates
            pick = None
            if calibrates or self._picker.looks(points[1]):
                pick = partial(self._pick_again, records, points[1], matched.values)
            if kept.fits(points[1], pick, by_values=calibrates):
                return kept.call.run(matched, out)
            self._repeated.discard(kept)
        elif repeatable and (found := self._of_any_size(arguments, named)) is not None:
            return found[0].run(found[1], out)
        classified = self._calls.given(arguments, named)
        if points is not None and moved_since(classified.records, points):
            points = None
        with on(classified.device):
            s = self.specialiser.specialise(classified, None, points=points)
            call = self.bound(s, out, None, once=True)
        if not proved_with_values(self.lowered, self.signature):
            self._remember(arguments, named, s, call)
            self._remember_kind(arguments, named, s)
        with on(classified.device):
            call.launch()
        if self.comparison is not None:
            self.comparison.compare(classified, (s.places, s.sources), call.results)
        return call.results

    def _of_any_size(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[Repeatable, Given] | None:
        """A call of a kind that was there before, on other arrays, ready to run; None for one that
        is bound.
        """
        if (found := self._kinds.find(arguments, named, self._calls.settles)) is None:
            return None
        kind, matched = found
        arrays = matched.complete()
        records = {n: arrays[n] for n in self._records}
        points = self._positions.of(records)
        if self.comparison is not None and not self.comparison.knows(points, matched.values):
            return None
        if self._repeated.recurs(records):
            return None
        return (kind.call, matched) if kind.ready(matched, records, points) else None

    def _remember_kind(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], s: Specialised
    ) -> None:
        """Keep what calls of any size have in common."""
        if self._kinds.knows(arguments, named):
            return
        made = result_arrays(self.lowered)
        kind = AnySize.of(
            self.signature,
            arguments,
            named,
            s.classified,
            self._uses(s.classified),
            self.specialiser,
            lambda s: self._compile(s, None).tasks,
            lambda count: [Result(n, kind, count) for n, kind in made],
        )
        if kind is not None:
            self._kinds.keep(kind)

    def _is_new(self, kept: Kept, matched: Given) -> bool:
        """Whether no call over a tree with such values was compared with all pairs."""
        points = (kept.places, kept.sources)
        return self.comparison is not None and not self.comparison.knows(points, matched.values)

    def _remember(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], s: Specialised, call: Call
    ) -> None:
        """Keep a call for those like it."""
        launch: Any = call.launch
        count, points = len(next(iter(s.classified.records.values()))), (s.places, s.sources)
        records, fixed = s.classified.records, s.structure.settled
        looks = fixed and not self._picker.looks(s.sources) and not self._picker.calibrates
        self._repeated.remember(
            self.signature,
            arguments,
            named,
            s.classified,
            launch,
            [Result(n, kind, count) for n, kind in result_arrays(self.lowered)],
            points,
            s.picked,
            self._positions.looks(records, points) if looks else (),
            self._uses(s.classified),
            call.compiled.tasks.memory(call.compiled.environment),
        )

    def forget(self) -> None:
        """Make every call anew: another structure or plan was found to be faster."""
        self._repeated.forget()
        self._kinds.forget()
        if self.comparison is not None:
            self.comparison.forget()

    def _uses(self, arguments: Arguments) -> dict[str, Uses]:
        """What the function and the search use of each record, by parameter: each has its own,
        also where one array is both targets and sources.
        """
        return {n: self.uses(n, r.record) for n, r in arguments.records.items()}

    def uses(self, name: str, record: Record) -> Uses:
        """What the function and the search use of one of the two records."""
        fields = own_fields(self.search, target=name == self._records[0])
        return uses_of(self.lowered, name, record).and_reads(record, fields)

    def _pick_again(
        self, records: dict[str, RecordArray], sources: Points, values: Mapping[str, Any]
    ) -> Picked:
        again = Arguments(records=records, device=sources.device)
        return self._picker.pick(again, sources, None, None, values)

    def bind(
        self,
        arguments: Arguments,
        out: Any,
        plan: Plan | None,
        choice: Choice | TreeChoice | None = None,
    ) -> Call:
        """A call with its structure and its memory. `choice`: instead of what is requested, or was
        tuned.
        """
        with on(arguments.device):
            s = self.specialiser.specialise(arguments, plan, choice)
            call = self.bound(s, out, plan)
        if choice is None and self.comparison is not None:
            places = s.places, s.sources
            self.comparison.compare_bound(s.classified, places, call, own=out is None)
        launch: Any = call.launch
        chosen = choice is None and self._picker.looks(s.sources)
        if isinstance(launch, SearchedLaunch) and (chosen or not s.structure.settled):
            return replace(call, launch=self._following(s, launch, call.results, plan))
        return call

    def _following(
        self,
        s: Specialised,
        launch: SearchedLaunch,
        results: tuple[Any, ...],
        plan: Plan | None,
    ) -> SearchedLaunch:
        """The launch, which knows that of a plain call on the elements where they are by then."""

        def follow() -> SearchedLaunch | None:
            with on(s.classified.device):
                points = s.sources.again()
                both = (points if s.places is s.sources else s.places.again(), points)
                self._positions.check(s.classified.records, both)
                if self._picker.looks(points):
                    picked = self._picker.pick(s.classified, points, plan, None)
                    fits = (picked.search, picked.plan) == (s.picked.search, s.picked.plan)
                else:
                    fits = True
                if fits and s.structure.fits(points):
                    return None
                again = self.specialiser.specialise(s.classified, plan, None, points=both)
                bound: Any = self.bound(again, results, plan).launch
                return self._following(again, bound, results, plan)

        return replace(launch, follow=follow)

    def bound(
        self,
        s: Specialised,
        out: Any,
        plan: Plan | None,
        once: bool = False,
        count: int | None = None,
    ) -> Call:
        """once: it runs now, and its positions were looked at just now. count: of results, where
        these are not those of all targets.
        """
        classified, compiled = s.classified, self._compile(s, plan)
        count = len(next(iter(classified.records.values()))) if count is None else count
        named = result_arrays(self.lowered)
        made = [Result(n, kind, count) for n, kind in named] if out is None else []
        kinds = [kind for _, kind in named]
        needs = [*s.structure.memory, *compiled.tasks.needs(s.environment)]
        if self.comparison is not None:
            needs += self.comparison.needs(classified, (s.places, s.sources), kinds)
        require_for_call(self.name, classified.device, made, needs)
        results = make_outputs(self.name, kinds, count, classified.device, out)
        uses = self._uses(classified)
        if out is not None:
            tables = {n: classified.added[n][0] for n in self.signature.arrays}
            check_results(self.name, results, classified.records, uses, shaped=tables)
        bound = {n: bind_record(r, uses[n]) for n, r in classified.records.items()}
        for name, order in orders_of(s.structure):
            bound[name] = bind_value_array(order, t.I32)
        bound |= {n: bind_value_array(a, kind) for (n, kind), a in zip(named, results, strict=True)}
        bound |= {**s.structure.arrays, **s.structure.clean}
        bound |= {n: bind_value_array(a, kind) for n, (a, kind) in classified.added.items()}
        lease = get_device(classified.device).lease(f"a bound call of {self.name}")
        launches = compiled.tasks.bound(bound, s.environment, lease)
        orders = len(s.structure.tasks()) if s.structure.every > 1 else 0
        launch = SearchedLaunch(s.structure, launches, builds_of(s.structure), orders=orders)
        if once:
            return Call(launch, tuple(results), compiled)
        guards = self._positions.guards(classified.records, (s.places, s.sources))
        asked = writable_checks(f"{self.name}: out", *results) if out is not None else ()
        return Call(
            launch.guarded(classified.device, guards),
            tuple(results),
            compiled,
            asked=asked,
        )

    def elsewhere(self, arguments: Arguments, device: str, *, recalled: bool) -> CallElsewhere:
        """What a call of these arguments, which lie on the host, runs on a device that need not be
        there. recalled: it is there, and what tune() found on it counts.
        """
        s = self.specialiser.elsewhere(arguments, device, recalled=recalled)
        tasks, picked = partial(tasks_of_search, self.name, s), s.picked
        pattern = s.reference.pattern
        same = s.reference.identical
        plan = (
            complete_search_plan(picked.plan, device, pattern, identical=same)
            if picked.tuned
            else None
        )
        turns = s.structure.turns()
        return CallElsewhere(s.reference, s.environment, turns, s.described, tasks, plan)

    def picked(self, arguments: Arguments) -> Picked:
        """The structure and the plan that a call gets, tuned or not, and why.

        Nothing is compiled.
        """
        _, sources = self._positions.of(arguments.records)
        return self._picker.pick(arguments, sources, None, None)

    def tuning_job(self, arguments: Arguments, plan: Plan | None) -> SearchJob:
        """What is measured for a call.

        Raises `ArgumentError` for a search that leaves no choice, and for arguments that do not
        fit.
        """
        from lanewise.tuning.compare import positive

        asked = plan or Plan()
        same = are_same(*arguments.records.values())
        default = complete_search_plan(asked, arguments.device, identical=same)

        @cache
        def sums() -> Searched:
            """Of the sizes of what is added."""
            sizes = replace(self.lowered, function=positive(self.lowered.function))
            return Searched(self._calls, self.search, sizes)

        return self._picker.tuning_job(
            arguments,
            asked,
            default,
            lambda choice: self.bind(arguments, None, asked, choice),
            lambda choice: sums().bind(arguments, None, asked, choice),
        )

    def calibration_job(self, arguments: Arguments, plan: Plan | None) -> CalibrationJob:
        """What is measured to keep the accuracy of a tree."""
        far, asked = self.specialiser.far, plan or Plan()
        assert far is not None
        target, source = arguments.records.values()
        some = calibrated_by(len(target), len(source))
        return self._picker.calibration_job(
            arguments,
            far,
            complete_search_plan(asked, arguments.device, GROUP_WALK),
            lambda choice: self.bind(arguments, None, asked, choice),
            some,
            lambda: [rows(r) for r in self._every(arguments, some)],
        )

    def _compile(self, s: Specialised, requested: Plan | None) -> Compiled:
        device = s.classified.device
        complete = complete_search_plan(
            s.picked.plan, device, s.reference.pattern, identical=s.reference.identical
        )
        executable = self.programs.get(
            s.arguments, lambda: s.reference, complete, device, requested=requested
        )
        return Compiled(
            self.name,
            executable,
            partial(self._calls.bound_by, plan=requested),
            layouts_of(s.classified.records),
            s.environment,
            s.reference,
            self.kernel,
            checked(tasks_of_search(self.name, s, executable, self.programs), s.classified),
            s.described,
            s.picked.tuned,
            s.structure.turns,
            requested,
            layout_reasons=layout_reasons(s.classified.records),
        )
