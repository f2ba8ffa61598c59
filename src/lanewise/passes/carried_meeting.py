"""Where threads, or lanes of a register, meet that share the rounds of a loop whose extremes carry
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.names import MARK, own
from lanewise.language.types import BOOL, Scalar, limits


def nowhere(kind: Scalar) -> ir.Literal:
    """The round of a thread that has found nothing: before all others."""
    return ir.Literal(int(limits(kind)[0]), kind)


@dataclass(frozen=True, slots=True)
class CarriedState:
    """What one thread has found of an extreme that carries values along, in its own rounds.

    best: the extreme; place: the round in which it was found, `nowhere` if in none; others: what is
    carried, in the order of the fold.
    """

    fold: Fold
    best: ir.Local
    place: ir.Local
    others: tuple[ir.Local, ...]

    @property
    def every(self) -> tuple[ir.Local, ...]:
        """All variables of the state."""
        return (self.best, self.place, *self.others)

    @property
    def seen(self) -> tuple[ir.Local, ...]:
        """Variables for the state of another thread."""
        return tuple(replace(x, name=_beside(x, "other")) for x in self.every)

    def join(self) -> ir.Block:
        """The better of this state and the one that was seen: of equal ones that of the first
        round, or of the last one, as the comparison says.
        """
        strict: ir.CompareOperator = "<" if self.fold.operation in ("<", "<=") else ">"
        order: ir.CompareOperator = "<" if self.fold.operation == strict else ">"
        seen, better = self.seen, ir.Local(_beside(self.best, "better"), BOOL)
        equal = ir.Compare("==", seen[0], self.best)
        sooner = ir.Logical("and", equal, ir.Compare(order, seen[1], self.place))
        first = ir.Compare(strict, seen[0], self.best)
        return (
            ir.Assign(better.name, ir.Logical("or", first, sooner)),
            *_chosen(better, zip(self.every, seen, strict=True)),
        )

    def by_shuffles(self, group: int) -> ir.Block:
        """All of a group of neighbours get the best of them."""
        done: list[ir.Statement] = []
        pairs = tuple(zip(self.seen, self.every, strict=True))
        distance = group // 2
        while distance:
            done += [ir.Shuffle(o.name, x, distance, group) for o, x in pairs]
            done += self.join()
            distance //= 2
        for o, x in pairs:  # what the first one has is that of all
            done += [ir.Shuffle(o.name, x, 0, group), ir.Assign(x.name, o)]
        return tuple(done)

    def into_thread(self) -> ir.Block:
        """The best of all rounds, joined with what the thread had before them."""
        f, better = self.fold, ir.Local(_beside(self.best, "better"), BOOL)
        assert f.operation in ("<", "<=", ">", ">=")
        found = ir.Compare("!=", self.place, nowhere(self.place.type))
        test = ir.Logical("and", ir.Compare(f.operation, self.best, f.variable), found)
        pairs = ((f.variable, self.best), *zip(f.carried, self.others, strict=True))
        return (ir.Assign(better.name, test), *_chosen(better, pairs))


def _chosen(better: ir.Local, pairs: Iterable[tuple[ir.Local, ir.Local]]) -> ir.Block:
    """Variables that take other values where these are better."""
    return tuple(ir.Assign(x.name, ir.Select(better, o, x, x.type)) for x, o in pairs)


def _beside(variable: ir.Local, what: str) -> str:
    return own(f"{variable.name.removeprefix(MARK)}.{what}")
