"""Equal reads of a thread fall together, and neighbouring ones become one access of up to 16 bytes.

    load t[k, 4 i]: u#0; load t[k, 4 i + 1]: u#1; ...; load t[k, 4 i]: v   ->   load t[k, 4 i]: u#0,
    u#1, u#2, u#3; v = u#0
Accesses are as wide as the rows of an array allow: in shared memory by their length, in global
memory where every row begins at a multiple of that many elements (`ArrayArgument.multiple`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import reads, rewrite_statement, writes
from lanewise.language.types import Scalar
from lanewise.passes.points.boxes import WIDEST, WORD
from lanewise.passes.points.shape import Shape, first_of

Key = tuple[object, ...]
Kinds = dict[int, Scalar]  # of accesses, by their number


def apply(
    kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], *, joined: bool = False
) -> ir.Kernel:
    """Join the accesses of both bodies of a kernel that is mapped to blocks, or of the one that is
    `joined`.
    """
    if joined:
        return replace(kernel, body=_body(kernel, kernel.body, shape, indices, {}))
    split = kernel.body[-1]
    assert isinstance(split, ir.If)
    return replace(kernel, body=(*kernel.body[:-1], _ways(kernel, split, shape, indices, {})))


def _ways(
    kernel: ir.Kernel, split: ir.If, shape: Shape, indices: tuple[str, ...], kinds: Kinds
) -> ir.If:
    """The bodies of blocks in the inside, of those that load early, and of all others; each has
    its own definitions.
    """
    match split.otherwise:
        case (ir.If() as second,):
            others: ir.Block = (_ways(kernel, second, shape, indices, kinds),)
        case body:
            others = _body(kernel, body, shape, indices, kinds)
    return replace(split, then=_body(kernel, split.then, shape, indices, kinds), otherwise=others)


def _body(
    kernel: ir.Kernel, body: ir.Block, shape: Shape, indices: tuple[str, ...], kinds: Kinds
) -> ir.Block:
    factors = {first_of(i): shape.side(d) for d, i in enumerate(indices)}
    return _Sharing(kernel, single_definitions(body), factors, kinds).block(body)


@dataclass(frozen=True, slots=True)
class _Read:
    load: ir.LoadElement
    key: Key
    last: IndexSum  # the last index


class _Sharing:
    """kinds: what variables of the kernel's other bodies are of, as a name has one type in a
    kernel.
    """

    def __init__(
        self,
        kernel: ir.Kernel,
        definitions: Mapping[str, IndexSum],
        factors: Mapping[str, int],
        kinds: Kinds,
    ) -> None:
        self.kernel = kernel
        self.definitions = definitions
        self.factors = factors
        self.kinds = kinds
        self.count = 0

    def block(self, block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        run: list[ir.Statement] = []
        for s in block:
            if isinstance(s, ir.Assign | ir.LoadElement | ir.StoreElement) or self._results(s):
                run.append(s)
                continue
            done += self.run(run)
            run = []
            around = self.factors
            if isinstance(s, ir.For):  # whose variable counts in steps
                counts = s.start == ir.Literal(0, s.start.type) and isinstance(s.step, ir.Literal)
                self.factors = {**around, s.variable: int(s.step.value) if counts else 1}  # pyright: ignore[reportAttributeAccessIssue]
            done.append(rewrite_statement(s, lambda e: e, self.block))
            self.factors = around
        return self._tested_stores([*done, *self.run(run)])

    def _results(self, s: ir.Statement) -> bool:
        """Whether nothing but results of the kernel are stored, under a test: what is read around
        it stays what it is.
        """
        return (
            isinstance(s, ir.If)
            and not s.otherwise
            and all(
                isinstance(x, ir.StoreElement) and self.kernel.array(x.array).space == "global"
                for x in s.then
            )
        )

    def _tested_stores(self, block: list[ir.Statement]) -> ir.Block:
        """Neighbouring stores, each with a test: one store where all of the tests hold."""
        done: list[ir.Statement] = []
        n = 0
        while n < len(block):
            for width in (4, 2):
                tests = [
                    s
                    for s in block[n : n + width]
                    if isinstance(s, ir.If) and not s.otherwise and len(s.then) == 1
                ]
                joined = (
                    self._joined([x for s in tests for x in s.then], width)
                    if len(tests) == width
                    else None
                )
                if joined is not None:
                    every = tests[0].condition
                    for s in tests[1:]:
                        every = ir.Logical("and", every, s.condition)
                    done.append(ir.If(every, (joined,), tuple(tests)))
                    n += width
                    break
            else:
                done.append(block[n])
                n += 1
        return tuple(done)

    def run(self, run: list[ir.Statement]) -> ir.Block:
        """Statements without loops, branches and barriers."""
        stored = {s.array for s in run if isinstance(s, ir.StoreElement)}
        written = Counter(n for s in run for n in writes(s))
        changing = written.keys() - self.definitions.keys()
        groups: dict[Key, list[_Read]] = {}
        sites: dict[int, _Read] = {}
        for n, s in enumerate(run):
            if isinstance(s, ir.LoadElement) and self._is_fixed(s.array, stored) and not s.more:
                *others, last = (index_sum(i, self.definitions) for i in s.indices)
                front = tuple((a.key(), a.constant) for a in others)
                used = {n for a in (*others, last) for e in a.terms for n in reads(e)}
                if written[s.name] != 1 or not used.isdisjoint(changing):
                    continue
                read = _Read(s, (s.array, front, last.key()), last)
                sites[n] = read
                groups.setdefault(read.key, []).append(read)
        plans = {key: self._plan(members) for key, members in groups.items()}
        brought: dict[tuple[Key, int], str] = {}
        done: list[ir.Statement] = []
        for n, s in enumerate(run):
            if n not in sites:
                done.append(s)
                continue
            read = sites[n]
            place = (read.key, read.last.constant)
            if place not in brought:
                done.append(self._load(read, plans[read.key][read.last.constant], brought))
            kind = self.kernel.array(read.load.array).leaves[0].type
            if brought[place] != read.load.name:
                done.append(ir.Assign(read.load.name, ir.Local(brought[place], kind)))
        return self._stores(done)

    def _is_fixed(self, array: str, stored: set[str]) -> bool:
        """Whether an array keeps its values within a run."""
        a = self.kernel.array(array)
        return array not in stored if a.space == "shared" else not a.written

    def _plan(self, members: list[_Read]) -> dict[int, tuple[int, int]]:
        """For each constant the first one of the access that brings it, and the width of that
        access.
        """
        constants = {m.last.constant for m in members}
        widest = self._width(members[0].load.array, members[0].last)
        plan: dict[int, tuple[int, int]] = {}
        for c in constants:
            plan[c] = (c, 1)
            for width in (2, 4):
                first = c // width * width
                half = {x // (width // 2) for x in constants if first <= x < first + width}
                if width <= widest and len(half) > 1:
                    plan[c] = (first, width)
        for c, (first, width) in list(plan.items()):  # a wide access takes in the narrow ones
            for other, (start, size) in plan.items():
                if start <= first and first + width <= start + size and size > width and other != c:
                    plan[c] = (start, size)
        return plan

    def _width(self, array: str, last: IndexSum) -> int:
        """The widest access that begins where the terms of an index are zero."""
        width = widest(self.kernel.array(array))
        while any(c * self._factor(e) % width for e, c in last.terms.items()):
            width //= 2
        return width

    def _factor(self, e: ir.Expression) -> int:
        return self.factors.get(e.name, 1) if isinstance(e, ir.Local) else 1

    def _load(
        self, read: _Read, access: tuple[int, int], brought: dict[tuple[Key, int], str]
    ) -> ir.Statement:
        first, width = access
        s = read.load
        if width == 1:
            brought[read.key, first] = s.name
            return s
        self.count += 1
        kind = self.kernel.array(s.array).leaves[0].type
        while self.kinds.setdefault(self.count, kind) != kind:
            self.count += 1
        names = tuple(own(f"wide.{self.count}.{n}") for n in range(width))
        for n, name in enumerate(names):
            brought.setdefault((read.key, first + n), name)
        last = replace(read.last, constant=first).expression(_kind(s.indices[-1]))
        return replace(s, indices=(*s.indices[:-1], last), name=names[0], more=names[1:])

    def _stores(self, run: list[ir.Statement]) -> ir.Block:
        """Stores that follow each other and are neighbours become one."""
        done: list[ir.Statement] = []
        n = 0
        while n < len(run):
            for width in (4, 2):
                if joined := self._joined(run[n : n + width], width):
                    done.append(joined)
                    n += width
                    break
            else:
                done.append(run[n])
                n += 1
        return tuple(done)

    def _joined(self, run: list[ir.Statement], width: int) -> ir.Statement | None:
        stores = [s for s in run if isinstance(s, ir.StoreElement) and not s.more]
        if len(stores) != width or len({s.array for s in stores}) != 1:
            return None
        sums = [[index_sum(i, self.definitions) for i in s.indices] for s in stores]
        first = sums[0][-1]
        if first.constant % width or self._width(stores[0].array, first) < width:
            return None
        for n, own_sums in enumerate(sums):
            if any(
                (a.key(), a.constant) != (b.key(), b.constant)
                for a, b in zip(own_sums[:-1], sums[0][:-1], strict=True)
            ):
                return None
            if own_sums[-1].key() != first.key() or own_sums[-1].constant != first.constant + n:
                return None
        return replace(stores[0], more=tuple(s.value for s in stores[1:]))


def widest(array: ir.ArrayArgument) -> int:
    """How many elements an access takes at most, by the type and the rows of an array."""
    size, length = array.leaves[0].type.size, array.shape[-1]
    whole = length if isinstance(length, int) else array.multiple
    if size < WORD:
        return 1
    return max(n for n in (1, 2, 4) if n == 1 or (n * size <= WIDEST and whole % n == 0))


def _kind(e: ir.Expression) -> Scalar:
    return e.type
