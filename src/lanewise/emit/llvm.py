"""Text of LLVM's language from the final IR: the user's function, and a range kernel that runs
elements `begin` to `end`.

Flags of arithmetic stand on single instructions: the user's may be contracted (fused multiply-add)
and nothing else, `rsqrt` may be approximate, and the kernel may reorder the sums over sources,
which `pairwise` leaves free. `<name>_kernel(arguments, begin, end)` reads its arguments from a
block of memory, 8 bytes a number and 16 an array (its address and how many elements it has), and
calls the kernel itself, whose parameters they are: there it can be said that arrays lie apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import assert_never

from lanewise.emit.declarations import kinds_of
from lanewise.emit.host_facts import borrowed, is_counted, local_arrays, stride
from lanewise.emit.llvm_expressions import Expressions
from lanewise.emit.llvm_instructions import (
    CONTRACT,
    FAST,
    FREE,
    LETTERS,
    TYPES,
    Instructions,
    in_memory,
    quoted,
)
from lanewise.emit.llvm_prelude import WHOLE_SCATTERS, prelude
from lanewise.emit.names import Names, entry_name, function_names, user_names
from lanewise.ir import nodes as ir
from lanewise.ir.functions import buffers_read, functions
from lanewise.ir.names import is_own, own
from lanewise.ir.reductions import reorders
from lanewise.ir.traverse import statements
from lanewise.language.target import LINE
from lanewise.language.types import BOOL, I32, I64, U32, LocalArray, Scalar
from lanewise.runtime.llvm import TAKES
from lanewise.support.errors import LanewiseError

WORDS = frozenset(("entry",))
ON_STACK = 1 << 16  # bytes of local arrays of a kernel; larger ones are asked of the system


class NotPrintedError(LanewiseError):
    """A kernel whose text in LLVM's language nobody writes yet."""


def emit_llvm(
    kernel: ir.Kernel,
    header: str,
    *,
    fast_math: bool = False,
    vector_bits: int = 0,
    locations: bool = True,
) -> str:
    """A module with the kernel's functions and `<name>_kernel`, see above.

    Parameters as of `emit_numba`.
    """
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    if any(isinstance(s, ir.Parallel) for s in loop.body):
        raise NotPrintedError(f"{kernel.name}: lanes of SIMD registers have no LLVM text yet")
    called = {n: quoted(c) for n, c in function_names(kernel, WORDS).items()}
    needs = set[str]()
    texts = [
        _FunctionWriter(kernel, f, called, needs, fast_math, locations).text()
        for f in functions(kernel.body)
    ]
    entry = _EntryWriter(kernel, called, needs, fast_math, vector_bits, locations)
    texts.append(entry.text())
    head = "".join(f"; {line}\n" for line in header.splitlines())
    parts = [head, TAKES + entry.takes(), prelude(needs, fast=fast_math), *texts]
    return "\n".join([*parts, entry.called_from_outside()])


