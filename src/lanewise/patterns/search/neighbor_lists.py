"""Lists of neighbours with a skin: all sources within the radius and the skin of each, which serve
until an element has moved by half of the skin.

Lists are in the order of the sources, and a kernel meets those of a list that are within the radius
now. So what it meets, and in which order, does not depend on when lists were made. (L. Verlet,
Phys. Rev. 159, 1967.) The host decides when to make them anew, and so no graph holds their steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import value_array
from lanewise.language.target import target_of
from lanewise.language.types import BOOL, I32, Scalar
from lanewise.launch.arguments import bind_value_array, values_arrangement
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    POSITIONS,
    Search,
    Statistics,
    Structure,
    Visit,
    Walk,
    Walked,
    check_sources,
    radius2,
)
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.queries import neighbors
from lanewise.patterns.search.worlds import Periodic
from lanewise.runtime.memory import PlannedPieces, array_module, on, to_host
from lanewise.support.attributes import frozen
from lanewise.support.checks import finite, shown
from lanewise.support.errors import ArgumentError

STARTS, MEMBERS = own("lists.starts"), own("lists.members")
SOURCES, TARGET = own("lists.sources"), own("i")
SURELY = 1 - 1e-3  # of half the skin: rounding moves no source past the rest
LEAST = 1e-2  # skins are at least this part of the radius, which rounding is far below
ROOM = 2  # times the members of the first lists


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborLists(Search):
    """Lists of all sources within the radius and the skin, which are valid until an element moves
    by half of the skin.

    It needs a radius, and targets that are the sources. skin: in units of length; a wide skin makes
    lists longer, a narrow one rebuilds them more often.
    """

    skin: float

    def __post_init__(self) -> None:
        super(NeighborLists, self).__post_init__()
        if self.radius is None:
            raise ArgumentError("NeighborLists(): wanted a radius, which lists are made for")
        skin: Any = self.skin
        number = isinstance(skin, int | float) and not isinstance(skin, bool)
        if not number or not finite(skin) or skin < LEAST * self.radius:
            raise ArgumentError(
                f"NeighborLists(skin={shown(skin)}): wanted a length of at least {LEAST:g} "
                f"radii, {LEAST * self.radius:g}"
            )
        reach, world = self.radius + self.skin, self.world
        if isinstance(world, Periodic) and 2 * reach > min(world.size):
            raise ArgumentError(
                f"NeighborLists(radius={self.radius:g}, skin={self.skin:g}): in a periodic world "
                f"both together are at most half the smallest size, {min(world.size) / 2:g}"
            )

    def describe(self) -> str:
        return f"lists of neighbours with a skin of {self.skin:g}: {self.in_words()}"

    def structure(self, targets: Points, sources: Points) -> Structure:
        if targets is not sources:
            raise ArgumentError(
                f"{self.describe()}: wanted targets that are the sources, on one device, whose "
                "lists live several steps; lw.StaticGrid and lw.DynamicGrid take others, and "
                "arrays on a mesh"
            )
        return self.make(sources)

    def make(self, sources: Points) -> Walked:
        check_sources(self, sources)
        radius2(self, sources.precision)
        return _Lists(self, sources)


@dataclass(frozen=True, slots=True)
class ListWalk(Walk):
    """The members of the target's list, or all sources where there is no list."""

    index: Scalar

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        return tuple(value_array(n, I32, written=False) for n in (STARTS, MEMBERS))

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        return (ir.Parameter(SOURCES, self.index),)

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        del place, bound2
        target, j, m = (ir.Local(n, self.index) for n in (TARGET, own("walk.j"), own("walk.m")))
        count, lost = ir.Local(own("walk.count"), self.index), ir.Local(own("walk.lost"), BOOL)
        first, last, member = (ir.Local(own(f"walk.{n}"), I32) for n in ("first", "last", "member"))
        zero, one = ir.Literal(0, self.index), ir.Literal(1, self.index)
        length = build.cast(ir.Binary("-", last, first, I32), self.index)
        at = build.add(build.cast(first, self.index), m)
        pick = (
            ir.LoadRecord(MEMBERS, at, (("value", member.name),)),
            ir.Assign(j.name, build.cast(member, self.index)),
        )
        everyone = ir.Local(SOURCES, self.index)
        return (
            ir.LoadRecord(STARTS, target, (("value", first.name),)),
            ir.LoadRecord(STARTS, build.add(target, 1), (("value", last.name),)),
            ir.Assign(lost.name, ir.Compare("<", first, ir.Literal(0, I32))),
            ir.Assign(count.name, ir.Select(lost, everyone, length, self.index)),
            ir.For(
                m.name,
                zero,
                count,
                one,
                (
                    ir.Assign(j.name, m),
                    ir.If(ir.Unary("not", lost, BOOL), pick),
                    *visit(j),
                ),
            ),
        )


