"""Functions of mathematics of many rounds at once, in a loop whose rounds come one after the other.

    for j in range(n): ...; m = max(x, s); u = exp(x - m); t = t * u + 1; x = m
->  for $block in range(0, n - n % 16, 16):
      for $round in range(16): ...; m = max(x, s); $1[$round] = x - m; x = m
      for $round in range(16): $2[$round] = exp($1[$round])    in SIMD lanes
      for $round in range(16): u = $2[$round]; t = t * u + 1
    and the rounds that are left as they are written
First runs what the arguments of the functions need, of sixteen rounds; last what needs their
values. Nothing is computed in another way or order: the bits are those of the loop. Legal where no
argument needs the value of such a function, and where no array is read and written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from lanewise.analysis.reductions import first_access, fold_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    children,
    ends_early,
    flat_map,
    loads,
    reads,
    rename,
    rewrite,
    statements,
    stores,
    subexpressions,
    used_in,
    written_in,
)
from lanewise.language.types import BOOL, I32, I64, LocalArray, Scalar
from lanewise.runtime.mathematics.library import FUNCTIONS

ROUNDS = 32  # of a block: some registers of numbers, so that parts are not too short
_PLAIN = (ir.Assign, ir.LoadElement, ir.StoreElement, ir.SetElement, ir.If, ir.For)


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with functions in blocks of rounds; the same one where that is of no use."""
    numbers = count(1)

    def change(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.For) or not _is_plain(s) or not _goes_on(s):
            return (s,)
        found = _find(s)
        return (s,) if found is None else _Writer(s, found, numbers).block()

    return replace(kernel, body=flat_map(kernel.body, change))


def _is_plain(s: ir.For) -> bool:
    """Whether its rounds can be counted, and nothing that they read from arrays is written."""
    inside = list(statements(s.body))
    if not isinstance(s.start, ir.Literal) or s.step != ir.Literal(1, s.step.type):
        return False
    if isinstance(s.stop, ir.Literal) and s.stop.value - s.start.value < ROUNDS:
        return False
    if s.start.value < 0 or s.start.type not in (I32, I64) or ends_early(s.body):
        return False
    if s.variable in written_in(s.body) or not all(isinstance(x, _PLAIN) for x in inside):
        return False
    written = {a for x in inside for a in stores(x)}
    return written.isdisjoint(a for x in inside for a in loads(x))


def _goes_on(s: ir.For) -> bool:
    """Whether LLVM takes no rounds of it at once: it has loops inside, or variables that go from
    round to round and gather nothing.
    """
    if any(isinstance(x, ir.For) for x in s.body):
        return True
    carried = (n for n in written_in(s.body) if first_access(s.body, n) == "read")
    return any(fold_of(s.body, n) is None for n in carried)


def _calls(e: ir.Expression) -> Iterator[ir.Call]:
    """The functions in an expression that stand in no other one."""
    if _is_function(e):
        assert isinstance(e, ir.Call)
        yield e
        return
    for child in children(e):
        yield from _calls(child)


def _is_function(e: ir.Expression) -> bool:
    return isinstance(e, ir.Call) and e.intrinsic in FUNCTIONS


def _calls_of(s: ir.Statement) -> list[ir.Call]:
    if not isinstance(s, ir.Assign | ir.StoreElement):
        return []
    return [c for c in _calls(s.value) if all(x.type != BOOL for x in subexpressions(c))]


@dataclass(frozen=True, slots=True)
class _Found:
    """Which statements of a loop run first, and which functions are taken out of the others: a
    statement, and which one of its functions.
    """

    first: frozenset[int]
    taken: frozenset[tuple[int, int]]


def _find(loop: ir.For) -> _Found | None:
    body = loop.body
    taken = {
        (n, k)
        for n, s in enumerate(body)
        for k, c in enumerate(_calls_of(s))
        if not _is_late(body, n, c)
    }
    first = set[int]()
    while taken:
        first = _first(body, {v for n, k in taken for v in reads(_calls_of(body[n])[k])})
        if not (again := {x for x in taken if x[0] in first}):
            break
        taken -= again
    if not taken:
        return None
    given = {v for n in first for v in written_in((body[n],))}
    inside = [x for n in first for x in statements((body[n],))]
    arrays = {x.array for x in inside if isinstance(x, ir.SetElement)}
    others = [s for n, s in enumerate(body) if n not in first]
    rest, written = used_in(tuple(others)), written_in(tuple(others))
    counted = {x.variable for x in statements(body) if isinstance(x, ir.For)}
    counted -= {v for s in body for v in _needed_by(s)}
    # what is set in both, and arrays of the first part that the last one reads, stay as they are
    if given & written - counted or arrays & rest:
        return None
    return _Found(frozenset(first), frozenset(taken))


def _is_late(body: ir.Block, at: int, call: ir.Call) -> bool:
    """Whether what its statement gives is needed for its arguments, of the next round or a later
    one.
    """
    return at in _first(body, set(reads(call)))


