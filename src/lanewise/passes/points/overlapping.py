"""Points one after the other, the last loop of each next to a loop of the next one: a core computes
while it writes.

    parallel for y: for k: t[k] = exp(a[y, k] - m), s += t[k]; for k: c[y, k] = t[k] / s
->  parallel for $block: for y in $block * 8 ...:
      for k: late = t[1 - y % 2, k] / s.before; t[y % 2, k] = exp(a[y, k] - m), s += ...;
      c[y.before, k] = late   # all points but the first y.before = y; s.before = s
    for k: c[y.before, k] = ...
A core that only stores waits for memory, and memory waits for a core that only computes. The last
loop of a point reads variables of its point, which are kept until the next one has come to its own,
elements of arrays that the kernel does not write, and memory of the core (kept_values.py), of which
there are two halves. What it writes is not read, so that it may come later, and its rounds in any
order: in long rows they begin with lines of memory (`$skip`), whatever the others begin with, whose
sums keep their bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.affine import nest
from lanewise.analysis.lane_sums import UNBROKEN
from lanewise.analysis.rounds import given_in_rounds
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.spreading import spread
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rename,
    rewrite_block,
    statements,
    write_counts,
    writes,
    written_in,
)
from lanewise.language.target import LINE
from lanewise.language.types import BOOL, I64, Scalar
from lanewise.passes.base import refuse
from lanewise.passes.points.line_starts import LONG, PHASE
from lanewise.passes.points.shape import BLOCK, POINT, THREAD
from lanewise.passes.shared_loops import SLICE

HALF = own("half")  # of the memory of the core that a point has
SKIP = own("skip")  # rounds until its row begins with a line of memory
# the value that the last loop stores: computed before the other loop's round, stored after it
LATE = own("late")
ROUNDS = own("rounds")  # registers of rounds that both loops have whole
# bytes in a page between rounds of both halves, and as much to the rows in memory
# (emit/llvm_lanes.py): see `target.PAGE`
APART = 1536


def legal(kernel: ir.Kernel, points: int) -> str | None:
    """Why the pass does not apply to a kernel whose blocks are points, and their threads lanes
    (hosting.py); or None.
    """
    found = _find(kernel, points)
    return found if isinstance(found, str) else None


def apply(kernel: ir.Kernel, points: int) -> ir.Kernel:
    """The kernel with so many points in a block; raises `PlanError` where their loops cannot run
    side by side.
    """
    found = _find(kernel, points)
    if isinstance(found, str):
        raise refuse("overlapping of points", kernel, found)
    return kernel if points == 1 else _Writer(kernel, found).kernel_of(points)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two loops over one range in the body of a point, and their places: one, and the last one,
    which only writes.
    """

    beside: ir.For
    last: ir.For
    places: tuple[int, int]


def _find(kernel: ir.Kernel, points: int) -> _Pair | str:
    """The loops that go side by side, or why there are none."""
    if points < 1:
        return f"{points} points were requested"
    (_, threads), body = nest(kernel)
    loops = [(n, s) for n, s in enumerate(body) if isinstance(s, ir.For)]
    written = {x.array for x in _stores(body) if not _is_of_core(kernel, x.array)}
    if read := sorted(
        {s.array for s in statements(body) if isinstance(s, ir.LoadElement)} & written
    ):
        return f"{read[0]} is read and written, and points would come one after the other"
    writing = [(n, s) for n, s in loops if any(x.array in written for x in _stores((s,)))]
    for n, last in writing:
        for m, other in reversed(loops):
            if m < n and _are_alike(other, last, threads) and _is_late(kernel, body, n):
                return _Pair(other, last, (m, n))
    return "no loop that only writes elements runs over the range of one before it, from 0 on"


def _stores(block: ir.Block) -> list[ir.StoreElement]:
    return [s for s in statements(block) if isinstance(s, ir.StoreElement)]


