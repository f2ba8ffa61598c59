"""CUDA C++ from the final IR.

The text carries the user's names, and `#line` points into the user's file.

A thread of an inlined function has the user's statements and lanewise's own side by side, where
`#line` would point there and back again at almost every line: comments after the statements say
where they come from.
"""

from __future__ import annotations

from pathlib import PurePath

from lanewise.emit.cuda_expressions import cuda_expression
from lanewise.emit.cuda_prelude import prelude, vector_type
from lanewise.emit.declarations import Declarations, kinds_of
from lanewise.emit.names import CUDA_WORDS, Names, entry_name, function_names, user_names
from lanewise.ir import nodes as ir
from lanewise.ir.functions import buffers_read, functions
from lanewise.ir.names import is_own, own
from lanewise.ir.shared import group_bytes, shared_groups
from lanewise.ir.traverse import apart
from lanewise.language.types import LocalArray, limits
from lanewise.runtime.cuda_spelling import TYPES, literal
from lanewise.support.errors import Location

LINE_LENGTH = 110
_RESUME = "@resume"


def emit_cuda(kernel: ir.Kernel, header: str, *, locations: bool = True) -> str:
    """The complete source of one kernel: prelude, functions, `extern "C"` entry of the kernel's
    name + `_kernel`.

    With `locations` `#line` points into the user's file, or comments do.
    """
    called = function_names(kernel, CUDA_WORDS)
    parts = [_FunctionWriter(f, called, kernel, locations).text() for f in functions(kernel.body)]
    body = "\n".join([*parts, _EntryWriter(kernel, called, locations).text()])
    text = "".join(f"// {line}\n" for line in header.splitlines()) + "\n" + prelude(body) + body
    # after a function that points into the user's file, point back into this one
    lines = text.split("\n")
    return "\n".join(
        f'#line {n + 2} "{kernel.name}.cu"' if line == _RESUME else line
        for n, line in enumerate(lines)
    )


