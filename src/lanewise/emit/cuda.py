"""CUDA C++ from the final IR. The text carries the user's names, and `#line` points into the user's file."""

from __future__ import annotations

import math
import textwrap
from pathlib import PurePath
from typing import assert_never

from lanewise.emit.declarations import Declarations, kinds_of
from lanewise.emit.names import Names
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import functions
from lanewise.types import BOOL, F32, F64, I32, I64, U32, LocalArray, Scalar

TYPES = {BOOL: "bool", I32: "int", U32: "unsigned int", I64: "long long", F32: "float", F64: "double"}
_VECTORS = {F32: "float", F64: "double", I32: "int", U32: "uint", I64: "longlong"}
_SAME_NAME = ("sqrt cbrt exp exp2 log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh floor ceil trunc hypot pow fma").split()
_BINDING = {"or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
            "*": 10, "/": 10}  # fmt: skip

LINE_LENGTH = 110

# Definitions that a kernel gets only when it uses them.
_PRELUDE = {
    "lw_rsqrt": """__device__ __forceinline__ float lw_rsqrt(float x)  // approximate by definition; subnormal x counts as zero
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double lw_rsqrt(double x) { return rsqrt(x); }
""",
    "lw_floor_divide": """template <class T> __device__ __forceinline__ T lw_floor_divide(T a, T b)  // rounds towards minus infinity
{
    const T q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
__device__ __forceinline__ float lw_floor_divide(float a, float b) { return floorf(a / b); }
__device__ __forceinline__ double lw_floor_divide(double a, double b) { return floor(a / b); }
""",
    "lw_modulo": """template <class T> __device__ __forceinline__ T lw_modulo(T a, T b)  // the sign of b, as in Python
{
    const T r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
__device__ __forceinline__ float lw_modulo(float a, float b)
{
    const float r = fmodf(a, b);
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
__device__ __forceinline__ double lw_modulo(double a, double b)
{
    const double r = fmod(a, b);
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
""",
}


def literal(value: float | int | bool, scalar: Scalar) -> str:
    """A literal of exactly this type and value."""
    if scalar == BOOL:
        return "true" if value else "false"
    if not scalar.is_float:
        if scalar == I64 and value == -(2**63):
            return "(-9223372036854775807LL - 1)"
        return f"{int(value)}{ {I64: 'LL', U32: 'u'}.get(scalar, '') }"
    if math.isnan(value) or math.isinf(value):
        name = "NAN" if math.isnan(value) else "INFINITY"
        bits = {"NAN": "0x7fffffff", "INFINITY": "0x7f800000"}[name]
        text = f"__int_as_float({bits})" if scalar == F32 else f"(double)__int_as_float({bits})"
        return f"-{text}" if value < 0 else text
    text = f"{float(value):.9g}" if scalar == F32 else repr(float(value))
    text = text if any(c in text for c in ".en") else f"{text}.0"
    return f"{text}f" if scalar == F32 else text


def emit_cuda(kernel: ir.Kernel, header: str) -> str:
    """The complete source of one kernel: prelude, functions, `extern "C"` entry of the kernel's name + `_kernel`."""
    own = functions(kernel.body)
    body = "\n".join([*(_Writer(kernel).function(f) for f in own.values()), _Writer(kernel).entry()])
    prelude = "".join(text for name, text in _PRELUDE.items() if f"{name}(" in body)
    text = "".join(f"// {line}\n" for line in header.splitlines()) + "\n" + prelude + body
    return _resume_lines(text, f"{kernel.name}.cu")


_RESUME = "@resume"


def _resume_lines(text: str, name: str) -> str:
    """After a function that points into the user's file, point back into this one."""
    lines = text.split("\n")
    return "\n".join(f'#line {n + 2} "{name}"' if line == _RESUME else line for n, line in enumerate(lines))




