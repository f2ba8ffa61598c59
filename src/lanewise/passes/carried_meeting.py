"""Where lanes of a register meet that share the rounds of a loop whose extremes carry values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.names import MARK, own
from lanewise.language.types import BOOL, Scalar, limits


def nowhere(kind: Scalar) -> ir.Literal:
    """The round of a lane that has found nothing: before all others."""
    return ir.Literal(int(limits(kind)[0]), kind)


def carried_meeting(
    f: Fold, mine: Mapping[str, str], place: ir.Local, group: int
) -> list[ir.Statement]:
    """The best of all lanes and of what was there before: of equal ones that of the first round, or
    of the last one, as the comparison says.

    mine: what each lane has of its own rounds, by the names of the thread. place: the round in
    which a lane found its own; `nowhere` if in none.
    """
    strict: ir.CompareOperator = "<" if f.operation in ("<", "<=") else ">"
    order: ir.CompareOperator = "<" if f.operation == strict else ">"
    best = ir.Local(mine[f.name], f.type)
    others = tuple(replace(x, name=mine[x.name]) for x in f.carried)
    every = (best, place, *others)
    seen = tuple(replace(x, name=own(f"{x.name.removeprefix(MARK)}.other")) for x in every)
    better = ir.Local(own(f"{f.name.removeprefix(MARK)}.better"), BOOL)
    sooner = ir.Logical("and", ir.Compare("==", seen[0], best), ir.Compare(order, seen[1], place))
    done: list[ir.Statement] = []
    distance = group // 2
    while distance:
        done += [ir.Shuffle(o.name, x, distance, group) for o, x in zip(seen, every, strict=True)]
        first = ir.Compare(strict, seen[0], best)
        done.append(ir.Assign(better.name, ir.Logical("or", first, sooner)))
        done += [
            ir.Assign(x.name, ir.Select(better, o, x, x.type))
            for o, x in zip(seen, every, strict=True)
        ]
        distance //= 2
    for o, x in zip(seen, every, strict=True):  # what the first lane has is that of all
        done += [ir.Shuffle(o.name, x, 0, group), ir.Assign(x.name, o)]
    assert f.operation in ("<", "<=", ">", ">=")
    found = ir.Compare("!=", place, nowhere(place.type))
    test = ir.Logical("and", ir.Compare(f.operation, best, f.variable), found)
    done.append(ir.Assign(better.name, test))
    pairs = ((f.variable, best), *zip(f.carried, others, strict=True))
    done += [ir.Assign(x.name, ir.Select(better, o, x, x.type)) for x, o in pairs]
    return done