def _are_alike(a: ir.For, b: ir.For, threads: ir.Parallel) -> bool:
    """Whether lanes share the rounds of both, over one range."""
    ranges = [(x.start, x.stop, x.step) for x in (a, b)]
    kind = a.start.type
    begin, count = (
        (ir.Local(SLICE, threads.extent.type), ir.Cast(ir.Local(SLICE, threads.extent.type), kind)),
        threads.extent,
    )
    assert isinstance(count, ir.Literal)
    return ranges[0] == ranges[1] and a.start in begin and a.step == ir.Literal(count.value, kind)


def _is_late(kernel: ir.Kernel, body: ir.Block, n: int) -> bool:
    """Whether a loop may run after everything else of its point: it only writes, last, over a range
    that all points share.
    """
    last = body[n]
    assert isinstance(last, ir.For)
    if not all(isinstance(s, ir.Assign | ir.LoadElement | ir.StoreElement) for s in last.body):
        return False
    stores = _stores(last.body)
    if len(stores) != 1 or _is_of_core(kernel, stores[0].array):
        return False
    if stores[0].indices[-1] != ir.Local(last.variable, last.start.type):
        return False  # neighbouring rounds write other elements than neighbours
    changing = written_in(body) | {BLOCK}
    if (changing - {s.name for s in _steady(body)}) & _read(last.start, last.stop, last.step):
        return False
    behind = body[n + 1 :]
    if any(
        s.array == stores[0].array and not _goes_on(last, top)
        for top in behind
        for s in _stores((top,))
    ):
        return False  # what is written last has to stay
    inside = {x for s in last.body for x in writes(s)}
    return inside <= given_in_rounds(last.body) and not any(
        inside & _read_of_before(s) for s in behind
    )


def _goes_on(last: ir.For, s: ir.Statement) -> bool:
    """Whether a statement is a loop over the rounds that another one leaves out (kept_values.py),
    with an element for each as well.
    """
    if not isinstance(s, ir.For):
        return False
    match s.start:
        case ir.Binary(operator="+", left=ir.Literal() as end, right=lane) if lane == last.start:
            renamed = rename(s.body, {s.variable: last.variable})
            same = [x.indices for x in _stores(renamed)] == [x.indices for x in _stores(last.body)]
            return same and last.stop == build.minimum(s.stop, end)
        case _:
            return False


def _read(*of: ir.Expression) -> set[str]:
    return {n for e in of for n in reads(e)}


def _read_of_before(s: ir.Statement) -> set[str]:
    """The variables that a statement, or what is in it, may read as others left them."""
    names = _read(*(e for x in statements((s,)) for e in expressions(x)))
    return names - given_in_rounds(s.body) if isinstance(s, ir.For) else names


def _is_of_core(kernel: ir.Kernel, array: str) -> bool:
    return kernel.array(array).space != "global"


def _steady(body: ir.Block) -> list[ir.Assign]:
    """What gives variables the number of a lane or a constant, once: it is the same for all
    points.
    """
    count = write_counts(body)
    once = [s for s in body if isinstance(s, ir.Assign) and count[s.name] == 1]
    return [
        s
        for s in once
        if isinstance(s.value, ir.Literal) or s.value == ir.Local(THREAD, s.value.type)
    ]