class _Writer:
    """Writes statements; a function and an entry differ in what stands around them."""

    def __init__(
        self,
        kernel: ir.Kernel,
        names: Names,
        called: dict[str, str],
        needs: set[str],
        flags: str,
        fast: bool,
        file: str,
    ) -> None:
        self.kernel, self.names, self.called, self.file = kernel, names, called, file
        self.host = kernel.pattern.host
        self.code = Instructions(needs)
        self.kinds = {b.name: b.type for b in kernel.buffers}
        self.lying: dict[str, str] = {}  # variables, and where they lie
        self.given: dict[str, str] = {}  # those that keep what they are given
        self.loops: list[tuple[str, str]] = []  # where `break` and `continue` lead
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
                self.lying[name] = self.code.room(self.local(name), TYPES[kind])

    def array_room(self, name: str, kind: LocalArray) -> None:
        stored = f"[{kind.length} x {in_memory(kind.element)}]"
        self.lying[name] = self.code.room(self.local(name), stored, LINE)

    # ------------------------------------------------------------ statements

    def block(self, block: ir.Block) -> None:
        for s in block:
            first = len(self.code.lines)
            self.statement(s)
            location = getattr(s, "location", None)
            if self.file and location is not None and location.line:
                self.code.comment(first, f"{self.file}:{location.line}")

    def assign(self, name: str, value: str, kind: Scalar) -> None:
        self.code.do(f"store {TYPES[kind]} {value}, ptr {self.lying[name]}")

    def statement(self, s: ir.Statement) -> None:
        value = self.expressions.value
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
            case ir.Rotate() | ir.Shuffle() | ir.Least() | ir.Draw() | ir.AwaitTurn():
                raise AssertionError(f"{type(s).__name__} belongs to the threads of a GPU")
            case ir.EndTurn() | ir.CopyAsync() | ir.CopyElement() | ir.CopyLanes():
                raise AssertionError(f"{type(s).__name__} belongs to the threads of a GPU")
            case ir.CommitAsync() | ir.WaitAsync() | ir.Barrier():
                raise AssertionError(f"{type(s).__name__} belongs to the threads of a GPU")
            case ir.Parallel() | ir.LoadRecord() | ir.StoreRecord() | ir.LoadElement():
                raise AssertionError(f"{type(s).__name__} does not exist on the CPU")
            case ir.StoreElement() | ir.ScatterElement() | ir.PrefetchElement():
                raise AssertionError(f"{type(s).__name__} does not exist on the CPU")
            case ir.Prefetch():
                raise AssertionError("only SIMD lanes ask for memory ahead")
            case _:
                assert_never(s)

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
        return give(f"getelementptr inbounds {kind}, ptr {self.buffer(buffer)}, i64 {place}")

    def scatter(self, s: ir.Scatter) -> None:
        kind, number = s.value.type, self.expressions.value(s.value)
        t = TYPES[kind]
        if not kind.is_float:
            place = self.place(s.buffer, s.index)
            operation = WHOLE_SCATTERS[s.operation, kind]
            self.code.do(f"atomicrmw {operation} ptr {place}, {t} {number} monotonic")
            return
        name = f"lw_scatter_{s.operation}_{LETTERS[kind]}"
        self.code.needs.add(name)
        if s.operation == "sum":
            element = self.expressions.index(s.index)
            words = f"ptr {self.buffer(s.buffer)}, i64 {self.size(s.buffer)}, i64 {element}"
            self.code.do(f"call void @{name}({words}, {t} {number})")
        else:
            place = self.place(s.buffer, s.index)
            self.code.do(f"call void @{name}(ptr {place}, {t} {number})")

    # ------------------------------------------------------------ control flow

    def branch(self, s: ir.If) -> None:
        code = self.code
        then, behind = code.label("then"), code.label("behind")
        otherwise = code.label("else") if s.otherwise else behind
        code.branch(self.expressions.value(s.condition), then, otherwise)
        code.begin(then)
        self.block(s.then)
        code.jump(behind)
        if s.otherwise:
            code.begin(otherwise)
            self.block(s.otherwise)
            code.jump(behind)
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

    def loop(self, s: ir.For) -> None:
        """Own loops, and those whose variable counts all rounds, count in its type; others in 64
        bits, or by rounds, which are never too many.
        """
        bounds = [self.expressions.value(e) for e in (s.start, s.stop, s.step)]
        kind, fits = s.start.type, is_own(s.variable) or is_counted(s)
        if kind in (I32, U32) and not fits:
            bounds = [self.expressions.cast(b, kind, I64) for b in bounds]
            self.counted(s, bounds, I64)
        elif fits and isinstance(s.step, ir.Literal):
            self.counted(s, bounds, kind)
        elif kind == I64:
            self.by_rounds(s, bounds)
        else:
            self.counted(s, bounds, kind)

    def counted(self, s: ir.For, bounds: list[str], kind: Scalar) -> None:
        """The rounds are counted down and the variable goes on beside them, without a word on
        overflow: what LLVM knows of a variable decides how it takes several rounds at once, and so
        in which order sums are added.
        """
        start, stop, step = bounds
        give, t = self.code.give, TYPES[kind]
        way = give(f"sub {t} {stop}, {start}")
        ahead = give(f"icmp sgt {t} {way}, 0")
        by = s.step.value if isinstance(s.step, ir.Literal) else None
        if by == 1:
            rounds = give(f"select i1 {ahead}, {t} {way}, {t} 0")
        else:
            up = "true" if by is not None and by > 0 else "false"
            if by is None:
                up = give(f"icmp sgt {t} {step}, 0")
            apart = give(f"xor i1 {ahead}, {up}")
            rest = give(f"srem {t} {way}, {step}")
            minus = give(f"sub {t} 0, {rest}")
            size = give(f"select i1 {ahead}, {t} {rest}, {t} {minus}")
            uneven = give(f"icmp sgt {t} {size}, 0")
            more = give(f"zext i1 {uneven} to {t}")
            whole = give(f"sdiv {t} {way}, {step}")
            all_of = give(f"add {t} {whole}, {more}")
            rounds = give(f"select i1 {apart}, {t} 0, {t} {all_of}")

        def value(now: str) -> str:
            return now if s.start.type.size == kind.size else give(f"trunc {t} {now} to i32")

        self.rounds(s, t, rounds, (start, step), value)

    def by_rounds(self, s: ir.For, bounds: list[str]) -> None:
        """A user's loop whose variable may wrap on its way."""
        give = self.code.give
        self.code.needs.add("lw_rounds")
        listed = ", ".join(f"i64 {b}" for b in bounds)
        rounds = give(f"call i64 @lw_rounds({listed})")

        def value(now: str) -> str:
            way = give(f"mul i64 {now}, {bounds[2]}")
            return give(f"add i64 {bounds[0]}, {way}")

        self.rounds(s, "i64", rounds, ("0", "1"), value)

    def rounds(
        self,
        s: ir.For,
        t: str,
        rounds: str,
        way: tuple[str, str],
        value: Callable[[str], str],
    ) -> None:
        """So many rounds, of a number that begins at the first of `way` and grows by the second."""
        code, give = self.code, self.code.give
        at, left = (
            code.room(f"{self.lying[s.variable]}.{code.label(n)}", t) for n in ("at", "left")
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
        self.block(s.body)
        self.loops.pop()
        code.jump(test)
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


class _FunctionWriter(_Writer):
    """A function of scalars; it returns its mutable parameters and its results."""

    def __init__(
        self,
        kernel: ir.Kernel,
        f: ir.Function,
        called: dict[str, str],
        needs: set[str],
        fast_math: bool,
        locations: bool,
    ) -> None:
        first = [*(p.name for p in f.parameters), *user_names(f.body)]
        file = PurePath(f.location.file).name if locations else ""
        flags = FAST if fast_math else CONTRACT
        super().__init__(kernel, Names(WORDS, (), first), called, needs, flags, fast_math, file)
        self.function = f
        self.mutable = [p for p in f.parameters if p.mutable]

    def text(self) -> str:
        f, assigned = self.function, set(kinds_of(self.function.body, self.kinds))
        loops = {s.variable for s in statements(f.body) if isinstance(s, ir.For)}
        changed = assigned | loops | {n for s in statements(f.body) for n in _changed(s)}
        parameters = list[str]()
        for p in f.parameters:
            name = self.local(p.name)
            if p.name in changed:
                given = f"{name}.given"
                self.lying[p.name] = self.code.room(name, TYPES[p.type])
                self.code.rooms.append(f"  store {TYPES[p.type]} {given}, ptr {name}")
                name = given
            else:
                self.given[p.name] = name
            parameters.append(f"{TYPES[p.type]} {name}")
        for b in buffers_read(f):
            parameters += [f"ptr {self.buffer(b)}", f"i64 {self.size(b)}"]
        for n in local_arrays(f.body):
            self.lying[n] = self.local(n)
            parameters.append(f"ptr {self.lying[n]}")
        self.declare(f.body)
        for n, r in enumerate(f.results):
            self.code.room(f"%.result.{n}", TYPES[r.type])
        self.block(f.body)
        self.code.jump("return")
        self.code.begin("return")
        self.results()
        attribute = " alwaysinline" if self.host.inline else ""
        head = f"define linkonce_odr {result_type(f)} @{self.called[f.name]}"
        return f"{head}({', '.join(parameters)}){attribute} {{\n{self.code.text()}\n}}\n"

    def returned(self, values: tuple[ir.Expression, ...]) -> None:
        """Values for the results, which the function's only end returns: LLVM makes vectors of
        numbers that come together there, and not of structures.
        """
        numbers = [(self.expressions.value(v), v.type) for v in values]
        for n, (number, kind) in enumerate(numbers):
            self.code.do(f"store {TYPES[kind]} {number}, ptr %.result.{n}")
        self.code.jump("return")

    def results(self) -> None:
        f, give = self.function, self.code.give
        result, places = result_type(f), [(self.lying.get(p.name), p) for p in self.mutable]
        places += [(f"%.result.{n}", r) for n, r in enumerate(f.results)]
        if result == "void":
            self.code.end("ret void")
            return
        made = "poison"
        for n, (place, p) in enumerate(places):
            kind = TYPES[p.type]
            number = self.given[p.name] if place is None else give(f"load {kind}, ptr {place}")
            made = give(f"insertvalue {result} {made}, {kind} {number}, {n}")
        self.code.end(f"ret {result} {made}")


def _changed(s: ir.Statement) -> list[str]:
    """Variables that a call changes."""
    if not isinstance(s, ir.Apply):
        return []
    pairs = zip(s.function.parameters, s.arguments, strict=True)
    return [a.name for p, a in pairs if p.mutable and isinstance(a, ir.Local)]


class _EntryWriter(_Writer):
    """The kernel itself: the loop over a range of elements."""

    def __init__(
        self,
        kernel: ir.Kernel,
        called: dict[str, str],
        needs: set[str],
        fast_math: bool,
        vector_bits: int,
        locations: bool,
    ) -> None:
        first = [*(p.name for p in kernel.uniforms), *user_names(kernel.body)]
        host, free = kernel.pattern.host, reorders(kernel)
        # The states of other reductions than sums begin at infinity, and leave NaN out: no shortcut
        # may assume that there are none.
        fast = fast_math and free
        flags = FAST if fast else FREE if host.reassociate and free else CONTRACT
        file = (
            PurePath(kernel.location.file).name if locations and kernel.pattern.inlined else ""
        )
        super().__init__(kernel, Names(WORDS, (), first), called, needs, flags, fast, file)
        self.vector_bits = vector_bits
        self.arrays = [b for b in kernel.buffers if b.space == "global"]
        self.numbers = kernel.counts + kernel.uniforms
        self.name = quoted(entry_name(kernel))

    def takes(self) -> str:
        """The types of the arguments, in order; of arrays whether they are written."""
        arrays = ["written" if b.written else "array" for b in self.arrays]
        return " ".join([*arrays, *(p.type.name for p in self.numbers)])

    def text(self) -> str:
        k, code = self.kernel, self.code
        apart = "noalias " if self.host.separate else ""
        begin, end = self.local(own("begin")), self.local(own("end"))
        parameters = list[str]()
        for b in self.arrays:
            parameters += [f"ptr {apart}{self.buffer(b.name)}", f"i64 {self.size(b.name)}"]
        for p in self.numbers:
            self.given[p.name] = self.local(p.name)
            parameters.append(f"{TYPES[p.type]} {self.given[p.name]}")
        self.given[own("begin")], self.given[own("end")] = begin, end
        parameters += [f"i64 {begin}", f"i64 {end}"]
        (loop,) = k.body
        assert isinstance(loop, ir.Parallel)
        heap = self.make_room(loop.body)
        self.declare(loop.body)
        self.lying[loop.variable] = code.room(self.local(loop.variable), "i64")
        index = ir.For(
            loop.variable,
            ir.Local(own("begin"), I64),
            ir.Local(own("end"), I64),
            ir.Literal(1, I64),
            loop.body,
        )
        self.loop(index)
        for pointer in heap:
            code.needs.add("declare void @free(ptr)")
            code.do(f"call void @free(ptr {pointer})")
        code.end("ret i32 0")
        width = f' "prefer-vector-width"="{self.vector_bits}"' if self.vector_bits else ""
        head = f"define internal i32 @{self.run_name}({', '.join(parameters)}) noinline{width}"
        return f"{head} {{\n{code.text()}\n}}\n"

    @property
    def run_name(self) -> str:
        return quoted(f"{self.names(self.kernel.name)}_range")

    def make_room(self, body: ir.Block) -> list[str]:
        """Room for local arrays and for memory of a core's own; what is asked of the system."""
        sizes = {
            n: (in_memory(a.element), a.length, a.element.size)
            for n, a in local_arrays(body).items()
        }
        shared = [b for b in self.kernel.buffers if b.space == "shared"]
        names = {n: self.local(n) for n in sizes} | {b.name: self.buffer(b.name) for b in shared}
        sizes |= {b.name: (in_memory(b.type), b.length, b.type.size) for b in shared}
        heap, left = list[str](), ON_STACK
        for name, (kind, length, size) in sizes.items():
            if length * size <= left:
                left -= length * size
                self.code.room(names[name], f"[{max(1, length)} x {kind}]", LINE)
            else:
                heap.append(self.asked_for(names[name], length * size, heap))
            self.lying[name] = names[name]
        for b in shared:
            self.code.rooms.append(f"  {self.size(b.name)} = add i64 {b.length}, 0")
        return heap

    def asked_for(self, name: str, size: int, before: list[str]) -> str:
        """Memory of the system; without it the kernel does nothing, and says so."""
        code = self.code
        code.needs.add("declare noalias ptr @aligned_alloc(i64 allocalign, i64)")
        rounded = -(-size // LINE) * LINE
        code.do(f"{name} = call noalias ptr @aligned_alloc(i64 {LINE}, i64 {rounded})")
        none = code.give(f"icmp eq ptr {name}, null")
        missing, there = code.label("no_memory"), code.label("memory")
        code.branch(none, missing, there)
        code.begin(missing)
        for pointer in before:
            code.needs.add("declare void @free(ptr)")
            code.do(f"call void @free(ptr {pointer})")
        code.end("ret i32 1")
        code.begin(there)
        return name

    def called_from_outside(self) -> str:
        """What Python calls: it takes the arguments out of their block."""
        code = Instructions()
        arguments = list[str]()
        at = 0

        def read(kind: str) -> None:
            nonlocal at
            place = code.give(f"getelementptr inbounds i8, ptr %arguments, i64 {at}")
            arguments.append(f"{kind} {code.give(f'load {kind}, ptr {place}, align 1')}")
            at += 8

        for _ in self.arrays:
            read("ptr")
            read("i64")
        for p in self.numbers:
            if p.type == BOOL:
                read("i8")
                byte = arguments.pop().removeprefix("i8 ")
                arguments.append(f"i1 {code.give(f'icmp ne i8 {byte}, 0')}")
            else:
                read(TYPES[p.type])
        listed = ", ".join([*arguments, "i64 %begin", "i64 %end"])
        status = code.give(f"call i32 @{self.run_name}({listed})")
        code.end(f"ret i32 {status}")
        head = f"define i32 @{self.name}(ptr %arguments, i64 %begin, i64 %end)"
        return f"{head} {{\n{code.text()}\n}}\n"


