"""Calls over a search like an earlier one: on the same arrays, whose elements may have moved.

Positions are looked at in every call, as in a first one. Where the structure that would be made for
them is the one of the earlier call, its launches fill it anew, and the kernel runs through it; only
the results and the uniform arguments are new. So what a call gives does not depend on the calls
before it. An entry goes when one of its arrays does, or is changed in length: it keeps no memory of
its user alive. Sizes may come in turn: as many calls are remembered as are small together.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lanewise.frontend.function import Signature
from lanewise.launch.arguments import Arguments, flatten_uniforms
from lanewise.launch.repeatable import Repeatable
from lanewise.launch.repeated import Settles
from lanewise.launch.sized import Result, Sized
from lanewise.launch.slots import Given, SameRecords
from lanewise.launch.support import Uses
from lanewise.launch.tuned_plans import store_enabled
from lanewise.patterns.search.base import Structure
from lanewise.patterns.search.picker import Picked
from lanewise.patterns.search.points import SAMPLE, Points
from lanewise.patterns.search.searched_launch import SearchedLaunch
from lanewise.patterns.search.watched import Look, watched
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.records.field_views import FieldViews

# calls on the same arrays before one is bound: where there is room, and where another one has to go
SOON, RARELY = 3, 64
LEAST, MOST = 2, 64  # calls that a kernel remembers: each has a structure and a sorted copy
MOST_BYTES = 1 << 24  # of all these, where there are more than the least
WORKING = 4  # numbers of cells, keys and places that a build has besides its order


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A call that can be made again.

    places, sources: what it searches for and among, as they were. arrays: those of its user and
    where their records were, neither of which it keeps alive. own: bytes that it has besides its
    arguments and its structure: sorted copies, the groups of a tree. watched: its quick way, where
    the structure fits wherever the elements are and no choice depends on it.
    """

    call: Repeatable
    places: Points
    sources: Points
    picked: Picked
    structure: Structure
    arrays: tuple[weakref.ref[Any], ...]
    key: Key
    own: int
    watched: Sized | None = None

    @property
    def nbytes(self) -> int:
        """About what its structure and its own memory take."""
        walked = sum(b.data.nbytes for b in self.structure.arrays.values())
        orders = (self.structure.order, self.structure.target_order)
        working = WORKING * sum(order.nbytes for order in orders if order is not None)
        return walked + working + self.own

    def again(self) -> tuple[Points, Points]:
        """The positions of the targets and of the sources as they are now."""
        sources = self.sources.again()
        return (sources if self.places is self.sources else self.places.again()), sources

    def fits(
        self, sources: Points, pick: Callable[[], Picked] | None, *, by_values: bool = False
    ) -> bool:
        """Whether the same structure would be made for the sources as they are now.

        `pick`: what chooses it by what they are like; by_values: and by the values of a call.
        """
        if pick is not None and (by_values or not self._unmoved(sources)):
            picked = pick()
            if (picked.search, picked.plan) != (self.picked.search, self.picked.plan):
                return False
        return self.structure.fits(sources)

    def _unmoved(self, sources: Points) -> bool:
        if sources.count > SAMPLE:  # a sample of them says nothing about the others
            return False
        before, now = (np.asarray(p.sample().data) for p in (self.sources, sources))
        return np.array_equal(before, now)


Key = tuple[int, ...]
"""Where the records of a call's arguments are.

Their `FieldViews`, which are others after every change in length.
"""


def _key(arguments: Iterable[Any]) -> Key:
    return tuple([id(places_of(a)) for a in arguments if type(a) is RecordArray])


