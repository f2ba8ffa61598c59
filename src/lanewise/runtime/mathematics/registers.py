"""Numbers, or registers of them, as operands of LLVM's language: what functions of mathematics are
written with.

A function is written once, as Python on these operands, and is printed for one number and for
registers of any width. No instruction has a flag, so that all of them give the same bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lanewise.runtime.llvm_lines import FunctionLines, float_text

Kind = Literal["i1", "i32", "i64", "float", "double"]
_LETTERS = {"i1": "i1", "i32": "i32", "i64": "i64", "float": "f32", "double": "f64"}
_WHOLE: dict[str, Kind] = {"float": "i32", "double": "i64"}
_FLOAT: dict[str, Kind] = {"i32": "float", "i64": "double"}


@dataclass
class Code:
    """The instructions of a function of `count` numbers at once; 0 for plain numbers.

    scales: whether registers are scaled by powers of two in one instruction, as AVX-512 does.
    calls: the functions of this package that it calls where few lanes need them, each with what
    writes it, unless it is written as text.
    """

    count: int
    scales: bool = False
    body: FunctionLines = field(default_factory=FunctionLines)
    calls: dict[str, Rare | None] = field(default_factory=dict[str, "Rare | None"])
    _block: str = "entry"

    def type(self, kind: Kind) -> str:
        return f"<{self.count} x {kind}>" if self.count else kind

    def letter(self, kind: Kind) -> str:
        return f"v{self.count}{_LETTERS[kind]}" if self.count else _LETTERS[kind]

    def give(self, operation: str, kind: Kind) -> Register:
        return Register(self, kind, self.body.give(operation))

    def every(self, number: float, kind: Kind) -> Register:
        """One number, in all places of a register; a float that the type has, by its bits."""
        if kind == "i1":
            text = "true" if number else "false"
        elif kind in _FLOAT:
            text = str(int(number))
        else:
            if kind == "float" and number == number:
                given = struct.unpack("<f", struct.pack("<f", number))[0]
                assert given == number, f"float32 has no {number.hex()}"
            text = float_text(number, 32 if kind == "float" else 64)
        return Register(self, kind, f"splat ({kind} {text})" if self.count else text)

    def intrinsic(self, name: str, *operands: Register) -> Register:
        """A function of LLVM's own, from operands of one type to it."""
        kind = operands[0].kind
        t, full = self.type(kind), f"@llvm.{name}.{self.letter(kind)}"
        self.body.needs.add(f"declare {t} {full}({', '.join([t] * len(operands))})")
        return self.give(f"call {t} {full}({', '.join(map(str, operands))})", kind)

    def part(self, x: Register, first: int, lanes: int) -> str:
        """Some neighbouring numbers of a register."""
        if lanes == self.count:
            return x.name
        order = ", ".join(f"i32 {n}" for n in range(first, first + lanes))
        return self.give(f"shufflevector {x}, {x}, <{lanes} x i32> <{order}>", x.kind).name

    def joined(self, parts: list[str], kind: Kind, lanes: int) -> Register:
        """A register of parts of equal size."""
        while len(parts) > 1:
            v, order = f"<{lanes} x {kind}>", ", ".join(f"i32 {n}" for n in range(2 * lanes))
            parts = [
                self.give(
                    f"shufflevector {v} {a}, {v} {b}, <{2 * lanes} x i32> <{order}>", kind
                ).name
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            lanes *= 2
        return Register(self, kind, parts[0])

    def where_any(
        self,
        mask: Register,
        name: str,
        given_to: Register | tuple[Register, ...],
        values: tuple[Register, ...],
        kinds: tuple[Kind, ...],
        rare: Rare | None = None,
    ) -> tuple[Register, ...]:
        """Values, which in lanes of a mask are those that another function gives for `given_to`.
        It is called where the mask has a lane, which is rare. rare: what writes it.
        """
        arguments = given_to if isinstance(given_to, tuple) else (given_to,)
        body, some = self.body, mask.name
        if self.count:
            lanes = f"i{self.count}"
            body.do(f"%lanes.{name} = bitcast {mask} to {lanes}")
            body.do(f"%some.{name} = icmp ne {lanes} %lanes.{name}, 0")
            some = f"%some.{name}"
        weights = '!prof !{!"branch_weights", i32 1, i32 4000}'
        body.end(f"br i1 {some}, label %far.{name}, label %with.{name}, {weights}")
        body.begin(f"far.{name}")
        self.calls[name] = rare
        made = f"{{ {', '.join(self.type(k) for k in kinds)} }}"
        full = f"@lw.{name}.{self.letter(arguments[0].kind)}"
        body.do(f"%made.{name} = call {made} {full}({', '.join(map(str, arguments))})")
        far = [
            select(mask, self.give(f"extractvalue {made} %made.{name}, {n}", k), values[n])
            for n, k in enumerate(kinds)
        ]
        body.begin(f"with.{name}")
        given = [
            self.give(
                f"phi {self.type(k)} [ {a.name}, %far.{name} ], [ {b.name}, %{self._block} ]", k
            )
            for k, a, b in zip(kinds, far, values, strict=True)
        ]
        self._block = f"with.{name}"
        return tuple(given)


@dataclass(frozen=True, eq=False)
class Register:
    """What an instruction gives, with Python's operators; shifts bring zeros."""

    code: Code
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.code.type(self.kind)} {self.name}"

    def of(self, other: Register | float) -> Register:
        """An operand of the same type."""
        if isinstance(other, Register):
            assert other.kind == self.kind, f"{other.kind} meets {self.kind}"
            return other
        return self.code.every(other, self.kind)

    def _does(
        self, floats: str, wholes: str, left: Register | float, right: Register | float
    ) -> Register:
        name = floats if self.kind in _WHOLE else wholes
        assert name, f"no operation of {self.kind}"
        return self.code.give(f"{name} {self.of(left)}, {self.of(right).name}", self.kind)

    def __add__(self, other: Register | float) -> Register:
        return self._does("fadd", "add", self, other)

    def __radd__(self, other: float) -> Register:
        return self._does("fadd", "add", other, self)

    def __sub__(self, other: Register | float) -> Register:
        return self._does("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> Register:
        return self._does("fsub", "sub", other, self)

    def __mul__(self, other: Register | float) -> Register:
        return self._does("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> Register:
        return self._does("fmul", "mul", other, self)

    def __truediv__(self, other: Register | float) -> Register:
        return self._does("fdiv", "", self, other)

    def __rtruediv__(self, other: float) -> Register:
        return self._does("fdiv", "", other, self)

    def __floordiv__(self, other: int) -> Register:
        return self._does("", "udiv", self, other)

    def __and__(self, other: Register | int) -> Register:
        return self._does("", "and", self, other)

    def __or__(self, other: Register | int) -> Register:
        return self._does("", "or", self, other)

    def __xor__(self, other: Register | int) -> Register:
        return self._does("", "xor", self, other)

    def __lshift__(self, by: int) -> Register:
        return self._does("", "shl", self, by)

    def __rshift__(self, by: int) -> Register:
        return self._does("", "lshr", self, by)

    def __invert__(self) -> Register:
        return self ^ (1 if self.kind == "i1" else -1)

    def __neg__(self) -> Register:
        if self.kind not in _WHOLE:
            return 0 - self
        return self.code.give(f"fneg {self}", self.kind)

    def _compared(self, floats: str, wholes: str, other: Register | float) -> Register:
        name = f"fcmp {floats}" if self.kind in _WHOLE else f"icmp {wholes}"
        return self.code.give(f"{name} {self}, {self.of(other).name}", "i1")

    def __lt__(self, other: Register | float) -> Register:
        return self._compared("olt", "slt", other)

    def __le__(self, other: Register | float) -> Register:
        return self._compared("ole", "sle", other)

    def __gt__(self, other: Register | float) -> Register:
        return self._compared("ogt", "sgt", other)

    def __ge__(self, other: Register | float) -> Register:
        return self._compared("oge", "sge", other)

    def equals(self, other: Register | float) -> Register:
        return self._compared("oeq", "eq", other)

    @property
    def is_nan(self) -> Register:
        return self._compared("uno", "", self)

    @property
    def bits(self) -> Register:
        whole = _WHOLE[self.kind]
        return self.code.give(f"bitcast {self} to {self.code.type(whole)}", whole)

    @property
    def as_float(self) -> Register:
        """The float of these bits."""
        kind = _FLOAT[self.kind]
        return self.code.give(f"bitcast {self} to {self.code.type(kind)}", kind)

    def to(self, kind: Kind) -> Register:
        """The same number as float or double, rounded where it has to be."""
        if kind == self.kind:
            return self
        name = "fpext" if kind == "double" else "fptrunc"
        return self.code.give(f"{name} {self} to {self.code.type(kind)}", kind)

    def signed(self, sign: Register) -> Register:
        """Its size with the sign of another number."""
        return self.code.intrinsic("copysign", self, sign)


Rare = Callable[..., Register]
"""What writes a function that is called for few numbers."""


def fma(a: Register, b: Register | float, c: Register | float) -> Register:
    """The number a b + c, rounded once."""
    return a.code.intrinsic("fma", a, a.of(b), a.of(c))


def sqrt(x: Register) -> Register:
    """The square root of x."""
    return x.code.intrinsic("sqrt", x)


def size(x: Register) -> Register:
    """The number without its sign."""
    return x.code.intrinsic("fabs", x)


def nearest(x: Register) -> Register:
    """The nearest integer, the even one of two."""
    return x.code.intrinsic("roundeven", x)


def select(condition: Register, yes: Register | float, no: Register | float) -> Register:
    """One of two values; at least one of them is no literal."""
    kind = yes if isinstance(yes, Register) else no
    assert isinstance(kind, Register)
    yes, no = kind.of(yes), kind.of(no)
    return kind.code.give(f"select {condition}, {yes}, {no}", kind.kind)


def within(x: Register, low: float, high: float) -> Register:
    """x, or the limit that it is beyond; NaN stays NaN."""
    x = select(x < low, low, x)
    return select(x > high, high, x)


def horner(x: Register, coefficients: Sequence[float]) -> Register:
    """A polynomial, by its coefficients from the lowest power up."""
    total = x.of(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = fma(total, x, c)
    return total


def quick_sum(a: Register, b: Register) -> tuple[Register, Register]:
    """The sum a + b, where a is 0 or larger than b, as a rounded sum and what rounding lost."""
    total = a + b
    return total, b - (total - a)


def product(a: Register, b: Register | float) -> tuple[Register, Register]:
    """The product a b as a rounded product and what rounding lost."""
    p = a * b
    return p, fma(a, b, -p)