class _Writer:
    """Writes one function or kernel."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.buffers = {b.name: b for b in kernel.buffers}
        self.names = Names()
        self.lines: list[str] = []
        self.line = self.loads = 0

    def function(self, f: ir.Function) -> str:
        parameters = [f"{TYPES[p.type]} {'&' if p.mutable else ''}{self.names(p.name)}" for p in f.parameters]
        outputs = [f"{TYPES[r.type]} &{self.names(r.name)}" for r in f.results]
        self.results = [r.name for r in f.results]
        self.lines.append(call(f"__device__ __forceinline__ void {function_name(f)}", parameters + outputs))
        self.lines.append("{")
        self.declarations = Declarations(f.body, kinds_of(f.body), {p.name for p in f.parameters})
        self.file = PurePath(f.location.file).name
        self.block(f.body, 1)
        return "\n".join([*self.lines, "}", _RESUME if self.line else "", ""])

    def entry(self) -> str:
        k, grid = self.kernel, self.kernel.grid
        assert grid is not None
        self.results, self.file = [], ""
        parameters = [self._buffer_parameter(b) for b in k.buffers if b.space == "global"]
        parameters += [f"{TYPES[p.type]} {self.names(p.name)}" for p in k.counts + k.uniforms]
        bounds = f"{grid.threads}, {grid.min_blocks}" if grid.min_blocks else f"{grid.threads}"
        self.lines.append(f'extern "C" __global__ void __launch_bounds__({bounds}) {k.name}_kernel(')
        self.lines.append("    " + ",\n    ".join(parameters) + ")")
        self.lines.append("{")
        for b in k.buffers:
            if b.space == "shared":
                self.lines.append(f"    __shared__ {vector_type(b.type, b.lanes)} {self.buffer(b.name)}[{b.length}];")
        kinds = kinds_of(k.body, {b.name: b.type for b in k.buffers})
        self.declarations = Declarations(k.body, kinds, {p.name for p in k.counts + k.uniforms})
        self.block(k.body, 1)
        return "\n".join([*self.lines, "}", ""])

    def _buffer_parameter(self, b: ir.BufferArgument) -> str:
        kind = vector_type(b.type, b.lanes)
        shared_with = any(o.name != b.name and o.array == b.array and o.buffer == b.buffer for o in self.kernel.buffers)
        restrict = "" if b.written and shared_with else " __restrict__"
        return f"{'' if b.written else 'const '}{kind} *{restrict} {self.buffer(b.name)}".replace("*  ", "*")

    def buffer(self, name: str) -> str:
        """The identifier of a buffer, apart from the variable that one of its elements is loaded into."""
        return self.names(f"{name}.array")

    def block(self, block: ir.Block, depth: int) -> None:
        for s in block:
            pad = "    " * depth
            location = getattr(s, "location", None)
            if self.file and location is not None and location.line and location.line != self.line:
                self.line = location.line
                self.lines.append(f'#line {self.line} "{self.file}"')
            for name in self.declarations.before(s):
                self.lines.append(f"{pad}{self._declaration(name)};")
            self.statement(s, depth, pad)

    def _declaration(self, name: str) -> str:
        kind = self.declarations.kinds[name]
        if isinstance(kind, LocalArray):
            return f"{TYPES[kind.element]} {self.names(name)}[{kind.length}]"
        return f"{TYPES[kind]} {self.names(name)}"

    def _target(self, s: ir.Statement, name: str) -> str:
        if not self.declarations.declares(s, name):
            return self.names(name)
        constant = "const " if self.declarations.is_constant(name) else ""
        return f"{constant}{self._declaration(name)}"

    def nested(self, head: str, body: ir.Block, depth: int) -> None:
        pad = "    " * depth
        self.lines.append(f"{pad}{head} {{")
        self.block(body, depth + 1)
        self.lines.append(f"{pad}}}")

    def statement(self, s: ir.Statement, depth: int, pad: str) -> None:
        e = self.expression
        match s:
            case ir.Assign():
                self.lines.append(f"{pad}{self._target(s, s.name)} = {e(s.value)};")
            case ir.DeclareArray():
                name = self.names(s.name)
                if self.declarations.declares(s, s.name):
                    self.lines.append(f"{pad}{self._declaration(s.name)} = {{}};")
                else:
                    self.lines.append(f"{pad}for (int i_ = 0; i_ < {s.type.length}; ++i_) {name}[i_] = 0;")
            case ir.SetElement():
                self.lines.append(f"{pad}{self.names(s.array)}[{e(s.index)}] = {e(s.value)};")
            case ir.If():
                self.nested(f"if ({e(s.condition)})", s.then, depth)
                if s.otherwise:
                    self.nested("else", s.otherwise, depth)
            case ir.For():
                self._for(s, depth, pad)
            case ir.While():
                self.nested(f"while ({e(s.condition)})", s.body, depth)
            case ir.Break() | ir.Continue():
                self.lines.append(f"{pad}{type(s).__name__.lower()};")
            case ir.Return():
                for name, value in zip(self.results, s.values, strict=True):
                    self.lines.append(f"{pad}{self.names(name)} = {e(value)};")
                self.lines.append(f"{pad}return;")
            case ir.Apply():
                for name in s.results:
                    if self.declarations.declares(s, name):
                        self.lines.append(f"{pad}{self._declaration(name)};")
                arguments = [*(e(a) for a in s.arguments), *(self.names(r) for r in s.results)]
                self.lines.append(call(f"{pad}{function_name(s.function)}", arguments, ";"))
            case ir.Barrier():
                self.lines.append(f"{pad}__syncthreads();")
            case ir.Load():
                self._load(s, pad)
            case ir.Store():
                values = ", ".join(e(v) for v in s.values)
                b = self.buffers[s.buffer]
                value = values if b.lanes == 1 else f"make_{vector_type(b.type, b.lanes)}({values})"
                self.lines.append(f"{pad}{self.buffer(s.buffer)}[{e(s.index)}] = {value};")
            case ir.Parallel() | ir.Fetch() | ir.Commit():
                raise AssertionError(f"{type(s).__name__} was not lowered")
            case _:
                assert_never(s)

    def _for(self, s: ir.For, depth: int, pad: str) -> None:
        e, v = self.expression, self.names(s.variable)
        if s.unroll != 1:
            self.lines.append(f"{pad}#pragma unroll" + (f" {s.unroll}" if s.unroll else ""))
        step = s.step.value if isinstance(s.step, ir.Literal) else 1
        move = f"++{v}" if step == 1 else f"{v} += {e(s.step)}"
        test = "<" if step > 0 else ">"
        self.nested(f"for ({TYPES[s.start.type]} {v} = {e(s.start)}; {v} {test} {e(s.stop, 8)}; {move})", s.body, depth)

    def _load(self, s: ir.Load, pad: str) -> None:
        b = self.buffers[s.buffer]
        source = f"{self.buffer(s.buffer)}[{self.expression(s.index)}]"
        if b.lanes == 1:
            self.lines.append(f"{pad}{self._target(s, s.names[0])} = {source};")
            return
        self.loads += 1
        name = self.names(f"{s.buffer}.loaded.{self.loads}")
        self.lines.append(f"{pad}const {vector_type(b.type, b.lanes)} {name} = {source};")
        for lane, variable in zip("xyzw", s.names, strict=False):
            if variable:
                self.lines.append(f"{pad}{self._target(s, variable)} = {name}.{lane};")

    def expression(self, x: ir.Expression, level: int = 0) -> str:
        match x:
            case ir.Literal():
                return literal(x.value, x.type)
            case ir.Local():
                return self.names(x.name)
            case ir.Builtin():
                axis = {"thread": "threadIdx.x", "block": "blockIdx.x", "part": "blockIdx.y"}[x.name]
                return f"({TYPES[x.type]}){axis}"
            case ir.Unary():
                symbol = "!" if x.operator == "not" else x.operator
                return _wrap(f"{symbol}{self.expression(x.operand, 11)}", 11 if symbol != "-" else 10, level)
            case ir.Binary():
                return self._binary(x, level)
            case ir.Compare() | ir.Logical():
                own = _BINDING[x.operator]
                symbol = {"and": "&&", "or": "||"}.get(x.operator, x.operator)
                return _wrap(f"{self.expression(x.left, own)} {symbol} {self.expression(x.right, own + 1)}", own, level)
            case ir.Select():
                parts = (self.expression(p, 1) for p in (x.condition, x.if_true, x.if_false))
                return _wrap("{} ? {} : {}".format(*parts), 0, level)
            case ir.Cast():
                operand = self.expression(x.operand, 11)
                return f"({operand} != 0)" if x.type == BOOL else f"({TYPES[x.type]}){operand}"
            case ir.Call():
                return self._call(x)
            case ir.Element():
                return f"{self.names(x.array)}[{self.expression(x.index)}]"
            case _:
                assert_never(x)

    def _binary(self, x: ir.Binary, level: int) -> str:
        if x.operator in ("//", "%"):
            power = int(x.right.value) if isinstance(x.right, ir.Literal) and x.type.is_integer else 0
            if power > 0 and not power & (power - 1):  # shift and mask round as Python does, for negative numbers too
                symbol, operand = (">>", power.bit_length() - 1) if x.operator == "//" else ("&", power - 1)
                return _wrap(f"{self.expression(x.left, 11)} {symbol} {operand}", _BINDING[symbol], level)
            name = "lw_floor_divide" if x.operator == "//" else "lw_modulo"
            return f"{name}({self.expression(x.left)}, {self.expression(x.right)})"
        own = _BINDING[x.operator]
        return _wrap(f"{self.expression(x.left, own)} {x.operator} {self.expression(x.right, own + 1)}", own, level)

    def _call(self, x: ir.Call) -> str:
        a = [self.expression(arg) for arg in x.arguments]
        kind = x.arguments[0].type
        single = "f" if kind == F32 else ""
        match x.intrinsic:
            case "rsqrt":
                return f"lw_rsqrt({a[0]})"
            case "min" | "max":
                return f"f{x.intrinsic}{single}({a[0]}, {a[1]})" if kind.is_float else f"{x.intrinsic}({a[0]}, {a[1]})"
            case "clamp":
                low = f"fmax{single}({a[0]}, {a[1]})" if kind.is_float else f"max({a[0]}, {a[1]})"
                return f"fmin{single}({low}, {a[2]})" if kind.is_float else f"min({low}, {a[2]})"
            case "abs":
                return f"fabs{single}({a[0]})" if kind.is_float else a[0] if kind == U32 else f"{'ll' if kind == I64 else ''}abs({a[0]})"
            case "mix":
                first, second, weight = (self.expression(arg, 11) for arg in x.arguments)
                return f"({first} + ({second} - {first}) * {weight})"
            case "isnan" | "isinf" | "isfinite":
                return f"{x.intrinsic}({a[0]})"
            case name if name in _SAME_NAME:
                return f"{name}{single}({', '.join(a)})"
            case name:
                raise AssertionError(f"no CUDA spelling of {name}")


def function_name(f: ir.Function) -> str:
    """The user's name, kept apart from CUDA's own functions."""
    return f"{f.name}_" if f.name in _SAME_NAME or f.name in ("min", "max", "abs", "main") else f.name


def call(head: str, arguments: list[str], tail: str = "") -> str:
    """`head(arguments)`, broken into lines of readable length."""
    if len(whole := f"{head}({', '.join(arguments)}){tail}") <= LINE_LENGTH:
        return whole
    pad = " " * (len(head) - len(head.lstrip()) + 4)
    return f"{head}(\n" + textwrap.fill(", ".join(arguments), LINE_LENGTH, initial_indent=pad, subsequent_indent=pad) + f"){tail}"


def vector_type(scalar: Scalar, lanes: int) -> str:
    return TYPES[scalar] if lanes == 1 else f"{_VECTORS[scalar]}{lanes}"


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
