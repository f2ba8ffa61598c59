"""Exact sums of floats: integers that hold every float of a type, so that the order of
additions does not matter.

A finite float is an integer of units, 2^-150 of float32 and 2^-1075 of float64. The sum of an
element is an integer as well, cut into words of 64 bits that stand for 2^0, 2^32, 2^64, ... units.
A float32, moved to its place, fits one word, a float64 two. Words overlap, and one that wraps is
paid back two words higher, so that no number of additions is too large. The last word has a bit for
each kind of value that is no finite number. At the end the words are one number again, which is
rounded once.

On a CPU all words of one weight lie side by side, and behind them are flags, one for each weight
that was used: the others are memory that nothing touched, and which the system does not even
provide. In front of them each element has two float64, to which compiled kernels add as long as no
bit is lost, so that words are seldom needed (`primitives.own_sums`).

This is the definition, in Python's integers: `emit.cuda_prelude`, `emit.llvm_prelude` and
`primitives.exact_sums` do the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# elements whose words of one weight lie side by side on a GPU and for the interpreter: a line of a
# cache
GROUP = 16
WORD = 32  # bits from the weight of a word to that of the next one
NAN, ABOVE, BELOW = 1, 2, 4  # bits of the last word: not a number, infinity, minus infinity


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A type of floats: bits of a significand with its leading one, the largest exponent field, and
    words of an element.
    """

    name: str
    bits: np.dtype[Any]
    significand: int
    most: int
    words: int

    @property
    def fraction(self) -> int:
        """Bits of a significand that are stored."""
        return self.significand - 1

    @property
    def several(self) -> bool:
        """Whether a value takes two words."""
        return self.significand + WORD > 64

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (8 * self.bits.itemsize - 1)


F32 = FloatFormat("float32", np.dtype(np.uint32), 24, 255, 11)
F64 = FloatFormat("float64", np.dtype(np.uint64), 53, 2047, 68)
FORMATS = {f.name: f for f in (F32, F64)}


def length(kind: FloatFormat, elements: int) -> int:
    """Words of 64 bits for that many elements."""
    return -(-elements // GROUP) * GROUP * kind.words


def length_in_planes(kind: FloatFormat, elements: int) -> int:
    """Words of 64 bits on a CPU."""
    return (elements + 1) * kind.words


def length_on_host(kind: FloatFormat, elements: int) -> int:
    """The same with the two float64 of each element that compiled kernels add to first."""
    return 2 * elements + length_in_planes(kind, elements)


def place(kind: FloatFormat, element: int, word: int) -> int:
    """Where a word of an element lies."""
    return element // GROUP * GROUP * kind.words + word * GROUP + element % GROUP


def pieces(kind: FloatFormat, value: Any) -> Iterator[tuple[int, int]]:
    """The words that a finite value adds to, and what; of another one the last word and its bit."""
    bits = int(np.asarray(value, kind.name).view(kind.bits))
    exponent, rest = bits >> kind.fraction & kind.most, bits & ((1 << kind.fraction) - 1)
    negative = bool(bits & kind.sign)
    if exponent == kind.most:
        yield kind.words - 1, NAN if rest else BELOW if negative else ABOVE
        return
    number = rest if not exponent else rest | 1 << kind.fraction
    word, shift = divmod(max(exponent, 1), WORD)
    whole, sign = number << shift, -1 if negative else 1
    if not kind.several:
        yield word, sign * whole
        return
    yield word, sign * (whole & 0xFFFFFFFF)
    yield word + 1, sign * (whole >> WORD)


def add(kind: FloatFormat, words: Any, element: int, value: Any) -> None:
    """Add a value to an element. words: those of all elements, of int64."""
    for word, piece in pieces(kind, value):
        if word == kind.words - 1:
            words[place(kind, element, word)] |= piece
            continue
        while piece:
            at = place(kind, element, word)
            total = int(words[at]) + piece
            wrapped = (total + 2**63) % 2**64 - 2**63
            words[at] = wrapped
            piece, word = (total - wrapped) >> 64, word + 2


def rounded(kind: FloatFormat, words: Any, element: int, before: Any) -> Any:
    """An element with its sum: `before` itself where the words are zero, else the nearest float to
    all of it, ties to even.
    """
    parts = [int(words[place(kind, element, w)]) for w in range(kind.words)]
    total, special = sum(p << WORD * n for n, p in enumerate(parts[:-1])), parts[-1]
    own = np.dtype(kind.name).type
    if not total and not special:
        return before
    for word, piece in pieces(kind, before):
        if word == kind.words - 1:
            special |= piece
        else:
            total += piece << WORD * word
    if special:
        return own(
            np.nan if special not in (ABOVE, BELOW) else np.inf if special == ABOVE else -np.inf
        )
    return _nearest(kind, total)


def _nearest(kind: FloatFormat, total: int) -> Any:
    """The float nearest to a number of units."""
    size = abs(total)
    drop = max(size.bit_length() - kind.significand, 1)
    kept, rest = size >> drop, size & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    kept += rest > half or (rest == half and kept & 1 == 1)
    bits = min((drop - 1 << kind.fraction) + kept, kind.most << kind.fraction) | (
        kind.sign if total < 0 else 0
    )
    return np.asarray(bits, kind.bits).view(kind.name)[()]