class _Writer:
    """Writes the points of a block one after the other.

    `late` writes the last loop in the words of the point before.
    """

    def __init__(self, kernel: ir.Kernel, pair: _Pair) -> None:
        self.kernel, self.pair = kernel, pair
        (self.blocks, self.threads), body = nest(kernel)
        self.kind = self.blocks.extent.type
        self.steady = _steady(body)
        self.rounds_kind, self.lane = pair.beside.start.type, pair.beside.start
        self.skip = ir.Local(SKIP, self.rounds_kind)
        loaded = {s.array for s in pair.last.body if isinstance(s, ir.LoadElement)}
        self.halves = {n for n in loaded if _is_of_core(kernel, n)}
        self.kinds = _types(kernel, body)
        of_point = (spread(body, {BLOCK}) | set(self.kinds)) - {s.name for s in self.steady}
        inside = {n for s in pair.last.body for n in writes(s)}
        read = _read(*(e for s in pair.last.body for e in expressions(s)))
        self.kept = sorted((read & of_point) - inside - {pair.last.variable})
        names = {n: _before(n) for n in (*self.kept, *inside)} | {
            pair.last.variable: pair.beside.variable
        }
        self.late_body = rename(pair.last.body, names)

    def kernel_of(self, points: int) -> ir.Kernel:
        half, point, block = (ir.Local(n, self.kind) for n in (HALF, POINT, BLOCK))
        first = build.multiply(block, points)
        beside, last = self.pair.places
        done: list[ir.Statement] = [ir.Assign(HALF, build.remainder(point, 2))]
        for n, s in enumerate(self.threads.body):
            if n == beside:
                (now,) = self.in_half((self.pair.beside,), half)
                assert isinstance(now, ir.For)
                done.append(
                    ir.If(
                        build.equal(point, first), (now,), self.both(now, build.subtract(1, half))
                    )
                )
            elif n == last:
                done += [ir.Assign(_before(k), ir.Local(k, self.kinds[k])) for k in self.kept]
                done.append(ir.Assign(SKIP, self.to_a_line()))
            elif s not in self.steady:
                done += rewrite_block(
                    self.in_half((s,), half), lambda e: point if e == block else e
                )
        zeros = {
            HALF: self.kind,
            SKIP: self.rounds_kind,
            **{_before(n): self.kinds[n] for n in self.kept},
        }
        begin = (
            *self.steady,
            *(ir.Assign(n, _zero(kind)) for n, kind in zeros.items()),
            ir.Assign(PHASE, ir.Builtin("phase", self.rounds_kind)),
            ir.Assign(UNBROKEN, self.is_unbroken()),
        )
        end = build.add(first, build.minimum(build.subtract(self.blocks.extent, first), points))
        walk = ir.For(POINT, first, end, ir.Literal(1, self.kind), tuple(done), role="points")
        lanes = replace(self.threads, body=(*begin, walk, *self.late(half, self.skip)))
        arrays = tuple(_twice(a) if a.name in self.halves else a for a in self.kernel.arrays)
        outer = replace(
            self.blocks, extent=build.ceil_divide(self.blocks.extent, points), body=(lanes,)
        )
        return replace(self.kernel, arrays=arrays, body=(outer,))

    def both(self, now: ir.For, other: ir.Expression) -> ir.Block:
        """Whole registers of rounds of both loops, and what is left of each.

        The last loop is a register behind: see `target.PAGE`.
        """
        count, k = self.count, ir.Local(now.variable, self.rounds_kind)
        done = build.multiply(ir.Local(ROUNDS, self.rounds_kind), count)
        behind = build.add(build.subtract(k, count), self.skip)
        moved = rewrite_block(
            self.in_half(self.late_body, other), lambda e: behind if e == k else e
        )
        first = replace(now, stop=build.minimum(now.stop, count))
        (store,) = _stores(moved)
        at, value = moved.index(store), ir.Local(LATE, store.value.type)
        # Division has a long latency: it starts before the other loop's round.
        side_by_side = (
            *moved[:at],
            ir.Assign(LATE, store.value),
            *now.body,
            replace(store, value=value),
            *moved[at + 1 :],
        )
        together = replace(
            now, start=build.add(self.lane, count), stop=done, body=side_by_side, role="late"
        )
        rest = replace(now, start=build.add(build.maximum(done, count), self.lane))
        left = build.add(build.maximum(build.subtract(done, count), 0), self.skip)
        rounds = ir.Assign(ROUNDS, build.divide(now.stop, count))
        return (rounds, first, together, rest, *self.late(other, left))

    def late(self, half: ir.Expression, start: ir.Expression) -> ir.Block:
        """The last loop of the point before: the rounds before the first line, and those from
        `start` on.
        """
        body = self.in_half(self.late_body, half)
        s = replace(self.pair.last, variable=self.pair.beside.variable, body=body, role="late")
        return (
            replace(s, stop=build.minimum(self.skip, s.stop)),
            replace(s, start=build.add(start, self.lane)),
        )

    @property
    def count(self) -> int:
        step = self.pair.beside.step
        assert isinstance(step, ir.Literal)
        return int(step.value)

    def is_unbroken(self) -> ir.Expression:
        """Whether rows have no masked end, or are long: a store past the caches and another one
        into one line wait for each other.
        """
        return ir.Logical(
            "or", build.equal(build.remainder(self.pair.last.stop, self.count), 0), self.is_long()
        )

    def is_long(self) -> ir.Expression:
        return ir.Compare("<=", ir.Literal(LONG * self.line, self.rounds_kind), self.pair.last.stop)

    @property
    def line(self) -> int:
        """Elements of a line of the array that is written."""
        return LINE // self.kernel.array(_stores(self.pair.last.body)[0].array).leaves[0].type.size

    def to_a_line(self) -> ir.Expression:
        """How many rounds lie before the first line of a row that is written past the caches, if it
        is long.
        """
        (store,) = _stores(self.pair.last.body)
        array, line = self.kernel.array(store.array), self.line
        kinds = {p.name: p.type for p in self.kernel.counts + self.kernel.uniforms}
        row: ir.Expression = ir.Literal(0, I64)
        for index, length in zip(store.indices, array.shape[1:], strict=False):
            whole = (
                ir.Literal(length, I64)
                if isinstance(length, int)
                else build.index_of(ir.Local(length, kinds[length]), I64)
            )
            row = build.multiply(build.add(row, build.index_of(index, I64)), whole)
        before = build.remainder(
            build.add(row, build.index_of(ir.Local(PHASE, self.rounds_kind), I64)), line
        )
        skip = ir.Cast(build.remainder(build.subtract(line, before), line), self.rounds_kind)
        there = ir.Logical("and", ir.Local(UNBROKEN, BOOL), self.is_long())
        return ir.Select(there, skip, ir.Literal(0, self.rounds_kind), self.rounds_kind)

    def in_half(self, block: ir.Block, half: ir.Expression) -> ir.Block:
        """Statements whose memory of the core is this half of it."""

        def change(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.LoadElement | ir.StoreElement) or s.array not in self.halves:
                return (s,)
            row, *others = s.indices
            (lanes, _) = self.kernel.array(s.array).shape
            assert isinstance(lanes, int)
            return (replace(s, indices=(build.add(row, build.multiply(half, lanes)), *others)),)

        return flat_map(block, change)


def _types(kernel: ir.Kernel, body: ir.Block) -> dict[str, Scalar]:
    """Of the variables that a point has."""
    kinds: dict[str, Scalar] = {}
    for s in statements(body):
        match s:
            case ir.Assign():
                kinds[s.name] = s.value.type
            case ir.LoadElement():
                kinds |= dict.fromkeys(s.names, kernel.array(s.array).leaves[0].type)
            case _:
                pass
    return kinds


def _before(name: str) -> str:
    """The variable that holds what another one was for the point before."""
    return own(f"{name.removeprefix(MARK)}.before")


def _zero(kind: Scalar) -> ir.Literal:
    return build.zero(kind)


def _twice(a: ir.ArrayArgument) -> ir.ArrayArgument:
    lanes, rounds = a.shape
    assert isinstance(lanes, int)
    assert isinstance(rounds, int)
    rounds += APART // a.leaves[0].type.size
    return replace(a, shape=(2 * lanes, rounds), length=2 * lanes * rounds)
