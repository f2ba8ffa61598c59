"""Let several threads of a block share the rounds of a thread's loops: slices.

    s = 0; for k in range(n): s += f(k)         ->  own = 0; for k in range(slice, n, slices): own
    += f(k) store r[y] = s                                  own = the sum of own of all slices; s =
    0 + own; if slice == 0: store r[y] = s
`row`: neighbouring threads take neighbouring rounds; their sums meet by shuffles within a warp, and
in shared memory between warps.
`column`: neighbouring threads are neighbouring points, a warp has one slice; sums meet in shared
memory. Either way in an order that depends on the plan alone. Threads beyond the end compute the
last point again and store nothing, so that all threads meet. What stands between the loops every
slice computes, and the first one stores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lanewise.analysis.affine import accesses, nest, nest_of
from lanewise.analysis.multiples import definitions, is_multiple, lengths
from lanewise.analysis.reductions import Shareable, alike, indices_in, is_steady, shareable
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold, join, neutral
from lanewise.ir.names import MARK, is_own, own
from lanewise.ir.traverse import flat_map, reads, rename, rewrite_statement, statements, writes
from lanewise.ir.values import value_array
from lanewise.language.types import BOOL, Scalar
from lanewise.passes import kept_values
from lanewise.passes.base import refuse
from lanewise.passes.wide_rounds import MOST, several, wide_accesses, width

Way = Literal["row", "column"]
WARP = 32
INSIDE, SLICE, LANE = own("inside"), own("slice"), own("lane")


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the threads of a block share loops: `slices` threads for each of `lanes` points. unroll:
    of the shared loops.

    keep: elements of a row, read by several loops over one range, that are kept in shared memory
    from the first one on.
    values: rounds whose values are kept there, where several loops over one range compute the same
    ones (kept_values.py). warp: threads that exchange values without shared memory: the lanes of a
    CPU do, however many they are.
    """

    way: Way
    slices: int
    lanes: int
    unroll: int = 1
    keep: int = 0
    values: int = 0
    warp: int = WARP

    @property
    def threads(self) -> int:
        return self.slices * self.lanes


def shareable_loops(kernel: ir.Kernel) -> dict[int, Shareable]:
    """The loops of a reference kernel whose rounds threads may share, by their place in the body of
    a thread.
    """
    indices, body = nest_of(kernel)
    examined = {n: shareable(body, n, indices) for n, s in enumerate(body) if isinstance(s, ir.For)}
    return {n: x for n, x in examined.items() if isinstance(x, Shareable)}


def best_way(kernel: ir.Kernel) -> Way:
    """In which way the loads of the shared loops are coalesced."""
    rows, columns = coalesced(kernel)
    return "column" if columns > rows else "row"


def coalesced(kernel: ir.Kernel) -> tuple[int, int]:
    """How many accesses of the shared loops have neighbours in neighbouring rounds, and how many in
    neighbouring points.

    What no point changes comes from a cache either way, and counts as neither.
    """
    indices, body = nest_of(kernel)
    inner = {id(x.inner): x.inner.variable for x in shareable_loops(kernel).values()}
    rows = columns = 0
    for a in accesses(body, indices):
        loop = next((x for x in a.loops if id(x.statement) in inner), None)
        if loop is None or all(a.way(i) == "same" for i in indices):
            continue
        rows += a.way(loop.variable) == "next"
        columns += a.way(indices[-1]) == "next"
    return rows, columns


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.grid is not None:
        return "its points are already mapped to threads"
    indices, body = nest_of(kernel)
    if any(isinstance(s, ir.ScatterElement) for s in statements(body)):
        return "it scatters: several threads that share a point would do so several times"
    loops = shareable_loops(kernel)
    if not loops:
        reasons = [shareable(body, n, indices) for n, s in enumerate(body) if isinstance(s, ir.For)]
        if reasons:
            return f"its rounds cannot be shared: {reasons[0]}"
        if any(isinstance(s, ir.For) for s in statements(body)):
            return "its loops stand in a branch or in a loop that threads may run differently"
        return "it has no loop whose rounds several threads could share"
    return _order(body, loops)


def _order(body: ir.Block, loops: dict[int, Shareable]) -> str | None:
    """Why a thread might read what another one writes; or None."""
    for array in {s.array for s in statements(body) if isinstance(s, ir.StoreElement)}:
        shared = [
            (s, x.loop)
            for x in loops.values()
            for s in statements(x.loop.body)
            if isinstance(s, ir.LoadElement | ir.StoreElement) and s.array == array
        ]
        others = [
            (s, n < max(loops))
            for n, top in enumerate(body)
            if n not in loops
            for s in statements((top,))
            if isinstance(s, ir.LoadElement | ir.StoreElement) and s.array == array
        ]
        if shared and len(shared) + len(others) > 1:
            _, first = shared[0]
            places = {indices_in(s, loop, first) for s, loop in shared}
            if others or len(places) > 1 or not all(alike(loop, first) for _, loop in shared):
                return (
                    f"{array} is written in a loop and touched elsewhere: threads that share "
                    "rounds would have to wait for each other"
                )
        stored = False
        for s, _ in others:
            if stored and isinstance(s, ir.LoadElement):
                return (
                    f"{array} is read after it was written: threads that share a point would have "
                    "to wait for each other"
                )
            stored = stored or isinstance(s, ir.StoreElement)
        if any(before and isinstance(s, ir.StoreElement) for s, before in others) and any(
            isinstance(s, ir.LoadElement) for s, _ in others
        ):  # all slices read it, each in its own time
            return (
                f"{array} is read and written before a loop: threads that share a point would have "
                "to wait for each other"
            )
    return None


