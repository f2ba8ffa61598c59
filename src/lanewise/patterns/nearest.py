"""The k best candidates of a target, in registers: a sorted list that is never addressed, only shifted.

A candidate goes in by a chain of k compare-and-exchange steps. (d2, index) is the order, so that ties in d2 go to the smaller index
whatever the order in which candidates come. Empty places hold the bound itself with an index before every other one: a candidate at
exactly the bound does not displace them, which is what makes the radius strict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.types import BOOL, I32, Scalar

EMPTY = -1  # the index of a place that nobody took


@dataclass(frozen=True, slots=True)
class Nearest:
    """A list of k candidates: d2, the caller's index (`rank`) and the place to read the source from (`place`).

    `ranked`: place and rank differ; else the place is the rank.
    """

    k: int
    precision: Scalar
    index: Scalar
    ranked: bool

    def d2(self, m: int) -> ir.Local:
        return ir.Local(own(f"best.d2.{m}"), self.precision)

    def place(self, m: int) -> ir.Local:
        return ir.Local(own(f"best.place.{m}"), self.index)

    def rank(self, m: int) -> ir.Local:
        return ir.Local(own(f"best.rank.{m}"), I32) if self.ranked else self.place(m)

    @property
    def bound2(self) -> ir.Local:
        """The squared distance beyond which no candidate gets in."""
        return self.d2(self.k - 1)

    def start(self, bound2: ir.Expression) -> ir.Block:
        """An empty list, for candidates nearer than the bound."""
        empty: list[ir.Statement] = []
        for m in range(self.k):
            empty.append(ir.Assign(self.d2(m).name, bound2))
            empty.append(ir.Assign(self.place(m).name, ir.Literal(EMPTY, self.index)))
            if self.ranked:
                empty.append(ir.Assign(self.rank(m).name, ir.Literal(EMPTY, I32)))
        return tuple(empty)

    def insert(self, d2: ir.Expression, place: ir.Expression, rank: ir.Expression) -> ir.Block:
        """Put a candidate where it belongs; the last one falls out."""
        new_d2 = ir.Local(own("new.d2"), self.precision)
        new_place = ir.Local(own("new.place"), self.index)
        new_rank = ir.Local(own("new.rank"), I32) if self.ranked else new_place
        body: list[ir.Statement] = [ir.Assign(new_d2.name, d2), ir.Assign(new_place.name, place)]
        if self.ranked:
            body.append(ir.Assign(new_rank.name, rank))
        carried = [(self.d2, new_d2), (self.place, new_place), *([(self.rank, new_rank)] if self.ranked else [])]
        for m in range(self.k):
            first = ir.Local(own(f"first.{m}"), BOOL)
            body.append(ir.Assign(first.name, _before(new_d2, new_rank, self.d2(m), self.rank(m))))
            for column, new in carried:
                old = column(m)
                if m == self.k - 1:
                    body.append(ir.Assign(old.name, ir.Select(first, new, old, old.type)))
                    continue
                out = ir.Local(own(f"out.{m}.{new.name}"), new.type)
                body.append(ir.Assign(out.name, ir.Select(first, old, new, old.type)))
                body.append(ir.Assign(old.name, ir.Select(first, new, old, old.type)))
                body.append(ir.Assign(new.name, out))
        return tuple(body)

    def each(self, visit: Callable[[ir.Local], ir.Block]) -> ir.Block:
        """Visit the places of those found, from the nearest to the farthest; the list is used up."""
        count, m = ir.Local(own("found"), self.index), ir.Local(own("m"), self.index)
        zero, one = ir.Literal(0, self.index), ir.Literal(1, self.index)
        total: ir.Expression = zero
        for n in range(self.k):
            taken = ir.Compare(">=", self.place(n), zero)
            total = build.add(total, ir.Select(taken, one, zero, self.index))
        shift = tuple(ir.Assign(self.place(n).name, self.place(n + 1)) for n in range(self.k - 1))
        loop = ir.For(m.name, zero, count, one, (*visit(self.place(0)), *shift))
        return (ir.Assign(count.name, total), loop)


def _before(d2: ir.Local, rank: ir.Local, other: ir.Local, other_rank: ir.Local) -> ir.Expression:
    tie = ir.Logical("and", ir.Compare("==", d2, other), ir.Compare("<", rank, other_rank))
    return ir.Logical("or", ir.Compare("<", d2, other), tie)
