"""What one of the threads does that share loops: which point and slice it has, its rounds, and
where sums meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lanewise.analysis.affine import nest, nest_of
from lanewise.analysis.carried import with_rounds
from lanewise.analysis.multiples import definitions, is_multiple, lengths
from lanewise.analysis.reductions import Shareable
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold, join, neutral
from lanewise.ir.names import MARK, is_own, own
from lanewise.ir.traverse import flat_map, reads, rename, statements
from lanewise.ir.values import shared_values
from lanewise.language.target import WARP
from lanewise.language.types import BOOL
from lanewise.passes import kept_values
from lanewise.passes.carried_meeting import CarriedState, nowhere
from lanewise.passes.running_rounds import RunningRounds
from lanewise.passes.shared_loops import (
    INSIDE,
    LANE,
    SLICE,
    Sharing,
    nest_index,
    rows_of,
    with_inner,
)
from lanewise.passes.wide_rounds import several, wide_accesses, width


class ThreadPlaces:
    """The point and the slice of a thread."""

    def __init__(self, kernel: ir.Kernel, sharing: Sharing) -> None:
        loops, _ = nest(kernel)
        self.loops, self.sharing, self.index = loops, sharing, loops[0].extent.type
        self.is_partial = sharing.lanes > 1

    def of_thread(self) -> tuple[ir.Block, ir.Expression]:
        """What gives a thread its indices, and how many blocks there are."""
        index, sharing = self.index, self.sharing
        thread, block, lane = (ir.Local(own(n), index) for n in ("thread", "block", "lane"))
        by_row = sharing.way == "row"
        divisor = sharing.slices if by_row else sharing.lanes
        high, low = build.divide(thread, divisor), build.remainder(thread, divisor)
        head: list[ir.Statement] = [
            ir.Assign(block.name, ir.Builtin("block", index)),
            ir.Assign(thread.name, ir.Builtin("thread", index)),
            ir.Assign(SLICE, low if by_row else high),
            ir.Assign(LANE, high if by_row else low),
        ]
        *slower, fastest = self.loops
        tiles = build.ceil_divide(fastest.extent, sharing.lanes)
        total: ir.Expression = tiles
        tile: ir.Expression = block
        if slower:
            count, behind = ir.Local(own("tiles"), index), ir.Local(own("behind"), index)
            head += [
                ir.Assign(count.name, tiles),
                ir.Assign(behind.name, build.divide(block, count)),
            ]
            tile = build.subtract(block, build.multiply(behind, count))
            rest: ir.Expression = behind
            for n, loop in reversed(list(enumerate(slower))):
                total = build.multiply(loop.extent, total)
                if n:
                    after = ir.Local(own(f"{loop.variable}.behind"), index)
                    head.append(ir.Assign(after.name, build.divide(rest, loop.extent)))
                    value = build.subtract(rest, build.multiply(after, loop.extent))
                    head.append(ir.Assign(loop.variable, value))
                    rest = after
                else:
                    head.append(ir.Assign(loop.variable, rest))
        point = build.add(build.multiply(tile, sharing.lanes), lane)
        if not self.is_partial:
            return (*head, ir.Assign(fastest.variable, tile)), total
        at = ir.Local(own(f"{fastest.variable}.point"), index)
        head += [
            ir.Assign(at.name, point),
            ir.Assign(INSIDE, build.less(at, fastest.extent)),
            ir.Assign(fastest.variable, build.minimum(at, build.subtract(fastest.extent, 1))),
        ]
        return tuple(head), total


class ThreadWriter:
    """Writes the statements of a thread that shares its loops with others."""

    def __init__(
        self, kernel: ir.Kernel, sharing: Sharing, guarded: bool, loops: dict[int, Shareable]
    ) -> None:
        self.kernel, self.sharing = kernel, sharing
        self.index = nest_index(kernel)
        self.slice = ir.Local(SLICE, self.index)
        self.inside: ir.Expression | None = ir.Local(INSIDE, BOOL) if guarded else None
        self.written = {s.array for s in statements(kernel.body) if isinstance(s, ir.StoreElement)}
        self.kinds = {a.name: a.leaves[0].type for a in kernel.arrays}
        self.arrays: list[ir.ArrayArgument] = []
        self.indices, self.body = nest_of(kernel)
        inner = tuple(x.inner for x in loops.values())
        by_row = sharing.way == "row" and sharing.slices > 1
        self.across = width(kernel, self.body, self.indices, inner) if by_row else 1
        self.across = self.across if all(self.begins_even(x) for x in inner) else 1
        if len({x.halves is None for x in loops.values()}) > 1 and not all(
            self.is_even(x.stop) for x in inner
        ):  # they divide what is left over otherwise, and one may read what another wrote
            self.across = 1
        self.rows = rows_of(kernel, loops) if sharing.keep else ()
        self.values = kept_values.values_of(kernel, self.body, loops) if sharing.values else ()
        self.across = 1 if self.values else self.across
        self.arrays += [v.argument(sharing.lanes, sharing.values) for v in self.values]
        self.arrays += [
            shared_values(row.name, row.type, sharing.lanes, sharing.keep) for row in self.rows
        ]

    def begins_even(self, loop: ir.For) -> bool:
        """Whether a loop begins at a multiple of the rounds that go together."""
        return self.is_even(loop.start)

    def is_even(self, e: ir.Expression) -> bool:
        """Whether a number is surely a multiple of the rounds that go together."""
        return is_multiple(
            e, self.across, lengths(self.kernel, self.across), definitions(self.body)
        )

    def alone(self, block: ir.Block, *, ends: bool) -> ir.Block:
        """What every slice computes and the first one stores.

        After the last loop (`ends`) it alone reads what the kernel writes.
        """
        first = build.equal(self.slice, 0) if self.sharing.slices > 1 else None
        storing = _both(self.inside, first)
        return flat_map(block, self.guard(storing, storing if ends else self.inside))

    def guard(
        self, storing: ir.Expression | None, loading: ir.Expression | None
    ) -> Callable[[ir.Statement], ir.Block]:
        """A rule for stores, and for loads of what the kernel writes: they are those of points that
        there are.
        """

        def visit(s: ir.Statement) -> ir.Block:
            match s:
                case ir.StoreElement() if storing is not None and s.array in self.written:
                    return (ir.If(storing, (s,)),)
                case ir.LoadElement() if s.array in self.written and loading is not None:
                    kind = self.kinds[s.array]
                    zeros = tuple(
                        ir.Assign(n, neutral("or" if kind.kind == "b" else "+", kind))
                        for n in s.names
                    )
                    return (*zeros, ir.If(loading, (s,)))
                case ir.While() if loading is not None and self.reads_written(s):
                    return (ir.If(loading, (s,)),)  # the zeros of the others might never end it
                case _:
                    return (s,)

        return visit

    def reads_written(self, loop: ir.While) -> bool:
        return any(
            isinstance(s, ir.LoadElement) and s.array in self.written for s in statements(loop.body)
        )

    def shared(self, shareable: Shareable, number: int) -> ir.Block:
        """A loop whose rounds the slices share, and the meeting of what they gathered."""
        if self.sharing.slices == 1:
            marked = replace(shareable.inner, unroll=self.sharing.unroll)
            return flat_map(
                with_inner(shareable.loop, shareable.inner, (marked,)),
                self.guard(self.inside, self.inside),
            )
        folds = shareable.folds
        places = {f.name: own(f"{f.name.removeprefix(MARK)}.round") for f in folds if f.carried}
        mine = {
            n: own(f"{n.removeprefix(MARK)}.own")
            for f in folds
            for n in (f.name, *(x.name for x in f.carried))
        }
        inner = with_rounds(shareable.inner, places) if places else shareable.inner
        kept = frozenset((*mine, *places.values()))
        if shareable.halves is None:
            rounds = self.rounds(inner, number, kept)
        else:
            rounds = RunningRounds(
                self.kernel,
                self.body,
                self.indices,
                self.sharing,
                self.across,
                self.slice,
                kept,
                self.arrays,
            ).block(inner, shareable.halves)
        loop = with_inner(shareable.loop, shareable.inner, rounds)
        body = flat_map(rename(loop, mine), self.guard(self.inside, self.inside))
        kind = inner.start.type
        begin = [ir.Assign(mine[f.name], neutral(f.operation, f.type)) for f in folds]
        begin += [ir.Assign(mine[x.name], build.zero(x.type)) for f in folds for x in f.carried]
        begin += [ir.Assign(n, nowhere(kind)) for n in places.values()]
        end: list[ir.Statement] = []
        for f in folds:
            if f.carried:
                best, *others = (replace(x, name=mine[x.name]) for x in (f.variable, *f.carried))
                place = ir.Local(places[f.name], kind)
                end += self.meet_carried(CarriedState(f, best, place, tuple(others)))
                continue
            own_one = replace(f, name=mine[f.name])
            end += self.meet(own_one)
            end.append(ir.Assign(f.name, join(f.operation, f.variable, own_one.variable)))
        return (*begin, *body, *end)

    # ------------------------------------------------------------ rounds

    def rounds(self, loop: ir.For, number: int, kept: frozenset[str]) -> ir.Block:
        """The rounds of this thread, in the loop of this number: those on kept rows, those beyond,
        and what is left over of wide ones.
        """
        across, capacity = self.across, self.sharing.keep
        if any(number in v.loops for v in self.values):
            end = ir.Literal(self.sharing.values, loop.start.type)
            body = kept_values.kept(
                self.kernel, loop, number, self.values, ir.Local(LANE, self.index)
            )
            inside = self.turns(loop, loop.start, build.minimum(loop.stop, end), 1, body)
            return (inside, self.turns(loop, end, loop.stop, 1, loop.body))
        if across == 1:
            if not self.rows:
                return (self.turns(loop, loop.start, loop.stop, 1, loop.body),)
            end = ir.Literal(capacity, loop.start.type)
            inside = self.turns(
                loop,
                loop.start,
                build.minimum(loop.stop, end),
                1,
                self.with_rows(loop.body, loop, number),
            )
            return (inside, self.turns(loop, end, loop.stop, 1, loop.body))
        sure, meant = lengths(self.kernel, across), definitions(self.body)
        wide = wide_accesses(self.kernel, self.body, self.indices, loop, across, sure, meant)
        body = several(loop, across, wide, kept)
        whole = is_multiple(loop.stop, across, sure, meant)
        last = loop.stop if whole else build.multiply(build.divide(loop.stop, across), across)
        done: list[ir.Statement] = []
        first = loop.start
        if self.rows:
            end = ir.Literal(capacity, loop.start.type)
            rows = self.with_rows(body, loop, number)
            done.append(self.turns(loop, first, build.minimum(last, end), across, rows))
            first = end
        done.append(self.turns(loop, first, last, across, body))
        if not whole:
            begin = (
                build.maximum(last, loop.start) if not isinstance(loop.start, ir.Literal) else last
            )
            done.append(replace(self.turns(loop, begin, loop.stop, 1, loop.body), unroll=1))
        return tuple(done)

    def turns(
        self, loop: ir.For, start: ir.Expression, stop: ir.Expression, across: int, body: ir.Block
    ) -> ir.For:
        """The rounds of this slice, `across` neighbouring ones in every `slices` times as many."""
        kind, slices = loop.start.type, self.sharing.slices
        begin = build.add(
            start,
            build.multiply(build.index_of(self.slice, kind), build.multiply(loop.step, across)),
        )
        done = replace(
            loop,
            start=begin,
            stop=stop,
            step=build.multiply(loop.step, slices * across),
            body=body,
            unroll=self.sharing.unroll,
        )
        if any(not is_own(n) for n in reads(stop)) or is_own(loop.variable):
            return done
        # lanewise's own steps do not pass the limit
        (renamed,) = rename((done,), {loop.variable: own(loop.variable)})
        assert isinstance(renamed, ir.For)
        return renamed

    def with_rows(self, body: ir.Block, loop: ir.For, number: int) -> ir.Block:
        """Loads of rows that several loops read: the first one keeps them, the others take what was
        kept.
        """
        done: list[ir.Statement] = []
        lane, at = ir.Local(LANE, self.index), ir.Local(loop.variable, loop.start.type)
        for s in body:
            row = next(
                (
                    r
                    for r in self.rows
                    if isinstance(s, ir.LoadElement) and r.is_read_by(s, loop, number)
                ),
                None,
            )
            if row is None:
                done.append(s)
                continue
            assert isinstance(s, ir.LoadElement)
            if number == row.loops[0]:
                values = [ir.Local(n, row.type) for n in s.names]
                done += [
                    s,
                    ir.StoreElement(row.name, (lane, at), values[0], more=tuple(values[1:])),
                ]
            else:
                done.append(replace(s, array=row.name, indices=(lane, at)))
        return tuple(done)

    # ------------------------------------------------------------ meeting

    def meet(self, fold: Fold) -> ir.Block:
        """All threads of a point get what all of them have gathered."""
        done = _by_shuffles(fold, self.neighbours)
        other = ir.Local(own(f"{fold.name.removeprefix(MARK)}.other"), fold.type)
        add = ir.Assign(fold.name, join(fold.operation, fold.variable, other))
        return (*done, *self.by_shared_memory((fold.variable,), (other,), (add,)))

    def meet_carried(self, state: CarriedState) -> ir.Block:
        """The same of an extreme that carries values along; the thread gets it at last."""
        met = state.by_shuffles(self.neighbours) if self.neighbours > 1 else ()
        across = self.by_shared_memory(state.every, state.seen, state.join())
        return (*met, *across, *state.into_thread())

    @property
    def neighbours(self) -> int:
        """Threads of a point that exchange values without shared memory."""
        by_row = self.sharing.way == "row"
        return min(self.sharing.slices, self.sharing.warp) if by_row else 1

    def by_shared_memory(
        self, mine: tuple[ir.Local, ...], others: tuple[ir.Local, ...], joining: ir.Block
    ) -> ir.Block:
        """Every thread joins the values of all slices, or of all warps of the point, in their
        order; nothing where these are one. joining: what makes its own values and another's
        those of both.
        """
        among = self.sharing.slices // self.neighbours
        if among == 1:
            return ()
        lanes, index, by_row = self.sharing.lanes, self.index, self.sharing.way == "row"
        shape = (lanes, among) if by_row else (among, lanes)
        names = [own(f"met.{len(self.arrays) + n}") for n in range(len(mine))]
        for name, x in zip(names, mine, strict=True):
            self.arrays.append(shared_values(name, x.type, *shape))
        lane, number = ir.Local(LANE, index), ir.Local(own("from"), index)
        sender = build.divide(self.slice, WARP) if by_row else self.slice

        def place(which: ir.Expression) -> tuple[ir.Expression, ...]:
            return (lane, which) if by_row else (which, lane)

        give: ir.Block = tuple(
            ir.StoreElement(n, place(sender), x) for n, x in zip(names, mine, strict=True)
        )
        if by_row:
            give = (ir.If(build.equal(build.remainder(self.slice, WARP), 0), give),)
        zero, one, last = (ir.Literal(n, index) for n in (0, 1, among))
        begin = [ir.LoadElement(n, place(zero), x.name) for n, x in zip(names, mine, strict=True)]
        take = [
            ir.LoadElement(n, place(number), o.name) for n, o in zip(names, others, strict=True)
        ]
        loop = ir.For(number.name, one, last, one, (*take, *joining), role="slices", unroll=0)
        return (*give, ir.Barrier(), *begin, loop)


def _by_shuffles(fold: Fold, group: int) -> ir.Block:
    """A tree within a group of neighbours, the sum of which all of them get."""
    other = ir.Local(own(f"{fold.name.removeprefix(MARK)}.other"), fold.type)
    done: list[ir.Statement] = []
    distance = group // 2
    while distance:
        done.append(ir.Shuffle(other.name, fold.variable, distance, group))
        done.append(ir.Assign(fold.name, join(fold.operation, fold.variable, other)))
        distance //= 2
    return (
        (*done, ir.Shuffle(other.name, fold.variable, 0, group), ir.Assign(fold.name, other))
        if done
        else ()
    )


def _both(one: ir.Expression | None, other: ir.Expression | None) -> ir.Expression | None:
    if one is None or other is None:
        return one if other is None else other
    return ir.Logical("and", one, other)
