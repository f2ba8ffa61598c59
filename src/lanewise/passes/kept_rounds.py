"""Keep what the rounds of a panel write in registers, for the later rounds that read it: scalar
replacement across rounds.

    for i in range(first, first + rounds): s = b[i, x]; for k in range(first, i): s -= l[i, k] *
    b[k, x]; b[i, x] = s / l[i, i]
->  if rounds == 64:
        for row in range(64): i = first + row; load b[i, x]: b_1; s = b_1; begin[row] = s
        written out for row in range(64): i = first + row; s = begin[row]
            for k.row in range(row): k = first + k.row; load l[i, k]: l_2; s = s - l_2 * kept[k.row]
            written out load l[i, i]: l_4; kept[row] = s / l_4
        for row in range(64): store b[first + row, x] = kept[row]
    else: as before
All that the rounds read of memory is loaded before anything is stored, so that a compiler can load
ahead.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import AffineAccess, difference, nest, nest_of
from lanewise.analysis.multiples import definitions
from lanewise.analysis.recurrences import Recurrence, inside, recurrence, resolved
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rename,
    statements,
    subexpressions,
    used_in,
    writes,
)
from lanewise.language.types import LocalArray, Scalar
from lanewise.passes.base import refuse
from lanewise.passes.loop_splitting import clean, nested
from lanewise.passes.panels import with_value


def legal(kernel: ir.Kernel, rounds: int) -> str | None:
    """Why the pass does not apply to a panel of so many rounds, or None."""
    if not kernel.series or abs(kernel.series[-1].step) != rounds:
        return f"its launches are no panels of {rounds} rounds"
    blocked = recurrence(kernel)
    if isinstance(blocked, str):
        return blocked
    return _unfit(kernel, blocked)


def apply(kernel: ir.Kernel, rounds: int) -> ir.Kernel:
    """The kernel of a panel that keeps its rounds in registers, where there are so many; raises
    `PlanError` where it does not fit.
    """
    if reason := legal(kernel, rounds):
        raise refuse("keeping of rounds", kernel, reason)
    blocked = recurrence(kernel)
    assert isinstance(blocked, Recurrence)
    _, body = nest_of(kernel)
    count = ir.Local(kernel.series[-1].rounds, blocked.outer.start.type)
    kept = ir.If(
        build.equal(count, rounds), _Kept(kernel, blocked, rounds).rounds(), (blocked.outer,)
    )
    return clean(replace(kernel, body=nested((*body[:-1], kept), nest(kernel)[0])))


def _unfit(kernel: ir.Kernel, blocked: Recurrence) -> str | None:
    """Why rounds do not read exactly what earlier rounds of the panel wrote."""
    v, k = blocked.outer.variable, blocked.inner.variable
    stores = [a for a in blocked.accesses if a.is_store]
    if len(stores) != 1 or stores[0].statement not in blocked.outer.body[blocked.at + 1 :]:
        return f"a round of {v} does not write one element, whatever happens"
    (store,) = stores
    statement = store.statement
    assert isinstance(statement, ir.StoreElement)
    if statement.more or not blocked.reaches:
        return f"not all rounds of {k} belong to a round of {v}"
    again = [a for a in blocked.accesses if a.array == store.array and not a.is_store]
    within = inside(blocked)
    if not any(a in within for a in again):
        return f"the loop over {k} reads nothing that is written"
    before = list(statements(blocked.outer.body[: blocked.outer.body.index(statement)]))
    for a in again:
        if a in within and not _is_earlier(blocked, a, store):
            return f"the loop over {k} reads more of {a.array} than what rounds of {v} write"
        if a not in within and not (a.statement in before and _is_same(a, store)):
            return f"a round of {v} reads more of {a.array} than it writes"
    if any(isinstance(s, ir.DeclareArray | ir.SetElement) for s in statements(blocked.outer.body)):
        return f"a round of {v} has local arrays"
    meant, fixed = definitions(nest_of(kernel)[1]), _fixed(kernel, v)
    if any(not fixed.issuperset(reads(resolved(i, meant))) for i in statement.indices):
        return f"where a round of {v} writes depends on what it reads"
    return None


def _is_earlier(blocked: Recurrence, read: AffineAccess, store: AffineAccess) -> bool:
    """Whether round k of the inner loop reads what the outer round of that number wrote."""
    least = 0 if blocked.end == "stop" else 1
    gaps = [blocked.gap(a, b) for a, b in zip(read.indices, store.indices, strict=True)]
    same = [
        a is not None and b is not None and difference(a, b) == 0
        for a, b in zip(read.indices, store.indices, strict=True)
    ]
    return gaps.count(least) == 1 and all(s or g == least for s, g in zip(same, gaps, strict=True))


def _is_same(read: AffineAccess, store: AffineAccess) -> bool:
    return all(
        a is not None and b is not None and difference(a, b) == 0
        for a, b in zip(read.indices, store.indices, strict=True)
    )


def _fixed(kernel: ir.Kernel, v: str) -> set[str]:
    """What a place may be made of: it is the same in whatever loop of rounds."""
    indices, _ = nest_of(kernel)
    return {v, *indices, *(p.name for p in kernel.counts + kernel.uniforms)}


class _Kept:
    """Writes the rounds of a full panel."""

    def __init__(self, kernel: ir.Kernel, blocked: Recurrence, rounds: int) -> None:
        self.kernel, self.blocked, self.count = kernel, blocked, rounds
        self.index = blocked.outer.start.type
        v, k = (n.removeprefix(MARK) for n in (blocked.outer.variable, blocked.inner.variable))
        self.row, self.earlier = (
            ir.Local(own(f"{v}.row"), self.index),
            ir.Local(own(f"{k}.row"), self.index),
        )
        self.now = {
            blocked.outer.variable: own(f"{v}.now"),
            blocked.inner.variable: own(f"{k}.now"),
        }
        (self.store,) = (s for s in blocked.outer.body if isinstance(s, ir.StoreElement))
        self.kind = kernel.array(self.store.array).leaves[0].type
        self.kept = own(f"kept.{self.store.array}")
        self.meant = definitions(nest_of(kernel)[1])
        self.fixed = _fixed(kernel, blocked.outer.variable)

    def rounds(self) -> ir.Block:
        blocked, body = self.blocked, self.blocked.outer.body
        head, tail = body[: blocked.at], body[blocked.at + 1 :]
        same = tuple(s for s in head if isinstance(s, ir.Assign) and self._is_fixed(s))
        begun = {n: own(f"begin.{n.removeprefix(MARK)}") for n in self._begun(head, tail, same)}
        kinds = self._kinds(begun)
        declared = tuple(
            ir.DeclareArray(a, LocalArray(kinds[n], self.count)) for n, a in begun.items()
        )
        begin = tuple(ir.SetElement(a, self.row, ir.Local(n, kinds[n])) for n, a in begun.items())
        resume = tuple(ir.Assign(n, ir.Element(a, self.row, kinds[n])) for n, a in begun.items())
        end = ir.StoreElement(
            self.store.array, tuple(resolved(i, self.meant) for i in self.store.indices),
            ir.Element(self.kept, self.row, self.kind), location=self.store.location,
        )  # fmt: skip
        done = (
            *declared, ir.DeclareArray(self.kept, LocalArray(self.kind, self.count)),
            self._over((*head, *begin)),
            self._over((*same, *resume, self._inner(), *flat_map(tail, self._finished))),
            self._over((end,)),
        )  # fmt: skip
        return rename(done, self.now)

    def _over(self, body: ir.Block) -> ir.For:
        """A loop over the rows of the panel, written out."""
        blocked, first = self.blocked, self.blocked.outer.start
        place = build.add(first, self.row) if blocked.step > 0 else build.subtract(first, self.row)
        zero, one, last = (ir.Literal(n, self.index) for n in (0, 1, self.count))
        return ir.For(
            self.row.name,
            zero,
            last,
            one,
            (ir.Assign(blocked.outer.variable, place), *body),
            unroll=0,
        )

    def _inner(self) -> ir.For:
        """The rounds of the inner loop, which are those of the rows before this one."""
        blocked, inner = self.blocked, self.blocked.inner
        bound = with_value(blocked.bound, blocked.outer.variable, blocked.outer.start)
        k = (
            build.add(bound, self.earlier)
            if blocked.end == "stop"
            else build.subtract(build.subtract(bound, 1), self.earlier)
        )
        body = (ir.Assign(inner.variable, k), *flat_map(inner.body, self._kept))
        return replace(
            inner,
            variable=self.earlier.name,
            start=ir.Literal(0, self.index),
            stop=self.row,
            step=ir.Literal(1, self.index),
            body=body,
            unroll=0,
        )

    def _kept(self, s: ir.Statement) -> ir.Block:
        if isinstance(s, ir.LoadElement) and s.array == self.store.array:
            return (ir.Assign(s.name, ir.Element(self.kept, self.earlier, self.kind), s.location),)
        return (s,)

    def _finished(self, s: ir.Statement) -> ir.Block:
        return (
            (ir.SetElement(self.kept, self.row, self.store.value, s.location),)
            if isinstance(s, ir.StoreElement)
            else (s,)
        )

    def _is_fixed(self, s: ir.Assign) -> bool:
        return s.name in self.meant and self.fixed.issuperset(reads(resolved(s.value, self.meant)))

    def _begun(self, head: ir.Block, tail: ir.Block, same: tuple[ir.Assign, ...]) -> list[str]:
        """The variables that the head leaves to the rest of a round."""
        rest = (self.blocked.inner, *tail)
        used = used_in(rest)
        written = dict.fromkeys(n for s in statements(head) for n in writes(s))
        return [n for n in written if n in used and n not in {s.name for s in same}]

    def _kinds(self, names: dict[str, str]) -> dict[str, Scalar]:
        every = (
            x
            for s in statements(self.blocked.outer.body)
            for e in expressions(s)
            for x in subexpressions(e)
        )
        return {x.name: x.type for x in every if isinstance(x, ir.Local) and x.name in names}
