"""Python text for Numba from the final IR: the user's function, and a range kernel that runs elements `begin` to `end`.

Each function has its own fast-math flags, which LLVM keeps when it inlines: the user's arithmetic may be contracted (fused
multiply-add) and nothing else; `lw_rsqrt` may be approximate; the kernel may reorder the sums over sources, which `pairwise` leaves free.
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import assert_never

from lanewise.emit.names import Names
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import functions, statements
from lanewise.types import BOOL, F32, F64, I32, I64, U32, Scalar

TYPES = {BOOL: "bool_", I32: "i32", U32: "u32", I64: "i64", F32: "f32", F64: "f64"}
_MATH = "sqrt exp log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh floor ceil trunc hypot isnan isinf isfinite".split()
_BINDING = {"or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
            "*": 10, "/": 10, "//": 10, "%": 10}  # fmt: skip

IMPORTS = """import math

import numpy as np
from numba import bool_, njit
from numba import float32 as f32
from numba import float64 as f64
from numba import int32 as i32
from numba import int64 as i64
from numba import uint32 as u32

"""

def literal(value: float | int | bool, scalar: Scalar) -> str:
    if scalar == BOOL:
        return "True" if value else "False"
    if scalar.is_float and (math.isnan(value) or math.isinf(value)):
        name = "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
        return f"{TYPES[scalar]}({name})"
    return f"{TYPES[scalar]}({value!r})"


def emit_numba(kernel: ir.Kernel, header: str, *, fast_math: bool = False) -> str:
    """A module with the kernel's functions and `<name>_kernel(buffers..., counts..., uniforms..., begin, end)`."""
    parts = [f'"""{header}"""\n\n', IMPORTS]
    body = "\n\n".join([*(_Writer(kernel, fast_math).function(f) for f in functions(kernel.body).values()), _Writer(kernel, fast_math).entry()])
    if "lw_rsqrt_f32(" in body or "lw_rsqrt_f64(" in body:
        parts.append(_rsqrt(body))
    return "".join(parts) + "\n" + body


def _rsqrt(body: str) -> str:
    flags = '@njit(fastmath={"arcp", "afn", "reassoc", "contract", "nsz"}, error_model="numpy")'
    return "".join(
        f"\n{flags}\ndef lw_rsqrt_{t}(x):  # approximate by definition: an estimate, refined\n    return {t}(1.0) / math.sqrt(x)\n\n"
        for t in ("f32", "f64") if f"lw_rsqrt_{t}(" in body
    )  # fmt: skip


