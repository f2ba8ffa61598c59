"""Expressions of the IR as CUDA C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from lanewise.emit.cuda_prelude import TYPES, literal
from lanewise.ir import nodes as ir
from lanewise.types import BOOL, F16, F32, I64, U32

_BINDING = {"or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
            "*": 10, "/": 10}  # fmt: skip
_UNARY, _ATOM = 11, 12
_SYMBOLS = {"and": "&&", "or": "||"}
_BUILTINS = {"thread": "threadIdx.x", "block": "blockIdx.x", "part": "blockIdx.y"}
_MATH = frozenset(
    [
        "sqrt",
        "cbrt",
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "floor",
        "ceil",
        "trunc",
        "hypot",
        "pow",
        "fma",
    ]
)


def cuda_expression(x: ir.Expression, names: Callable[[str], str], level: int = 0) -> str:
    """The text, in parentheses where `level` (the binding of the surroundings) needs them."""

    def text(child: ir.Expression, at: int = 0) -> str:
        return cuda_expression(child, names, at)

    match x:
        case ir.Literal():
            spelled = literal(x.value, x.type)
            return spelled[1:-1] if spelled.startswith("(-") and level == 0 else spelled
        case ir.Local():
            return names(x.name)
        case ir.Builtin(name="clock"):
            return "lw_clock()"
        case ir.Builtin():
            return _wrap(f"({TYPES[x.type]}){_BUILTINS[x.name]}", _UNARY, level)
        case ir.Unary():
            operand = text(x.operand, _ATOM if isinstance(x.operand, ir.Unary) else _UNARY)
            return _wrap(f"{'!' if x.operator == 'not' else x.operator}{operand}", _UNARY, level)
        case ir.Binary():
            return _binary(x, names, level)
        case ir.Compare() | ir.Logical():
            own = _BINDING[x.operator]
            return _wrap(
                f"{text(x.left, own)} {_SYMBOLS.get(x.operator, x.operator)} {text(x.right, own + 1)}", own, level
            )
        case ir.Select():
            return _wrap(f"{text(x.condition, 1)} ? {text(x.if_true, 1)} : {text(x.if_false, 1)}", 0, level)
        case ir.Cast():
            if x.type == BOOL:
                return _wrap(f"{text(x.operand, 6)} != 0", 6, level)
            if x.type == F16:
                return f"lw_to_half({text(x.operand)})"
            if x.operand.type == F16:
                return f"lw_from_half({text(x.operand)})"
            return _wrap(f"({TYPES[x.type]}){text(x.operand, _UNARY)}", _UNARY, level)
        case ir.Call():
            return _call(x, names)
        case ir.Element():
            return f"{names(x.array)}[{text(x.index)}]"
        case _:
            assert_never(x)


def _binary(x: ir.Binary, names: Callable[[str], str], level: int) -> str:
    if x.operator in ("//", "%"):
        return _whole_division(x, names, level)
    own = _BINDING[x.operator]
    return _wrap(
        f"{cuda_expression(x.left, names, own)} {x.operator} {cuda_expression(x.right, names, own + 1)}", own, level
    )


def _whole_division(x: ir.Binary, names: Callable[[str], str], level: int) -> str:
    power = int(x.right.value) if isinstance(x.right, ir.Literal) and x.type.is_integer else 0
    if power > 0 and not power & (power - 1):  # shift and mask round as Python does, for negative numbers too
        symbol, operand = (">>", power.bit_length() - 1) if x.operator == "//" else ("&", power - 1)
        return _wrap(f"{cuda_expression(x.left, names, _UNARY)} {symbol} {operand}", _BINDING[symbol], level)
    name = f"lw_{'float_' if x.type.is_float else ''}{'floor_divide' if x.operator == '//' else 'modulo'}"
    return f"{name}({cuda_expression(x.left, names)}, {cuda_expression(x.right, names)})"


def _call(x: ir.Call, names: Callable[[str], str]) -> str:
    a = [cuda_expression(arg, names) for arg in x.arguments]
    kind = x.arguments[0].type
    prefix = "lw_" if kind.is_float else ""
    match x.intrinsic:
        case "rsqrt" | "mix":
            return f"lw_{x.intrinsic}({', '.join(a)})"
        case "min" | "max":
            return f"{prefix}{x.intrinsic}({a[0]}, {a[1]})"
        case "clamp":
            return f"{prefix}min({prefix}max({a[0]}, {a[1]}), {a[2]})"
        case "abs" if not kind.is_float:
            return f"({a[0]})" if kind == U32 else f"{'ll' if kind == I64 else ''}abs({a[0]})"
        case "isnan" | "isinf" | "isfinite":
            return f"{x.intrinsic}({a[0]})"
        case name if name in _MATH or name == "abs":
            return f"{'fabs' if name == 'abs' else name}{'f' if kind == F32 else ''}({', '.join(a)})"
        case name:
            raise AssertionError(f"no CUDA spelling of {name}")


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
