"""Python text for Numba from the final IR: the user's function, and a range kernel that runs
elements `begin` to `end`.

Each function has its own fast-math flags, which LLVM keeps when it inlines: the user's arithmetic
may be contracted (fused multiply-add) and nothing else; `lw_rsqrt` may be approximate; the kernel
may reorder the sums over sources, which `pairwise` leaves free.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import assert_never

from lanewise.analysis.rounds import given_in_rounds
from lanewise.emit.block_numbers import numbers_of
from lanewise.emit.host_facts import borrowed, is_counted, local_arrays, stride
from lanewise.emit.names import PYTHON_WORDS, Names, entry_name, function_names, user_names
from lanewise.emit.numba_expressions import numba_expression
from lanewise.emit.numba_prelude import (
    IMPORTS,
    SEPARATE_IMPORT,
    TYPES,
    conversions_import,
    decorator,
    prefer_width,
    prelude,
    scatters_import,
    width_import,
)
from lanewise.emit.numba_simd import Simd
from lanewise.emit.walks import SplitWalk, walk_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.functions import buffers_read, functions
from lanewise.ir.names import is_own, own
from lanewise.ir.pattern import HostCode
from lanewise.ir.reductions import reorders
from lanewise.ir.traverse import rewrite, subexpressions
from lanewise.language.types import I64

# values at once; Python's own limit is 30, of which mutable parameters and local arrays take some
LONG = 24


def emit_numba(
    kernel: ir.Kernel,
    header: str,
    *,
    fast_math: bool = False,
    vector_bits: int = 0,
    locations: bool = True,
) -> str:
    """A module with the kernel's functions and `<name>_kernel(buffers..., counts..., uniforms...,
    begin, end)`.

    `vector_bits` is the width of the SIMD registers that the kernel shall use: 256, 512, or 0 for
    what the compiler prefers. `locations` adds the user's files and lines as comments.
    """
    called = function_names(kernel, PYTHON_WORDS)
    host = kernel.pattern.host
    inlined = ", forceinline=True" if host.inline else ""
    parts = [
        _FunctionWriter(f, called, entry_name(kernel), fast_math, inlined, host, locations).text()
        for f in functions(kernel.body)
    ]
    entry = _EntryWriter(kernel, called, fast_math, vector_bits, locations)
    body = "\n\n".join([*parts, entry.text()])
    imports = (
        IMPORTS
        + width_import(vector_bits)
        + (SEPARATE_IMPORT if host.separate else "")
        + conversions_import(body)
        + scatters_import(body)
        + entry.imports
    )
    return f'"""{header}"""\n\n{imports}{prelude(body, fast_math)}\n{body}'


class _Writer:
    """Writes statements; a function and an entry differ in what stands around them."""

    def __init__(self, names: Names, called: dict[str, str]) -> None:
        self.names, self.called = names, called
        self.lines: list[str] = []
        self.mutable: list[str] = []
        self.file = ""
        self.temporaries = 0
        self.eager = False  # no branches in conditions
        # where statements run for all lanes of a SIMD register at once
        self.simd: Simd | None = None
        # stride of places whose test for a sign is left out; None: all of them
        self.widest: float | None = 1

    def returned(self, values: tuple[ir.Expression, ...], pad: str) -> None:
        outputs = [*(self.names(n) for n in self.mutable), *self.listed(values, pad)]
        self.lines.append(
            f"{pad}return {', '.join(outputs)}{',' if len(outputs) == 1 else ''}".rstrip()
        )

    def listed(self, values: tuple[ir.Expression, ...], pad: str) -> list[str]:
        """Expressions for a long tuple or call.

        Python builds those of more than 30 parts in a way that Numba reads only without jumps.
        """
        texts: list[str] = []
        for v in values:
            text = self.expression(v)
            if len(values) > LONG and any(
                isinstance(x, ir.Select | ir.Logical) for x in subexpressions(v)
            ):
                self.temporaries += 1
                name = self.names(own(f"value.{self.temporaries}"))
                self.lines.append(f"{pad}{name} = {text}")
                text = name
            texts.append(text)
        return texts

    def buffer(self, name: str) -> str:
        """The identifier of a buffer, apart from the variable that one of its elements is loaded
        into.
        """
        return self.names(own(f"{name}.array"))

    def block(self, block: ir.Block, depth: int) -> None:
        if self.simd is not None:
            self.simd.enter(block)
        if not block:
            self.lines.append("    " * depth + "pass")
        rest = 0  # of statements that were written together
        for n, s in enumerate(block):
            if rest:
                rest -= 1
                continue
            if (
                self.simd is not None
                and (lines := self.simd.turned(list(block[n : n + self.simd.count]))) is not None
            ):
                self.lines += ["    " * depth + line for line in lines]
                rest = self.simd.count - 1
                continue
            first = len(self.lines)
            self.statement(s, depth)
            location = getattr(s, "location", None)
            if self.file and location is not None and location.line:
                self.lines[first] += f"  # {self.file}:{location.line}"

    def nested(self, head: str, body: ir.Block, depth: int) -> None:
        self.lines.append("    " * depth + head)
        self.block(body, depth + 1)

    def expression(self, x: ir.Expression) -> str:
        return numba_expression(x, self.names, eager=self.eager)

    def place(self, index: ir.Expression) -> str:
        """The index of a load or store, without a sign unless neighbours lie apart.

        Numba lets a negative index count from the end, and its test hides from LLVM that neighbours
        lie side by side. With a wide stride the test stays: LLVM would gather, which takes longer
        than loading one value after the other.
        """
        text, apart = self.expression(index), stride(index)
        return f"u64({text})" if self.widest is None or apart <= self.widest else text

    def statement(self, s: ir.Statement, depth: int) -> None:
        e, pad = self.expression, "    " * depth
        if self.simd is not None and (lines := self.simd.statement(s)) is not None:
            self.lines += [pad + line for line in lines]
            return
        match s:
            case ir.If() if self.simd is not None and self.differs(s):
                self.masked(s, self.simd, depth)
            case ir.For() if self.simd is not None and s.variable in self.simd.loops:
                self.shared_rounds(s, self.simd, depth)
            case ir.Assign():
                self.lines.append(f"{pad}{self.names(s.name)} = {e(s.value)}")
            case ir.DeclareArray():
                self.lines.append(f"{pad}{self.names(s.name)}[:] = 0")
            case ir.SetElement():
                index = self.place(s.index) if self.widest is None else e(s.index)
                self.lines.append(f"{pad}{self.names(s.array)}[{index}] = {e(s.value)}")
            case ir.If():
                self.branch(s, depth)
            case ir.For():
                self.loop(s, depth)
            case ir.While():
                self.nested(f"while {e(s.condition)}:", s.body, depth)
            case ir.Break() | ir.Continue():
                self.lines.append(f"{pad}{type(s).__name__.lower()}")
            case ir.Return():
                self.returned(s.values, pad)
            case ir.Apply():
                self.apply(s, pad)
            case ir.Load():
                self.lines.append(
                    f"{pad}{self.names(s.names[0])} = "
                    f"{self.buffer(s.buffer)}[{self.place(s.index)}]"
                )
            case ir.Store():
                self.lines.append(
                    f"{pad}{self.buffer(s.buffer)}[{self.place(s.index)}] = {e(s.values[0])}"
                )
            case ir.Scatter():
                own = f"_{TYPES[s.value.type]}" if s.operation == "sum" else ""
                self.lines.append(
                    f"{pad}lw_scatter_{s.operation}{own}({self.buffer(s.buffer)}, "
                    f"{self.place(s.index)}, {e(s.value)})"
                )
            case (
                ir.Rotate()
                | ir.Shuffle()
                | ir.Least()
                | ir.Draw()
                | ir.AwaitTurn()
                | ir.EndTurn()
                | ir.CopyAsync()
                | ir.CopyElement()
                | ir.CopyLanes()
                | ir.CommitAsync()
                | ir.WaitAsync()
            ):
                raise AssertionError(f"{type(s).__name__} belongs to the threads of a GPU")
            case (
                ir.Parallel()
                | ir.LoadRecord()
                | ir.StoreRecord()
                | ir.LoadElement()
                | ir.StoreElement()
                | ir.ScatterElement()
                | ir.PrefetchElement()
                | ir.Barrier()
            ):
                raise AssertionError(f"{type(s).__name__} does not exist on the CPU")
            case ir.Prefetch():
                raise AssertionError("only SIMD lanes ask for memory ahead")
            case _:
                assert_never(s)

    def shared_rounds(self, s: ir.For, simd: Simd, depth: int) -> None:
        """A loop whose rounds lanes share: whole registers of rounds, and the rest in some
        lanes.
        """
        pad = "    " * depth
        before, head, rest = simd.rounds(s)
        # assigned in every round before they are read
        assigned = simd.assigned - given_in_rounds(s.body)
        self.lines += [pad + line for line in (*before, head, f"    {simd.round(s)}")]
        simd.begin_rounds(s)
        self.block(s.body, depth + 1)
        simd.end_rounds(s)
        simd.assigned = assigned  # the last rounds give what rounds begin with anew
        if rest is None:
            return
        last, some = rest
        self.lines += [pad + line for line in (last, f"if {some}:", f"    {simd.round(s)}")]
        variable = ir.Local(s.variable, s.start.type)
        mask, line = simd.mask(ir.Compare("<", variable, s.stop))
        self.lines.append(f"{pad}    {line}")
        simd.masks.append(mask)
        simd.in_late = s.role == "late"
        self.block(s.body, depth + 1)
        simd.in_late = False
        simd.masks.pop()

    def masked(self, s: ir.If, simd: Simd, depth: int) -> None:
        """Both sides of a branch, each for the lanes that take it; a test that all lanes share
        leaves out all of it.
        """
        pad = "    " * depth
        tests = build.conjuncts(s.condition)
        shared = [t for t in tests if not simd.differs(t)]
        if shared and not s.otherwise:
            assigned = set(simd.assigned)
            rest = replace(s, condition=build.all_of(*(t for t in tests if simd.differs(t))))
            self.nested(f"if {self.expression(build.all_of(*shared))}:", (rest,), depth)
            simd.assigned = assigned  # behind it nobody reads what may not have been computed
            return
        mask, line = simd.mask(s.condition)
        sides = [(mask, s.then)]
        self.lines.append(pad + line)
        if s.otherwise:
            other, line = simd.opposite(mask)
            sides.append((other, s.otherwise))
            self.lines.append(pad + line)
        for name, block in sides:
            if block:
                simd.masks.append(name)
                self.block(block, depth)
                simd.masks.pop()

    def branch(self, s: ir.If, depth: int) -> None:
        """With `elif` for an else that is nothing but a branch: Python takes 100 levels of
        indentation.
        """
        sides = [(f"if {self.expression(s.condition)}:", s.then)]
        while (
            len(s.otherwise) == 1
            and isinstance(following := s.otherwise[0], ir.If)
            and not self.differs(following)
        ):
            s = following
            sides.append((f"elif {self.expression(s.condition)}:", s.then))
        if s.otherwise:
            sides.append(("else:", s.otherwise))
        assigned = set(self.simd.assigned) if self.simd is not None else set[str]()
        behind = set(assigned)
        for head, block in sides:
            if self.simd is not None:
                self.simd.assigned = set(assigned)  # what other sides assign has no value here
            self.nested(head, block, depth)
            if self.simd is not None:
                behind |= self.simd.assigned
        if self.simd is not None:
            self.simd.assigned = behind

    def differs(self, s: ir.If) -> bool:
        """Whether lanes take different sides of a branch."""
        return self.simd is not None and self.simd.differs(s.condition)

    def walk(self, w: SplitWalk, s: ir.For, simd: Simd, depth: int) -> None:
        """The blocks before, those inside and those behind, in this order: caches ask for what
        comes next in memory.
        """
        pad, e, number = "    " * depth, self.expression, self.names(s.variable)
        along = s.variable.removesuffix(".number")
        begin, end, inner, outer, side = (
            self.names(own(f"{along}.{n}")) for n in ("begin", "end", "inner", "outer", "side")
        )
        least, most = ([e(x) for x in ends] for ends in (w.bounds.least, w.bounds.most))
        gate = f" if {e(w.bounds.gate)} else {inner}" if w.bounds.gate is not None else ""
        self.lines += [
            f"{pad}{begin} = {e(s.start)}",
            f"{pad}{end} = {e(s.stop)}",
            f"{pad}{inner} = min({_extreme('max', begin, *least)}, {end})",
            f"{pad}{outer} = max({_extreme('min', end, *most)}, {inner}){gate}",
        ]
        assigned = set(simd.assigned)

        def part(line: str, depth: int, block: ir.Block, *first: str) -> None:
            self.lines.append(f"{'    ' * depth}{line}:")
            self.lines += [f"{'    ' * (depth + 1)}{x}" for x in first]
            simd.assigned = set(assigned)  # what one part assigns has no value in the others
            for statement in w.head:
                self.statement(statement, depth + 1)
            self.block(block, depth + 1)

        if w.early is not None:
            bounds = w.early.bounds
            tests = [] if bounds.gate is None else [e(bounds.gate)]
            tests += [f"{inner} - {begin} <= 1", f"{end} - {outer} <= 1"]
            tests += [f"{e(x)} <= {begin}" for x in bounds.least] + [
                f"{end} <= {e(x)}" for x in bounds.most
            ]
            self.lines.append(f"{pad}if {' and '.join(tests)}:")
            part(f"if {begin} < {inner}", depth + 1, w.early.block, f"{number} = {begin}")
            part(f"for {number} in range({inner}, {outer})", depth + 1, w.inside)
            part(f"if {outer} < {end}", depth + 1, w.early.block, f"{number} = {outer}")
            self.lines.append(f"{pad}else:")
            depth += 1
        self.lines.append(f"{'    ' * depth}for {side} in range(2):")
        edges = f"range({outer} if {side} else {begin}, {end} if {side} else {inner})"
        part(f"for {number} in {edges}", depth + 1, w.edges)
        part(f"for {number} in range({inner}, {inner} if {side} else {outer})", depth + 1, w.inside)
        simd.assigned = assigned

    def loop(self, s: ir.For, depth: int) -> None:
        if self.simd is not None and self.simd.is_walked(s) and (w := walk_of(s)) is not None:
            self.walk(w, s, self.simd, depth)
            return
        e = self.expression
        start, stop = e(s.start), e(s.stop)
        if not is_own(s.variable) and not is_counted(s):
            self.wide_loop(s, depth)
            return
        plain = s.start == ir.Literal(0, s.start.type) and s.step == ir.Literal(1, s.step.type)
        # Numba gives sums 64 bits, in which LLVM counts every row's place by itself, in memory
        if s.role == "tiles":
            start = f"{TYPES[s.start.type]}({start})"
        bounds = stop if plain else f"{start}, {stop}, {e(s.step)}"
        self.nested(f"for {self.names(s.variable)} in range({bounds}):", s.body, depth)

    def wide_loop(self, s: ir.For, depth: int) -> None:
        """A user's loop that may have more rounds than its type counts, which Numba takes for
        none.
        """
        e, pad, variable = self.expression, "    " * depth, self.names(s.variable)
        bounds = [e(x) for x in (s.start, s.stop, s.step)]
        number = self.names(own(f"{s.variable}.round"))
        if s.start.type == I64:
            first = self.names(own(f"{s.variable}.first"))
            self.lines.append(f"{pad}{first} = {bounds[0]}")
            self.lines.append(
                f"{pad}for {number} in range(lw_rounds({first}, {', '.join(bounds[1:])})):"
            )
            value = f"i64(u64({first}) + u64({number}) * u64({bounds[2]}))"
        else:
            self.lines.append(
                f"{pad}for {number} in range({', '.join(f'i64({b})' for b in bounds)}):"
            )
            value = f"{TYPES[s.start.type]}({number})"
        self.lines.append(f"{pad}    {variable} = {value}")
        self.block(s.body, depth + 1)

    def apply(self, s: ir.Apply, pad: str) -> None:
        changed = [
            a.name
            for p, a in zip(s.function.parameters, s.arguments, strict=True)
            if p.mutable and isinstance(a, ir.Local)
        ]
        outputs = [self.names(n) for n in (*changed, *s.results)]
        buffers = [self.buffer(b) for b in buffers_read(s.function)]
        arguments = [
            *self.listed(s.arguments, pad),
            *buffers,
            *(self.names(n) for n in borrowed(s.function)),
        ]
        target = f"{', '.join(outputs)}{',' if len(outputs) == 1 else ''} = " if outputs else ""
        self.lines.append(f"{pad}{target}{self.called[s.function.name]}({', '.join(arguments)})")


def _extreme(name: str, first: str, *others: str) -> str:
    """Of one number or several: Python's functions take no single one."""
    return f"{name}({', '.join((first, *others))})" if others else first


class _FunctionWriter(_Writer):
    """A function of scalars; it returns its mutable parameters and its results."""

    def __init__(
        self,
        f: ir.Function,
        called: dict[str, str],
        entry: str,
        fast_math: bool,
        extra: str,
        host: HostCode,
        locations: bool,
    ) -> None:
        first = [*(p.name for p in f.parameters), *user_names(f.body)]
        super().__init__(Names(PYTHON_WORDS, [*called.values(), entry], first), called)
        self.function, self.fast_math, self.extra = f, fast_math, extra
        self.eager, self.widest = host.branchless, host.widest_stride
        self.file = PurePath(f.location.file).name if locations else ""
        self.mutable = [p.name for p in f.parameters if p.mutable]

    def text(self) -> str:
        f = self.function
        parameters = [self.names(p.name) for p in f.parameters]
        parameters += [self.buffer(b) for b in buffers_read(f)] + [
            self.names(n) for n in local_arrays(f.body)
        ]
        self.lines.append(decorator('{"contract"}', self.fast_math, self.extra))
        self.lines.append(f"def {self.called[f.name]}({', '.join(parameters)}):")
        self.block(f.body, 1)
        if not f.results and not (f.body and isinstance(f.body[-1], ir.Return)):
            self.returned((), "    ")
        return "\n".join([*self.lines, ""])


class _EntryWriter(_Writer):
    """The kernel itself: the loop over a range of elements."""

    def __init__(
        self,
        kernel: ir.Kernel,
        called: dict[str, str],
        fast_math: bool,
        vector_bits: int,
        locations: bool,
    ) -> None:
        first = [*(p.name for p in kernel.uniforms), *user_names(kernel.body)]
        super().__init__(Names(PYTHON_WORDS, [*called.values(), entry_name(kernel)], first), called)
        self.eager, self.widest = kernel.pattern.host.branchless, kernel.pattern.host.widest_stride
        self.kernel, self.fast_math, self.vector_bits = kernel, fast_math, vector_bits
        self.file = (
            PurePath(kernel.location.file).name if locations and kernel.pattern.inlined else ""
        )
        self.imports = ""

    def text(self) -> str:
        k = self.kernel
        # The states of other reductions than sums begin at infinity, and leave NaN out: no shortcut
        # may assume that there are none.
        flags = (
            '{"reassoc", "contract", "nsz"}'
            if k.pattern.host.reassociate and reorders(k)
            else '{"contract"}'
        )
        begin, end = self.names(own("begin")), self.names(own("end"))
        global_buffers = [b for b in k.buffers if b.space == "global"]
        parameters = [self.buffer(b.name) for b in global_buffers] + [
            self.names(p.name) for p in k.counts + k.uniforms
        ]
        self.lines.append(decorator(flags, self.fast_math and reorders(k), ", nogil=True"))
        self.lines.append(f"def {entry_name(k)}({', '.join([*parameters, begin, end])}):")
        if self.vector_bits:
            self.lines.append(f"    {prefer_width(self.vector_bits)}()")
        if k.pattern.host.separate:
            self.lines.append("    lw_separate()")
        (loop,) = k.body
        assert isinstance(loop, ir.Parallel)
        for name, kind in local_arrays(k.body).items():
            self.lines.append(
                f"    {self.names(name)} = np.empty({kind.length}, np.{kind.element.dtype.name})"
            )
        body, simd = loop.body, None
        match body:
            case (ir.Parallel() as threads,):  # the lanes of SIMD registers
                simd = Simd(k, threads, self.expression, self.names, self.buffer)
                body = threads.body
            case _:
                pass
        for b in k.buffers:
            if b.space == "shared":
                plain = f"{self.buffer(b.name)} = np.empty({b.length}, np.{b.type.dtype.name})"
                self.lines += [
                    f"    {line}" for line in ([plain] if simd is None else simd.memory(b))
                ]
        head = len(self.lines)
        self.simd = simd
        block = ir.Local(loop.variable, loop.extent.type)
        numbers = None if simd is None else numbers_of(block, body)
        if numbers is not None:
            for s in numbers.first:
                value = rewrite(
                    s.value, lambda e: ir.Local(own("begin"), e.type) if e == block else e
                )
                self.statement(replace(s, value=value), 1)
            body = numbers.rest
        self.lines.append(f"    for {self.names(loop.variable)} in range({begin}, {end}):")
        self.block(body, 2)
        if numbers is not None:
            self.lines += [f"        {line}" for line in numbers.next(self.names)]
        if simd is not None:
            self.lines[head:head] = [f"    {line}" for line in simd.head()]
            self.lines += [f"    {line}" for line in simd.tail()]
            self.imports = simd.imports(fast_math=self.fast_math)
        return "\n".join([*self.lines, ""])
