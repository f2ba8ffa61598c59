"""Which structure a call over a search gets: the one asked for, the one that tune() found, or the automatic choice."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lanewise.errors import ArgumentError
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call
from lanewise.launch.support import index_type, layouts_of
from lanewise.launch.tuned_key import Key, make_key, size_class
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.automatic import FEW, Nearest, Neighbors, choose, look
from lanewise.patterns.search.base import Search, reach
from lanewise.patterns.search.pattern import SEARCH
from lanewise.patterns.search.points import Points, points_of
from lanewise.patterns.search.tuning.kinds import kind_of_call
from lanewise.patterns.search.tuning.lookup import Choice, Tuned, TunedSearches
from lanewise.plan import Decisions, Plan

if TYPE_CHECKING:
    from lanewise.patterns.search.tuning.job import SearchJob


@dataclass(frozen=True, slots=True)
class Picked:
    """The concrete search of a call, and why it is that one; the fields of the plan that are decided; whether they were tuned."""

    search: Search
    why: str
    plan: Plan | None
    tuned: bool = False


class SearchPicker:
    """Picks the structures of one kernel's calls.

    naive: makes its kernel over any structure (`Searched.naive`). adopted: told when later calls get what was tuned.
    """

    def __init__(self, name: str, search: Search, naive: Callable[..., ir.Kernel], adopted: Callable[[], None]) -> None:
        self._name, self._search, self._naive, self._adopted = name, search, naive, adopted
        self._tuned = TunedSearches()

    def looks(self, sources: Points) -> bool:
        """Whether the choice depends on where the sources are."""
        return isinstance(self._search, Neighbors | Nearest) and sources.count > FEW

    def _adopt(self, specialisation: Hashable, tuned: Tuned) -> None:
        self._tuned.adopt(specialisation, tuned)
        self._adopted()

    def pick(self, given: Arguments, sources: Points, wanted: Plan | None, choice: Choice | None) -> Picked:
        """The structure for these sources; `choice`: the one that is measured."""
        if choice is not None:
            return Picked(choice.recipe.search(self._search, sources), "measured", choice.plan)
        if not isinstance(self._search, Neighbors | Nearest):
            return Picked(self._search.plan(sources), "asked for", wanted)
        outlook = look(self._search, sources) if sources.count > FEW else None
        kind = kind_of_call(self._search, sources, outlook)
        specialisation = _specialisation(given, kind, wanted)
        tuned = self._tuned.find(given.device, specialisation, lambda: self._key(given, sources, kind, wanted))
        if tuned is None:
            return Picked(*choose(self._search, sources, outlook), wanted)
        return Picked(tuned.choice.recipe.search(self._search, sources), tuned.why, tuned.choice.plan, tuned=True)

    def tuning_job(
        self, given: Arguments, wanted: Plan, default: Decisions, bind: Callable[[Choice], Call]
    ) -> SearchJob:
        """What is measured for a call; `default`: the complete plan, `bind`: makes a call of a choice."""
        from lanewise.patterns.search.tuning.job import SearchJob
        from lanewise.tuning.job import check_tunable

        if not isinstance(self._search, Neighbors | Nearest):
            raise ArgumentError(
                f"{self._name} runs over {self._search.describe()}, which was asked for; structures and plans are measured for "
                "lw.Neighbors(radius=...) and lw.Nearest(k=...), plans alone for all pairs, @lw.pairwise without a search"
            )
        counts = {n: len(r) for n, r in given.records.items()}
        check_tunable(self._name, given.device, counts)
        source_name, source = next(reversed(given.records.items()))
        sources = points_of(source, self._search.position)
        furthest = reach(self._search, sources.precision, sources.dimension)
        sources.check(f"{self._name}: {source_name!r}", self._search.world, furthest)
        kind = kind_of_call(self._search, sources, look(self._search, sources) if sources.count > FEW else None)
        specialisation = _specialisation(given, kind, wanted)
        return SearchJob(
            self._name, given.device, self._search, sources, counts, wanted, default, self._key(given, sources, kind, wanted),
            bind, partial(self._adopt, specialisation),
        )  # fmt: skip

    def _key(self, given: Arguments, sources: Points, kind: str, wanted: Plan | None) -> Key:
        """The function is known by its kernel over all sources: that of no structure that might be chosen."""
        s, (target, source) = self._search, given.records.values()
        every = AllPairs(radius=s.radius, k=s.k, world=s.world, position=s.position)
        naive = self._naive(given, every, every.make(sources), (), index_type(given.device))
        identical, work = target.data is source.data, Work(SEARCH, len(target))
        key = make_key(naive, layouts_of(given.records), given.device, work, len(source), wanted or Plan(), identical)
        return replace(key, search=kind)


def _specialisation(given: Arguments, kind: str, wanted: Plan | None) -> tuple[Any, ...]:
    """What of a call decides what was tuned for it, in a form that is quickly made."""
    target, source = given.records.values()
    sizes = (size_class(len(target)), size_class(len(source)))
    return (target.layout, source.layout, target.data is source.data, given.device, sizes, kind, wanted or Plan())
