"""Expressions of the IR as instructions of LLVM's language.

LLVM leaves open what the language defines: divisions by zero, shifts by more places than there are,
floats that no integer holds. Those are guarded here. Only additions and products of
integers that lanewise knows to fit say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from lanewise.emit.llvm_instructions import (
    APPROXIMATE,
    CONTRACT,
    FREE,
    LETTERS,
    TYPES,
    in_memory,
)
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import subexpressions
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32, Scalar, limits
from lanewise.runtime.llvm_lines import FunctionLines, float_text
from lanewise.runtime.mathematics.library import FUNCTIONS, declaration

_FLOAT_COMPARE = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FLOAT_BINARY = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_BINARY = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_INTRINSICS = frozenset(("sqrt", "floor", "ceil", "trunc"))
_EXPENSIVE = frozenset((*FUNCTIONS, "gamma"))


@dataclass
class Expressions:
    """What writes expressions of one function, or of a kernel.

    flags: of its arithmetic with floats, and fast: whether all arithmetic takes every shortcut.
    variable: where a variable lies. eager: both sides of `and` and `or` are computed where that is
    cheap.
    """

    code: FunctionLines
    variable: Callable[[str], str]
    given: dict[str, str]
    flags: str
    fast: bool = False
    eager: bool = False

    def flagged(self, flags: str) -> str:
        return "fast " if self.fast else flags

    def value(self, x: ir.Expression) -> str:
        """The operand that stands for an expression, whose instructions are written."""
        give = self.code.give
        match x:
            case ir.Literal():
                return literal(x.value, x.type)
            case ir.Local():
                if x.name in self.given:
                    return self.given[x.name]
                at = self.variable(x.name)
                return give(f"load {TYPES[x.type]}, ptr {at}", at)
            case ir.Unary():
                return self.unary(x)
            case ir.Binary():
                return self.binary(x)
            case ir.Compare():
                return self.compare(x)
            case ir.Logical():
                return self.logical(x)
            case ir.Select():
                return self.select(x)
            case ir.Cast():
                return self.cast(self.value(x.operand), x.operand.type, x.type, bounded=x.bounded)
            case ir.Call():
                return self.call(x)
            case ir.Element():
                place = self.element(x.array, x.index, x.type)
                return self.loaded(place, x.type)
            case ir.Builtin():
                raise AssertionError("there are no threads of a block on the CPU")
            case _:
                assert_never(x)

    # ------------------------------------------------------------ memory

    def index(self, x: ir.Expression) -> str:
        """A place as 64 bits."""
        value = self.value(x)
        if x.type == I64:
            return value
        return self.code.give(f"{'zext' if x.type == U32 else 'sext'} i32 {value} to i64")

    def element(self, array: str, index: ir.Expression, kind: Scalar) -> str:
        place = self.index(index)
        return self.code.give(
            f"getelementptr inbounds {in_memory(kind)}, ptr {self.variable(array)}, i64 {place}"
        )

    def loaded(self, pointer: str, kind: Scalar, name: str = "") -> str:
        stored = in_memory(kind)
        value = self.code.give(f"load {stored}, ptr {pointer}, align {kind.size}", name)
        return self.code.give(f"icmp ne i8 {value}, 0") if kind == BOOL else value

    def store(self, value: str, pointer: str, kind: Scalar) -> None:
        if kind == BOOL:
            value = self.code.give(f"zext i1 {value} to i8")
        self.code.do(f"store {in_memory(kind)} {value}, ptr {pointer}, align {kind.size}")

    # ------------------------------------------------------------ operators

    def unary(self, x: ir.Unary) -> str:
        operand, kind = self.value(x.operand), TYPES[x.type]
        match x.operator:
            case "-" if x.type.is_float:
                return self.code.give(f"fneg {self.flags}{kind} {operand}")
            case "-":
                return self.code.give(f"sub {kind} 0, {operand}")
            case "not" | "~":
                return self.code.give(f"xor {kind} {operand}, {'true' if x.type == BOOL else -1}")
            case _:
                assert_never(x.operator)

    def binary(self, x: ir.Binary, *, fuses: bool = True) -> str:
        """fuses: whether a product may become one with the sum that it stands in."""
        left = self.value(x.left)
        match x.right:
            case ir.Binary() as product if adds_products(x):
                right = self.binary(product, fuses=False)
            case _:
                right = self.value(x.right)
        kind, give = TYPES[x.type], self.code.give
        if x.type.is_float:
            match x.operator:
                case "//" | "%":
                    return self.floor_divided(x, left, right)
                case operator:
                    flags = self.flagged(FREE) if x.free else self.flags
                    flags = flags if fuses or flags != CONTRACT else ""
                    return give(f"{_FLOAT_BINARY[operator]} {flags}{kind} {left}, {right}")
        match x.operator:
            case "//" | "%":
                return self.divided(x, left, right)
            case "<<" | ">>":
                return self.shifted(x, left, right)
            case "/":
                raise AssertionError("integers are divided by //")
            case operator:
                signed = x.type.kind == "i" and operator in "+-*"
                fits = "nsw " if x.bounded and signed else ""
                return give(f"{_BINARY[operator]} {fits}{kind} {left}, {right}")

    def floor_divided(self, x: ir.Binary, a: str, b: str) -> str:
        """Floats rounded down, and what is left; of a divisor 0 what the processor makes of it."""
        t, name, code = TYPES[x.type], f"lw_divided_{LETTERS[x.type]}", self.code
        code.needs.add(name)
        remainder = code.room(f"%{code.label('remainder')}", t)

        def by_zero() -> str:
            operation = "fdiv" if x.operator == "//" else "frem"
            return code.give(f"{operation} {self.flags}{t} {a}, {b}")

        def some() -> str:
            made = code.give(f"call {self.flags}{t} @{name}({t} {a}, {t} {b}, ptr {remainder})")
            return made if x.operator == "//" else code.give(f"load {t}, ptr {remainder}")

        zero = code.give(f"fcmp {self.flags}ueq {t} {b}, 0.0")
        return code.either(zero, t, by_zero, some)

    def divided(self, x: ir.Binary, a: str, b: str) -> str:
        """Rounded down; by zero 0, and the smallest number by -1 wraps."""
        kind, give = TYPES[x.type], self.code.give
        by = int(x.right.value) if isinstance(x.right, ir.Literal) else None
        quotient = x.operator == "//"
        unsigned = x.type == U32
        if unsigned and by is not None and by > 0 and by & (by - 1) == 0:
            if quotient:
                shift = "lshr" if unsigned else "ashr"
                return give(f"{shift} {kind} {a}, {by.bit_length() - 1}")
            return give(f"and {kind} {a}, {by - 1}")
        zero = minus = ""
        if by is None or by == 0:
            zero = give(f"icmp eq {kind} {b}, 0")
        if not unsigned and not x.bounded and by in (None, -1):
            minus = give(f"icmp eq {kind} {b}, -1")
        divisor = b
        for bad in filter(None, (zero, minus)):
            divisor = give(f"select i1 {bad}, {kind} 1, {kind} {divisor}")
        letter = "u" if unsigned else "s"
        rest = give(f"{letter}rem {kind} {a}, {divisor}")
        result = give(f"{letter}div {kind} {a}, {divisor}") if quotient else rest
        if not unsigned:
            signs = give(f"xor {kind} {rest}, {divisor}")
            apart, some = (
                give(f"icmp slt {kind} {signs}, 0"),
                give(f"icmp ne {kind} {rest}, 0"),
            )
            down = give(f"and i1 {apart}, {some}")
            lower = give(f"add {kind} {result}, {-1 if quotient else divisor}")
            result = give(f"select i1 {down}, {kind} {lower}, {kind} {result}")
        if minus and quotient:
            negative = give(f"sub {kind} 0, {a}")
            result = give(f"select i1 {minus}, {kind} {negative}, {kind} {result}")
        if zero:
            result = give(f"select i1 {zero}, {kind} 0, {kind} {result}")
        return result

    def shifted(self, x: ir.Binary, a: str, n: str) -> str:
        """Nothing, or the sign, is left after as many places as there are; negative counts count as
        such.
        """
        kind, bits, give = TYPES[x.type], 8 * x.type.size, self.code.give
        right = "lshr" if x.type == U32 else "ashr"
        literal = x.right.value if isinstance(x.right, ir.Literal) else None
        operation = "shl" if x.operator == "<<" else right
        if x.bounded or (literal is not None and 0 <= literal < bits):
            return give(f"{operation} {kind} {a}, {n}")
        fits = give(f"icmp ult {kind} {n}, {bits}")
        places = give(f"select i1 {fits}, {kind} {n}, {kind} {bits - 1}")
        moved = give(f"{operation} {kind} {a}, {places}")
        if operation == "ashr":
            return moved
        return give(f"select i1 {fits}, {kind} {moved}, {kind} 0")

    def compare(self, x: ir.Compare) -> str:
        left, right, kind = self.value(x.left), self.value(x.right), x.left.type
        if kind.is_float:
            compared = f"fcmp {self.flags}{_FLOAT_COMPARE[x.operator]}"
        else:
            sign = "" if x.operator in ("==", "!=") else "u" if kind in (U32, BOOL) else "s"
            compared = f"icmp {sign}{_COMPARE[x.operator]}"
        return self.code.give(f"{compared} {TYPES[kind]} {left}, {right}")

    def logical(self, x: ir.Logical) -> str:
        left = self.value(x.left)
        if x.operator == "and":
            if _cheap(x.right):
                return self._both(left, self.value(x.right), "false")
            return self.code.either(left, "i1", lambda: self.value(x.right), lambda: "false")
        if _cheap(x.right):
            right = self.value(x.right)
            if self.eager:
                return self.code.give(f"or i1 {left}, {right}")
            return self.code.give(f"select i1 {left}, i1 true, i1 {right}")
        return self.code.either(left, "i1", lambda: "true", lambda: self.value(x.right))

    def _both(self, left: str, right: str, otherwise: str) -> str:
        if self.eager:
            return self.code.give(f"and i1 {left}, {right}")
        return self.code.give(f"select i1 {left}, i1 {right}, i1 {otherwise}")

    def select(self, x: ir.Select) -> str:
        condition, kind = self.value(x.condition), TYPES[x.type]
        if _cheap(x.if_true) and _cheap(x.if_false):
            yes, no = self.value(x.if_true), self.value(x.if_false)
            return self.code.give(f"select i1 {condition}, {kind} {yes}, {kind} {no}")
        return self.code.either(
            condition, kind, lambda: self.value(x.if_true), lambda: self.value(x.if_false)
        )

    # ------------------------------------------------------------ conversions

    def cast(self, value: str, source: Scalar, target: Scalar, *, bounded: bool = False) -> str:
        """A number in another type; floats that do not fit an integer become the nearest one
        that does, NaN 0.
        """
        give, left, right = self.code.give, TYPES[source], TYPES[target]
        if source == target or {source, target} == {I32, U32}:
            return value
        if target == BOOL:
            if source.is_float:
                return give(f"fcmp {self.flags}une {left} {value}, 0.0")
            return give(f"icmp ne {left} {value}, 0")
        if source.is_float and target.is_float:
            wider = target.size > source.size
            return give(f"{'fpext' if wider else 'fptrunc'} {left} {value} to {right}")
        if target.is_float:
            unsigned = source.kind in "bu"
            return give(f"{'uitofp' if unsigned else 'sitofp'} {left} {value} to {right}")
        if source.is_float:
            return self._whole(value, source, target, bounded)
        if source.size > target.size:
            return give(f"trunc {left} {value} to {right}")
        unsigned = source.kind in "bu"
        return give(f"{'zext' if unsigned else 'sext'} {left} {value} to {right}")

    def _whole(self, value: str, source: Scalar, target: Scalar, bounded: bool) -> str:
        give, left, right = self.code.give, TYPES[source], TYPES[target]
        letter = "u" if target == U32 else "s"
        if bounded:
            return give(f"fpto{letter}i {left} {value} to {right}")
        if (source, target) == (F64, I32):
            return self.own("to_i32", F64, (value,), I32)
        name = f"@llvm.fpto{letter}i.sat.{right}.{LETTERS[source]}"
        self.code.needs.add(f"declare {right} {name}({left})")
        return give(f"call {right} {name}({left} {value})")

    # ------------------------------------------------------------ functions

    def own(
        self, name: str, kind: Scalar, operands: tuple[str, ...], result: Scalar | None = None
    ) -> str:
        """A call of a function of lanewise's own (`llvm_prelude.py`)."""
        text, full = TYPES[kind], f"lw_{name}_{LETTERS[kind]}"
        self.code.needs.add(full)
        flags = "" if result is not None else self.flags
        listed = ", ".join(f"{text} {o}" for o in operands)
        given = TYPES[result or kind]
        return self.code.give(f"call {flags}{given} @{full}({listed})")

    def intrinsic(self, name: str, kind: Scalar, operands: tuple[str, ...], flags: str) -> str:
        """A call of a function of LLVM's own."""
        text, full = TYPES[kind], f"@llvm.{name}.{LETTERS[kind]}"
        self.code.needs.add(f"declare {text} {full}({', '.join([text] * len(operands))})")
        listed = ", ".join(f"{text} {o}" for o in operands)
        return self.code.give(f"call {flags}{text} {full}({listed})")

    def library(self, name: str, kind: Scalar, operands: tuple[str, ...]) -> str:
        """A call of a function of the system's library, which reads nothing but the rounding mode."""
        text, full = TYPES[kind], f"@{name}{'f' if kind == F32 else ''}"
        listed = ", ".join([text] * len(operands))
        self.code.needs.add(f"declare {text} {full}({listed}) nounwind memory(read)")
        given = ", ".join(f"{text} {o}" for o in operands)
        return self.code.give(f"call {text} {full}({given})")

    def mathematics(self, name: str, kind: Scalar, operands: tuple[str, ...]) -> str:
        """A call of a function of `runtime/mathematics/`."""
        text = TYPES[kind]
        self.code.needs.add(declaration(name, 0, LETTERS[kind]))
        listed = ", ".join(f"{text} {o}" for o in operands)
        return self.code.give(f"call {text} @lw.{name}.{LETTERS[kind]}({listed})")

    def call(self, x: ir.Call) -> str:
        a = tuple(self.value(argument) for argument in x.arguments)
        kind = x.arguments[0].type
        text, give, flags = TYPES[kind], self.code.give, self.flags
        match x.intrinsic:
            case "rsqrt":
                approximate = self.flagged(APPROXIMATE)
                root = self.intrinsic("sqrt", kind, a, approximate)
                return give(f"fdiv {approximate}{text} {literal(1.0, kind)}, {root}")
            case "min" | "max":
                return self.extreme(x.intrinsic, kind, a[0], a[1])
            case "clamp":
                return self.extreme("min", kind, self.extreme("max", kind, a[0], a[1]), a[2])
            case "abs" if kind.is_float:
                return self.intrinsic("fabs", kind, a, flags)
            case "abs":
                if kind == U32:
                    return a[0]
                negative = give(f"icmp slt {text} {a[0]}, 0")
                other = give(f"sub {text} 0, {a[0]}")
                return give(f"select i1 {negative}, {text} {other}, {text} {a[0]}")
            case "mix":
                apart = give(f"fsub {self.flagged('contract ')}{text} {a[1]}, {a[0]}")
                part = give(f"fmul {self.flagged('contract ')}{text} {apart}, {a[2]}")
                return give(f"fadd {self.flagged('contract ')}{text} {a[0]}, {part}")
            case "fma":
                product = give(f"fmul {flags}{text} {a[0]}, {a[1]}")
                return give(f"fadd {flags}{text} {product}, {a[2]}")
            case "isnan":
                return give(f"fcmp {flags}uno {text} {a[0]}, {a[0]}")
            case "isinf":
                above, below = (
                    give(f"fcmp {flags}oeq {text} {a[0]}, {literal(v, kind)}")
                    for v in (float("inf"), float("-inf"))
                )
                return give(f"or i1 {above}, {below}")
            case "isfinite":
                nothing = give(f"fsub {flags}{text} {a[0]}, {a[0]}")
                return give(f"fcmp {flags}ord {text} {nothing}, {nothing}")
            case "round":
                return self.intrinsic("roundeven", kind, a, flags)
            case "gamma":
                return self.library("tgamma", kind, a)
            case name if name in _INTRINSICS:
                return self.intrinsic(name, kind, a, flags)
            case name if name in FUNCTIONS:
                return self.mathematics(name, kind, a)
            case name:
                raise AssertionError(f"no LLVM spelling of {name}")

    def extreme(self, name: str, kind: Scalar, a: str, b: str) -> str:
        """The smaller or larger number; of floats NaN where either is NaN."""
        text, give = TYPES[kind], self.code.give
        if not kind.is_float:
            sign = "u" if kind in (U32, BOOL) else "s"
            chosen = give(f"icmp {sign}{'lt' if name == 'min' else 'gt'} {text} {a}, {b}")
            return give(f"select i1 {chosen}, {text} {a}, {text} {b}")
        flags = self.flagged("")
        better = give(f"fcmp {flags}{'olt' if name == 'min' else 'ogt'} {text} {a}, {b}")
        none = give(f"fcmp {flags}une {text} {a}, {a}")
        first = give(f"select i1 {better}, i1 true, i1 {none}")
        return give(f"select i1 {first}, {text} {a}, {text} {b}")


def _cheap(x: ir.Expression) -> bool:
    """Whether computing it costs a few instructions and cannot go wrong."""
    return not any(
        isinstance(part, ir.Element | ir.Builtin)
        or (isinstance(part, ir.Call) and part.intrinsic in _EXPENSIVE)
        or (isinstance(part, ir.Binary) and part.operator in ("/", "//", "%"))
        for part in subexpressions(x)
    )


def adds_products(x: ir.Binary) -> bool:
    """Whether a sum, or a difference, has two products.

    Only one of them can be fused with it, and LLVM chooses by what stands around them. The first
    one is, so that a function gives the same bits in every kernel.
    """
    return (
        x.type.is_float
        and x.operator in "+-"
        and not x.free
        and all(isinstance(e, ir.Binary) and e.operator == "*" for e in (x.left, x.right))
    )


def literal(value: float | int | bool, kind: Scalar) -> str:
    """A literal of exactly this type and value: floats by their bits."""
    if kind == BOOL:
        return "true" if value else "false"
    if kind.is_integer:
        low, high = limits(kind)
        assert low <= value <= high
        return str(int(value))
    return float_text(float(value), 8 * kind.size)