def _first(body: ir.Block, needs: set[str]) -> set[int]:
    """The statements that give what is needed, in this round or the one before."""
    found, more = set[int](), True
    while more:
        more = False
        for n, s in enumerate(body):
            if n not in found and needs & written_in((s,)):
                found.add(n)
                needs |= _needed_by(s)
                more = True
    return found


def _needed_by(s: ir.Statement) -> set[str]:
    """What a statement reads that it does not give a value before."""
    return {v for v in used_in((s,)) if first_access((s,), v) == "read"}


@dataclass
class _Writer:
    """Writes the three parts of a loop."""

    loop: ir.For
    found: _Found
    numbers: Iterator[int]
    arrays: list[ir.DeclareArray] = field(default_factory=list[ir.DeclareArray])
    first: list[ir.Statement] = field(default_factory=list[ir.Statement])
    middle: list[ir.Statement] = field(default_factory=list[ir.Statement])
    last: list[ir.Statement] = field(default_factory=list[ir.Statement])

    def __post_init__(self) -> None:
        number = next(self.numbers)
        self.kind = self.loop.start.type
        self.round = ir.Local(own(f"round.{number}"), self.kind)
        self.names = {n: own(f"{n}.{number}") for n in ("begin", "end", "block", "now")}
        self.given = {v for n in self.found.first for v in written_in((self.loop.body[n],))}
        self.changing = written_in(self.loop.body) | {self.loop.variable}
        self.versions = dict[str, int]()
        self.kept = dict[tuple[str, int], ir.Element]()

    def block(self) -> ir.Block:
        """What stands in the place of the loop."""
        for n, s in enumerate(self.loop.body):
            if n in self.found.first:
                self.first.append(s)
                for v in written_in((s,)):
                    self.versions[v] = self.versions.get(v, 0) + 1
            else:
                self.rest(s, [k for at, k in self.found.taken if at == n])
        return self.whole()

    def rest(self, s: ir.Statement, taken: list[int]) -> None:
        """A statement of the last part, and what the first two parts keep for it."""
        if taken:
            assert isinstance(s, ir.Assign | ir.StoreElement)
            calls = _calls_of(s)
            apart = {id(calls[k]): self.apart(calls[k]) for k in sorted(taken)}
            s = replace(s, value=_replaced(s.value, apart))
        kinds = {
            e.name: e.type
            for x in statements((s,))
            for top in children(x)
            for e in subexpressions(top)
            if isinstance(e, ir.Local) and e.name in self.given
        }
        named = dict[str, str]()
        for v, kind in kinds.items():
            kept = self.keep(v, kind)
            named[v] = f"{kept.array}.now"
            self.last.append(ir.Assign(named[v], kept))
        (done,) = rename((s,), named) if named else (s,)
        self.last.append(done)

    def keep(self, name: str, kind: Scalar) -> ir.Element:
        """A variable of the first part, as it is here."""
        key = name, self.versions.get(name, 0)
        if key not in self.kept:
            self.kept[key] = self.put(ir.Local(name, kind), self.first)
        return self.kept[key]

    def put(self, value: ir.Expression, part: list[ir.Statement]) -> ir.Element:
        """A value of every round, in an array."""
        name = own(f"apart.{next(self.numbers)}")
        self.arrays.append(ir.DeclareArray(name, LocalArray(value.type, ROUNDS)))
        part.append(ir.SetElement(name, self.round, value))
        return ir.Element(name, self.round, value.type)

    def apart(self, call: ir.Call) -> ir.Element:
        """The value of a function, whose arguments the first part keeps."""
        changing = [e for e in _outside(call) if self.changing & set(reads(e))]
        return self.put(
            _replaced(call, {id(e): self.put(e, self.first) for e in changing}), self.middle
        )

    def whole(self) -> ir.Block:
        loop, kind, names = self.loop, self.kind, self.names
        begin, end, block, now = (
            ir.Local(names[n], kind) for n in ("begin", "end", "block", "now")
        )
        zero, one, many = (ir.Literal(n, kind) for n in (0, 1, ROUNDS))
        here = ir.Assign(now.name, build.add(block, self.round))

        def part(listed: list[ir.Statement], first: tuple[ir.Statement, ...] = (here,)) -> ir.For:
            body = rename((*first, *listed), {loop.variable: now.name})
            return ir.For(
                self.round.name, zero, many, one, body, role="lanes", location=loop.location
            )

        parts = part(self.first), part(self.middle, ()), part(self.last)
        way = build.subtract(end, loop.start)
        return (
            ir.Assign(end.name, build.maximum(loop.stop, loop.start)),
            ir.Assign(begin.name, build.subtract(end, build.remainder(way, ROUNDS))),
            *self.arrays,
            ir.For(block.name, loop.start, begin, many, parts, location=loop.location),
            replace(loop, start=begin, stop=end),
        )


def _outside(e: ir.Expression) -> Iterator[ir.Expression]:
    """The largest parts of an expression that have no function in them."""
    if not any(map(_is_function, subexpressions(e))):
        yield e
        return
    for child in children(e):
        yield from _outside(child)


def _replaced(e: ir.Expression, new: dict[int, ir.Element]) -> ir.Expression:
    """With others in the place of some parts, which have none of these in them."""
    return rewrite(e, lambda x: new.get(id(x), x))
