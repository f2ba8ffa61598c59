"""Loop interchange: the rounds of a loop outside, the points of a tile inside, so that rows of
memory are read in long pieces.

    for the registers of a block: s = 0; for k in range(n): load a[k, x]: u; s = s + u; store c[x] =
    s
->  for the registers of a tile: s = 0; store $kept.s[x - $x.begin] = s
    for k in range(0, whole, 8):
      for the registers of a tile:
        load $kept.s[x - $x.begin]: s; load a[k, x]: u#0; s = s + u#0; ...; load a[k + 7, x]: u#7; s
        = s + u#7; store $kept.s[...] = s
    for k in range(whole, n): ...
    for the registers of a tile: load $kept.s[x - $x.begin]: s; store c[x] = s
Going down columns a thread reads a few lines of each row, and each row lies on other pages. So the
body of a thread is cut at its loops, each part runs for all points of a tile, and what a later part
reads of a point is kept in memory of the core. Several rounds at once share a load and a store of
it, in loops that only read: rows that are written side by side would share the few lines that a
core has for its way past the caches. Points are independent of each other, and each takes its
rounds in the order that it had: the bits are the same, whatever a loop computes. What all points of
a tile share is computed once for the tile, or once a round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.affine import nest
from lanewise.analysis.reductions import first_access
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, numbered, own
from lanewise.ir.spreading import control, spread
from lanewise.ir.traverse import (
    apart,
    expressions,
    reads,
    rename,
    rewrite_block,
    statements,
    used_in,
    writes,
    written_in,
)
from lanewise.ir.values import shared_values
from lanewise.language.types import BOOL, Scalar
from lanewise.passes.base import refuse
from lanewise.passes.points import lanes, merging
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, number_of, thread_of

MOST = 1 << 14  # points of a tile
ROUNDS = (1, 2, 4, 8, 16)  # at once


def legal(kernel: ir.Kernel, shape: Shape, tile: int, rounds: int = 1) -> str | None:
    """Why the pass does not apply to tiles of so many points along the last index, and to so many
    rounds at once, or None.
    """
    if reason := lanes.legal(kernel, shape):
        return reason
    side = shape.side(shape.fast)
    if not 0 < tile <= MOST or tile % side:
        return (
            f"a tile has whole registers of {side} points, and at most {MOST}; {tile} were "
            "requested"
        )
    if max(shape.points[:-1], default=1) > 1:
        return "a tile lies along the last index, and has one row"
    if rounds not in ROUNDS:
        return (
            f"{', '.join(map(str, ROUNDS[:-1]))} or {ROUNDS[-1]} rounds go together; {rounds} were "
            "requested"
        )
    return _Thread(kernel).problem()


def kept_bytes(kernel: ir.Kernel) -> int:
    """What a point keeps in memory of the core between the parts of its body."""
    return sum(kind.size for kind in _Thread(kernel).kept.values())


def loops_of(kernel: ir.Kernel) -> tuple[ir.For, ...]:
    """The loops that change places with the points around them."""
    return _Thread(kernel).loops


def apply(kernel: ir.Kernel, shape: Shape, tile: int, rounds: int = 1) -> ir.Kernel:
    """The kernel in tiles of so many points; raises `PlanError` where it does not fit. rounds: that
    are computed at once.
    """
    if reason := legal(kernel, shape, tile, rounds):
        raise refuse("loop interchange", kernel, reason)
    return _Tiles(kernel, shape, tile, rounds).kernel()


@dataclass(frozen=True, slots=True)
class _Part:
    """Statements of a thread that run for all points of a tile: once, or once in each round of a
    loop.
    """

    body: ir.Block
    loop: ir.For | None = None


class _Thread:
    """The body of a thread in parts, and what of a point goes from one part to another, or from
    round to round.
    """

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        loops, body = nest(kernel)
        self.body = apart(body)
        self.last = loops[-1].variable
        self.indices = {x.variable for x in loops}
        self.shared = {p.name for p in kernel.counts + kernel.uniforms}
        self.written = {a.name for a in kernel.arrays if a.written}
        self.varying = spread(self.body, {self.last})
        self.parts = _parts(self.body)
        self.loops = tuple(p.loop for p in self.parts if p.loop is not None)
        self.again = self._computed_again()
        self.kept = self._kept()

    def problem(self) -> str | None:
        """Why its parts cannot run one after the other for all points, or None."""
        if not self.loops:
            return "no loop stands alone in it, without a loop within"
        for loop in self.loops:
            others = (s for s in self.body if s is not loop)
            if any(
                first_access((s,), loop.variable) == "read" for s in others
            ) or loop.variable in written_in(loop.body):
                return f"{loop.variable} is read behind its loop, or changed in it"
        names = (
            {n for p in self.parts for n in written_in(p.body)}
            - self.varying
            - {x.variable for x in self.loops}
        )
        for name in sorted(names):
            if reason := self._once_too_often(name):
                return reason
        if name := next((n for n, kind in self.kept.items() if kind == BOOL), None):
            return f"{name} is a boolean, which takes a byte in memory and a bit in a register"
        return None

    def _once_too_often(self, name: str) -> str | None:
        """Of a variable that all points share: why what changes it cannot run before what each
        point does for itself, or None.
        """
        for part in self.parts:
            writers = [n for n, s in enumerate(part.body) if name in written_in((s,))]
            if any(not self.is_steady(part.body[n]) for n in writers):
                alone = len(writers) == 1 and all(
                    p is part or first_access(p.body, name) == "none" for p in self.parts
                )
                if not alone or first_access(self.body, name) == "read":
                    return f"{name}, which all points share, is given its value where points differ"
                continue
            readers = [
                n
                for n, s in enumerate(part.body)
                if not self.is_steady(s) and first_access((s,), name) == "read"
            ]
            if not writers or not readers:
                continue
            if max(writers) > min(readers):
                return f"{name}, which all points share, changes after they read it"
            if part.loop is not None and (
                first_access(part.body, name) == "read" or self._outside(name, part)
            ):
                return f"{name}, which all points share, goes from round to round"
        return None

    def _outside(self, name: str, part: _Part) -> bool:
        """Whether a variable is read behind a loop, or decides how often it runs."""
        loops = (p.loop for p in self.parts if p.loop is not None)
        others = (p for p in self.parts if p is not part)
        return any(first_access(p.body, name) == "read" for p in others) or any(
            _is_read_by(x, name) for x in loops
        )

    def of_rounds(self, loop: ir.For) -> set[str]:
        """The variables of a loop's body that each round has for itself."""
        read = {
            n
            for s in loop.body
            if not self.is_steady(s)
            for n in written_in(loop.body)
            if first_access((s,), n) == "read"
        }
        each = {n for s in loop.body if not self.is_steady(s) for n in written_in((s,))}
        return (read | each) - self.kept.keys()

    def is_steady(self, s: ir.Statement) -> bool:
        """Whether all points share what a statement does, so that it may run once for all of
        them.
        """
        inner = tuple(statements((s,)))
        touched = {n for x in inner for n in (*control(x), *writes(x))}
        loads = all(x.array not in self.written for x in inner if isinstance(x, ir.LoadElement))
        return (
            touched.isdisjoint(self.varying)
            and loads
            and not any(isinstance(x, ir.ElementWrite) for x in inner)
        )

    def _computed_again(self) -> dict[str, ir.Assign]:
        """Sums of indices and booleans about them: each part computes them anew, so that
        accesses stay sums of indices.
        """
        often = [n for s in statements(self.body) for n in writes(s)]
        steady = {
            n
            for p in self.parts
            if p.loop is None
            for s in p.body
            if self.is_steady(s)
            for n in written_in((s,))
        }
        known = self.indices | self.shared | steady
        found: dict[str, ir.Assign] = {}
        for s in (s for p in self.parts if p.loop is None for s in p.body):
            if not isinstance(s, ir.Assign) or s.name not in self.varying or s.value.type.is_float:
                continue
            if often.count(s.name) == 1 and {*reads(s.value)} <= known:
                found[s.name] = s
                known = known | {s.name}
        return found

    def _kept(self) -> dict[str, Scalar]:
        """The variables of a point that a part reads before it gives them a value, with their
        types.
        """
        kinds = {a.name: a.leaves[0].type for a in self.kernel.arrays}
        types: dict[str, Scalar] = {}
        for s in statements(self.body):
            match s:
                case ir.Assign():
                    types[s.name] = s.value.type
                case ir.LoadElement():
                    types |= dict.fromkeys(s.names, kinds[s.array])
                case _:
                    pass
        names = [n for n in types if n in self.varying and n not in self.again]
        return {
            n: types[n] for n in names if any(first_access(p.body, n) == "read" for p in self.parts)
        }