class _Writer:
    """Writes statements; a function and an entry differ in what stands around them."""

    def __init__(self, block: ir.Block, names: Names, called: dict[str, str]) -> None:
        self.body, self.names, self.called = apart(block), names, called
        self.lines: list[str] = []
        self.results: list[str] = []
        self.file = ""  # the user's file, where lines point to it
        self.noted = ""  # the user's file, where comments name it
        self.noted_line = 0  # what the last comment names, until a statement of lanewise's own
        self.next_line = 0  # what the compiler takes the next line of the text for
        self.joinable: tuple[int, str] | None = (
            None  # the user's line and the indentation of a text line that may still grow
        )
        self.buffers: dict[str, ir.BufferArgument] = {}
        self.loads = 0
        self.declarations = Declarations((), {}, ())

    def put(self, text: str) -> None:
        self.lines.append(text)
        self.next_line += 1 + text.count("\n")
        self.joinable = None

    def put_simple(self, s: ir.Statement, pad: str, text: str) -> None:
        """A short statement; several that come from one line of the user's share a line."""
        line = s.location.line if isinstance(s, ir.Assign | ir.Return | ir.SetElement) else 0
        if (
            self.file
            and line
            and self.joinable == (line, pad)
            and len(self.lines[-1]) + 1 + len(text) <= LINE_LENGTH
        ):
            self.lines[-1] += f" {text}"
            return
        self.point_to(line)
        self.put(pad + text)
        self.joinable = (line, pad)

    def point_to(self, line: int) -> None:
        if self.file and line and line != self.next_line:
            self.put(f'#line {line} "{self.file}"')
            self.next_line = line

    def block(self, block: ir.Block, depth: int) -> None:
        for s in block:
            pad = "    " * depth
            for name in self.declarations.before(s):
                self.put(f"{pad}{self.declaration(name)};")
            if not isinstance(s, ir.Assign | ir.Return | ir.SetElement):
                location = getattr(s, "location", None)
                self.point_to(location.line if location is not None else 0)
            note, first = self.note(s), len(self.lines)
            self.statement(s, depth, pad)
            self.put_note(note, first)

    def note(self, s: ir.Statement) -> str:
        """A comment for a statement that comes from another line of the user's than the one
        before.
        """
        location = getattr(s, "location", None)
        line = location.line if self.noted and location is not None else 0
        before, self.noted_line = self.noted_line, line
        return f"  // {self.noted}:{line}" if line and line != before else ""

    def put_note(self, note: str, first: int) -> None:
        """After the first line of a statement."""
        while first < len(self.lines) and self.lines[first].lstrip().startswith("#"):
            first += 1
        if note and first < len(self.lines):
            self.lines[first] += note

    def declaration(self, name: str) -> str:
        kind = self.declarations.kinds[name]
        if isinstance(kind, LocalArray):
            return f"{TYPES[kind.element]} {self.names(name)}[{kind.length}]"
        return f"{TYPES[kind]} {self.names(name)}"

    def target(self, s: ir.Statement, name: str) -> str:
        if not self.declarations.declares(s, name):
            return self.names(name)
        return (
            f"{'const ' if self.declarations.is_constant(s, name) else ''}{self.declaration(name)}"
        )

    def shuffled(self, s: ir.Shuffle) -> str:
        value = self.names(s.value.name)
        if s.distance in (0, -s.group):
            return f"lw_{'last' if s.distance else 'first'}({value}, {s.group})"
        which = "behind" if s.distance > 0 else "before"
        return f"lw_{which}({value}, {abs(s.distance)}, {s.group})"

    def nested(self, head: str, body: ir.Block, depth: int) -> None:
        pad = "    " * depth
        self.put(f"{pad}{head} {{")
        self.block(body, depth + 1)
        self.put(f"{pad}}}")

    def expression(self, e: ir.Expression, level: int = 0) -> str:
        return cuda_expression(e, self.names, level)

    def statement(self, s: ir.Statement, depth: int, pad: str) -> None:
        e = self.expression
        match s:  # a row for each statement of the IR: a table, whose completeness types say
            case ir.Assign() if self.declarations.is_unread(s, s.name):
                pass
            case ir.Assign():
                self.put_simple(s, pad, f"{self.target(s, s.name)} = {e(s.value)};")
            case ir.DeclareArray():
                self.put(pad + self.array(s))
            case ir.SetElement():
                self.put_simple(s, pad, f"{self.names(s.array)}[{e(s.index)}] = {e(s.value)};")
            case ir.If():
                self.nested(f"if ({e(s.condition)})", s.then, depth)
                if s.otherwise:
                    self.nested("else", s.otherwise, depth)
            case ir.For():
                self.loop(s, depth, pad)
            case ir.While():
                self.nested(f"while ({e(s.condition)})", s.body, depth)
            case ir.Break() | ir.Continue():
                self.put(f"{pad}{type(s).__name__.lower()};")
            case ir.Return():
                for name, value in zip(self.results, s.values, strict=True):
                    self.put_simple(s, pad, f"{self.names(name)} = {e(value)};")
                self.put_simple(s, pad, "return;")
            case ir.Apply():
                self.apply(s, pad)
            case ir.Barrier():
                self.put(f"{pad}{'__syncwarp' if s.scope == 'warp' else '__syncthreads'}();")
            case ir.Rotate():
                self.put_rotation(s, pad)
            case ir.Shuffle():
                self.put(f"{pad}{self.target(s, s.name)} = {self.shuffled(s)};")
            case ir.Least():
                value, least = (
                    self.names(s.value.name),
                    "fmin" if s.value.type.size == 8 else "fminf",
                )
                for other in s.others:
                    value = f"{least}({value}, {self.names(other.name)})"
                self.put(f"{pad}{self.target(s, s.name)} = lw_least({value});")
            case ir.Draw():
                self.put(
                    f"{pad}{self.target(s, s.name)} = lw_draw({self.buffer(s.counter)}, "
                    f"{e(s.total)});"
                )
            case ir.AwaitTurn():
                self.put(f"{pad}lw_await_turn(&{self.buffer(s.turns)}[{e(s.index)}], {e(s.turn)});")
            case ir.EndTurn():
                self.put(
                    f"{pad}lw_end_turn(&{self.buffer(s.turns)}[{e(s.index)}], {e(s.following)});"
                )
            case ir.CopyLanes():
                self.copy(s, pad)
            case ir.CommitAsync():
                self.put(f"{pad}lw_commit_async();")
            case ir.WaitAsync():
                self.put(
                    f"{pad}lw_wait_async_but<{s.pending}>();"
                    if s.pending
                    else f"{pad}lw_wait_async();"
                )
            case ir.Load():
                self.load(s, pad)
            case ir.Store():
                self.store(s, pad)
            case ir.Scatter():
                if s.operation == "sum":
                    self.put(
                        f"{pad}lw_scatter_sum({self.buffer(s.buffer)}, {e(s.index)}, {e(s.value)});"
                    )
                    return
                in_order = s.operation == "add" and s.value.type.is_float
                assert not in_order, "threads of a GPU add in no order"
                self.put(
                    f"{pad}lw_scatter_{s.operation}(&{self.buffer(s.buffer)}[{e(s.index)}], "
                    f"{e(s.value)});"
                )
            case ir.Prefetch():
                raise AssertionError(f"{type(s).__name__} belongs to the cores of a CPU")
            case _:
                rest: ir.Unlowered = s
                raise AssertionError(f"{type(rest).__name__} was not lowered")

    def put_rotation(self, s: ir.Rotate, pad: str) -> None:
        for v in s.values:
            self.put(f"{pad}{self.names(v.name)} = lw_rotate({self.names(v.name)});")

    def array(self, s: ir.DeclareArray) -> str:
        """A declaration of zeros, or a loop that makes an array zero again."""
        if self.declarations.declares(s, s.name):
            return f"{self.declaration(s.name)} = {{}};"
        i = self.names(own("zero"))
        return f"for (int {i} = 0; {i} < {s.type.length}; ++{i}) {self.names(s.name)}[{i}] = 0;"

    def loop(self, s: ir.For, depth: int, pad: str) -> None:
        e, v = self.expression, self.names(s.variable)
        if s.unroll != 1 or s.role in (
            "sources",
            "points",
        ):  # the plan decides about these loops: without a word the compiler would
            self.put(f"{pad}#pragma unroll" + (f" {s.unroll}" if s.unroll else ""))
        # a step that is no literal counts up
        step = s.step.value if isinstance(s.step, ir.Literal) else 1
        move = f"++{v}" if step == 1 and isinstance(s.step, ir.Literal) else f"{v} += {e(s.step)}"
        test = "<" if step > 0 else ">"
        low, high = limits(s.start.type)
        ends = isinstance(s.stop, ir.Literal) and low <= s.stop.value + step <= high
        if (
            abs(step) > 1 and not ends and not is_own(s.variable)
        ):  # a user's, which may end next to the limit of its type
            last = literal(high - step if step > 0 else low - step, s.start.type)
            move = (
                f"{v} = {v} {'>' if step > 0 else '<'} {last} ? {e(s.stop, 1)} : {v} + "
                f"{e(s.step, 10)}"
            )
        self.nested(
            f"for ({TYPES[s.start.type]} {v} = {e(s.start)}; {v} {test} {e(s.stop, 8)}; {move})",
            s.body,
            depth,
        )

    def apply(self, s: ir.Apply, pad: str) -> None:
        new: dict[str, list[str]] = {}
        for name, r in zip(s.results, s.function.results, strict=True):
            if self.declarations.declares(s, name):
                new.setdefault(TYPES[r.type], []).append(self.names(name))
        for kind, names in new.items():
            self.put(f"{pad}{kind} {', '.join(names)};")
        self.point_to(s.location.line)
        buffers = [self.buffer(b) for b in buffers_read(s.function)]
        arguments = [
            *(self.expression(a) for a in s.arguments),
            *buffers,
            *(self.names(r) for r in s.results),
        ]
        self.put(call(f"{pad}{self.called[s.function.name]}", arguments, ";"))

    def buffer(self, name: str) -> str:
        """The identifier of a buffer, apart from the variable that one of its elements is loaded
        into.
        """
        return self.names(own(f"{name}.array"))

    def load(self, s: ir.Load, pad: str) -> None:
        b = self.buffers[s.buffer]
        source = f"{self.buffer(s.buffer)}[{self.expression(s.index)}]"
        if b.once:
            source = f"__ldcs(&{source})"
        if all(not n or self.declarations.is_unread(s, n) for n in s.names):
            return
        if b.lanes == 1:
            self.put(f"{pad}{self.target(s, s.names[0])} = {source};")
            return
        self.loads += 1
        name = self.names(own(f"{s.buffer}.loaded.{self.loads}"))
        self.put(f"{pad}const {vector_type(b.type, b.lanes)} {name} = {source};")
        for lane, variable in zip("xyzw", s.names, strict=False):
            if variable and not self.declarations.is_unread(s, variable):
                self.put(f"{pad}{self.target(s, variable)} = {name}.{lane};")

    def copy(self, s: ir.CopyLanes, pad: str) -> None:
        ends: list[str] = []
        for name, index, lane in (
            (s.buffer, s.index, s.lane),
            (s.source, s.source_index, s.source_lane),
        ):
            element = f"{self.buffer(name)}[{self.expression(index)}]"
            ends.append(
                f"&{element}.{'xyzw'[lane]}" if self.buffers[name].lanes > 1 else f"&{element}"
            )
        size = s.lanes * self.buffers[s.buffer].type.size
        name = "lw_copy_past_l1" if s.once else "lw_copy_async"
        if s.there is not None:
            name, ends = f"{name}_or_zero", [*ends, self.expression(s.there)]
        self.put(call(f"{pad}{name}<{size}>", ends, ";"))

    def store(self, s: ir.Store, pad: str) -> None:
        b = self.buffers[s.buffer]
        values = ", ".join(self.expression(v) for v in s.values)
        value = values if b.lanes == 1 else f"make_{vector_type(b.type, b.lanes)}({values})"
        place = f"{self.buffer(s.buffer)}[{self.expression(s.index)}]"
        self.put(f"{pad}__stcs(&{place}, {value});" if b.once else f"{pad}{place} = {value};")


