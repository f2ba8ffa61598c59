"""Values of texts that are written by hand, and the instructions of their arithmetic."""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise.runtime.llvm_lines import FunctionLines, float_text
from lanewise.runtime.written.kinds import (
    BOOL,
    F64,
    I64,
    U64,
    ArrayKind,
    Kind,
    NumberKind,
    TextError,
    TupleKind,
    in_arithmetic,
    in_common,
)


@dataclass(frozen=True, slots=True)
class TextNumber:
    """A number, and its name in LLVM's language. known: what it is, where the text says so."""

    kind: NumberKind
    name: str
    known: int | float | None = None


@dataclass(frozen=True, slots=True)
class TextArray:
    """An array in memory: where it begins, the lengths of its dimensions, and how many bytes apart
    their elements are, where they do not follow each other.
    """

    kind: ArrayKind
    place: str
    lengths: tuple[str, ...]
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextTuple:
    """Values side by side."""

    items: tuple[TextValue, ...]

    @property
    def kind(self) -> TupleKind:
        return TupleKind(tuple(i.kind for i in self.items))


TextValue = TextNumber | TextArray | TextTuple


def constant(value: float, kind: NumberKind | None = None) -> TextNumber:
    """A number that the text tells."""
    if kind is None:
        kind = BOOL if isinstance(value, bool) else F64 if isinstance(value, float) else I64
    match kind.letter:
        case "b":
            return TextNumber(kind, "true" if value else "false", bool(value))
        case "f":
            rounded = struct.unpack("f", struct.pack("f", value))[0] if kind.bits == 32 else value
            return TextNumber(kind, float_text(value, kind.bits), float(rounded))
        case _:
            kept = int(value) & (1 << kind.bits) - 1
            if kind.letter == "i" and kept >> kind.bits - 1:
                kept -= 1 << kind.bits
            return TextNumber(kind, str(kept), kept)


_FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_WHOLE = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
}
_REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_TESTS: dict[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Eq: ("eq", "eq", "oeq"),
    ast.NotEq: ("ne", "ne", "une"),
    ast.Lt: ("slt", "ult", "olt"),
    ast.LtE: ("sle", "ule", "ole"),
    ast.Gt: ("sgt", "ugt", "ogt"),
    ast.GtE: ("sge", "uge", "oge"),
}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Instructions that compute values of others."""

    code: FunctionLines

    def cast(self, v: TextNumber, kind: NumberKind) -> TextNumber:
        """A number as one of another type. Floats become the nearest integer towards zero, the
        last one of their type beyond it, and 0 of what is no number.
        """
        was, to, give = v.kind, kind.text, self.code.give
        if was == kind:
            return v
        if v.known is not None and not (was.is_float and not kind.is_float):
            return constant(v.known, kind)
        if kind == BOOL:
            return self.truth(v)
        if was.is_float and kind.is_float:
            way = "fpext" if kind.bits > was.bits else "fptrunc"
        elif was.is_float:
            letter = "u" if kind.letter == "u" else "s"
            name = f"llvm.fpto{letter}i.sat.{to}.f{was.bits}"
            self.code.needs.add(f"declare {to} @{name}({was.text})")
            return TextNumber(kind, give(f"call {to} @{name}({was.text} {v.name})"))
        elif kind.is_float:
            way = "sitofp" if was.letter == "i" else "uitofp"
        elif kind.bits == was.bits:
            return TextNumber(kind, v.name)
        elif kind.bits < was.bits:
            way = "trunc"
        else:
            way = "sext" if was.letter == "i" else "zext"
        return TextNumber(kind, give(f"{way} {was.text} {v.name} to {to}"))

    def fitting(self, v: TextNumber, kind: NumberKind) -> TextNumber:
        """A float as an integer with a sign that it is known to fit: one instruction less a
        number, or several in registers of many.
        """
        return TextNumber(kind, self.code.give(f"fptosi {v.kind.text} {v.name} to {kind.text}"))

    def truth(self, v: TextNumber) -> TextNumber:
        """Whether a number is not zero."""
        if v.kind == BOOL:
            return v
        return self.compare(ast.NotEq(), v, constant(0))

    def _alike(
        self, a: TextNumber, b: TextNumber, *, wide: bool
    ) -> tuple[TextNumber, TextNumber, NumberKind]:
        """Both as numbers of one type. What is written in the text takes the sign of the other."""
        kinds = [a.kind, b.kind]
        for n, (v, other) in enumerate(((a, b), (b, a))):
            if v.known is not None and v.kind == I64 and other.kind == U64 and v.known >= 0:
                kinds[n] = U64
        kind = in_arithmetic(*kinds) if wide else in_common(*kinds)
        return self.cast(a, kind), self.cast(b, kind), kind

    def binary(self, sign: ast.operator, a: TextNumber, b: TextNumber) -> TextNumber:
        """Two numbers by an operator of Python."""
        way, give = type(sign), self.code.give
        if way in _FOLDED and isinstance(a.known, int) and isinstance(b.known, int):
            return constant(_FOLDED[way](a.known, b.known), in_arithmetic(a.kind, b.kind))
        if a.kind == b.kind == BOOL and way in (ast.BitAnd, ast.BitOr, ast.BitXor):
            return TextNumber(BOOL, give(f"{_WHOLE[way]} i1 {a.name}, {b.name}"))
        a, b, kind = self._alike(a, b, wide=True)
        if way is ast.Div and not kind.is_float:
            a, b, kind = self.cast(a, F64), self.cast(b, F64), F64
        if kind.is_float and way in _REAL:
            return TextNumber(kind, give(f"{_REAL[way]} {kind.text} {a.name}, {b.name}"))
        if kind.is_float:
            raise TextError(f"floats have no {way.__name__}")
        if way in _WHOLE:
            return TextNumber(kind, give(f"{_WHOLE[way]} i64 {a.name}, {b.name}"))
        if way is ast.RShift:
            shift = "lshr" if kind == U64 else "ashr"
            return TextNumber(kind, give(f"{shift} i64 {a.name}, {b.name}"))
        if way in (ast.FloorDiv, ast.Mod):
            return self._divided(a, b, kind, rest=way is ast.Mod)
        raise TextError(f"integers have no {way.__name__}")

    def _divided(self, a: TextNumber, b: TextNumber, kind: NumberKind, *, rest: bool) -> TextNumber:
        """Towards minus infinity, by a number above zero."""
        give = self.code.give
        if kind == U64:
            return TextNumber(kind, give(f"{'urem' if rest else 'udiv'} i64 {a.name}, {b.name}"))
        left = give(f"srem i64 {a.name}, {b.name}")
        below = give(f"icmp slt i64 {left}, 0")
        if rest:
            more = give(f"add i64 {left}, {b.name}")
            return TextNumber(kind, give(f"select i1 {below}, i64 {more}, i64 {left}"))
        whole, less = give(f"sdiv i64 {a.name}, {b.name}"), give(f"sext i1 {below} to i64")
        return TextNumber(kind, give(f"add i64 {whole}, {less}"))

    def unary(self, sign: ast.unaryop, v: TextNumber) -> TextNumber:
        """A number by an operator of Python."""
        match sign:
            case ast.Not():
                truth = self.truth(v)
                return TextNumber(BOOL, self.code.give(f"xor i1 {truth.name}, true"))
            case ast.USub() if v.known is not None:
                return constant(-v.known, v.kind if v.kind.is_float else I64)
            case ast.USub() if v.kind.is_float:
                return TextNumber(v.kind, self.code.give(f"fneg {v.kind.text} {v.name}"))
            case ast.USub():
                return self.binary(ast.Sub(), constant(0), v)
            case ast.Invert():
                wide = self.binary(ast.Add(), v, constant(0))
                return TextNumber(wide.kind, self.code.give(f"xor i64 {wide.name}, -1"))
            case _:
                raise TextError(f"there is no {type(sign).__name__}")

    def compare(self, sign: ast.cmpop, a: TextNumber, b: TextNumber) -> TextNumber:
        """Whether two numbers are in an order."""
        a, b, kind = self._alike(a, b, wide=False)
        signed, unsigned, real = _TESTS[type(sign)]
        if kind.is_float:
            return TextNumber(BOOL, self.code.give(f"fcmp {real} {kind.text} {a.name}, {b.name}"))
        test = signed if kind.letter == "i" else unsigned
        return TextNumber(BOOL, self.code.give(f"icmp {test} {kind.text} {a.name}, {b.name}"))

    def extreme(self, sign: ast.cmpop, a: TextNumber, b: TextNumber) -> TextNumber:
        """The smaller or the larger of two as Python has them: the first one, unless the second is
        beyond it.
        """
        a, b, kind = self._alike(a, b, wide=False)
        beyond = self.compare(sign, b, a)
        chosen = f"select i1 {beyond.name}, {kind.text} {b.name}, {kind.text} {a.name}"
        return TextNumber(kind, self.code.give(chosen))

    def function(self, name: str, v: TextNumber) -> TextNumber:
        """A function of LLVM's of a float."""
        own = f"llvm.{name}.f{v.kind.bits}"
        self.code.needs.add(f"declare {v.kind.text} @{own}({v.kind.text})")
        found = self.code.give(f"call {v.kind.text} @{own}({v.kind.text} {v.name})")
        return TextNumber(v.kind, found)

    def absolute(self, v: TextNumber) -> TextNumber:
        if v.kind.is_float:
            return self.function("fabs", v)
        return self.extreme(ast.Gt(), v, self.unary(ast.USub(), v))

    # ---------------------------------------------------------------- memory

    def whole_index(self, v: TextNumber) -> str:
        """An integer as one of 64 bits."""
        if v.kind.is_float or v.kind == BOOL:
            raise TextError("places of an array are integers")
        return self.cast(v, U64 if v.kind.letter == "u" else I64).name

    def inner(self, a: TextArray, index: TextNumber) -> TextArray:
        """An array without its first dimension, at a place of it."""
        at, give = self.whole_index(index), self.code.give
        rest = ArrayKind(a.kind.element, a.kind.dimensions - 1, a.kind.whole)
        if a.kind.whole:
            for length in a.lengths[1:]:
                at = give(f"mul i64 {at}, {length}")
            place = give(f"getelementptr inbounds {a.kind.element.stored}, ptr {a.place}, i64 {at}")
        else:
            far = give(f"mul i64 {at}, {a.steps[0]}")
            place = give(f"getelementptr inbounds i8, ptr {a.place}, i64 {far}")
        return TextArray(rest, place, a.lengths[1:], a.steps[1:])

    def part(self, a: TextArray, begin: TextNumber | None, end: TextNumber | None) -> TextArray:
        """Elements of an array from one to another, along the first dimension; all of it has to be
        there.
        """
        first = constant(0) if begin is None else begin
        moved = self.inner(a, first).place if begin is not None else a.place
        last = a.lengths[0] if end is None else self.whole_index(end)
        count = self.code.give(f"sub i64 {last}, {self.whole_index(first)}")
        return replace(a, place=moved, lengths=(count, *a.lengths[1:]))

    def load(self, a: TextArray) -> TextNumber:
        """The element of an array without dimensions."""
        kind = a.kind.element
        found = self.code.give(f"load {kind.stored}, ptr {a.place}, align 1")
        return self._from_memory(kind, found)

    def _from_memory(self, kind: NumberKind, found: str) -> TextNumber:
        truth = kind == BOOL
        return TextNumber(kind, self.code.give(f"trunc i8 {found} to i1") if truth else found)

    def store(self, a: TextArray, v: TextNumber) -> None:
        """Put a number into the element of an array without dimensions."""
        kind, put = a.kind.element, self.cast(v, a.kind.element).name
        if kind == BOOL:
            put = self.code.give(f"zext i1 {put} to i8")
        self.code.do(f"store {kind.stored} {put}, ptr {a.place}, align 1")

    def count(self, a: TextArray) -> str:
        """How many elements an array has."""
        number = a.lengths[0]
        for length in a.lengths[1:]:
            number = self.code.give(f"mul i64 {number}, {length}")
        return number


def rooms_of(kind: Kind) -> list[str]:
    """The types of what a variable of a type has in memory."""
    match kind:
        case NumberKind():
            return [kind.text]
        case ArrayKind(dimensions=n, whole=whole):
            return ["ptr", *["i64"] * (n if whole else 2 * n)]
        case TupleKind(items=items):
            return [r for i in items for r in rooms_of(i)]
