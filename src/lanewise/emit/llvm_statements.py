"""Statements of the IR as instructions of LLVM's language; functions and kernels differ in what
stands around them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lanewise.emit.declarations import kinds_of
from lanewise.emit.host_facts import borrowed, is_counted, stride
from lanewise.emit.llvm_comments import spoken, spoken_value
from lanewise.emit.llvm_expressions import Expressions
from lanewise.emit.llvm_instructions import LETTERS, TYPES, in_memory, quoted
from lanewise.emit.llvm_lanes import LaneWriter
from lanewise.emit.llvm_rounds import counted_rounds, kept_whole
from lanewise.emit.llvm_scatters import combined
from lanewise.emit.names import Names
from lanewise.emit.neighbour_loads import Places, odd_neighbours, rounds_at_once
from lanewise.ir import nodes as ir
from lanewise.ir.functions import buffers_read
from lanewise.ir.names import is_own, own
from lanewise.ir.traverse import statements
from lanewise.language.types import I32, I64, U32, Scalar
from lanewise.runtime.llvm_lines import FunctionLines


class Writer:
    """Writes statements; a function and an entry differ in what stands around them."""

    def __init__(
        self,
        kernel: ir.Kernel,
        names: Names,
        called: dict[str, str],
        needs: set[str],
        flags: str,
        fast: bool,
        file: str | None,
    ) -> None:
        """file: of the user's, for people who read the text; "" where statements have no lines of
        it, None for a text that is compiled.
        """
        self.kernel, self.names, self.called, self.file = kernel, names, called, file
        self.host = kernel.pattern.host
        self.code = FunctionLines(needs)
        self.kinds = {b.name: b.type for b in kernel.buffers}
        self.lying: dict[str, str] = {}  # variables, and where they lie
        self.given: dict[str, str] = {}  # those that keep what they are given
        # where statements run for all lanes of a SIMD register at once
        self.simd: LaneWriter | None = None
        self.loops: list[tuple[str, str]] = []  # where `break` and `continue` lead
        self.depth = 0  # of blocks in blocks
        # what a loop reads through other pointers, see `emit/neighbour_loads.py`
        self.odd: Places = frozenset()
        self.mutable: list[ir.Parameter] = []
        # pointers to local arrays, which a caller lends
        self.expressions = Expressions(
            self.code, self.variable, self.given, flags, fast, self.host.branchless
        )

    # ------------------------------------------------------------ names

    def local(self, name: str) -> str:
        return f"%{quoted(self.names(name))}"

    def variable(self, name: str) -> str:
        return self.lying[name]

    def buffer(self, name: str) -> str:
        return self.local(own(f"{name}.array"))

    def size(self, name: str) -> str:
        """How many elements a buffer has."""
        return self.local(own(f"{name}.size"))

    def declare(self, block: ir.Block) -> None:
        """Room for the variables that a block assigns."""
        kinds = kinds_of(block, self.kinds)
        for s in statements(block):
            if isinstance(s, ir.For):
                kinds[s.variable] = s.start.type
        for name, kind in kinds.items():
            if name not in self.lying and isinstance(kind, Scalar):
                varying = self.simd is not None and name in self.simd.lanes.varying
                room = self.simd.vectors.kind(kind) if varying and self.simd else TYPES[kind]
                self.lying[name] = self.code.room(self.local(name), room)

    # ------------------------------------------------------------ statements

    def block(self, block: ir.Block) -> None:
        if self.simd is not None:
            self.simd.lanes.enter(block)
        self.depth += 1
        rest = 0  # of statements that were written together
        for n, s in enumerate(block):
            self.say(s)
            if rest:
                rest -= 1
                continue
            count = 0 if self.simd is None else self.simd.lanes.count
            if self.simd is not None and self.simd.moves.turned(list(block[n : n + count])):
                rest = count - 1
                continue
            self.statement(s)
        self.depth -= 1

    def say(self, s: ir.Statement) -> None:
        """For people: what the instructions that follow do, and where the user wrote it."""
        if self.file is None:
            return
        text, location = spoken(s, self.names), getattr(s, "location", None)
        if self.file and location is not None and location.line:
            text += f"  # {self.file}:{location.line}"
        self.note(text)

    def note(self, text: str) -> None:
        """For people, in the line that follows."""
        if self.file is not None:
            self.code.comment("  " * (self.depth - 1) + text)

    def written(self, e: ir.Expression) -> str:
        """An expression for a note."""
        return spoken_value(e, self.names) if self.file is not None else ""

    def assign(self, name: str, value: str, kind: Scalar) -> None:
        self.code.do(f"store {TYPES[kind]} {value}, ptr {self.lying[name]}")

    def statement(self, s: ir.Statement) -> None:
        value = self.expressions.value
        if self.simd is not None and self.simd.statement(s):
            return
        match s:
            case ir.Assign():
                self.assign(s.name, value(s.value), s.value.type)
            case ir.DeclareArray():
                size = s.type.length * s.type.element.size
                self.code.needs.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                self.code.do(
                    f"call void @llvm.memset.p0.i64(ptr {self.lying[s.name]}, i8 0, i64 {size}, "
                    "i1 false)"
                )
            case ir.SetElement():
                kind, number = s.value.type, value(s.value)
                place = self.expressions.element(s.array, s.index, kind)
                self.expressions.store(number, place, kind)
            case ir.If():
                self.branch(s)
            case ir.For():
                self.loop(s)
            case ir.While():
                self.repeated(s)
            case ir.Break():
                self.code.jump(self.loops[-1][0])
            case ir.Continue():
                self.code.jump(self.loops[-1][1])
            case ir.Return():
                self.returned(s.values)
            case ir.Apply():
                self.apply(s)
            case ir.Load():
                kind = self.kinds[s.buffer]
                name = self.lying[s.names[0]]
                number = self.expressions.loaded(self.place(s.buffer, s.index), kind, name)
                self.assign(s.names[0], number, kind)
            case ir.Store():
                number = value(s.values[0])
                place = self.place(s.buffer, s.index)
                self.expressions.store(number, place, self.kinds[s.buffer])
            case ir.Scatter():
                self.scatter(s)
            case ir.Prefetch():
                raise AssertionError("only SIMD lanes ask for memory ahead")
            case _:
                if isinstance(s, ir.OfThreads):
                    raise AssertionError(f"{type(s).__name__} belongs to the threads of a GPU")
                rest: ir.Unlowered = s
                raise AssertionError(f"{type(rest).__name__} was not lowered")

    def place(self, buffer: str, index: ir.Expression) -> str:
        """A pointer to an element.

        Where neighbours lie far apart, what LLVM makes of a loop is no better for knowing it: it
        would gather, which takes longer than loading one value after the other. A test for negative
        places, of which there are none, keeps that from it.
        """
        place, give = self.expressions.index(index), self.code.give
        widest = self.host.widest_stride
        if widest is not None and stride(index) > widest:
            behind = give(f"add i64 {place}, {self.size(buffer)}")
            negative = give(f"icmp slt i64 {place}, 0")
            place = give(f"select i1 {negative}, i64 {behind}, i64 {place}")
        kind = in_memory(self.kinds[buffer])
        array = self.aside(buffer) if (buffer, index) in self.odd else self.buffer(buffer)
        return give(f"getelementptr inbounds {kind}, ptr {array}, i64 {place}")

    def aside(self, buffer: str) -> str:
        """Another pointer to a buffer, of which LLVM does not know that it is the same."""
        name = self.local(own(f"{buffer}.aside"))
        hidden = "@llvm.launder.invariant.group.p0(ptr"
        line = f"  {name} = call ptr {hidden} {self.buffer(buffer)})"
        if line not in self.code.rooms:
            self.code.needs.add(f"declare ptr {hidden})")
            self.code.rooms.append(line)
        return name

    def scatter(self, s: ir.Scatter) -> None:
        kind, number = s.value.type, self.expressions.value(s.value)
        t = TYPES[kind]
        if not kind.is_float or s.operation == "add":  # a thread alone has this memory
            place = self.place(s.buffer, s.index)
            before = self.code.give(f"load {t}, ptr {place}, align {kind.size}")
            after = combined(self.code, self.expressions.flags, s, before, number)
            self.code.do(f"store {t} {after}, ptr {place}, align {kind.size}")
            return
        name = f"lw_scatter_{s.operation}_{LETTERS[kind]}"
        self.code.needs.add(name)
        if s.operation == "sum":
            element = self.expressions.index(s.index)
            to = f"{self.buffer(s.buffer)}, i64 {self.size(s.buffer)}, i64 {element}"
        else:
            to = self.place(s.buffer, s.index)
        self.code.do(f"call void @{name}(ptr {to}, {t} {number})")

    # ------------------------------------------------------------ control flow

    def branch(self, s: ir.If) -> None:
        code = self.code
        then, behind = code.label("then"), code.label("behind")
        otherwise = code.label("else") if s.otherwise else behind
        code.branch(self.expressions.value(s.condition), then, otherwise)
        simd = self.simd
        assigned = set(simd.lanes.assigned) if simd is not None else set[str]()
        everywhere = set(assigned)
        for label, block in ((then, s.then), (otherwise, s.otherwise)):
            if label == behind:
                continue
            if simd is not None:
                simd.lanes.assigned = set(assigned)  # what the other side assigns has no value here
            code.begin(label)
            if label != then:
                self.note("else:")
            self.block(block)
            code.jump(behind)
            if simd is not None:
                everywhere |= simd.lanes.assigned
        if simd is not None:
            simd.lanes.assigned = everywhere
        code.begin(behind)

    def repeated(self, s: ir.While) -> None:
        code = self.code
        test, body, behind = (code.label(n) for n in ("while", "do", "behind"))
        code.begin(test)
        code.branch(self.expressions.value(s.condition), body, behind)
        self.body(body, s.body, behind, test)
        code.jump(test)
        code.begin(behind)

    def body(self, label: str, block: ir.Block, behind: str, following: str) -> None:
        self.code.begin(label)
        self.loops.append((behind, following))
        self.block(block)
        self.loops.pop()

    def loop(self, s: ir.For, body: Callable[[], None] | None = None) -> None:
        """Own loops, and those whose variable counts all rounds, count in its type; others in 64
        bits, or by rounds, which are never too many. body: what a round does, where that is not the
        loop's block.
        """
        body = body or partial(self.block, s.body)
        bounds = [self.expressions.value(e) for e in (s.start, s.stop, s.step)]
        kind, fits = s.start.type, is_own(s.variable) or is_counted(s)
        odd = odd_neighbours(s, self.host.separate) if fits and self.simd is None else None
        if odd:
            self.in_two_parts(s, bounds, odd, body)
        elif kind in (I32, U32) and not fits:
            bounds = [self.expressions.cast(b, kind, I64) for b in bounds]
            self.counted(s, bounds, I64, body)
        elif fits and isinstance(s.step, ir.Literal):
            self.counted(s, bounds, kind, body)
        elif kind == I64:
            self.by_rounds(s, bounds, body)
        else:
            self.counted(s, bounds, kind, body)

    def counted(self, s: ir.For, bounds: list[str], kind: Scalar, body: Callable[[], None]) -> None:
        """The rounds are counted down while the variable counts up, without a word on
        overflow: what LLVM knows of a variable decides how it takes several rounds at once, and so
        in which order sums are added.
        """
        start, stop, step = bounds
        give, t = self.code.give, TYPES[kind]
        rounds = counted_rounds(give, t, start, stop, s.step, step)

        def value(now: str) -> str:
            return now if s.start.type.size == kind.size else give(f"trunc {t} {now} to i32")

        self.rounds(s, t, rounds, (start, step), value, body)

    def in_two_parts(
        self, s: ir.For, bounds: list[str], odd: Places, body: Callable[[], None]
    ) -> None:
        """Whole vectors, and a rest that reads some neighbours through other pointers."""
        start, stop, step = bounds
        give, t, unit = self.code.give, TYPES[s.start.type], rounds_at_once(s, self.kinds)
        way = give(f"sub {t} {stop}, {start}")
        rest = give(f"srem {t} {way}, {unit}")
        middle = give(f"sub {t} {stop}, {rest}")
        self.counted(s, [start, middle, step], s.start.type, body)
        self.note(f"the last rounds, fewer than {unit}:")
        around, self.odd = self.odd, odd
        self.counted(s, [middle, stop, step], s.start.type, body)
        self.odd = around

    def by_rounds(self, s: ir.For, bounds: list[str], body: Callable[[], None]) -> None:
        """A user's loop whose variable may wrap on its way."""
        give = self.code.give
        self.code.needs.add("lw_rounds")
        listed = ", ".join(f"i64 {b}" for b in bounds)
        rounds = give(f"call i64 @lw_rounds({listed})")

        def value(now: str) -> str:
            way = give(f"mul i64 {now}, {bounds[2]}")
            return give(f"add i64 {bounds[0]}, {way}")

        self.rounds(s, "i64", rounds, ("0", "1"), value, body)

    def rounds(
        self,
        s: ir.For,
        t: str,
        rounds: str,
        way: tuple[str, str],
        value: Callable[[str], str],
        inside: Callable[[], None],
    ) -> None:
        """So many rounds, of a number that begins at the first of `way` and grows by the second."""
        code, give = self.code, self.code.give
        at, left = (
            code.room(f"{self.lying[s.variable]}{code.label(n)}", t) for n in ("at", "left")
        )
        code.do(f"store {t} {way[0]}, ptr {at}")
        code.do(f"store {t} {rounds}, ptr {left}")
        test, body, behind = (code.label(n) for n in ("for", "do", "behind"))
        code.begin(test)
        count = give(f"load {t}, ptr {left}")
        code.branch(give(f"icmp sgt {t} {count}, 0"), body, behind)
        code.begin(body)
        now = give(f"load {t}, ptr {at}")
        code.do(f"store {t} {give(f'sub nsw {t} {count}, 1')}, ptr {left}")
        code.do(f"store {t} {give(f'add {t} {now}, {way[1]}')}, ptr {at}")
        self.assign(s.variable, value(now), s.start.type)
        self.loops.append((behind, test))
        inside()
        self.loops.pop()
        code.jump(test, kept_whole(code.needs) if s.role == "lanes" else "")
        code.begin(behind)

    # ------------------------------------------------------------ functions

    def returned(self, values: tuple[ir.Expression, ...]) -> None:
        raise AssertionError("a kernel has no result")

    def apply(self, s: ir.Apply) -> None:
        f, give = s.function, self.code.give
        arguments = [
            f"{TYPES[p.type]} {self.expressions.value(a)}"
            for p, a in zip(f.parameters, s.arguments, strict=True)
        ]
        for b in buffers_read(f):
            arguments += [f"ptr {self.buffer(b)}", f"i64 {self.size(b)}"]
        arguments += [f"ptr {self.lying[n]}" for n in borrowed(f)]
        outputs = [
            (a.name, p.type)
            for p, a in zip(f.parameters, s.arguments, strict=True)
            if p.mutable and isinstance(a, ir.Local)
        ]
        outputs += [(n, r.type) for n, r in zip(s.results, f.results, strict=True)]
        result = result_type(f)
        call = f"call {result} @{self.called[f.name]}({', '.join(arguments)})"
        if result == "void":
            self.code.do(call)
            return
        made = give(call)
        for n, (name, kind) in enumerate(outputs):
            self.assign(name, give(f"extractvalue {result} {made}, {n}"), kind)


def result_type(f: ir.Function) -> str:
    """A structure of the mutable parameters and the results."""
    kinds = [TYPES[p.type] for p in f.parameters if p.mutable] + [TYPES[r.type] for r in f.results]
    return f"{{ {', '.join(kinds)} }}" if kinds else "void"
