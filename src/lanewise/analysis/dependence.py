"""Which variables can differ between threads, and between rounds of a loop: everything that a value
may depend on.

A value depends on what its expression reads, on the conditions and loops that its assignment stands
in, and on where it was loaded from. What is said to be free of a variable surely is; what is said
to depend on one may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, reads, statements, subexpressions, writes

Names = frozenset[str]
NONE: Names = frozenset()
ROUND = "@round"  # of a loop without a variable


@dataclass(slots=True)
class Dependence:
    """`of[name]`: the indices of threads, and the variables of loops, that a variable may depend
    on.
    """

    indices: tuple[str, ...]
    changed: Names  # arrays that the kernel writes: what is loaded from them may be anything
    of: dict[str, Names] = field(default_factory=dict[str, Names])

    def expression(self, e: ir.Expression) -> Names:
        """What an expression may depend on."""
        return self.expressions((e,))

    def expressions(self, several: tuple[ir.Expression, ...]) -> Names:
        if any(isinstance(x, ir.Builtin) for e in several for x in subexpressions(e)):
            return frozenset((*self.indices, ROUND))
        return frozenset(d for e in several for n in reads(e) for d in self.of.get(n, NONE))

    def threads(self, names: Names) -> Names:
        """The indices of threads among what something depends on."""
        return names & frozenset(self.indices)


def dependence(body: ir.Block, indices: tuple[str, ...]) -> Dependence:
    """The dependences of a block that runs for every point of these indices."""
    inside = list(statements(body))
    changed = frozenset(s.array for s in inside if isinstance(s, ir.ElementWrite))
    depends = Dependence(indices, changed, {i: frozenset((i,)) for i in indices})
    often = assigned_often(body)
    while True:
        before = dict(depends.of)
        _block(body, depends, NONE, NONE, often)
        if depends.of == before:
            return depends


def assigned_often(body: ir.Block) -> Names:
    """The variables that do not stand for one value: more than one statement assigns them, or they
    are read before they are assigned.

    So are arrays of a thread's own.
    """
    seen: dict[str, int] = {}
    read: set[str] = set()
    for s in statements(body):
        read.update(n for e in expressions(s) for n in reads(e))
        for n in writes(s):
            twice = n in read or isinstance(s, ir.SetElement | ir.DeclareArray)
            seen[n] = seen.get(n, 0) + (2 if twice and not isinstance(s, ir.For) else 1)
    loops = {s.variable for s in statements(body) if isinstance(s, ir.For)}
    return frozenset(n for n, times in seen.items() if times > 1 and n not in loops)


def _block(
    block: ir.Block, depends: Dependence, guards: Names, rounds: Names, often: Names
) -> None:
    """guards: what decides whether these statements run; rounds: the variables of the loops
    around.
    """
    for s in block:
        own = depends.expressions(expressions(s))
        match s:
            case ir.If():
                for side in (s.then, s.otherwise):
                    _block(side, depends, guards | own, rounds, often)
            case ir.For() | ir.While():
                variable = s.variable if isinstance(s, ir.For) else ROUND
                inner = guards | own | _leaving(s.body, depends)
                if isinstance(s, ir.For):
                    _add(depends, s.variable, inner | {s.variable})
                _block(s.body, depends, inner, rounds | {variable}, often)
            case ir.LoadElement() if s.array in depends.changed:
                _add(depends, s.name, own | rounds | frozenset(depends.indices))
            case _:
                # where a variable has one value, conditions say whether it has it, and not which
                for n in writes(s):
                    _add(depends, n, own | guards | rounds if n in often else own)


def _add(depends: Dependence, name: str, names: Names) -> None:
    depends.of[name] = depends.of.get(name, NONE) | names


def _leaving(body: ir.Block, depends: Dependence) -> Names:
    """What decides whether a loop is left, or a round cut short."""
    return frozenset(
        d for s in _branches(body) if _has_jump(s) for d in depends.expression(s.condition)
    )


def _branches(body: ir.Block) -> Iterator[ir.If]:
    return (s for s in statements(body) if isinstance(s, ir.If))


def _has_jump(s: ir.If) -> bool:
    return any(isinstance(x, ir.Break | ir.Continue) for x in statements((s,)))
