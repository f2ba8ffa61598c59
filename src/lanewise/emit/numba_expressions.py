"""Expressions of the IR as Python for Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from lanewise.emit.numba_prelude import CONVERSIONS, TYPES, literal
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import subexpressions
from lanewise.language.types import BOOL, I32, I64, U32

_BINDING = {
    "or": 1,
    "and": 2,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
}
_NOT, _UNARY, _POWER = 3, 11, 12
_EAGER = {"and": "&", "or": "|"}
_MATH = frozenset(
    [
        "sqrt",
        "exp",
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
        "hypot",
        "isnan",
        "isinf",
        "isfinite",
    ]
)
_NUMPY = frozenset(("floor", "ceil", "trunc"))


def numba_expression(
    x: ir.Expression, names: Callable[[str], str], level: int = 0, *, eager: bool = False
) -> str:
    """The text, in parentheses where `level` (the binding of the surroundings) needs them.

    eager: both sides of "and" and "or" are computed where that is cheap, which is a choice of
    values and not a branch.
    """

    def text(child: ir.Expression, at: int = 0) -> str:
        return numba_expression(child, names, at, eager=eager)

    match x:
        case ir.Literal():
            return literal(x.value, x.type)
        case ir.Local():
            return names(x.name)
        case ir.Unary() | ir.Binary() if _wraps(x):
            return f"i64({_modular(x, text)})"
        case ir.Unary():
            spelled = (
                f"not {text(x.operand, _NOT)}"
                if x.operator == "not"
                else f"{x.operator}{text(x.operand, _UNARY)}"
            )
            return _narrow(x, spelled, _NOT if x.operator == "not" else _UNARY, level)
        case ir.Binary(operator="+" | "*", free=True) if x.type.is_float:
            return (
                f"lw_free_{'sum' if x.operator == '+' else 'product'}({text(x.left)}, "
                f"{text(x.right)})"
            )
        case ir.Binary() if (name := _guarded(x)) is not None:
            return f"{TYPES[x.type]}({name}({text(x.left)}, {text(x.right)}))"
        case ir.Binary():
            own = _BINDING[x.operator]
            return _narrow(
                x, f"{text(x.left, own)} {x.operator} {text(x.right, own + 1)}", own, level
            )
        case ir.Logical() if eager and _cheap(x):
            own = _BINDING[_EAGER[x.operator]]
            return _wrap(
                f"{text(x.left, own)} {_EAGER[x.operator]} {text(x.right, own + 1)}", own, level
            )
        case ir.Compare() | ir.Logical():
            own = _BINDING[x.operator]  # + 1 on the left too: Python chains comparisons
            return _wrap(
                f"{text(x.left, own + 1)} {x.operator} {text(x.right, own + 1)}", own, level
            )
        case ir.Select():
            return _wrap(
                f"{text(x.if_true, 1)} if {text(x.condition, 1)} else {text(x.if_false, 1)}",
                0,
                level,
            )
        case ir.Cast():
            if x.type == BOOL:
                return _wrap(f"{text(x.operand, 5)} != 0", 4, level)
            if x.operand.type.is_float and x.type.is_integer and not x.bounded:
                return f"{CONVERSIONS[x.type]}({text(x.operand)})"
            return f"{TYPES[x.type]}({text(x.operand)})"
        case ir.Call():
            return _call(x, names, level, eager)
        case ir.Element():
            return f"{names(x.array)}[{text(x.index)}]"
        case ir.Builtin():
            raise AssertionError("there are no threads of a block on the CPU")
        case _:
            assert_never(x)


def _wraps(e: ir.Expression) -> bool:
    """Whether Numba would tell LLVM that there is no overflow.

    It does so in 64 bits, where it computes what is narrower, too.
    """
    match e:
        case ir.Unary(operator="-"):
            return e.type == I64
        case ir.Binary(operator="+" | "-" | "*"):
            return e.type == I64 and not e.bounded
        case _:
            return False


def _modular(e: ir.Expression, text: Callable[[ir.Expression], str], level: int = 0) -> str:
    """The text of an i64 expression in u64, where LLVM takes arithmetic to wrap."""
    match e:
        case ir.Literal(value=value) if value >= 0:
            return f"u64({value})"
        case ir.Unary() if _wraps(e):
            return _wrap(
                f"u64(0) - {_modular(e.operand, text, _BINDING['-'] + 1)}", _BINDING["-"], level
            )
        case ir.Binary() if _wraps(e):
            own = _BINDING[e.operator]
            spelled = (
                f"{_modular(e.left, text, own)} {e.operator} {_modular(e.right, text, own + 1)}"
            )
            return _wrap(spelled, own, level)
        case _:
            return f"u64({text(e)})"


def _guarded(x: ir.Binary) -> str | None:
    """The function for what LLVM leaves open: shifts by more bits than there are, and the smallest
    number divided by -1.
    """
    literal = x.right.value if isinstance(x.right, ir.Literal) else None
    match x.operator:
        case "<<" | ">>" if not x.bounded and (
            literal is None or not 0 <= literal < 8 * x.type.size
        ):
            return "lw_shift_left" if x.operator == "<<" else "lw_shift_right"
        case "//" if x.type == I64 and not x.bounded and literal in (None, -1):
            return "lw_floor_divide"
        case _:
            return None


def _cheap(x: ir.Expression) -> bool:
    """Whether computing it costs a few instructions and cannot go wrong: no functions, no elements
    of arrays.
    """
    return not any(
        isinstance(part, ir.Call | ir.Element | ir.Builtin) for part in subexpressions(x)
    )


def _narrow(x: ir.Unary | ir.Binary, spelled: str, own: int, level: int) -> str:
    """Numba widens small integers; the language does not."""
    bounded = isinstance(x, ir.Binary) and x.bounded  # nothing to cut off, and LLVM sees a sum
    return (
        f"{TYPES[x.type]}({spelled})"
        if x.type in (I32, U32) and not bounded
        else _wrap(spelled, own, level)
    )


def _call(x: ir.Call, names: Callable[[str], str], level: int, eager: bool) -> str:
    a = [numba_expression(arg, names, eager=eager) for arg in x.arguments]
    kind = TYPES[x.type]
    prefix = "lw_" if x.type.is_float else ""

    def operand(number: int, at: int) -> str:
        return numba_expression(x.arguments[number], names, at, eager=eager)

    match x.intrinsic:
        case "rsqrt":
            return f"lw_rsqrt_{kind}({a[0]})"
        case "min" | "max":
            return _small(x, f"{prefix}{x.intrinsic}({a[0]}, {a[1]})")
        case "clamp":
            return _small(x, f"{prefix}min({prefix}max({a[0]}, {a[1]}), {a[2]})")
        case "abs":
            return _small(x, f"abs({a[0]})")
        case "cbrt":
            return f"lw_cbrt({a[0]})"
        case "mix":
            return f"lw_mix({', '.join(a)})"
        case "fma":
            return _wrap(f"{operand(0, 10)} * {operand(1, 11)} + {operand(2, 10)}", 9, level)
        case "pow":
            return _wrap(f"{operand(0, _POWER + 1)} ** {operand(1, _UNARY)}", _POWER, level)
        case "exp2":
            return _wrap(f"{kind}(2.0) ** {operand(0, _UNARY)}", _POWER, level)
        case name if name in _NUMPY:
            return f"np.{name}({a[0]})"
        case name if name in _MATH:
            return f"math.{name}({', '.join(a)})"
        case name:
            raise AssertionError(f"no Numba spelling of {name}")


def _small(x: ir.Call, spelled: str) -> str:
    return f"{TYPES[x.type]}({spelled})" if x.type in (I32, U32) else spelled


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
