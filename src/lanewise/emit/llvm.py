"""Text of LLVM's language from the final IR: the user's function, and a range kernel that runs
elements `begin` to `end`.

Flags of arithmetic stand on single instructions: the user's may be contracted (fused multiply-add;
`runtime/contraction.py` says which are) and nothing else, `rsqrt` may be approximate, and the
kernel may reorder the sums over sources, which `pairwise` leaves free. `<name>_kernel` is what
Python calls; it calls the kernel itself, whose parameters are arrays and numbers: there it can be
said that arrays lie apart.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from lanewise.emit.block_numbers import Numbers, numbers_of
from lanewise.emit.declarations import kinds_of
from lanewise.emit.host_facts import local_arrays
from lanewise.emit.llvm_instructions import (
    CONTRACT,
    FAST,
    FREE,
    TYPES,
    in_memory,
    quoted,
)
from lanewise.emit.llvm_lanes import LaneWriter
from lanewise.emit.llvm_prelude import prelude
from lanewise.emit.llvm_statements import Writer, result_type
from lanewise.emit.names import Names, entry_name, function_names, user_names
from lanewise.emit.strips import in_strips
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import buffers_read, functions
from lanewise.ir.names import own
from lanewise.ir.reductions import reorders
from lanewise.ir.traverse import rewrite, statements
from lanewise.language.target import LINE
from lanewise.language.types import I64, Scalar
from lanewise.runtime.python_call import (
    CONTIGUOUS,
    DATA,
    DIMENSIONS,
    FLAGS,
    LENGTHS,
    WRITEABLE,
    PythonCall,
)

WORDS = frozenset(("entry", "return"))  # names of blocks
ON_STACK = 1 << 16  # bytes of local arrays of a kernel; larger ones are asked of the system


def emit_llvm(
    kernel: ir.Kernel,
    header: str,
    *,
    fast_math: bool = False,
    vector_bits: int = 0,
    locations: bool = True,
) -> str:
    """A module with the kernel's functions and `<name>_kernel`, see above.

    fast_math: also assume that no number is infinite or NaN, and use approximations. vector_bits:
    the width of SIMD registers for the entry; 0 leaves it to LLVM. locations: for people, with what
    instructions do, and the user's lines; what is compiled has none of that.
    """
    # with a dot, as no function of C has: LLVM calls some, and would take the user's for them
    called = {n: quoted(f"user.{c}") for n, c in function_names(kernel, WORDS).items()}
    needs = set[str]()
    texts = [
        _FunctionWriter(kernel, f, called, needs, fast_math, locations).text()
        for f in functions(kernel.body)
    ]
    entry = _EntryWriter(kernel, called, needs, fast_math, vector_bits, locations)
    texts.append(entry.text())
    head = "".join(f"; {line}\n" for line in header.splitlines())
    parts = [head, prelude(needs, fast=fast_math), *texts]
    if locations:
        return "\n".join([*parts, entry.named_for_people()])
    return "\n".join([*parts, entry.called_from_outside()])


class _FunctionWriter(Writer):
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
        file = PurePath(f.location.file).name if locations else None
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


class _EntryWriter(Writer):
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
        file = None
        if locations:
            file = PurePath(kernel.location.file).name if kernel.pattern.inlined else ""
        super().__init__(kernel, Names(WORDS, (), first), called, needs, flags, fast, file)
        self.vector_bits = vector_bits
        self.arrays = [b for b in kernel.buffers if b.space == "global"]
        self.numbers = kernel.counts + kernel.uniforms
        self.name = quoted(entry_name(kernel))

    def text(self) -> str:
        k, code = self.kernel, self.code
        begin, end = self.local(own("range.begin")), self.local(own("range.end"))
        parameters = list[str]()
        for b in self.arrays:
            apart = "noalias " if self.host.separate or b.apart else ""
            parameters += [f"ptr {apart}{self.buffer(b.name)}", f"i64 {self.size(b.name)}"]
        for p in self.numbers:
            self.given[p.name] = self.local(p.name)
            parameters.append(f"{TYPES[p.type]} {self.given[p.name]}")
        self.given[own("range.begin")], self.given[own("range.end")] = begin, end
        parameters += [f"i64 {begin}", f"i64 {end}"]
        (loop,) = k.body
        assert isinstance(loop, ir.Parallel)
        body = loop.body
        match body:
            case (ir.Parallel() as threads,):  # the lanes of SIMD registers
                fast = self.expressions.fast
                self.simd = LaneWriter(self, threads, fast)
                self.simd.moves.rooms()
                body = threads.body
            case _:
                pass
        first, last = (ir.Local(own(n), I64) for n in ("range.begin", "range.end"))
        block = ir.Local(loop.variable, loop.extent.type)
        counted = ir.Local(own("block.number"), I64)  # in 64 bits, as the ends of a range are
        index = ir.For(counted.name, first, last, ir.Literal(1, I64), body)
        strips = None
        if self.simd is None and k.pattern.inlined:  # what it scatters to it touches nowhere else
            element = ir.Assign(block.name, build.cast(counted, block.type))
            strips = in_strips(replace(index, body=(element, *body)), self.kinds)
        heap = self.make_room(body if strips is None else strips.body)
        self.declare(body if strips is None else (strips,))
        if block.name not in self.lying:
            self.lying[block.name] = code.room(self.local(block.name), TYPES[block.type])
        numbers = None if self.simd is None else numbers_of(block, body)
        head = len(code.lines)
        if numbers is not None:
            begun = build.cast(first, block.type)
            for s in numbers.first:
                value = rewrite(s.value, lambda e: begun if e == block else e)
                self.statement(replace(s, value=value))
            body = numbers.rest
            index = replace(index, body=body)
        if counted.name not in self.lying:
            self.lying[counted.name] = code.room(self.local(counted.name), "i64")

        def each() -> None:
            number = self.expressions.value(counted)
            self.assign(block.name, self.expressions.cast(number, I64, block.type), block.type)
            self.block(body)
            if numbers is not None:
                self.block(_next(numbers, block.type))

        self.depth = 1
        if strips is not None:
            self.block((strips,))
        else:
            self.say(replace(index, variable=block.name))
            self.loop(index, each)
        if self.simd is not None:
            code.lines[head:head] = self.simd.moves.settle()
            self.simd.tail()
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
            if self.simd is None or n not in self.simd.lanes.varying
            else self.simd.array_of(a)
            for n, a in local_arrays(body).items()
        }
        shared = [b for b in self.kernel.buffers if b.space == "shared"]
        names = {n: self.local(n) for n in sizes} | {b.name: self.buffer(b.name) for b in shared}
        sizes |= {b.name: (in_memory(b.type), b.length, b.type.size) for b in shared}
        heap, left = list[str](), ON_STACK
        inner = {}
        if self.simd is not None:
            for b in shared:
                sizes[b.name] = (in_memory(b.type), self.simd.room_of(b), b.type.size)
                inner[b.name], names[b.name] = names[b.name], f"{names[b.name]}.room"
        for name, (kind, length, size) in sizes.items():
            if length * size <= left:
                left -= length * size
                self.code.room(names[name], f"[{max(1, length)} x {kind}]", LINE)
            else:
                heap.append(self.asked_for(names[name], length * size, heap))
            self.lying[name] = names[name]
        for b in shared:
            if self.simd is not None:
                self.simd.memory(b, inner[b.name])
                self.lying[b.name] = inner[b.name]
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

    def named_for_people(self) -> str:
        """Instead of what Python calls, of which most is the same for all kernels."""
        return f"; {self.name}, which Python calls, unpacks its arguments for {self.run_name}\n"

    def called_from_outside(self) -> str:
        """What Python calls: it takes numbers and the memory of arrays out of the objects that it
        is given, and lets other threads of Python run meanwhile.
        """
        name, arguments = self.kernel.name, list[str]()
        wanted = len(self.arrays) + len(self.numbers) + 2
        call = PythonCall(name, wanted)
        code, whole = call.code, "true"
        for n, b in enumerate(self.arrays):
            array = call.given(n)
            needed = CONTIGUOUS | (WRITEABLE if b.written else 0)
            few = code.give(f"and i32 {call.read('i32', array, FLAGS)}, {needed}")
            has = code.give(f"icmp eq i32 {few}, {needed}")
            row = code.give(f"icmp eq i32 {call.read('i32', array, DIMENSIONS)}, 1")
            fits = code.give(f"and i1 {has}, {row}")
            whole = code.give(f"and i1 {whole}, {fits}")
            arguments.append(f"ptr {call.read('ptr', array, DATA)}")
            lengths = call.read("ptr", array, LENGTHS)
            # of no dimension there is no length
            length = code.give(f"select i1 {row}, ptr {lengths}, ptr @lw_nothing")
            arguments.append(f"i64 {call.read('i64', length, 0)}")
        wrong = f"{name} got an array that is no row, or one to write that is read-only"
        call.require(whole, "PyExc_AssertionError", wrong)
        for n, kind in enumerate([*(p.type for p in self.numbers), I64, I64], len(self.arrays)):
            arguments.append(f"{TYPES[kind]} {call.number(n, TYPES[kind])}")
        call.without_error()
        call.run(f"@{self.run_name}({', '.join(arguments)})")
        return call.text(f"@{self.name}")


def _next(numbers: Numbers, kind: Scalar) -> ir.Block:
    """What continues to the numbers of the next block, see `emit.block_numbers.py`."""
    inner: ir.Block = ()
    for name, count in reversed(numbers.counted):
        number = ir.Local(name, kind)
        more = ir.Assign(name, build.add(number, 1))
        if count is None:
            inner = (more,)
            continue
        back = ir.Assign(name, ir.Literal(0, kind))
        test = ir.Compare("==", number, ir.Local(count, kind))
        inner = (more, ir.If(test, (back, *inner)))
    return inner