def _parts(body: ir.Block) -> tuple[_Part, ...]:
    """The loops of a body, and what stands between them."""
    parts: list[_Part] = []
    between: list[ir.Statement] = []
    for s in body:
        if not isinstance(s, ir.For) or any(
            isinstance(x, ir.For | ir.While) for x in statements(s.body)
        ):
            between.append(s)
            continue
        parts += [_Part(tuple(between))] if between else []
        parts.append(_Part(s.body, s))
        between = []
    return (*parts, _Part(tuple(between))) if between else tuple(parts)


def _is_read_by(loop: ir.For, name: str) -> bool:
    return any(n == name for e in expressions(loop) for n in reads(e))


class _Tiles:
    def __init__(self, kernel: ir.Kernel, shape: Shape, tile: int, rounds: int) -> None:
        self.reference, self.shape, self.tile, self.rounds = kernel, shape, tile, rounds
        self.nest, _ = nest(kernel)
        self.thread = _Thread(kernel)
        self.last, self.kind = self.nest[-1], self.nest[-1].extent.type
        self.begin, self.end = (
            ir.Local(own(f"{self.last.variable}.{n}"), self.kind) for n in ("begin", "end")
        )
        # In a tile slower indices have one value, which a block begins at.
        self.first = {x.variable: first_of(x.variable) for x in self.nest[:-1]}

    def kernel(self) -> ir.Kernel:
        counts = [x.extent for x in self.nest[:-1]] + [
            build.ceil_divide(self.last.extent, self.tile)
        ]
        head, total, _ = lanes.numbers(self.nest, counts, None, 1)
        last = self.last.variable
        start = build.multiply(ir.Local(number_of(last), self.kind), self.tile)
        done: list[ir.Statement] = [*head, ir.Assign(thread_of(last), ir.Local(THREAD, self.kind))]
        for x in self.nest[:-1]:
            number = ir.Local(number_of(x.variable), self.kind)
            done += [
                ir.Assign(first_of(x.variable), number),
                ir.Assign(thread_of(x.variable), build.literal(0, self.kind)),
            ]
        done.append(ir.Assign(self.begin.name, start))
        done.append(
            ir.Assign(
                self.end.name, build.minimum(build.add(self.begin, self.tile), self.last.extent)
            )
        )
        done.append(ir.Barrier())  # the lanes are threads of a block, whose memory it is
        for part in self.thread.parts:
            done += self.once(part.body) if part.loop is None else self.in_rounds(part.loop)
        threads = ir.Parallel(THREAD, ir.Literal(self.shape.total, self.kind), tuple(done))
        arrays = (*self.reference.arrays, *(self.array(n) for n in self.thread.kept))
        return replace(self.reference, arrays=arrays, body=(ir.Parallel(BLOCK, total, (threads,)),))

    def array(self, name: str) -> ir.ArrayArgument:
        """The memory that keeps a variable of all points of a tile."""
        return shared_values(_memory(name), self.thread.kept[name], self.tile)

    def once(self, body: ir.Block) -> ir.Block:
        """Statements for all points of a tile, behind what all points share."""
        steady = tuple(s for s in body if self.thread.is_steady(s))
        each = tuple(s for s in body if not self.thread.is_steady(s))
        return (*rename(steady, self.first), *self.sweep(each, body))

    def in_rounds(self, loop: ir.For) -> ir.Block:
        """A loop around the points of a tile: so many rounds at once, and then the others.

        What writes rows writes one at a time.
        """
        stores = any(isinstance(s, ir.ElementWrite) for s in statements(loop.body))
        if stores or not _is_counted(loop) or self.rounds == 1:
            return (replace(loop, body=self.several(loop, 1)),)
        steps = build.subtract(build.maximum(loop.stop, loop.start), loop.start)
        length = build.multiply(build.divide(steps, self.rounds), self.rounds)
        whole = ir.Local(own(f"{loop.variable}.whole"), loop.start.type)
        together = ir.Literal(self.rounds, loop.step.type)
        return (
            ir.Assign(whole.name, build.add(loop.start, length)),
            replace(loop, stop=whole, step=together, body=self.several(loop, self.rounds)),
            replace(loop, start=whole, body=self.several(loop, 1)),
        )

    def several(self, loop: ir.For, rounds: int) -> ir.Block:
        """The body of so many rounds.

        Each has its own variables, except for those that go from round to round.
        """
        copies = [self.copy(loop, n) if rounds > 1 else loop.body for n in range(rounds)]
        is_steady = [self.thread.is_steady(s) for s in loop.body]
        steady = tuple(s for c in copies for s, shared in zip(c, is_steady, strict=True) if shared)
        each = tuple(
            s for c in copies for s, shared in zip(c, is_steady, strict=True) if not shared
        )
        return (*rename(steady, self.first), *self.sweep(each, loop.body))

    def copy(self, loop: ir.For, n: int) -> ir.Block:
        variable = ir.Local(loop.variable, loop.start.type)
        own_names = self.thread.of_rounds(loop)
        moved = rewrite_block(loop.body, lambda e: build.add(e, n) if e == variable else e)
        return rename(moved, {name: numbered(name, n) for name in own_names})

    def sweep(self, each: ir.Block, part: ir.Block) -> ir.Block:
        """Statements for all points of a tile, with what they read and change of the variables that
        are kept.
        """
        if not each:
            return ()
        place = (build.subtract(ir.Local(self.last.variable, self.kind), self.begin),)
        met = {n: first_access(part, n) for n in self.thread.kept}
        changed = written_in(part)
        loads = [
            ir.LoadElement(_memory(n), place, n)
            for n, m in met.items()
            if m == "read" or (m == "none" and n in changed)
        ]
        kinds = self.thread.kept
        stores = [
            ir.StoreElement(_memory(n), place, ir.Local(n, kinds[n])) for n in kinds if n in changed
        ]
        again = [s for n, s in self.thread.again.items() if n not in changed]
        body: ir.Block = _without_unread((*again, *loads, *each, *stores))
        for x in reversed(self.nest):
            body = (replace(x, body=body),)
        points = merging.points_of_a_block(
            replace(self.reference, body=body), self.shape, masked=len(self.nest) - 1
        )
        side = ir.Literal(self.shape.side(self.shape.fast), self.kind)
        return (
            ir.For(
                first_of(self.last.variable), self.begin, self.end, side, (points,), role="tiles"
            ),
        )


def _memory(name: str) -> str:
    return own(f"kept.{name.removeprefix(MARK)}")


def _is_counted(loop: ir.For) -> bool:
    """Whether a loop goes up one by one from a number that is not negative: how many rounds it has
    is within its type.
    """
    return (
        loop.step == ir.Literal(1, loop.step.type)
        and isinstance(loop.start, ir.Literal)
        and loop.start.value >= 0
    )


def _without_unread(block: ir.Block) -> ir.Block:
    """A block without sums of indices that nothing in it reads."""
    read = used_in(block)
    done = tuple(
        s
        for s in block
        if not (isinstance(s, ir.Assign) and not s.value.type.is_float and s.name not in read)
    )
    return done if len(done) == len(block) else _without_unread(done)
