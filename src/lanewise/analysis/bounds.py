"""From where to where the indices of accesses go, for the numbers of one call: what is in its
array, and what surely is not.

    for k in range(n): load a[y, k + 1]     y < 4, n = 10, a.shape = (4, 10)  ->  index 0 from 0 to
    3: inside; index 1 from 1 to 10: outside
A value is a sum of coefficients times indices of threads and variables of loops, plus a number
between two others. Conditions narrow what these variables can be, and sums of them. What is said to
be inside surely is. What is said to be outside surely happens: in a statement that every thread
comes to, in all rounds, with indices that are such sums and nothing else, some thread is outside;
and so it is where conditions on the way leave a box of values, each of which some thread has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lanewise.analysis.boxes_of_conditions import leaves_a_box
from lanewise.analysis.known_bounds import (
    KnownBounds,
    KnownTruth,
    LinearValue,
    Span,
    assume,
    assume_below,
    constant,
    evaluate,
    forget_names,
    joined_states,
    type_limits,
)
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import (
    ends_early,
    expressions,
    reads,
    returns,
    statements,
    used_by,
    writes,
)
from lanewise.language.types import BOOL, Scalar


@dataclass(frozen=True, slots=True)
class Reached:
    """An index of an access: the number of the access in order of text, the dimension, and from
    where to where it goes.

    sure: some thread surely makes the access with the least and another one with the greatest of
    these.
    """

    site: int
    dimension: int
    statement: ir.ElementAccess
    span: Span
    length: int
    sure: bool

    @property
    def below(self) -> bool:
        """Whether it may be negative."""
        return self.span[0] < 0

    @property
    def beyond(self) -> bool:
        """Whether it may be the length or more."""
        return self.span[1] >= self.length


def sites(body: ir.Block) -> tuple[ir.ElementAccess, ...]:
    """The accesses of a block, in order of text: their places are their numbers."""
    return tuple(s for s in statements(body) if isinstance(s, ir.ElementAccess))


def reached(
    body: ir.Block,
    extents: Mapping[str, int],
    numbers: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> tuple[Reached, ...]:
    """Every index of every access that any thread can make.

    body: of a thread with these indices. numbers: what all threads share, by name. shapes: of the
    arrays.
    """
    if not all(extents.values()):
        return ()
    box = {i: (0, n - 1) for i, n in extents.items()}
    values = {n: constant(v) for n, v in numbers.items()} | {
        i: LinearValue(((i, 1),), 0, 0) for i in extents
    }
    walk = _Walk(shapes, {id(s): n for n, s in enumerate(sites(body))})
    walk.block(body, KnownBounds(box, {}, values), sure=True)
    return tuple(walk.passed)


def decisive(body: ir.Block, names: Iterable[str], places: Iterable[Reached]) -> tuple[str, ...]:
    """Those of some values for all that an index, or the bounds of a loop, are made of; and a
    condition, unless the `places` of a call say that no index is outside which no data tell.
    """
    made: set[str] = set()
    if _may_be_refused(body, places):
        made |= {n for s in statements(body) if isinstance(s, ir.If) for n in reads(s.condition)}
    while True:
        before = len(made)
        for s in statements(body):
            if isinstance(s, ir.ElementAccess):
                made.update(n for e in s.indices for n in reads(e))
            elif isinstance(s, ir.For) or not made.isdisjoint(writes(s)):
                made.update(n for e in expressions(s) for n in reads(e))
        if len(made) == before:
            return tuple(n for n in names if n in made)


def _may_be_refused(body: ir.Block, places: Iterable[Reached]) -> bool:
    """Whether other conditions may let a thread come to an index outside that no data tell."""
    inside: dict[int, bool] = {}
    for r in places:
        inside[r.site] = inside.get(r.site, True) and not (r.below or r.beyond)
    loaded: set[str] = set()
    while True:
        before = len(loaded)
        for s in statements(body):
            used = used_by(s)
            if isinstance(s, ir.LoadElement) or not loaded.isdisjoint(used):
                loaded.update(writes(s))
        if len(loaded) == before:
            break
    return any(
        not inside.get(n, False) and loaded.isdisjoint(x for e in s.indices for x in reads(e))
        for n, s in enumerate(sites(body))
    )


@dataclass(slots=True)
class _Walk:
    """Goes through statements in order; `passed` are the indices of the accesses on the way."""

    shapes: Mapping[str, tuple[int, ...]]
    numbers: Mapping[int, int]  # of the accesses, by identity
    passed: list[Reached] = field(default_factory=list[Reached])
    loops: int = 0
    sparse: set[str] = field(default_factory=set[str])  # variables of loops that leave numbers out

    def block(self, block: ir.Block, state: KnownBounds, *, sure: bool) -> KnownBounds | None:
        """The state behind a block; None where no thread comes out of its end."""
        for s in block:
            match s:
                case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                    self.access(s, state, sure=sure)
                    for n in writes(s):
                        state.forget(n)
                case ir.If():
                    joined = self.branch(s, state, sure=sure)
                    if joined is None:
                        return None
                    state, sure = joined
                case ir.For():
                    state, sure = self.loop(s, state, sure=sure), sure and not returns(s)
                case ir.While():
                    forget_names(state, s.body)
                    inner = assume(s.condition, state.copy(), true=True)
                    if inner is not None:
                        self.block(s.body, inner, sure=False)
                    sure = sure and not returns(s)
                case ir.Break() | ir.Continue() | ir.Return():
                    return None
                case ir.Assign() if s.value.type == BOOL:
                    state.truths[s.name] = KnownTruth(
                        s.value, dict(state.values), dict(state.truths)
                    )
                case ir.Assign() if s.value.type.is_integer:
                    state.values[s.name] = evaluate(s.value, state)
                case _:
                    pass
        return state

    def access(self, s: ir.ElementAccess, state: KnownBounds, *, sure: bool) -> None:
        for d, (e, length) in enumerate(zip(s.indices, self.shapes[s.array], strict=True)):
            value = evaluate(e, state)
            low, high = span = state.span(value)
            certain = sure and (value.is_sum or low >= length or high < 0)
            self.passed.append(Reached(self.numbers[id(s)], d, s, span, length, certain))

    def branch(
        self, s: ir.If, state: KnownBounds, *, sure: bool
    ) -> tuple[KnownBounds, bool] | None:
        """What holds behind a branch, and whether some thread surely has each value of its box."""
        ends: list[KnownBounds | None] = []
        kept = sure
        for block, true in ((s.then, True), (s.otherwise, False)):
            side = assume(s.condition, state.copy(), true=true)
            whole = sure and leaves_a_box(s.condition, state, self.sparse, true=true)
            ends.append(None if side is None else self.block(block, side, sure=whole))
            if any(map(returns, block)):  # then those of the other side alone continue
                kept = kept and (ends[-1] is None)
            elif returns(s):
                kept = kept and whole
        joined = joined_states(ends[0], ends[1])
        return None if joined is None else (joined, kept)

    def loop(self, s: ir.For, state: KnownBounds, *, sure: bool) -> KnownBounds:
        """The body is gone through once, with a variable that may be that of any round."""
        start, stop, step = (evaluate(e, state) for e in (s.start, s.stop, s.step))
        fixed = all(v.number is not None for v in (start, stop, step))
        jumps = ends_early(s.body)
        self.loops += 1
        symbol, inner = f"{s.variable}@{self.loops}", state.copy()
        forget_names(inner, (s,))
        low, high = inner.box[symbol] = _rounds(inner, start, stop, step.number, s.start.type)
        variable = inner.values[s.variable] = LinearValue(((symbol, 1),), 0, 0)
        if step.number not in (1, -1):
            self.sparse.add(symbol)
        runs = low <= high
        if runs and not fixed and step.number:
            first, last = (start, stop) if step.number > 0 else (stop, start)
            strict = step.number > 0
            runs = assume_below(first, variable, inner, strict=not strict) and assume_below(
                variable, last, inner, strict=strict
            )
        if not runs:
            return state
        self.block(s.body, inner, sure=sure and fixed and not jumps)
        forget_names(state, (s,))
        return state


def _rounds(
    state: KnownBounds, start: LinearValue, stop: LinearValue, step: int | None, kind: Scalar
) -> Span:
    """What the variable of a loop may be."""
    if not step:
        return type_limits(kind)
    if start.number is not None and stop.number is not None:
        rounds = range(start.number, stop.number, step)
        return (min(rounds[0], rounds[-1]), max(rounds[0], rounds[-1])) if rounds else (1, 0)
    if step > 0:
        return state.span(start)[0], state.span(stop)[1] - 1
    return state.span(stop)[0] + 1, state.span(start)[1]


# ------------------------------------------------------------ conditions


# ------------------------------------------------------------ values
