"""Loops whose rounds read what earlier rounds wrote, but only in an inner loop that gathers.

Part of it can be done ahead.

    for i in range(n): s = b[i, x]; for k in range(i): s -= l[i, k] * b[k, x]; b[i, x] = s / l[i, i]
From round `first` on, the rounds k < first of the inner loop read rows that are finished. For all i
of a panel of rounds they depend on nothing that the panel computes: they can run before it, for all
i at once. What is left of the inner loop is inside the panel.

The proof. Rounds go by the outer variable v; let w be v, or -v where it counts down. The inner loop
ends at w + e, so that later rounds only add to its end, or begins at e - w, so that they only add
before its beginning. Of every array that is written, what rounds k read that are done ahead lies in
one dimension before all that this panel and later ones write, or behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.affine import (
    AccessLoop,
    Affine,
    AffineAccess,
    accesses,
    added,
    difference,
    nest_of,
    scaled,
)
from lanewise.analysis.multiples import definitions
from lanewise.analysis.reductions import first_access, folds_of
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.traverse import ends_early, reads, rewrite, statements, writes

End = Literal["stop", "start"]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A loop, the last statement of a thread, and the loop in it that gathers what earlier rounds
    wrote.

    at: the place of the inner loop in the body of the outer one. end: that of the inner loop which
    moves from round to round.
    start, stop: of the outer loop, by counts and uniforms. bound: the end that moves, by counts,
    uniforms and the outer variable.
    reaches: whether the rounds that are done ahead surely begin before they end. accesses: of the
    whole thread. moving: `bound` as a sum.
    """

    outer: ir.For
    inner: ir.For
    at: int
    folds: tuple[Fold, ...]
    end: End
    start: ir.Expression
    stop: ir.Expression
    bound: ir.Expression
    reaches: bool
    accesses: tuple[AffineAccess, ...]
    moving: Affine

    def gap(self, read: Affine | None, store: Affine | None) -> int | None:
        """Of two places in a dimension: how far what round k = `bound` of the inner loop reads lies
        beyond what round v writes.

        None where these places do not go with k and v, one by one.
        """
        way = self.step if self.end == "stop" else -self.step
        if read is None or store is None or read.scaled or store.scaled:
            return None
        if read.coefficients != ((self.inner.variable, 1),) or store.coefficients != (
            (self.outer.variable, way),
        ):
            return None
        return difference(added(self.moving.fixed, read.fixed), store.fixed)

    def is_early(self, load: ir.LoadElement) -> bool:
        """Whether what a round reads before its inner loop is the same before the panel: nothing
        writes it, or its own round does.
        """
        stores = [a for a in self.accesses if a.is_store and a.array == load.array]
        readers = [a for a in self.accesses if a.statement == load]
        return not stores or (
            bool(readers) and all(self._is_own(r, w) for r in readers for w in stores)
        )

    def _is_own(self, read: AffineAccess, store: AffineAccess) -> bool:
        """Whether a round reads the place that it writes, and no other round writes."""
        v = self.outer.variable
        pairs = list(zip(read.indices, store.indices, strict=True))
        same = all(a is not None and b is not None and difference(a, b) == 0 for a, b in pairs)
        return same and any(
            b is not None and b.coefficients in (((v, 1),), ((v, -1),)) for _, b in pairs
        )

    @property
    def step(self) -> int:
        assert isinstance(self.outer.step, ir.Literal)
        return int(self.outer.step.value)


def recurrence(kernel: ir.Kernel) -> Recurrence | str:
    """The recurrence of a reference kernel, or why it has none."""
    indices, body = nest_of(kernel)
    loops = [s for s in body if isinstance(s, ir.For | ir.While)]
    if len(loops) != 1 or not isinstance(outer := body[-1], ir.For):
        return "a thread is no single loop over a range"
    if not (isinstance(outer.step, ir.Literal) and abs(outer.step.value) == 1):
        return f"{outer.variable} does not go by steps of 1 or -1"
    if reason := _unfit(body[:-1], outer):
        return reason
    meant, numbers = definitions(body), {p.name for p in kernel.counts + kernel.uniforms}
    start, stop = resolved(outer.start, meant), resolved(outer.stop, meant)
    if not numbers.issuperset((*reads(start), *reads(stop))):
        return f"where {outer.variable} begins and ends is not known before the kernel runs"
    reasons: list[str] = []
    for at, inner in enumerate(outer.body):
        if isinstance(inner, ir.For):
            blocked = _inner(body, indices, outer, at, start, stop, meant, numbers)
            if isinstance(blocked, Recurrence):
                return blocked
            reasons.append(blocked)
    return reasons[0] if reasons else f"the rounds of {outer.variable} have no loop in them"


def resolved(e: ir.Expression, meant: Mapping[str, ir.Expression]) -> ir.Expression:
    """An expression with what variables stand for in their place."""

    def change(x: ir.Expression) -> ir.Expression:
        return resolved(meant[x.name], meant) if isinstance(x, ir.Local) and x.name in meant else x

    return rewrite(e, change)