def _keeping(kernel: ir.Kernel, sharing: Sharing) -> str | None:
    """Why rows or values cannot be kept in shared memory, or None."""
    if sharing.values:
        return values_problem(kernel, sharing)
    if not sharing.keep:
        return None
    if sharing.way != "row":
        return "neighbouring threads are neighbouring points, and no thread reads a row"
    if sharing.keep < 0 or sharing.keep % (sharing.slices * MOST):
        return (
            f"{sharing.keep} elements are no multiple of {MOST} for each of {sharing.slices} slices"
        )
    if not rows_of(kernel, shareable_loops(kernel)):
        return "no two of its loops over one range, from 0 on, read the same row"
    return None


def values_problem(kernel: ir.Kernel, sharing: Sharing) -> str | None:
    """Why values that several loops compute cannot be kept for so many rounds, or None."""
    if sharing.keep or sharing.way != "row":
        return (
            "values are kept where neighbouring threads take neighbouring rounds, and in the place "
            "of rows"
        )
    if sharing.values < 0 or sharing.values % sharing.slices:
        return f"{sharing.values} rounds are not as many for each of {sharing.slices} slices"
    if not kept_values.values_of(kernel, nest_of(kernel)[1], shareable_loops(kernel)):
        return kept_values.NOTHING
    return None


def _is_rewritten(body: ir.Block, last: int) -> bool:
    """Whether something is read before the last shared loop and written behind it."""
    read = {s.array for s in statements(body[:last]) if isinstance(s, ir.LoadElement)}
    return any(
        isinstance(s, ir.StoreElement) and s.array in read for s in statements(body[last + 1 :])
    )


def apply(kernel: ir.Kernel, sharing: Sharing, *, min_blocks: int = 0, parts: int = 1) -> ir.Kernel:
    """Blocks of `lanes` points, each with `slices` threads; raises `PlanError` where no loop can be
    shared.
    """
    if reason := legal(kernel):
        raise refuse("slicing", kernel, reason)
    if reason := _keeping(kernel, sharing):
        raise refuse("keeping of rows", kernel, reason)
    loops, (names, body) = shareable_loops(kernel), nest_of(kernel)
    place = _Places(kernel, sharing)
    head, total = place.of(names)
    writer = _Writer(kernel, sharing, place.is_partial, loops)
    done: list[ir.Statement] = []
    last = max(loops)
    for n, s in enumerate(body):
        done += writer.shared(loops[n], n) if n in loops else writer.alone((s,), ends=n > last)
        if n == last and sharing.slices > 1 and not loops[n].folds and _is_rewritten(body, last):
            done.append(ir.Barrier())  # all have read what the first slice writes now
    return replace(
        kernel,
        body=(*head, *done),
        arrays=(*kernel.arrays, *writer.arrays),
        grid=ir.Grid(total, 1, sharing.threads, parts, min_blocks),
    )


@dataclass(frozen=True, slots=True)
class ElementRow:
    """Elements of an array that several loops over one range read: with which indices, in the words
    of the first loop.
    """

    name: str
    type: Scalar
    array: str
    indices: tuple[ir.Expression, ...]
    loops: tuple[int, ...]
    first: ir.For

    def is_read_by(self, s: ir.LoadElement, loop: ir.For, number: int) -> bool:
        return (
            number in self.loops
            and s.array == self.array
            and indices_in(s, loop, self.first) == self.indices
        )


def rows_of(kernel: ir.Kernel, loops: dict[int, Shareable]) -> tuple[ElementRow, ...]:
    """The rows that are worth keeping: of arrays that the kernel does not write, read by several
    loops that begin at 0.
    """
    written = {s.array for s in statements(kernel.body) if isinstance(s, ir.StoreElement)}
    kinds = {a.name: a.leaves[0].type for a in kernel.arrays}
    plain = {n: x.loop for n, x in loops.items() if not x.is_nest}
    if not plain:
        return ()
    first = next(iter(plain.values()))
    if first.start != ir.Literal(0, first.start.type) or not all(
        alike(x, first) for x in plain.values()
    ):
        return ()
    readers: dict[tuple[str, tuple[ir.Expression, ...]], list[int]] = {}
    for n, loop in plain.items():
        changed = frozenset(x for s in statements(loop.body) for x in writes(s))
        for s in loop.body:
            if not isinstance(s, ir.LoadElement) or s.array in written:
                continue
            steady = all(is_steady(i, changed) for i in s.indices)
            if steady and any(loop.variable in reads(i) for i in s.indices):
                numbers = readers.setdefault((s.array, indices_in(s, loop, first)), [])
                numbers += [] if n in numbers else [n]
    kept = [(key, numbers) for key, numbers in readers.items() if len(numbers) > 1]
    return tuple(
        ElementRow(own(f"kept.{i}"), kinds[array], array, indices, tuple(numbers), first)
        for i, ((array, indices), numbers) in enumerate(kept)
    )


