"""One function for both directions of a pair: f(i, j) and f(j, i), with everything that they share
computed once.

    gravity(target, source)  ->  gravity_both_ways(target, source): the action on the target, and
    the reaction on the source
Both directions are numbered in one table (`value_numbering`); the function is written back from it,
with the user's names where a value has one. Values are shared only when they are equal to the last
bit, so each direction is what the user's function gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, owner
from lanewise.ir.traverse import subexpressions
from lanewise.language.types import BOOL
from lanewise.support.errors import NOWHERE

LEAST_SAVING = (
    # of the work for both directions: below that, the exchange between threads costs more than it
    # saves
    0.15
)


@dataclass(frozen=True, slots=True)
class BothWays:
    """The combined function, and how many operations it has beside two calls of the original.

    same_bits: also where a compiler fuses multiplications and additions, each direction has the
    bits that the function gives alone.
    """

    function: ir.Function
    alone: int
    together: int
    same_bits: bool

    @property
    def saved(self) -> float:
        """The share of the work for a pair, both ways, that need not be done: 0 for nothing, up to
        0.5.
        """
        return 1 - self.together / (2 * self.alone) if self.alone else 0.0


def both_ways(function: ir.Function, target: str, source: str) -> BothWays | str:
    """The combined function of two different elements of one record, or why there is none.

    `target` and `source` are the names of the record parameters. The results of the new function
    are those of the old one, then the same for the opposite direction under the name `reaction...`.
    """
    table = ValueTable()
    other = {target: source, source: target}
    forward: dict[str, Value] = {}
    backward: dict[str, Value] = {}
    for p in function.parameters:
        if p.name == own("same"):
            forward[p.name] = backward[p.name] = Value(table.add("literal", (), BOOL, False))
            continue
        who = owner(p.name)
        exchanged = other[who] + p.name[len(who) :] if who in other else p.name
        forward[p.name], backward[p.name] = (
            table.leaf(p.name, p.type),
            table.leaf(exchanged, p.type),
        )
    try:
        there = number_function(table, function, forward)
        back = number_function(table, function, backward)
    except NotNumbered as reason:
        return str(reason)
    alone, together = _work(table, there), _work(table, there + back)
    writer = _Writer(table, {v.number for v in there + back})
    values = tuple(writer.value(v) for v in there + back)
    reactions = tuple(ir.Parameter(reaction_of(r.name), r.type) for r in function.results)
    used = {x.name for s in writer.body for x in subexpressions(s.value) if isinstance(x, ir.Local)}
    used |= {x.name for v in values for x in subexpressions(v) if isinstance(x, ir.Local)}
    leaves = [n for n in table.nodes if n.operation == "leaf" and n.payload in used]
    combined = ir.Function(
        f"{function.name}_both_ways", tuple(ir.Parameter(str(n.payload), n.type) for n in leaves),
        (*function.results, *reactions), (*writer.body, ir.Return(values)), function.location,
    )  # fmt: skip
    return BothWays(combined, alone, together, not table.products_turned)


def reaction_of(result: str) -> str:
    """The name of a result of the opposite direction."""
    return f"reaction{result.removeprefix('result')}"


# a minus sign is part of the addition that follows
_FREE = frozenset({"leaf", "literal", "negate", "cast"})


def _work(table: ValueTable, values: list[Value]) -> int:
    return sum(
        table.nodes[n].operation not in _FREE for n in table.below({v.number for v in values})
    )


@dataclass
class _Writer:
    """Writes numbered values as statements: one for each value that is used more than once or has a
    name of the user's.
    """

    table: ValueTable
    roots: set[int]
    body: list[ir.Assign] = field(default_factory=list[ir.Assign])
    names: dict[int, str] = field(default_factory=dict[int, str])
    taken: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        reached = sorted(self.table.below(self.roots))
        self.uses = dict.fromkeys(reached, 0)
        for n in [*self.roots, *(o for r in reached for o in self.table.nodes[r].operands)]:
            self.uses[n] += 1
        self.taken = {str(n.payload) for n in self.table.nodes if n.operation == "leaf"}
        for number in reached:
            node = self.table.nodes[number]
            label, location = self.table.labels.get(number, (None, NOWHERE))
            if node.operation in ("leaf", "literal") or (label is None and self.uses[number] < 2):
                continue
            name = label if label and label not in self.taken else own(f"value{number}")
            value = self._expression(number)  # before the name stands for it
            self.taken.add(name)
            self.names[number] = name
            self.body.append(ir.Assign(name, value, location))

    def value(self, v: Value) -> ir.Expression:
        e = self.number(v.number)
        return ir.Unary("-", e, e.type) if v.negative else e

    def number(self, number: int) -> ir.Expression:
        name = self.names.get(number)
        return ir.Local(name, self.table.nodes[number].type) if name else self._expression(number)

    def _expression(self, number: int) -> ir.Expression:
        node = self.table.nodes[number]
        e = [self.number(o) for o in node.operands]
        match node.operation:
            case "leaf":
                return ir.Local(str(node.payload), node.type)
            case "literal":
                return ir.Literal(cast("float | int | bool", node.payload), node.type)
            case "negate":
                return ir.Unary("-", e[0], node.type)
            case "cast":
                return ir.Cast(e[0], node.type)
            case "select":
                return ir.Select(e[0], e[1], e[2], node.type)
            case "and" | "or" as operator:
                return ir.Logical(operator, e[0], e[1])
            case "not" | "~" as operator:
                return ir.Unary(operator, e[0], node.type)
            case "-" if len(e) == 1:
                return ir.Unary("-", e[0], node.type)
            case "==" | "!=" | "<" | "<=" | ">" | ">=" as operator:
                return ir.Compare(operator, e[0], e[1])
            case "+" | "-" | "*" | "/" | "//" | "%" | "&" | "|" | "^" | "<<" | ">>" as operator:
                return ir.Binary(operator, e[0], e[1], node.type)
            case "fma" if node.payload == "difference":
                return ir.Call("fma", (ir.Unary("-", e[0], node.type), e[1], e[2]), node.type)
            case intrinsic:
                return ir.Call(intrinsic, tuple(e), node.type)
