"""Rounds that read what was gathered so far, shared by the threads of a point: scans.

    for k in range(n): s = s + a[y, k]; r[y, k] = s
->  for k.first in range(0, n, slices):
        k = k.first + slice; own = 0
        if k < n: own = own + a[y, k]; upto = own                  each thread gathers its round
        own = own of 1 before + own; own = own of 2 before + own; ...   those up to this thread
        before = s + own of 1 before                                    and those before it
        if k < n: r[y, k] = before + upto
        s = s + own of the last
Neighbouring threads take neighbouring rounds, or groups of them where accesses are wide. Between
warps values meet in shared memory. What is gathered is joined in another order than by one thread,
which sums of floats may be; the order is fixed for a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lanewise.analysis.multiples import definitions, is_multiple, lengths
from lanewise.analysis.reductions import Halves
from lanewise.analysis.running import prior
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold, join, neutral
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import rename, statements, used_in, writes
from lanewise.ir.values import shared_values
from lanewise.language.target import WARP
from lanewise.language.types import Scalar
from lanewise.passes.shared_loops import LANE, Sharing
from lanewise.passes.wide_rounds import several, wide_accesses


@dataclass(frozen=True, slots=True)
class RunningRounds:
    """Writes the rounds of one loop.

    across: rounds that a thread takes together. kept: the variables that only gather. arrays: of
    the kernel, to which shared memory is added.
    """

    kernel: ir.Kernel
    body: ir.Block
    indices: tuple[str, ...]
    sharing: Sharing
    across: int
    slice: ir.Local
    kept: frozenset[str]
    arrays: list[ir.ArrayArgument]

    def block(self, loop: ir.For, halves: Halves) -> ir.Block:
        """All rounds: turns in which every thread has some, and what is left.

        In the former nothing is tested, so that a compiler can load ahead.
        """
        each = self.sharing.slices * self.across
        sure, meant = lengths(self.kernel, self.across), definitions(self.body)
        whole = is_multiple(loop.stop, self.across, sure, meant)
        many = build.divide(build.subtract(loop.stop, loop.start), each)
        last = build.add(loop.start, build.multiply(build.maximum(many, 0), each))
        return (
            self.turns(loop, halves, loop.start, last, self.across, tested=False),
            self.turns(loop, halves, last, loop.stop, self.across if whole else 1, tested=True),
        )

    def turns(
        self,
        loop: ir.For,
        halves: Halves,
        start: ir.Expression,
        stop: ir.Expression,
        across: int,
        *,
        tested: bool,
    ) -> ir.For:
        """Turns in which every thread takes its rounds; all threads of a block go through them."""
        kind, slices = loop.start.type, self.sharing.slices
        at, first = ir.Local(loop.variable, kind), ir.Local(own(f"{loop.variable}.first"), kind)
        mine = build.multiply(build.index_of(self.slice, kind), across)
        there = build.less(at, stop)
        early, late = self.halves(loop, halves, across)
        gathered = [_beside(f, "own") for f in halves.folds]
        body: list[ir.Statement] = [ir.Assign(at.name, build.add(first, mine))]
        body += [
            ir.Assign(x.name, neutral(f.operation, f.type))
            for f, x in zip(halves.folds, gathered, strict=True)
        ]
        if tested:
            body += [ir.Assign(n, build.zero(t)) for n, t in self.handed_on(early, late)]
            early, late = (ir.If(there, early),), (ir.If(there, late),)
        body += early
        for f in halves.folds:
            body += self.before(f)
        body += late
        body += [
            ir.Assign(f.name, join(f.operation, f.variable, _beside(f, "all")))
            for f in halves.folds
        ]
        if self.sharing.slices > self.neighbours:  # before others write what this turn has read
            body.append(ir.Barrier())
        step = ir.Literal(slices * across, kind)
        return replace(
            loop,
            variable=first.name,
            start=start,
            stop=stop,
            step=step,
            body=tuple(body),
            unroll=1 if tested else self.sharing.unroll,
        )

    @property
    def neighbours(self) -> int:
        return min(self.sharing.slices, self.sharing.warp)

    # ------------------------------------------------------------ the halves of a round

    def halves(self, loop: ir.For, halves: Halves, across: int) -> tuple[ir.Block, ir.Block]:
        """Both for all rounds that a thread takes together."""
        names = {f.name: _beside(f, "own").name for f in halves.folds}
        late = halves.late
        read = used_in(late)
        without = [f for f in halves.folds if prior(f.name) in read]
        with_it = [f for f in halves.folds if f.name in read]
        from_ = tuple(ir.Assign(_beside(f, "from").name, _beside(f, "own")) for f in without)
        upto = tuple(ir.Assign(_beside(f, "upto").name, _beside(f, "own")) for f in with_it)
        early = (*from_, *rename(halves.early, names), *upto)
        here = {f.name: _beside(f, "here").name for f in with_it}
        begin = [
            ir.Assign(name, join(f.operation, _beside(f, "before"), _beside(f, what)))
            for name, f, what in (
                *((prior(f.name), f, "from") for f in without),
                *((here[f.name], f, "upto") for f in with_it),
            )
        ]
        late = (*begin, *rename(late, here))
        if across == 1:
            return early, late
        sure, meant = lengths(self.kernel, across), definitions(self.body)
        wide = wide_accesses(self.kernel, self.body, self.indices, loop, across, sure, meant)
        kept = frozenset(
            (*self.kept, *names.values(), *(_beside(f, "before").name for f in halves.folds))
        )
        given = frozenset(n for s in statements(early) for n in writes(s) if n not in kept)
        return (
            several(replace(loop, body=early), across, _among(early, wide), kept),
            several(replace(loop, body=late), across, _among(late, wide), kept, given),
        )

    def handed_on(self, early: ir.Block, late: ir.Block) -> Iterator[tuple[str, Scalar]]:
        """What the early half of a round hands on to the late one, with a value for threads that
        have no round.
        """
        read = used_in(late)
        kinds = {a.name: a.leaves[0].type for a in self.kernel.arrays}
        done = set[str](self.kept)
        for s in statements(early):
            match s:
                case ir.Assign():
                    types = {s.name: s.value.type}
                case ir.LoadElement():
                    types = dict.fromkeys(s.names, kinds[s.array])
                case ir.Apply():
                    types = {n: r.type for n, r in zip(s.results, s.function.results, strict=True)}
                case _:
                    types = {}
            for name, kind in types.items():
                if name in read and name not in done:
                    done.add(name)
                    yield name, kind

    # ------------------------------------------------------------ meeting

    def before(self, fold: Fold) -> ir.Block:
        """What was gathered in all rounds before those of this thread, and in all of the turn."""
        mine, other, sum_ = (_beside(fold, n) for n in ("own", "other", "sum"))
        before, all_ = _beside(fold, "before"), _beside(fold, "all")
        group = self.neighbours
        number = build.remainder(self.slice, group) if self.sharing.slices > group else self.slice
        done: list[ir.Statement] = [ir.Assign(sum_.name, mine)]

        def added(to: ir.Local, distance: int) -> ir.Block:
            test = build.less(ir.Literal(distance - 1, self.slice.type), number)
            both = (
                join(fold.operation, other, to) if to is sum_ else join(fold.operation, to, other)
            )
            return (
                ir.Shuffle(other.name, sum_, -distance, group),
                ir.If(test, (ir.Assign(to.name, both),)),
            )

        distance = 1
        while distance < group:
            done += added(sum_, distance)
            distance *= 2
        done += (
            self.of_warps(fold)
            if self.sharing.slices > group
            else (
                ir.Assign(before.name, fold.variable),
                ir.Shuffle(all_.name, sum_, -group, group),
            )
        )
        return (*done, *(added(before, 1) if group > 1 else ()))

    def of_warps(self, fold: Fold) -> ir.Block:
        """The same of the warps before this one, and of all, by shared memory."""
        among, index = self.sharing.slices // self.neighbours, self.slice.type
        sum_, before, all_ = (_beside(fold, n) for n in ("sum", "before", "all"))
        met = _beside(fold, "met")
        name = own(f"met.{len(self.arrays)}")
        self.arrays.append(shared_values(name, fold.type, self.sharing.lanes, among))
        lane, from_ = ir.Local(LANE, index), ir.Local(own("from"), index)
        warp = build.divide(self.slice, WARP)
        is_last = build.equal(build.remainder(self.slice, WARP), WARP - 1)
        take = (
            ir.LoadElement(name, (lane, from_), met.name),
            ir.If(
                build.less(from_, warp),
                (ir.Assign(before.name, join(fold.operation, before, met)),),
            ),
            ir.Assign(all_.name, join(fold.operation, all_, met)),
        )
        zero, one, last = (ir.Literal(n, index) for n in (0, 1, among))
        return (
            ir.If(is_last, (ir.StoreElement(name, (lane, warp), sum_),)),
            ir.Barrier(),
            ir.Assign(before.name, fold.variable),
            ir.Assign(all_.name, neutral(fold.operation, fold.type)),
            ir.For(from_.name, zero, last, one, take, role="slices", unroll=0),
        )


def _beside(fold: Fold, what: str) -> ir.Local:
    return ir.Local(own(f"{fold.name.removeprefix(MARK)}.{what}"), fold.type)


def _among(
    block: ir.Block, wide: tuple[ir.LoadElement | ir.StoreElement, ...]
) -> tuple[ir.LoadElement | ir.StoreElement, ...]:
    """Those of a block. Renaming has made them anew, each from one place of the text."""
    places = {(type(s), s.array, s.indices) for s in wide}
    return tuple(
        s
        for s in block
        if isinstance(s, ir.LoadElement | ir.StoreElement)
        and (type(s), s.array, s.indices) in places
        and not s.more
    )