class _Writer:
    """Writes one function or kernel."""

    def __init__(self, kernel: ir.Kernel, fast_math: bool) -> None:
        self.kernel, self.fast_math = kernel, fast_math
        self.names = Names()
        self.lines: list[str] = []
        self.mutable: list[str] = []
        self.file = ""

    def function(self, f: ir.Function) -> str:
        self.file = PurePath(f.location.file).name
        self.mutable = [p.name for p in f.parameters if p.mutable]
        flags = "True" if self.fast_math else '{"contract"}'
        self.lines.append(f'@njit(fastmath={flags}, error_model="numpy")')
        self.lines.append(f"def {f.name}({', '.join(self.names(p.name) for p in f.parameters)}):")
        self.block(f.body, 1)
        if not f.results and not (f.body and isinstance(f.body[-1], ir.Return)):
            self.lines.append(f"    {self._return(())}")
        return "\n".join([*self.lines, ""])

    def entry(self) -> str:
        k = self.kernel
        flags = "True" if self.fast_math else '{"reassoc", "contract", "nsz"}' if k.pattern == "pairwise" else '{"contract"}'
        self.lines.append(f'@njit(fastmath={flags}, error_model="numpy", nogil=True, cache=True)')
        parameters = [self.buffer(b.name) for b in k.buffers] + [self.names(p.name) for p in k.counts + k.uniforms]
        arguments = ", ".join([*parameters, "begin", "end"])
        self.lines.append(f"def {k.name}_kernel({arguments}):")
        (loop,) = k.body
        assert isinstance(loop, ir.Parallel)
        for s in statements(k.body):
            if isinstance(s, ir.DeclareArray):
                self.lines.append(f"    {self.names(s.name)} = np.zeros({s.type.length}, np.{s.type.element.dtype.name})")
        self.lines.append(f"    for {self.names(loop.variable)} in range(begin, end):")
        self.block(loop.body, 2)
        return "\n".join([*self.lines, ""])

    def _return(self, values: tuple[ir.Expression, ...]) -> str:
        outputs = [*(self.names(n) for n in self.mutable), *(self.expression(v) for v in values)]
        return f"return {', '.join(outputs)}{',' if len(outputs) == 1 else ''}" if outputs else "return"

    def buffer(self, name: str) -> str:
        """The identifier of a buffer, apart from the variable that one of its elements is loaded into."""
        return self.names(f"{name}.array")

    def block(self, block: ir.Block, depth: int) -> None:
        if not block:
            self.lines.append("    " * depth + "pass")
        for s in block:
            first = len(self.lines)
            self.statement(s, depth)
            location = getattr(s, "location", None)
            if self.file and location is not None and location.line:
                self.lines[first] += f"  # {self.file}:{location.line}"

    def nested(self, head: str, body: ir.Block, depth: int) -> None:
        self.lines.append("    " * depth + head)
        self.block(body, depth + 1)

    def statement(self, s: ir.Statement, depth: int) -> None:
        e, pad = self.expression, "    " * depth
        match s:
            case ir.Assign():
                self.lines.append(f"{pad}{self.names(s.name)} = {e(s.value)}")
            case ir.DeclareArray():
                kind = s.type
                self.lines.append(f"{pad}{self.names(s.name)} = np.zeros({kind.length}, np.{kind.element.dtype.name})")
            case ir.SetElement():
                self.lines.append(f"{pad}{self.names(s.array)}[{e(s.index)}] = {e(s.value)}")
            case ir.If():
                self.nested(f"if {e(s.condition)}:", s.then, depth)
                if s.otherwise:
                    self.nested("else:", s.otherwise, depth)
            case ir.For():
                self._for(s, depth)
            case ir.While():
                self.nested(f"while {e(s.condition)}:", s.body, depth)
            case ir.Break() | ir.Continue():
                self.lines.append(f"{pad}{type(s).__name__.lower()}")
            case ir.Return():
                self.lines.append(f"{pad}{self._return(s.values)}")
            case ir.Apply():
                self._apply(s, pad)
            case ir.Load():
                self.lines.append(f"{pad}{self.names(s.names[0])} = {self.buffer(s.buffer)}[{e(s.index)}]")
            case ir.Store():
                self.lines.append(f"{pad}{self.buffer(s.buffer)}[{e(s.index)}] = {e(s.values[0])}")
            case ir.Parallel() | ir.Fetch() | ir.Commit() | ir.Barrier():
                raise AssertionError(f"{type(s).__name__} does not exist on the CPU")
            case _:
                assert_never(s)

    def _for(self, s: ir.For, depth: int) -> None:
        e = self.expression
        start, stop = e(s.start), e(s.stop)
        plain = s.start == ir.Literal(0, s.start.type) and s.step == ir.Literal(1, s.step.type)
        bounds = stop if plain else f"{start}, {stop}, {e(s.step)}"
        self.nested(f"for {self.names(s.variable)} in range({bounds}):", s.body, depth)

    def _apply(self, s: ir.Apply, pad: str) -> None:
        changed = [a.name for p, a in zip(s.function.parameters, s.arguments, strict=True) if p.mutable and isinstance(a, ir.Local)]
        outputs = [self.names(n) for n in (*changed, *s.results)]
        text = f"{s.function.name}({', '.join(self.expression(a) for a in s.arguments)})"
        target = f"{', '.join(outputs)}{',' if len(outputs) == 1 else ''} = " if outputs else ""
        self.lines.append(f"{pad}{target}{text}")

    def expression(self, x: ir.Expression, level: int = 0) -> str:
        match x:
            case ir.Literal():
                return literal(x.value, x.type)
            case ir.Local():
                return self.names(x.name)
            case ir.Unary():
                space = " " if x.operator == "not" else ""
                text = _wrap(f"{x.operator}{space}{self.expression(x.operand, 11)}", 3 if space else 11, level)
                return f"{TYPES[x.type]}({text})" if x.type in (I32, U32) else text
            case ir.Binary():
                own = _BINDING[x.operator]
                text = f"{self.expression(x.left, own)} {x.operator} {self.expression(x.right, own + 1)}"
                # Numba widens small integers; the language does not.
                return f"{TYPES[x.type]}({text})" if x.type in (I32, U32) else _wrap(text, own, level)
            case ir.Compare() | ir.Logical():
                own = _BINDING[x.operator]
                return _wrap(f"{self.expression(x.left, own + 1)} {x.operator} {self.expression(x.right, own + 1)}", own, level)
            case ir.Select():
                parts = (self.expression(p, 1) for p in (x.if_true, x.condition, x.if_false))
                return _wrap("{} if {} else {}".format(*parts), 0, level)
            case ir.Cast():
                operand = self.expression(x.operand)
                return f"({operand} != 0)" if x.type == BOOL else f"{TYPES[x.type]}({operand})"
            case ir.Call():
                return self._call(x, level)
            case ir.Element():
                return f"{self.names(x.array)}[{self.expression(x.index)}]"
            case ir.Builtin():
                raise AssertionError("there are no threads of a block on the CPU")
            case _:
                assert_never(x)

    def _call(self, x: ir.Call, level: int) -> str:
        a = [self.expression(arg) for arg in x.arguments]
        tight = [self.expression(arg, 11) for arg in x.arguments]
        kind = TYPES[x.type]
        match x.intrinsic:
            case "rsqrt":
                return f"lw_rsqrt_{kind}({a[0]})"
            case "min" | "max":
                return f"{x.intrinsic}({a[0]}, {a[1]})"
            case "clamp":
                return f"min(max({a[0]}, {a[1]}), {a[2]})"
            case "abs":
                return f"{kind}(abs({a[0]}))" if x.type in (I32, U32) else f"abs({a[0]})"
            case "mix":
                return f"({tight[0]} + ({tight[1]} - {tight[0]}) * {tight[2]})"
            case "fma":
                return _wrap(f"{tight[0]} * {tight[1]} + {tight[2]}", 9, level)
            case "pow":
                return _wrap(f"{tight[0]} ** {tight[1]}", 11, level)
            case "exp2":
                return f"{kind}(2.0) ** {tight[0]}" if level < 11 else f"({kind}(2.0) ** {tight[0]})"
            case "cbrt":
                return f"np.cbrt({a[0]})"
            case "floor" | "ceil" | "trunc":
                return f"np.{x.intrinsic}({a[0]})"
            case name if name in _MATH:
                return f"math.{name}({', '.join(a)})"
            case name:
                raise AssertionError(f"no Numba spelling of {name}")


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
