"""How long a kernel gets when the rounds of its tiles are written out and its accesses are joined,
without doing either: to see in a hundredth of the time that compilers can take it.

for $k.round in range(8): load t[$k.round]: u; s = s + u   ->   8 times the two statements
Rounds are counted as `unrolling` writes them out. Joined accesses are mostly fewer operations, and
may be more: a wide load counts its place from names that the loads had defined before, and
neighbouring stores with a test each stay, next to the store that joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from lanewise.analysis.length import block_length, copies, own_operations, own_statement
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, statements
from lanewise.passes.base import is_source_loop
from lanewise.passes.points import sharing, unrolling

Own = Callable[[ir.Statement, frozenset[str]], int]
NONE = frozenset[str]()


def length_after(kernel: ir.Kernel, factor: int, *, joined: bool = True) -> int:
    """The length of a kernel when rounds are written out `factor` times, completely for 0, as
    `unrolling.apply` does.
    """
    return _length(kernel, factor, _own, joined=joined)


def most_length(kernel: ir.Kernel, factor: int, *, joined: bool = True) -> int:
    """What a kernel has at most when its accesses are joined as well."""
    return _length(kernel, factor, _Places(kernel, joined=joined).own, joined=joined)


def _length(kernel: ir.Kernel, factor: int, own: Own, *, joined: bool) -> int:
    every = _Rounds(factor, own)
    if joined or 0 < factor <= unrolling.FEW:
        return every.block(kernel.body, NONE)[0]
    *head, split = kernel.body
    assert isinstance(split, ir.If)
    total = every.block(tuple(head), NONE)[0] + own(split, NONE)
    at_edges = _Rounds(unrolling.FEW, own)
    return total + every.block(split.then, NONE)[0] + at_edges.block(split.otherwise, NONE)[0]


def _own(s: ir.Statement, moved: frozenset[str]) -> int:
    """Of a statement without those in it. moved: variables that stand for a sum, as in all rounds
    but the first of several.
    """
    own = own_statement(s)
    return own + sum(n in moved for e in expressions(s) for n in reads(e)) if moved else own


class _Rounds:
    """The lengths of blocks with rounds written out, and how many statements they have then."""

    def __init__(self, factor: int, own: Own) -> None:
        self.factor, self.own = factor, own

    def block(self, block: ir.Block, moved: frozenset[str]) -> tuple[int, int]:
        total = number = 0
        for s in block:
            length, several = self.statement(s, moved)
            total += length
            number += several
        return total, number

    def statement(self, s: ir.Statement, moved: frozenset[str]) -> tuple[int, int]:
        own = self.own(s, moved)
        match s:
            case ir.For():
                return self._loop(s, own, moved)
            case ir.Apply():
                return own + block_length(s.function.body), 1
            case _:
                parts = [self.block(b, moved) for b in blocks(s)]
                return own + sum(p[0] for p in parts), 1 + sum(p[1] for p in parts)

    def _loop(self, s: ir.For, own: int, moved: frozenset[str]) -> tuple[int, int]:
        length, number = self.block(s.body, moved)
        count, rounds = unrolling.rounds_of(s, self.factor)
        if count == 1 or number * count > unrolling.MOST:
            return own + length * copies(s), 1 + number
        if count == rounds:
            return length * count, number * count
        further, _ = self.block(s.body, moved | {s.variable})
        length += (count - 1) * further
        return own + length * (s.unroll or rounds // count), 1 + number * count


class _Places:
    """The most that statements become when accesses are joined. A wide load replaces two at least:
    half of what its place takes, and half of what the place of another one took, is counted for
    each.
    """

    def __init__(self, kernel: ir.Kernel, *, joined: bool) -> None:
        self._wide = {a.name for a in kernel.arrays if sharing.widest(a) > 1}
        self._read = {a.name for a in kernel.arrays if a.space == "shared" or not a.written}
        self._tests = set(self._joined(kernel.body))  # by identity
        self._rounds = {s.variable for s in statements(kernel.body) if is_source_loop(s)}
        # sums that define names, as terms and as operations in them
        self._sums: dict[str, tuple[int, int]] = {}
        # bodies that are not joined know nothing of what is defined in front of them
        for s in statements(kernel.body if joined else kernel.body[-1:]):
            if isinstance(s, ir.Assign) and s.value.type.is_integer:
                found, before = self._sum(s.value), self._sums.get(s.name, (1, 0))
                self._sums[s.name] = max(found[0], before[0]), max(found[1], before[1])

    def _joined(self, block: ir.Block) -> Iterator[int]:
        """Tests of stores that may be neighbours: they follow each other, and differ in the last
        index.
        """
        stores = [_tested(s) for s in block]
        for n, (one, other) in enumerate(pairwise(stores)):
            if (
                one is not None
                and other is not None
                and one.array == other.array
                and one.array in self._wide
                and one.indices[-1] != other.indices[-1]
            ):
                yield from (id(block[n]), id(block[n + 1]))
        for s in block:
            for inner in blocks(s):
                yield from self._joined(inner)

    def own(self, s: ir.Statement, moved: frozenset[str]) -> int:
        """Of a statement without those in it."""
        own = _own(s, moved)
        match s:
            case ir.LoadElement() if not s.more and s.array in self._wide & self._read:
                *others, last = s.indices
                terms, inside = self._sum(last)
                gone = 2 * own_operations(last) + sum(map(own_operations, others))
                return own + max(0, (2 * terms + inside - gone + 1) // 2)
            case ir.If(then=(ir.StoreElement() as store, *_)) if id(s) in self._tests:
                places = 1 + sum(map(own_operations, store.indices))  # one of two
                return 2 * own + _own(store, moved) - places // 2
            case _:
                return own

    def _sum(self, e: ir.Expression) -> tuple[int, int]:
        """The terms of an index at most, each of which is multiplied and added, and operations in
        them, when names are replaced by the sums that define them.
        """
        match e:
            case ir.Literal():
                return 0, 0
            case ir.Local():
                return self._sums.get(e.name, (1, 0))
            case ir.Binary(operator="+" | "-"):
                one, other = self._sum(e.left), self._sum(e.right)
                return one[0] + other[0], one[1] + other[1]
            case ir.Binary(operator="*"):
                one, other = self._sum(e.left), self._sum(e.right)
                below = one[0] + other[0], one[1] + other[1]
            case ir.Unary(operator="-"):
                below = self._sum(e.operand)
            case ir.Cast():
                terms, inside = self._sum(e.operand)
                below = terms, terms + inside
            case _:
                below = 0, 0
        # as one term, whose variables stand for sums in further rounds
        alone = own_operations(e) + sum(n in self._rounds for n in reads(e))
        return max(1, below[0]), max(alone, below[1])


def _tested(s: ir.Statement) -> ir.StoreElement | None:
    """What a test is made for, if it is a single store."""
    match s:
        case ir.If(then=(ir.StoreElement() as store,), otherwise=()):
            return store
        case _:
            return None