class RepeatedSearches:
    """The calls of one kernel over a search that can be made again, the last one first."""

    __slots__ = ("__weakref__", "_entries", "_found", "_last", "_seen", "_tuned")

    def __init__(self) -> None:
        self._entries: tuple[Kept, ...] = ()
        self._found: dict[Key, tuple[Kept, ...]] = {}
        self._last: Kept | None = None  # that was found: most calls of a loop are the one before
        self._tuned = True
        self._seen = WeakKeyDictionary[FieldViews, int]()  # calls, by where records are

    def find(
        self,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        settles: Settles | None = None,
    ) -> tuple[Kept, Given] | None:
        """A call like this one, and its arguments."""
        if self._tuned is not (tuned := store_enabled()):
            self._keep(())
            self._tuned = tuned
        found = self._known(arguments, named)
        if found is None and settles is not None and settles(arguments, named):
            return self._known(arguments, named, asks=False)
        return found

    def _known(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], *, asks: bool = True
    ) -> tuple[Kept, Given] | None:
        last = self._last
        if (
            last is not None
            and (matched := last.call.match(arguments, named, asks=asks)) is not None
        ):
            return last, matched
        for kept in self._found.get(_key((*arguments, *named.values())), ()):
            if (matched := kept.call.match(arguments, named, asks=asks)) is not None:
                self._last = kept
                return kept, matched
        return None

    @property
    def has_room(self) -> bool:
        """Whether no call has to go for one more, if that is as large as the others."""
        sizes = [entry.nbytes for entry in self._entries]
        if len(sizes) < LEAST:
            return True
        return len(sizes) < MOST and sum(sizes) + max(sizes) <= MOST_BYTES

    def recurs(self, records: Mapping[str, RecordArray]) -> bool:
        """Whether a call on these arrays has come so often that it shall be bound: soon where there
        is room for it, else seldom, as another one has to go.
        """
        seen = RARELY
        for views in {places_of(array) for array in records.values()}:
            self._seen[views] = times = self._seen.get(views, 0) % RARELY + 1
            seen = min(seen, times)
        return seen == RARELY or (seen == SOON and self.has_room)

    def _keep(self, entries: Iterable[Kept]) -> None:
        """These and no others: the last ones, and earlier ones as long as they are small
        together.
        """
        kept: list[Kept] = []
        nbytes = 0
        for entry in entries:
            nbytes += entry.nbytes
            if len(kept) < LEAST or (len(kept) < MOST and nbytes <= MOST_BYTES):
                kept.append(entry)
        found: dict[Key, tuple[Kept, ...]] = {}
        for entry in kept:
            found[entry.key] = (*found.get(entry.key, ()), entry)
        self._entries, self._found, self._last = tuple(kept), found, None

    def remember(
        self,
        signature: Signature,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        arguments: Arguments,
        launch: SearchedLaunch,
        results: Sequence[Result],
        points: tuple[Points, Points],
        picked: Picked,
        looks: tuple[Look, ...],
        uses: Mapping[str, Uses],
        own: int,
    ) -> None:
        """Keep a call for those like it, where they can be recognised.

        looks: what is looked at in every call, where nothing else has to be asked. uses: of
        records. own: bytes besides arguments and structure.
        """
        values = frozenset(flatten_uniforms(signature, arguments.uniforms))
        tables = frozenset(signature.arrays)
        opened = launch.opened(frozenset(r.name for r in results) | tables, values)
        if opened is None:
            return
        sized = [Sized.of(opened, results, own=True)]

        def once(*_: Any) -> Sized | None:
            """Of these sizes alone."""
            return sized.pop() if sized else None

        call = Repeatable.of(
            signature, positional, named, arguments, once, record_slot=SameRecords, uses=uses
        )
        if call is None:
            return
        quick: Sized | None = None
        # a graph holds the addresses of its arrays
        if looks and launch.structure.in_graphs and not tables:
            quick = watched(looks, opened, results)
        drop = partial(_drop, weakref.ref(self))
        records = {id(r): r for r in arguments.records.values()}.values()
        arrays = tuple(weakref.ref(x, drop) for r in records for x in (r, places_of(r)))
        key = _key((*positional, *named.values()))
        kept = Kept(call, *points, picked, launch.structure, arrays, key, own, quick)
        self._keep((kept, *self._entries))

    def discard(self, kept: Kept) -> None:
        """Let go of a call whose structure does not fit any more."""
        self._keep(k for k in self._entries if k is not kept)

    def without(self, array: weakref.ref[Any]) -> None:
        """Let go of the calls on an array that is no more, or whose records are no more where they
        were.
        """
        self._keep(k for k in self._entries if not any(a is array for a in k.arrays))

    def forget(self) -> None:
        self._keep(())


def _drop(calls: weakref.ref[RepeatedSearches], array: weakref.ref[Any]) -> None:
    if (alive := calls()) is not None:
        alive.without(array)
