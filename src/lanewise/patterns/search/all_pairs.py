"""All pairs: every target looks at every source. Without radius and k every pair counts; with them
it is the oracle of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    Search,
    Statistics,
    Visit,
    Walk,
    Walked,
    check_sources,
)
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.sight import Sight, check_sight
from lanewise.patterns.search.worlds import Open
from lanewise.support.attributes import frozen

SOURCES = own("sources")


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairs(Search):
    """No structure: each target meets all sources, in order; with `radius` those that are nearer,
    with `k` the k nearest. Lengths are in the units of the positions. sight: which sources a target
    sees (None: all).
    """

    any_axes: ClassVar[bool] = True
    sight: Sight | None = None

    def __post_init__(self) -> None:
        super(AllPairs, self).__post_init__()
        check_sight("AllPairs", self.sight, self.radius)

    @property
    def sees(self) -> Sight | None:
        return self.sight

    def describe(self) -> str:
        seen = "" if self.sight is None else f", {self.sight.in_words()}"
        return "all pairs" if self.is_plain else f"all pairs: {self.in_words()}{seen}"

    @property
    def is_plain(self) -> bool:
        """Whether every pair counts: the pattern with tiles, reciprocity and all other passes."""
        return self.radius is None and self.k is None and isinstance(self.world, Open)

    def make(self, sources: Points) -> Walked:
        check_sources(self, sources)
        return _Nothing(self, sources)


@dataclass(frozen=True, slots=True)
class AllWalk(Walk):
    """One loop over all sources."""

    index: Scalar

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        return ()

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        return (ir.Parameter(SOURCES, self.index),)

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        del place, bound2
        j = ir.Local(own("walk.j"), self.index)
        zero, one = ir.Literal(0, self.index), ir.Literal(1, self.index)
        return (ir.For(j.name, zero, ir.Local(SOURCES, self.index), one, visit(j)),)


class _Nothing(Walked):
    def __init__(self, search: AllPairs, sources: Points) -> None:
        self._search, self._count = search, sources.count

    @property
    def ordered(self) -> bool:
        return False

    @property
    def order(self) -> Any:
        return None

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        return {}

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        return {}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        return {SOURCES: self._count}

    def walk(self, index: Scalar) -> Walk:
        return AllWalk(index)

    def tasks(self) -> tuple[()]:
        return ()

    @property
    def settled(self) -> bool:
        return True

    def turns(self) -> Mapping[str, float]:
        k = self._search.k
        return (
            {}
            if k is None or self._search.radius is not None
            else {own("m"): float(min(k, self._count))}
        )

    def statistics(self) -> Statistics:
        return Statistics(1, 1, self._count, self._count, float(self._count))

    def describe(self) -> str:
        return self._search.describe()
