"""Which structure a call over a search gets: the one requested, the one that tune() found, or the
automatic choice.

What tune() measured for one call is used for every call of its kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.language.target import is_compiled
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call
from lanewise.launch.support import index_type, layouts_of
from lanewise.launch.tuned_plans import Key, Recalled, has_entries, make_key, size_class
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.automatic import FEW, Nearest, Neighbors, Outlook, choose, look
from lanewise.patterns.search.base import Search, reach
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.search.points import Points, extent_of, points_of
from lanewise.patterns.search.tree.call import FarFields
from lanewise.patterns.search.tree.choice import (
    Calibrated,
    CalibratedTrees,
    TreeChoice,
    kind_of_tree,
    sizes_of,
)
from lanewise.patterns.search.tree.search import Tree
from lanewise.patterns.search.tuning.job import Choice, Tuned, tuned_of
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.same_elements import are_same, shared_elements
from lanewise.support.errors import ArgumentError

if TYPE_CHECKING:
    from lanewise.patterns.search.tuning.calibration import CalibrationJob
    from lanewise.patterns.search.tuning.job import SearchJob


@dataclass(frozen=True, slots=True)
class Picked:
    """The concrete search of a call, and why it is that one; the fields of the plan that are
    decided; whether they were tuned.
    """

    search: Search
    why: str
    plan: Plan | None
    tuned: bool = False


class SearchPicker:
    """Picks the structures of one kernel's calls.

    reference: makes its kernel over any structure (`Specialiser.reference`). flat: the values of a
    call by their names in the IR. adopted: called when later calls get what was tuned.
    """

    def __init__(
        self,
        name: str,
        search: Search,
        reference: Callable[..., ir.Kernel],
        flat: Callable[[Mapping[str, Any]], dict[str, Any]],
        adopted: Callable[[], None],
    ) -> None:
        self._name, self._search, self._reference, self._adopted = name, search, reference, adopted
        self._flat = flat
        self._tuned, self._calibrated = Recalled(tuned_of), CalibratedTrees()
        self._tunings = 0

    def looks(self, sources: Points) -> bool:
        """Whether the choice depends on where the sources are."""
        return isinstance(self._search, Neighbors | Nearest) and sources.count > FEW

    @property
    def calibrates(self) -> bool:
        """Whether calls get trees that follow from their values and from where elements are."""
        asked = self._search
        return isinstance(asked, Tree) and asked.accuracy is not None and has_entries(self._name)

    def _adopt(self, specialisation: Hashable, tuned: Tuned) -> None:
        self._tunings += 1  # also where the store cannot be written
        self._tuned.adopt(specialisation, tuned)
        self._adopted()

    def pick(
        self,
        arguments: Arguments,
        sources: Points,
        requested: Plan | None,
        choice: Choice | TreeChoice | None,
        values: Mapping[str, Any] | None = None,
        *,
        recalled: bool = True,
    ) -> Picked:
        """The structure for these sources; `choice`: the one that is measured; values: by their
        names in the IR, where arguments have none; recalled: that which tune() found, if it did.
        """
        recalled = recalled and not arguments.divided
        if not all(map(len, arguments.records.values())):
            return Picked(
                over_all_pairs(self._search),
                "an array without elements has nothing to sort",
                requested,
            )
        if isinstance(choice, TreeChoice):
            assert isinstance(self._search, Tree)
            return Picked(choice.search(self._search), "measured", requested)
        if choice is not None:
            return Picked(
                choice.configuration.search(self._search, sources), "measured", choice.plan
            )
        if isinstance(self._search, Tree):
            return self._tree(
                self._search, arguments, sources, requested, values, recalled=recalled
            )
        if not isinstance(self._search, Neighbors | Nearest):
            return self._named(self._search, arguments, sources, requested, recalled=recalled)
        outlook = look(self._search, sources) if sources.count > FEW else None
        kind = kind_of_call(self._search, sources, outlook)
        tuned = self._find(arguments, sources, kind, requested) if recalled else None
        if tuned is None:
            chosen = choose(self._search, sources, outlook, arguments.device)
            return Picked(*chosen, requested)
        return Picked(
            tuned.choice.configuration.search(self._search, sources),
            tuned.why,
            tuned.choice.plan,
            tuned=True,
        )

    def _find(
        self, arguments: Arguments, sources: Points, kind: str, requested: Plan | None
    ) -> Tuned | None:
        """What was tuned for calls of a kind."""
        return self._tuned.find(
            arguments.device,
            _specialisation(arguments, kind, requested),
            lambda: self._key(arguments, sources, kind, requested),
        )

    def _named(
        self, asked: Search, arguments: Arguments, sources: Points, requested: Plan | None,
        *, recalled: bool,
    ) -> Picked:  # fmt: skip
        """The structure that was requested, with the plan that was tuned for it."""
        search, tuned = asked.plan(sources), None
        if recalled and (self._tunings or has_entries(self._name)):
            tuned = self._find(arguments, sources, kind_of_requested(asked), requested)
        if tuned is None:
            return Picked(search, "requested", requested)
        return Picked(search, f"requested; {tuned.why}", tuned.choice.plan, tuned=True)

    def _tree(
        self, asked: Tree, arguments: Arguments, sources: Points, requested: Plan | None,
        values: Mapping[str, Any] | None, *, recalled: bool,
    ) -> Picked:  # fmt: skip
        """The tree that was requested; with an accuracy the one that was calibrated."""
        if asked.accuracy is None:
            return Picked(asked.plan(sources), "requested", requested)
        if recalled and is_compiled(arguments.device) and has_entries(self._name):
            kind, specialisation = self._kind_of_tree(asked, arguments, sources, values)
            found = self._calibrated.find(
                specialisation, lambda: self._key(arguments, sources, kind, None)
            )
            if found is not None:
                return Picked(found.choice.search(asked), found.why, requested, tuned=True)
        why = (
            f"requested; 99 % of results within {asked.accuracy:g} predicted, not measured: tune() "
            "measures and chooses"
        )
        return Picked(asked.plan(sources), why, requested)

    def _kind_of_tree(
        self, asked: Tree, arguments: Arguments, sources: Points,
        values: Mapping[str, Any] | None = None,
    ) -> tuple[str, tuple[Any, ...]]:  # fmt: skip
        """What decides the tree of a call: the function (in the key) with its values, and where
        sources are; targets that are other elements as well.
        """
        flat = self._flat(arguments.uniforms) if values is None else values
        target, source = arguments.records.values()
        places = [crowding_of(sources)]
        if not are_same(target, source):
            places.append(crowding_of(points_of(target, asked.position)))
        sizes = {n: sizes_of(v) for n, v in flat.items()}
        kind = kind_of_tree(asked, sources.dimension, sizes, places)
        return kind, _specialisation(arguments, kind, None)

    def calibration_job(
        self,
        arguments: Arguments,
        far: FarFields,
        plan: CompletePlan,
        bind: Callable[[TreeChoice], Call],
        some: slice,
        wanted: Callable[[], list[Any]],
    ) -> CalibrationJob:
        """What is measured of calls over a tree with an accuracy. far: their kernels; wanted:
        results of all pairs for the targets `some`.
        """
        from lanewise.patterns.search.tuning.calibration import CalibrationJob
        from lanewise.tuning.job import check_tunable

        asked = self._search
        assert isinstance(asked, Tree)
        counts = {n: len(r) for n, r in arguments.records.items()}
        check_tunable(self._name, arguments.device, counts)
        target, source = arguments.records.values()
        sources = points_of(source, asked.position)
        kind, specialisation = self._kind_of_tree(asked, arguments, sources)

        def adopt(calibrated: Calibrated) -> None:
            self._calibrated.adopt(specialisation, calibrated)
            self._adopted()

        return CalibrationJob(
            self._name,
            arguments.device,
            asked,
            sources.precision,
            counts,
            far.takes_pairs and are_same(target, source),
            plan,
            self._key(arguments, sources, kind, None),
            bind,
            some,
            wanted,
            adopt,
        )

    def tuning_job(
        self,
        arguments: Arguments,
        requested: Plan,
        default: CompletePlan,
        bind: Callable[[Choice], Call],
        magnitudes: Callable[[Choice], Call],
    ) -> SearchJob:
        """What is measured for a call; `default`: the complete plan, `bind`: makes a call of a
        choice, `magnitudes`: of what it adds.
        """
        from lanewise.patterns.search.tuning.job import SearchJob
        from lanewise.tuning.job import check_tunable

        if isinstance(self._search, Tree):
            raise ArgumentError(
                f"{self._name} runs over {self._search.describe()}, which was requested and leaves "
                "nothing to choose; wanted a tree with an accuracy, lw.Tree(accuracy=1e-3) "
                "(lanewise tune: --accuracy 1e-3), for which trees are measured, or all pairs, "
                "for which plans are"
            )
        counts = {n: len(r) for n, r in arguments.records.items()}
        check_tunable(self._name, arguments.device, counts)
        source_name, source = next(reversed(arguments.records.items()))
        sources = points_of(source, self._search.position)
        furthest = reach(self._search, sources.precision, sources.dimension)
        sources.check(f"{self._name}: {source_name!r}", self._search.world, furthest)
        if isinstance(self._search, Neighbors | Nearest):
            outlook = look(self._search, sources) if sources.count > FEW else None
            kind = kind_of_call(self._search, sources, outlook)
        else:
            kind = kind_of_requested(self._search)
        specialisation = _specialisation(arguments, kind, requested)
        return SearchJob(
            self._name,
            arguments.device,
            self._search,
            sources,
            counts,
            requested,
            default,
            self._key(arguments, sources, kind, requested),
            bind,
            magnitudes,
            partial(self._adopt, specialisation),
        )

    def _key(self, arguments: Arguments, sources: Points, kind: str, requested: Plan | None) -> Key:
        """The function is known by its kernel over all sources: that of no structure that might be
        chosen.
        """
        s, (target, source) = self._search, arguments.records.values()
        every = over_all_pairs(s)
        reference = self._reference(
            arguments, every, every.make(sources), (), index_type(arguments.device)
        )
        identical, work = are_same(target, source), Work(SEARCH, len(target))
        key = make_key(
            reference,
            layouts_of(arguments.records),
            arguments.device,
            work,
            len(source),
            requested or Plan(),
            identical,
        )
        return replace(key, search=kind)


def over_all_pairs(search: Search) -> AllPairs:
    """The same search, through every source."""
    return AllPairs(radius=search.radius, k=search.k, world=search.world, position=search.position)


def _specialisation(arguments: Arguments, kind: str, requested: Plan | None) -> tuple[Any, ...]:
    """What of a call decides what was tuned for it, in a form that is quickly made."""
    target, source = arguments.records.values()
    sizes = (size_class(len(target)), size_class(len(source)))
    pair = (are_same(target, source), shared_elements(target, source) is not None)
    return (target.layout, source.layout, pair, arguments.device, sizes, kind, requested or Plan())


def crowding_of(points: Points) -> str:
    """How crowded elements are, and how far they reach, both to a power of four: an expansion
    converges alike for all that are alike in these.
    """
    reach = f"4^{points.once('extent', extent_of)} wide"
    if points.count <= FEW:
        return f"few, {reach}"
    members = look(Nearest(k=1), points).members
    return f"{4 ** round(math.log(members, 4)):,} in a cell, {reach}"


def kind_of_requested(search: Search) -> str:
    """The same of a search that names its structure, of which plans alone are measured."""
    return f"requested: {search!r}"


def kind_of_call(requested: Search, points: Points, outlook: Outlook | None) -> str:
    """What of a search decides which structure is best, besides numbers of elements: calls with
    equal texts are of one kind.

    How crowded cells are counts in powers of four, and how wide they are in powers of two: a sample
    tells no more, and a flock that moves stays of one kind for long. outlook: of the sources; None
    for few of them, which no search visits.
    """
    which = "all" if requested.k is None else f"{requested.k} nearest"
    within = "" if requested.radius is None else " within a radius"
    world = type(requested.world).__name__.lower()
    kind = f"{which}{within} in {points.dimension} axes, {world} world"
    if outlook is None:
        return f"{kind}; few"
    crowd = f"{4 ** round(math.log(outlook.members, 4)):,} in a cell"
    if requested.radius is None:
        return f"{kind}; {crowd}"
    radii = 2.0 ** round(math.log2(max(outlook.side / requested.radius, 1.0)))
    return f"{kind}; {crowd} of {radii:g} radii"