def _unfit(before: ir.Block, outer: ir.For) -> str | None:
    """Why rounds cannot be told apart, whatever the inner loop does."""
    if any(isinstance(s, ir.StoreElement) for s in statements(before)):
        return f"something is written before the loop over {outer.variable}"
    stored = {s.array for s in statements(outer.body) if isinstance(s, ir.StoreElement)}
    early = [
        s.array for s in statements(before) if isinstance(s, ir.LoadElement) and s.array in stored
    ]
    if early:
        return f"{early[0]} is read before the loop over {outer.variable}, which writes it"
    if ends_early(outer.body):
        return f"a round of {outer.variable} may end early"
    for name in dict.fromkeys(n for s in statements(outer.body) for n in writes(s)):
        if first_access(outer.body, name) == "read":
            return f"{name} keeps a value from one round of {outer.variable} to the next"
    return None


def _inner(
    body: ir.Block,
    indices: tuple[str, ...],
    outer: ir.For,
    at: int,
    start: ir.Expression,
    stop: ir.Expression,
    meant: Mapping[str, ir.Expression],
    numbers: set[str],
) -> Recurrence | str:
    inner = outer.body[at]
    assert isinstance(inner, ir.For)
    assert isinstance(outer.step, ir.Literal)
    v, k, step = outer.variable, inner.variable, int(outer.step.value)
    if inner.step != ir.Literal(1, inner.step.type):
        return f"{k} does not go by steps of 1"
    folds = folds_of(inner, outer.body[at + 1 :])
    if isinstance(folds, str):
        return folds
    if not folds or any(isinstance(s, ir.StoreElement) for s in statements(inner.body)):
        return f"the loop over {k} does more than gather values"
    if any(isinstance(s, ir.StoreElement) for s in statements(outer.body[:at])):
        return f"a round of {v} writes before its loop over {k}"
    touched = accesses(body, indices)
    around = next((x for a in touched for x in a.loops if x.statement is inner), None)
    first = next((x for a in touched for x in a.loops if x.statement is outer), None)
    if around is None or first is None:
        return f"the loop over {k} reads no elements"
    end = _moving(around, v, step)
    if end is None:
        return f"rounds of {v} do not lengthen the loop over {k} at one end, by one round each"
    moving, bound = (around.stop, inner.stop) if end == "stop" else (around.start, inner.start)
    assert moving is not None
    bound = resolved(bound, meant)
    if not {*numbers, v}.issuperset(reads(bound)):
        return f"where the loop over {k} ends is not known before the kernel runs"
    result = Recurrence(
        outer,
        inner,
        at,
        folds,
        end,
        start,
        stop,
        bound,
        _reaches(around, first, end, step),
        touched,
        moving,
    )
    if array := _conflict(result):
        return (
            f"the loop over {k} may read elements of {array} that rounds of {v} write at the same "
            "time or later"
        )
    return result


def _moving(inner: AccessLoop, v: str, step: int) -> End | None:
    """Which end of the inner loop moves away with each round, by one; the other one is the same in
    all rounds.
    """
    start, stop = inner.start, inner.stop
    if start is None or stop is None:
        return None
    if v not in start.variables and stop.coefficients == ((v, step),) and not stop.scaled:
        return "stop"
    if v not in stop.variables and start.coefficients == ((v, -step),) and not start.scaled:
        return "start"
    return None


def _conflict(r: Recurrence) -> str | None:
    """A written array of which a round that is done ahead may read what the panel writes."""
    stores = [a for a in r.accesses if a.is_store]
    for read in inside(r):
        for store in stores:
            if store.array == read.array and not any(
                _apart(r, a, b) for a, b in zip(read.indices, store.indices, strict=True)
            ):
                return read.array
    return None


def inside(r: Recurrence) -> tuple[AffineAccess, ...]:
    """What the inner loop reads."""
    return tuple(
        a for a in r.accesses if not a.is_store and any(x.statement is r.inner for x in a.loops)
    )


def _apart(r: Recurrence, read: Affine | None, store: Affine | None) -> bool:
    """Whether what is read ahead by rounds k lies before all that a panel writes in this dimension,
    or behind all of it.

    With w = step * v, which grows from w0 on: k < w0 + e is read, and written is from w0 + c on; or
    k >= e - w0, and up to c - w0.
    """
    gap = r.gap(read, store)
    return gap is not None and (gap <= 0 if r.end == "stop" else gap > 0)


def _reaches(inner: AccessLoop, outer: AccessLoop, end: End, step: int) -> bool:
    """Whether even in the first panel what is done ahead begins before its end, or at it."""
    if inner.start is None or inner.stop is None or outer.start is None:
        return False
    way = step if end == "stop" else -step
    moving, still = (inner.stop, inner.start) if end == "stop" else (inner.start, inner.stop)
    gap = difference(added(scaled(outer.start, way), moving.fixed), still)
    return gap is not None and (gap >= 0 if end == "stop" else gap <= 0)