class _Places:
    """The point and the slice of a thread."""

    def __init__(self, kernel: ir.Kernel, sharing: Sharing) -> None:
        loops, _ = nest(kernel)
        self.loops, self.sharing, self.index = loops, sharing, loops[0].extent.type
        self.is_partial = sharing.lanes > 1

    def of(self, names: tuple[str, ...]) -> tuple[ir.Block, ir.Expression]:
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


class _Writer:
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
        self.rows = rows_of(kernel, loops) if sharing.keep else ()
        self.values = kept_values.values_of(kernel, self.body, loops) if sharing.values else ()
        self.across = 1 if self.values else self.across
        self.arrays += [v.argument(sharing.lanes, sharing.values) for v in self.values]
        for row in self.rows:
            plain = value_array(row.name, row.type, written=True)
            shape = (sharing.lanes, sharing.keep)
            self.arrays.append(
                replace(plain, space="shared", length=sharing.lanes * sharing.keep, shape=shape)
            )

    def begins_even(self, loop: ir.For) -> bool:
        """Whether a loop begins at a multiple of the rounds that go together."""
        return is_multiple(
            loop.start, self.across, lengths(self.kernel, self.across), definitions(self.body)
        )

    def alone(self, block: ir.Block, *, ends: bool) -> ir.Block:
        """What every slice computes and the first one stores.

        Behind the last loop (`ends`) it alone reads what the kernel writes.
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
        mine = {f.name: own(f"{f.name.removeprefix(MARK)}.own") for f in shareable.folds}
        rounds = self.rounds(shareable.inner, number, frozenset(mine))
        loop = with_inner(shareable.loop, shareable.inner, rounds)
        body = flat_map(rename(loop, mine), self.guard(self.inside, self.inside))
        begin = tuple(
            ir.Assign(mine[f.name], neutral(f.operation, f.type)) for f in shareable.folds
        )
        end: list[ir.Statement] = []
        for f in shareable.folds:
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
        slices, by_row = self.sharing.slices, self.sharing.way == "row"
        done: list[ir.Statement] = []
        among = slices
        if by_row:
            group = min(slices, self.sharing.warp)
            done += _by_shuffles(fold, group)
            among = slices // group
        if among > 1:
            done += self.by_shared_memory(fold, among)
        return tuple(done)

    def by_shared_memory(self, fold: Fold, among: int) -> ir.Block:
        """Every thread adds the values of all slices, or of all warps of the point, in their
        order.
        """
        lanes, index, by_row = self.sharing.lanes, self.index, self.sharing.way == "row"
        name = own(f"met.{len(self.arrays)}")
        shape = (lanes, among) if by_row else (among, lanes)
        plain = value_array(name, fold.type, written=True)
        self.arrays.append(replace(plain, space="shared", length=lanes * among, shape=shape))
        lane, number = ir.Local(LANE, index), ir.Local(own("from"), index)
        sender = build.divide(self.slice, WARP) if by_row else self.slice

        def place(which: ir.Expression) -> tuple[ir.Expression, ...]:
            return (lane, which) if by_row else (which, lane)

        give: ir.Statement = ir.StoreElement(name, place(sender), fold.variable)
        if by_row:
            give = ir.If(build.equal(build.remainder(self.slice, WARP), 0), (give,))
        other = ir.Local(own(f"{fold.name.removeprefix(MARK)}.other"), fold.type)
        take = ir.LoadElement(name, place(number), other.name)
        add = ir.Assign(fold.name, join(fold.operation, fold.variable, other))
        zero, one, last = (ir.Literal(n, index) for n in (0, 1, among))
        begin = ir.LoadElement(name, place(zero), fold.name)
        loop = ir.For(number.name, one, last, one, (take, add), role="slices", unroll=0)
        return (give, ir.Barrier(), begin, loop)


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


def with_inner(loop: ir.For, inner: ir.For, rounds: ir.Block) -> ir.Block:
    """A nest of loops with others in place of its inner one."""

    def visit(block: ir.Block) -> ir.Block:
        new: list[ir.Statement] = []
        for s in block:
            new += rounds if s is inner else (rewrite_statement(s, lambda e: e, visit),)
        return tuple(new)

    return visit((loop,))


def _both(one: ir.Expression | None, other: ir.Expression | None) -> ir.Expression | None:
    if one is None or other is None:
        return one if other is None else other
    return ir.Logical("and", one, other)


def nest_index(kernel: ir.Kernel) -> Scalar:
    """The type of the indices of a reference kernel."""
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    return outer.extent.type