class _Lists(Walked):
    def __init__(self, search: NeighborLists, sources: Points) -> None:
        self._search, self._sources = search, sources
        self._lost, self.made = False, 0
        self._module = array_module(sources.device)
        with on(sources.device):
            # positions when lists were made, in float64
            self._then = self._places(sources).astype("float64")
            _, members = first = self._rows(sources)
        self._first: tuple[Any, Any] | None = first  # until they are in the memory of calls
        n = sources.count
        self._room = min(n * n, ROOM * len(members) + n)
        what = f"lists of neighbours of {n:,} positions"
        sizes = {"starts": 4 * (n + 1), "members": 4 * self._room}
        self._memory = PlannedPieces(sources.device, sizes, what)

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        return (self._memory,)

    @property
    def ordered(self) -> bool:
        return False

    @property
    def order(self) -> Any:
        return None

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        names = ((STARTS, "starts"), (MEMBERS, "members"))
        return {n: bind_value_array(self._memory[piece].view("int32"), I32) for n, piece in names}

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        return {STARTS: values_arrangement(I32), MEMBERS: values_arrangement(I32)}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        return {SOURCES: self._sources.count}

    def walk(self, index: Scalar) -> Walk:
        return ListWalk(index)

    def fits(self, sources: Points) -> bool:
        return not self._lost  # where there was no room, there is more in new lists

    def tasks(self) -> tuple[Primitive, ...]:
        touched = (*reading(POSITIONS), *writing(STARTS, MEMBERS))
        read = ((POSITIONS, self._sources.lying_in),)
        waits = not target_of(self._sources.device).host_memory
        return (Primitive("neighbor_lists", self._refresh, touched, waits=waits, read=read),)

    def _refresh(self, points: Points | None = None) -> None:
        """Make lists anew, where an element has moved too far since."""
        with on(self._sources.device):
            self._renew(points or self._sources)

    def _renew(self, p: Points) -> None:
        now = self._places(p).astype("float64")
        first = self._first
        if first is None and self._farthest(now) <= SURELY * self._search.skin / 2:
            return
        if first is None or not bool((now == self._then).all()):
            first = self._rows(p)
        starts, members = first
        self._lost = len(members) > self._room
        own_starts = self._memory["starts"].view("int32")
        if self._lost:
            own_starts[...] = -1
        else:
            own_starts[...] = starts
            self._memory["members"].view("int32")[: len(members)] = members
        self._then, self._first, self.made = now, None, self.made + 1

    def _farthest(self, now: Any) -> float:
        """How far an element is from where it was; what is no number is near nothing, and stays."""
        away = now - self._then
        if isinstance(self._search.world, Periodic):
            size = self._module.asarray(self._search.world.size)
            away -= size * self._module.round(away / size)
        square = self._module.nan_to_num((away * away).sum(axis=1), nan=0.0, posinf=np.inf)
        return float(square.max()) ** 0.5 if len(square) else 0.0

    def _places(self, points: Points) -> Any:
        return self._module.stack(points.columns(), axis=1)

    def _rows(self, points: Points) -> tuple[Any, Any]:
        """First members and members of all lists: those within radius and skin, and oneself, in
        their order.
        """
        s, module, n = self._search, self._module, points.count
        assert s.radius is not None
        found = neighbors(
            self._places(points), s.radius + s.skin, world=s.world, device=points.device
        )
        offsets, others = found.offsets, found.indices
        rows = module.repeat(module.arange(n, dtype="int32"), module.diff(offsets))
        starts = offsets + module.arange(n + 1)
        members = module.empty(len(others) + n, "int32")
        members[module.arange(len(others)) + rows + (others > rows)] = others
        below = module.zeros(len(others) + 1, "int64")
        below[1:] = module.cumsum(others < rows)
        before = below[offsets[1:]] - below[offsets[:-1]]
        members[starts[:-1] + before] = module.arange(n, dtype="int32")
        return starts, members

    def statistics(self) -> Statistics:
        members = np.diff(to_host(self._memory["starts"]).view(np.int32))
        n = len(members)
        mean = float(members.mean()) if n else 0.0
        return Statistics(n, n, int(members.min()), int(members.max()), mean)

    def describe(self) -> str:
        return f"{self._search.describe()}; room for {self._room:,} members"
