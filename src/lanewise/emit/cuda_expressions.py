"""Expressions of the IR as CUDA C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from lanewise.emit.cuda_prelude import CONVERSIONS, UNSIGNED
from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, F16, F32, I32, I64, U32
from lanewise.runtime.cuda_spelling import TYPES, literal

_BINDING = {
    "or": 1,
    "and": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
}
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
        "expm1",
        "log1p",
        "erf",
        "erfc",
    ]
)
_OTHER_NAMES = {"abs": "fabs", "round": "rint", "gamma": "tgamma"}


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
        case ir.Builtin(name="phase" | "read_phase" | "far"):
            raise AssertionError(
                "a GPU's threads do not ask where lines of memory begin, nor write past caches"
            )
        case ir.Builtin():
            return _wrap(f"({TYPES[x.type]}){_BUILTINS[x.name]}", _UNARY, level)
        case ir.Unary():
            if _wraps(x):
                return _wrap(f"({TYPES[x.type]})({_modular(x, names)})", _UNARY, level)
            operand = text(x.operand, _ATOM if isinstance(x.operand, ir.Unary) else _UNARY)
            return _wrap(f"{'!' if x.operator == 'not' else x.operator}{operand}", _UNARY, level)
        case ir.Binary():
            return _binary(x, names, level)
        case ir.Compare() | ir.Logical():
            own = _BINDING[x.operator]
            return _wrap(
                f"{text(x.left, own)} {_SYMBOLS.get(x.operator, x.operator)} "
                f"{text(x.right, own + 1)}",
                own,
                level,
            )
        case ir.Select():
            return _wrap(
                f"{text(x.condition, 1)} ? {text(x.if_true, 1)} : {text(x.if_false, 1)}", 0, level
            )
        case ir.Cast():
            if x.type == BOOL:
                return _wrap(f"{text(x.operand, 6)} != 0", 6, level)
            if x.type == F16:
                return f"lw_to_half({text(x.operand)})"
            if x.operand.type == F16:
                return f"lw_from_half({text(x.operand)})"
            if x.operand.type.is_float and x.type.is_integer and not x.bounded:
                return f"{CONVERSIONS[x.type]}({text(x.operand)})"
            return _wrap(f"({TYPES[x.type]}){text(x.operand, _UNARY)}", _UNARY, level)
        case ir.Call():
            return _call(x, names)
        case ir.Element():
            return f"{names(x.array)}[{text(x.index)}]"
        case _:
            assert_never(x)


def _wraps(e: ir.Expression) -> bool:
    """Whether C++ would leave open what this means beyond the limits of the type: it is computed
    without a sign instead.
    """
    match e:
        case ir.Unary(operator="-"):
            return e.type in (I32, I64)
        case ir.Binary(operator="+" | "-" | "*"):
            return e.type in (I32, I64) and not e.bounded
        case ir.Binary(operator="<<"):
            return e.type in (I32, I64) and not e.bounded and _in_range(e)
        case _:
            return False


def _in_range(shift: ir.Binary) -> bool:
    """Whether a shift is known to be by fewer bits than there are, which is all that C++
    defines.
    """
    return isinstance(shift.right, ir.Literal) and 0 <= shift.right.value < 8 * shift.type.size


def _modular(e: ir.Expression, names: Callable[[str], str], level: int = 0) -> str:
    """The text of a signed expression in the unsigned type of its size, in which C++ computes
    modulo a power of two.
    """
    match e:
        case ir.Literal(value=value) if value >= 0:
            return literal(value, e.type).removesuffix("LL") + ("u" if e.type == I32 else "ULL")
        case ir.Unary() if _wraps(e):
            zero = _modular(ir.Literal(0, e.type), names)
            return _wrap(
                f"{zero} - {_modular(e.operand, names, _BINDING['-'] + 1)}", _BINDING["-"], level
            )
        case ir.Binary(operator="<<") if _wraps(e):
            own = _BINDING["<<"]
            shift = cuda_expression(e.right, names, own + 1)
            return _wrap(f"{_modular(e.left, names, own)} << {shift}", own, level)
        case ir.Binary() if _wraps(e):
            own = _BINDING[e.operator]
            sides = _modular(e.left, names, own), _modular(e.right, names, own + 1)
            return _wrap(f"{sides[0]} {e.operator} {sides[1]}", own, level)
        case ir.Cast(operand=operand) if operand.type == U32 and e.type == I32:
            return cuda_expression(operand, names, level)
        case _:
            return _wrap(f"({UNSIGNED[e.type]}){cuda_expression(e, names, _UNARY)}", _UNARY, level)


def _binary(x: ir.Binary, names: Callable[[str], str], level: int) -> str:
    if x.operator in ("//", "%"):
        return _whole_division(x, names, level)
    if _wraps(x):
        return _wrap(f"({TYPES[x.type]})({_modular(x, names)})", _UNARY, level)
    by_halves = (x.operator, x.type) == (">>", I64)  # lw_shift_right says why
    if x.operator in ("<<", ">>") and not x.bounded and (by_halves or not _in_range(x)):
        name = "lw_shift_left" if x.operator == "<<" else "lw_shift_right"
        return f"{name}({cuda_expression(x.left, names)}, {cuda_expression(x.right, names)})"
    own = _BINDING[x.operator]
    return _wrap(
        f"{cuda_expression(x.left, names, own)} {x.operator} "
        f"{cuda_expression(x.right, names, own + 1)}",
        own,
        level,
    )


def _whole_division(x: ir.Binary, names: Callable[[str], str], level: int) -> str:
    power = int(x.right.value) if isinstance(x.right, ir.Literal) and x.type.is_integer else 0
    # shift and mask round as Python does, for negative numbers too
    if power > 0 and not power & (power - 1):
        symbol, operand = (">>", power.bit_length() - 1) if x.operator == "//" else ("&", power - 1)
        if (symbol, x.type) == (">>", I64) and not x.bounded:
            return f"lw_shift_right({cuda_expression(x.left, names)}, {operand}LL)"
        return _wrap(
            f"{cuda_expression(x.left, names, _UNARY)} {symbol} {operand}", _BINDING[symbol], level
        )
    # by -1 the smallest number has no quotient, and 0 has none
    surely = (power > 0 and x.type != U32) or x.bounded
    kind = "float_" if x.type.is_float else "" if surely else "any_"
    name = f"lw_{kind}{'floor_divide' if x.operator == '//' else 'modulo'}"
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
            return f"({a[0]})" if kind == U32 else f"lw_abs({a[0]})"
        case "isnan" | "isinf" | "isfinite":
            return f"{x.intrinsic}({a[0]})"
        case name if name in _MATH or name in _OTHER_NAMES:
            spelled = _OTHER_NAMES.get(name, name)
            return f"{spelled}{'f' if kind == F32 else ''}({', '.join(a)})"
        case name:
            raise AssertionError(f"no CUDA spelling of {name}")


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
