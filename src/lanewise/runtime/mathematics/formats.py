"""What float32 and float64 differ in, for functions of mathematics."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from lanewise.runtime.mathematics.coefficients import CONSTANTS
from lanewise.runtime.mathematics.registers import Kind, Register, fma, select


@dataclass(frozen=True)
class BinaryFormat:
    """A format. fraction: how many bits its numbers have after the first one. bias: of exponents.
    raised: the power of two that makes its subnormal numbers normal.
    """

    kind: Kind
    whole: Kind
    fraction: int
    bias: int
    raised: int

    @property
    def shift(self) -> float:
        """A number of such a size that a sum with it is whole."""
        return 1.5 * 2.0**self.fraction

    @property
    def shift_bits(self) -> int:
        return ((self.bias + self.fraction) << self.fraction) | 1 << self.fraction - 1

    @property
    def least(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    def bits_of(self, number: float) -> int:
        """The bits of a positive number."""
        both = ("<f", "<i") if self.kind == "float" else ("<d", "<q")
        return int(struct.unpack(both[1], struct.pack(both[0], number))[0])

    @property
    def root_half_bits(self) -> int:
        return 0x3F3504F3 if self.kind == "float" else 0x3FE6A09E667F3BCD

    def __getitem__(self, name: str) -> float:
        return CONSTANTS[self.kind][name]


F32 = BinaryFormat("float", "i32", 23, 127, 24)
F64 = BinaryFormat("double", "i64", 52, 1023, 54)
_FORMATS = {"float": F32, "double": F64}


def format_of(x: Register) -> BinaryFormat:
    """The format that a number has."""
    return _FORMATS[x.kind]


@dataclass(frozen=True)
class WholeFloat:
    """An integer of at most a few thousand, as a float and as bits."""

    number: Register
    bits: Register


def nearest_whole(x: Register, factor: float) -> WholeFloat:
    """The integer next to x times a factor, which is not large."""
    form = format_of(x)
    moved = fma(x, factor, form.shift)
    return WholeFloat(moved - form.shift, moved.bits - form.shift_bits)


def power(n: Register) -> Register:
    """2^n as a float, for bits n of an exponent that the format has."""
    form = F32 if n.kind == "i32" else F64
    return ((n + form.bias) << form.fraction).as_float


def scaled(p: Register, n: WholeFloat) -> Register:
    """The number p 2^n, rounded once: subnormal and infinite where it has to be."""
    if p.code.scales and p.code.count * size_of(p) >= 128:
        return _scaled_at_once(p, n.number)
    # AVX2 shifts no signs of 64 bits
    half = ((n.bits + 4096) >> 1) - 2048
    return p * power(half) * power(n.bits - half)


def size_of(x: Register) -> int:
    """Bits of a number."""
    return 32 if x.kind == "float" else 64


def _scaled_at_once(p: Register, n: Register) -> Register:
    """By instructions of AVX-512, of 512 bits at most."""
    code, kind, count = p.code, p.kind, p.code.count
    lanes = min(count, 512 // size_of(p))
    letter, mask = "ps" if kind == "float" else "pd", f"i{max(8, lanes)}"
    v, bits = f"<{lanes} x {kind}>", lanes * size_of(p)
    name = f"@llvm.x86.avx512.mask.scalef.{letter}.{bits}"
    rounding = (", i32", ", i32 4") if bits == 512 else ("", "")
    code.body.needs.add(f"declare {v} {name}({v}, {v}, {v}, {mask}{rounding[0]})")
    made = list[str]()
    for first in range(0, count, lanes):
        one, by = (code.part(x, first, lanes) for x in (p, n))
        given = f"{v} {one}, {v} {by}, {v} zeroinitializer, {mask} -1{rounding[1]}"
        made.append(code.give(f"call {v} {name}({given})", kind).name)
    return code.joined(made, kind, lanes)


def as_number(n: Register) -> Register:
    """A small integer as a float; AVX2 converts none of 64 bits."""
    code = n.code
    if n.kind == "i32":
        return code.give(f"sitofp {n} to {code.type('float')}", "float")
    return (n + (0x4330000000000000 + 4096)).as_float - (2.0**52 + 4096)


def is_unusual(x: Register) -> Register:
    """Whether a number is none of the positive normal ones."""
    return is_outside(x, format_of(x).least, math.inf)


def is_outside(x: Register, low: float, high: float) -> Register:
    """Whether a number is not from one positive number on and below another one. The bits of
    positive numbers are integers in their order.
    """
    form = format_of(x)
    sign = 1 << (31 if form is F32 else 63)
    first, end = form.bits_of(low), form.bits_of(high)
    return (x.bits + (sign - first)) >= end - first - sign


@dataclass(frozen=True)
class Normalised:
    """A positive number as 2^k (1 + f), of which 1 + f lies between the root of 1/2 and that of 2;
    bits: of k.
    """

    k: Register
    bits: Register
    f: Register


def split(x: Register, *, subnormal: bool = True) -> Normalised:
    """subnormal: whether x may be."""
    form = format_of(x)
    one = form.bias << form.fraction
    raised = x.bits
    if subnormal:
        raised = select(x < form.least, (x * 2.0**form.raised).bits, raised)
    k = ((raised + (one - form.root_half_bits)) >> form.fraction) - form.bias
    m = (raised - (k << form.fraction)).as_float
    if subnormal:
        k = k - select(x < form.least, k.of(form.raised), k.of(0))
    return Normalised(as_number(k), k, m - 1.0)