class _FunctionWriter(_Writer):
    """A function of scalars; results and mutable parameters are references."""

    def __init__(
        self, f: ir.Function, called: dict[str, str], kernel: ir.Kernel, locations: bool
    ) -> None:
        first = [*(p.name for p in f.parameters), *user_names(f.body)]
        super().__init__(
            f.body, Names(CUDA_WORDS, [*called.values(), entry_name(kernel)], first), called
        )
        self.function = f
        self.buffers = {b.name: b for b in kernel.buffers}
        self.results = [own(r.name) for r in f.results]
        self.file = _file_name(f.location) if locations else ""
        kinds = kinds_of(self.body, {b.name: b.type for b in kernel.buffers})
        self.declarations = Declarations(self.body, kinds, [p.name for p in f.parameters])

    def text(self) -> str:
        f = self.function
        parameters = [
            f"{TYPES[p.type]} {'&' if p.mutable else ''}{self.names(p.name)}" for p in f.parameters
        ]
        for b in map(self.buffers.__getitem__, buffers_read(f)):
            parameters.append(
                f"const {vector_type(b.type, b.lanes)} *__restrict__ {self.buffer(b.name)}"
            )
        outputs = [
            f"{TYPES[r.type]} &{self.names(name)}"
            for r, name in zip(f.results, self.results, strict=True)
        ]
        self.put(
            call(f"__device__ __forceinline__ void {self.called[f.name]}", parameters + outputs)
        )
        self.put("{")
        self.next_line = 0  # of another file
        self.block(self.body, 1)
        pointed = any(line.startswith("#line") for line in self.lines)
        return "\n".join([*self.lines, "}", *([_RESUME] if pointed else []), ""])


