"""Accesses that are made where their indices are inside: what `checks=True` makes of those that are
not proved.

load a[i + 1]: a_1   ->   a_1 = 0; if i + 1 < $a.shape0: load a[i + 1]: a_1
                          else: $outside = min($outside, 3 << 51 + 1 << 50 + (i + 1))
Each thread or element keeps the first of its failures, by the number of the access in the text, the
dimension and the index, as one integer. The minimum of such numbers is a fold like any other,
so that every pass continues as before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lanewise.analysis.bounds import Reached, sites
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of, own
from lanewise.ir.traverse import (
    apart,
    expressions,
    flat_map,
    rewrite_statement,
    statements,
    subexpressions,
)
from lanewise.language.types import BOOL, I32, I64, Scalar

OUTSIDE = own("outside")
NONE = 2**63 - 1  # nothing was outside
# of an index in the number of a failure; the others are for the access and its dimension
INDEX_BITS = 51
MOST = 2 ** (INDEX_BITS - 1) - 1  # what is reported of an index that is larger
RANK = 3

Side = Literal["below", "beyond"]
Guards = tuple[tuple[int, int, Side], ...]
"""What is tested: the number of an access, a dimension, and whether its index may be negative or
too large.
"""


def guards_of(places: Iterable[Reached]) -> Guards:
    """The tests of what is not proved."""
    tests: dict[tuple[int, int, Side], None] = {}
    for r in places:
        if r.below:
            tests[r.site, r.dimension, "below"] = None
        if r.beyond:
            tests[r.site, r.dimension, "beyond"] = None
    return tuple(sorted(tests))


@dataclass(frozen=True, slots=True)
class IndexFailure:
    """An index outside of its array: the number of the access, the dimension and the index."""

    site: int
    dimension: int
    index: int


def failure(number: int) -> IndexFailure:
    """What a thread stored."""
    place, index = number >> INDEX_BITS, number & ((1 << INDEX_BITS) - 1)
    return IndexFailure(place // RANK, place % RANK, index - MOST - 1)


def guarded(
    body: ir.Block, guards: Guards, kinds: Mapping[str, Scalar], count: Callable[[str], Scalar]
) -> ir.Block:
    """The statements of a thread with these tests. kinds: of the elements of arrays. count: the
    type of the lengths of an array.
    """
    tests: dict[int, list[tuple[int, Side]]] = {}
    for site, dimension, side in guards:
        tests.setdefault(site, []).append((dimension, side))
    body = apart(body)  # accesses are known by identity
    pass_ = _Guarding(
        {id(s): n for n, s in enumerate(sites(body)) if n in tests}, tests, kinds, count
    )
    begin = ir.Assign(OUTSIDE, ir.Literal(NONE, I64))
    return (begin, *pass_.block(body))


def testing(
    f: ir.Function, guards: Guards, kinds: Mapping[str, Scalar], wide: Container[str]
) -> ir.Function:
    """A function that returns the number of its first failure instead of its results, and changes
    nothing: it does not scatter.

    wide: the arrays whose lengths have 64 bits.
    """
    number = ir.Return((ir.Local(OUTSIDE, I64),), f.location)

    def count(array: str) -> Scalar:
        return I64 if array in wide else I32

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.Return():
                return (replace(number, location=s.location),)
            case ir.ScatterElement():
                return ()
            case ir.If(then=(), otherwise=()) | ir.For(body=()):
                return ()
            case ir.If(then=()):
                return (
                    replace(
                        s,
                        condition=ir.Unary("not", s.condition, BOOL),
                        then=s.otherwise,
                        otherwise=(),
                    ),
                )
            case _:
                return (s,)

    body = flat_map(guarded(f.body, guards, kinds, count), visit)
    parameters = tuple(replace(p, mutable=False) for p in f.parameters)
    names = {p.name for p in parameters}
    lengths = {
        x.name
        for s in statements(body)
        for e in expressions(s)
        for x in subexpressions(e)
        if isinstance(x, ir.Local)
    }
    tested = {
        length_of(s.array, d): count(s.array) for s in sites(f.body) for d in range(len(s.indices))
    }
    new = tuple(
        ir.Parameter(n, tested[n]) for n in sorted(tested.keys() & lengths) if n not in names
    )
    return ir.Function(
        f"{f.name}_indices",
        (*new, *parameters),
        (ir.Parameter("result", I64),),
        (*body, number),
        f.location,
    )


@dataclass(frozen=True, slots=True)
class _Guarding:
    numbers: Mapping[int, int]  # of the accesses to guard, by identity
    tests: Mapping[int, list[tuple[int, Side]]]
    kinds: Mapping[str, Scalar]
    count: Callable[[str], Scalar]

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(x for s in block for x in self.statement(s))

    def statement(self, s: ir.Statement) -> ir.Block:
        if isinstance(s, ir.ElementAccess):
            return self.access(s) if id(s) in self.numbers else (s,)
        inside = any(id(x) in self.numbers for x in statements((s,)))
        done = rewrite_statement(s, lambda e: e, self.block)
        # a zero instead of an element must not keep a thread for ever
        if isinstance(done, ir.While) and inside:
            fine = ir.Compare("==", ir.Local(OUTSIDE, I64), ir.Literal(NONE, I64))
            done = replace(done, condition=ir.Logical("and", fine, done.condition))
        return (done,)

    def access(self, s: ir.ElementAccess) -> ir.Block:
        site = self.numbers[id(s)]
        failed: ir.Expression | None = None
        inside: ir.Expression | None = None
        for d in sorted({d for d, _ in self.tests[site]}, reverse=True):
            test = self.test(s, d, [side for n, side in self.tests[site] if n == d])
            number = _number(site * RANK + d, s.indices[d])
            failed = (
                number if failed is None or inside is None else ir.Select(test, failed, number, I64)
            )
            inside = test if inside is None else ir.Logical("and", test, inside)
        assert inside is not None
        assert failed is not None
        worst = ir.Assign(
            OUTSIDE, ir.Call("min", (ir.Local(OUTSIDE, I64), failed), I64), s.location
        )
        first: ir.Block = ()
        if isinstance(s, ir.LoadElement):
            kind = self.kinds[s.array]
            first = (ir.Assign(s.name, ir.Literal(kind.dtype.type(0).item(), kind), s.location),)
        return (*first, ir.If(inside, (s,), (worst,), s.location))

    def test(self, s: ir.ElementAccess, dimension: int, sides: list[Side]) -> ir.Expression:
        """Whether an index is inside, as far as that is open."""
        index = s.indices[dimension]
        length = ir.Local(length_of(s.array, dimension), self.count(s.array))
        parts: list[ir.Expression] = []
        if "below" in sides:
            parts.append(ir.Compare("<=", ir.Literal(0, index.type), index))
        if "beyond" in sides:
            parts.append(ir.Compare("<", *_alike(index, length)))
        return parts[0] if len(parts) == 1 else ir.Logical("and", parts[0], parts[1])


def _alike(index: ir.Expression, length: ir.Expression) -> tuple[ir.Expression, ir.Expression]:
    """Both in a type that holds both."""
    if index.type == length.type:
        return index, length
    return build.index_of(index, I64), build.index_of(length, I64)


def _number(place: int, index: ir.Expression) -> ir.Expression:
    """An index outside, as one number with where it was."""
    wide = build.index_of(index, I64)
    least, most = ir.Literal(-MOST - 1, I64), ir.Literal(MOST, I64)
    inside = wide if index.type.size < I64.size else ir.Call("clamp", (wide, least, most), I64)
    return build.add(inside, (place << INDEX_BITS) + MOST + 1)
