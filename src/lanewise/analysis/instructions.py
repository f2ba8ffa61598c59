"""Instructions that a compiler would issue, by the unit that executes them, and the operations that
a function asks for.

Counted are values, not the text: equal values once (`value_numbering`), dead ones never, values
that do not change in a loop before it, a product and the sum that it joins as one fused
multiply-add.

The sequences behind one operation on a GPU are those that NVRTC 13.5 emits for sm_90, counted in
the disassembly along the path that ordinary arguments take (the slow paths of division, roots and
sines, for subnormal or huge arguments, are not counted). Other architectures differ little: what
differs is how fast each unit is.

Kinds: "fp32 add|mul|fma", "fp64 add|mul|fma", "special" (reciprocal, roots, exponentials,
logarithms, sines), "conversion" within 32 bits, "wide conversion" from and to 64 bits, "integer",
"compare", "select", "extreme" (the smaller or the larger of two floats), "branch".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lanewise.analysis.operation_costs import operation_cost
from lanewise.analysis.value_numbering import ValueTable
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.language.types import F64

PREDICATED = frozenset({"branch", "barrier"})


@dataclass(frozen=True, slots=True)
class Instructions:
    """How many of each kind.

    Kinds of arithmetic are those of `operation_cost`; of memory "shared load", "shared store",
    "global load", "global store", "local load", "local store", each with the bytes of one thread
    behind it ("shared load 16"); in addition "branch", "barrier" and "shuffle".
    """

    counts: Mapping[str, float] = field(default_factory=dict[str, float])

    def __getitem__(self, kind: str) -> float:
        """How many of a kind; of all widths together for a kind of memory access without one."""
        if kind in self.counts:
            return self.counts[kind]
        return sum(
            n
            for k, n in self.counts.items()
            if k.rpartition(" ")[0] == kind and k.rpartition(" ")[2].isdigit()
        )

    def __add__(self, other: Instructions) -> Instructions:
        return Instructions(_tidy(Counter(self.counts) + Counter(other.counts)))

    def times(self, factor: float) -> Instructions:
        """The same mix, that many times."""
        return Instructions(_tidy({k: n * factor for k, n in self.counts.items()}))

    @property
    def slots(self) -> float:
        """Issue slots: one for each instruction."""
        return sum(self.counts.values())

    @property
    def arithmetic(self) -> float:
        """Issue slots without memory accesses, barriers and branches of loops."""
        return sum(
            n
            for k, n in self.counts.items()
            if not k.rpartition(" ")[2].isdigit() and k not in PREDICATED
        )

    def unit(self, prefix: str) -> float:
        """All kinds that begin so: "fp32" for additions, multiplications and fused ones."""
        return sum(n for k, n in self.counts.items() if k.startswith(prefix))

    def __str__(self) -> str:
        return ", ".join(f"{n:g} {k}" for k, n in sorted(self.counts.items())) or "none"


def _tidy(counts: Mapping[str, float]) -> dict[str, float]:
    return {k: n for k, n in sorted(counts.items()) if n}


def mix(counts: Mapping[str, float]) -> Instructions:
    """Instructions from counts, without what is zero."""
    return Instructions(_tidy(counts))


# ---------------------------------------------------------------- from numbered values


def contracted(
    table: ValueTable, live: Iterable[int], together: Mapping[int, object] | None = None
) -> set[int]:
    """The products among `live` that vanish in fused multiply-adds.

    A product goes when every use of it is a sum that takes it in; a sum takes one. `together` may
    tell which values are computed in one place: a product from before a loop stays a value.
    """
    numbers = sorted(live)
    uses: dict[int, list[int]] = {}
    for n in numbers:
        for operand in table.nodes[n].operands:
            uses.setdefault(operand, []).append(n)
    taken: set[int] = set()
    gone: set[int] = set()
    for n in numbers:
        node = table.nodes[n]
        if node.operation != "*" or n not in uses:
            continue
        sums = uses[n]
        fits = all(
            table.nodes[s].operation in ("+", "-") and s not in taken and _place(together, s, n)
            for s in sums
        )
        if fits and len(set(sums)) == len(sums):
            gone.add(n)
            taken.update(sums)
    return gone


def _place(together: Mapping[int, object] | None, a: int, b: int) -> bool:
    return together is None or together.get(a) == together.get(b)


def node_cost(
    table: ValueTable, number: int, gone: set[int], *, fast_math: bool = False
) -> dict[str, float]:
    """The instructions of one value, given which products were fused away."""
    node = table.nodes[number]
    if number in gone or node.operation == "either":
        return {}
    operands = tuple(table.nodes[o].type for o in node.operands)
    if node.operation in ("+", "-") and any(o in gone for o in node.operands):
        if not node.type.is_float:
            return {"integer": 1}
        return {"fp64 fma" if node.type == F64 else "fp32 fma": 1}
    if node.operation in ("//", "%", "*") and node.type.is_integer:
        divisor = table.nodes[node.operands[-1]]
        first = table.nodes[node.operands[0]]
        for x in (divisor, first) if node.operation == "*" else (divisor,):
            if x.operation == "literal" and isinstance(x.payload, int) and x.payload > 0:
                power = not x.payload & (x.payload - 1)
                return {"integer": 1 if power or node.operation == "*" else 4}
    return dict(operation_cost(node.operation, node.type, operands, fast_math=fast_math))


def count_operations(
    function: ir.Function, known: dict[int, Counter[str]] | None = None
) -> Counter[str]:
    """Operations as the text has them: `+`, `*`, `rsqrt`, ... Loops count once.

    known: those of functions that were met, by identity: functions that call one another twice come
    to 2^n calls.
    """
    known = {} if known is None else known
    if (found := known.get(id(function))) is not None:
        return found
    counts: Counter[str] = Counter()
    for s in statements(function.body):
        if isinstance(s, ir.Apply):
            counts += count_operations(s.function, known)
        for e in expressions(s):
            for x in subexpressions(e):
                match x:
                    case ir.Unary() | ir.Binary() | ir.Compare() | ir.Logical():
                        counts[x.operator] += 1
                    case ir.Call():
                        counts[x.intrinsic] += 1
                    case ir.Select():
                        counts["select"] += 1
                    case _:
                        pass
    known[id(function)] = counts
    return counts