class _EntryWriter(_Writer):
    """The kernel itself: buffers, counts, uniforms; one thread's work."""

    def __init__(self, kernel: ir.Kernel, called: dict[str, str], locations: bool) -> None:
        first = [*(p.name for p in kernel.uniforms), *user_names(kernel.body)]
        super().__init__(
            kernel.body, Names(CUDA_WORDS, [*called.values(), entry_name(kernel)], first), called
        )
        self.kernel = kernel
        self.noted = _file_name(kernel.location) if locations and kernel.pattern.inlined else ""
        self.buffers = {b.name: b for b in kernel.buffers}
        kinds = kinds_of(self.body, {b.name: b.type for b in kernel.buffers})
        self.declarations = Declarations(
            self.body, kinds, [p.name for p in kernel.counts + kernel.uniforms]
        )

    def text(self) -> str:
        k, grid = self.kernel, self.kernel.grid
        assert grid is not None
        for b in k.buffers:
            if b.constant:
                self.put(
                    f"__constant__ {vector_type(b.type, b.lanes)} "
                    f"{self.buffer(b.name)}[{b.constant}];\n"
                )
        parameters = [
            self.parameter(b) for b in k.buffers if b.space == "global" and not b.constant
        ]
        parameters += [f"{TYPES[p.type]} {self.names(p.name)}" for p in k.counts + k.uniforms]
        bounds = (
            f"__launch_bounds__({grid.threads}{f', {grid.min_blocks}' if grid.min_blocks else ''})"
        )
        if grid.registers:  # the two exclude each other
            bounds = f"__maxnreg__({grid.registers})"
        self.put(f'extern "C" __global__ void {bounds} {entry_name(k)}(')
        self.put("    " + ",\n    ".join(parameters) + ")")
        self.put("{")
        for views in shared_groups(k):
            self.shared(views)
        self.block(self.body, 1)
        return "\n".join([*self.lines, "}", ""])

    def shared(self, views: tuple[ir.BufferArgument, ...]) -> None:
        """Memory of a block, and pointers of the other types to it."""
        first = views[0]
        kind, unit = vector_type(first.type, first.lanes), first.type.size * first.lanes
        self.put(
            f"    __shared__ {kind} {self.buffer(first.name)}[{-(-group_bytes(views) // unit)}];"
        )
        for b in views[1:]:
            other = vector_type(b.type, b.lanes)
            self.put(
                f"    {other} *const {self.buffer(b.name)} = reinterpret_cast<{other} "
                f"*>({self.buffer(first.name)});"
            )

    def parameter(self, b: ir.BufferArgument) -> str:
        kind = vector_type(b.type, b.lanes)
        shared_with = any(
            o.name != b.name and o.array == b.array and o.buffer == b.buffer
            for o in self.kernel.buffers
        )
        restrict = "" if b.written and shared_with else "__restrict__ "
        return f"{'' if b.written else 'const '}{kind} *{restrict}{self.buffer(b.name)}"


def _file_name(location: Location) -> str:
    """The user's file, as it can stand in quotation marks and behind a comment's sign."""
    return PurePath(location.file).name.replace("\\", "/").replace('"', "'")


def call(head: str, arguments: list[str], tail: str = "") -> str:
    """`head(arguments)`, broken into lines of readable length."""
    if len(whole := f"{head}({', '.join(arguments)}){tail}") <= LINE_LENGTH:
        return whole
    pad = " " * (len(head) - len(head.lstrip()) + 4)
    lines = [pad + arguments[0]]
    for argument in arguments[1:]:
        fits = len(lines[-1]) + len(argument) + 3 <= LINE_LENGTH
        lines[-1] += f", {argument}" if fits else ","
        if not fits:
            lines.append(pad + argument)
    return f"{head}(\n" + "\n".join(lines) + f"){tail}"
