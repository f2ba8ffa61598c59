"""Exact sums become floats on a CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

from lanewise import exact_sums
from lanewise.runtime import cpu

GRAIN = 1_024  # elements
TEXT = """import numpy as np
from numba import int64 as i8
from numba import njit
from numba import uint64 as u8

WORDS, LIMBS, SIGNIFICAND, MOST = {words}, {words} - 1, {significand}, {most}


@njit(error_model="numpy", nogil=True)
def add(words, word, piece):  # words of 64 bits, one for every 2^32
    while piece:
        before = words[word]
        after = i8(u8(before) + u8(piece))
        words[word] = after
        if (before ^ after) & (piece ^ after) >= 0:
            return
        piece = i8(-1) if piece < 0 else i8(1)
        word += 2


@njit(error_model="numpy", nogil=True)
def add_float(words, bits):
    rest = bits & ((i8(1) << i8(SIGNIFICAND - 1)) - i8(1))
    exponent, negative = i8(bits) >> i8(SIGNIFICAND - 1) & i8(MOST), bits < 0
    if exponent == MOST:
        return {nan} if rest else {below} if negative else {above}
    place = exponent if exponent else i8(1)
    number, shift = rest | i8(1) << i8(SIGNIFICAND - 1) if exponent else rest, place & i8(31)
    low, high = i8(u8(number) << u8(shift) & u8(0xFFFFFFFF)), number >> (i8(32) - shift)
    add(words, place >> 5, -low if negative else low)
    add(words, (place >> 5) + 1, -high if negative else high)
    return 0


@njit(error_model="numpy", nogil=True)
def rounded(digits):  # the float that is nearest to words of 64 bits, as its bits; overwrites them
    carry = i8(0)
    for w in range(LIMBS):
        low = (digits[w] & i8(0xFFFFFFFF)) + carry
        carry = (digits[w] >> i8(32)) + (low >> i8(32))
        digits[w] = low & i8(0xFFFFFFFF)
    negative, top, carry = carry < 0, -1, i8(1)
    for w in range(LIMBS):
        if negative:
            low = (~digits[w] & i8(0xFFFFFFFF)) + carry
            digits[w] = low & i8(0xFFFFFFFF)
            carry = low >> i8(32)
        if digits[w]:
            top = w
    if top < 0:
        return i8(0)
    size = 32 * top
    while size < 32 * top + 32 and digits[top] >> i8(size - 32 * top):
        size += 1
    drop = max(size - SIGNIFICAND, 1)
    word, shift = drop >> 5, drop & 31
    kept = u8(digits[word]) >> u8(shift)
    if word + 1 < LIMBS:
        kept |= u8(digits[word + 1]) << u8(32 - shift)
    if shift and word + 2 < LIMBS:
        kept |= u8(digits[word + 2]) << u8(64 - shift)
    half = drop - 1
    rest = digits[half >> 5] & ((i8(1) << i8(half & 31)) - i8(1)) != 0
    for w in range(half >> 5):
        rest = rest or digits[w] != 0
    if digits[half >> 5] >> i8(half & 31) & i8(1) and (rest or kept & u8(1)):
        kept += u8(1)
    number = (i8(drop - 1) << i8(SIGNIFICAND - 1)) + i8(kept)
    number = min(number, i8(MOST) << i8(SIGNIFICAND - 1))
    return number | i8({sign}) if negative else number


@njit(error_model="numpy", nogil=True)
def exact_sums_kernel(words, elements, begin, end):
    digits = np.empty(LIMBS, np.int64)
    count = len(words) // WORDS - 1
    used, planes = np.empty(WORDS, np.int64), 0  # of those but the last, which is for what is no finite number
    for w in range(LIMBS):
        if words[count * WORDS + w]:
            used[planes] = w
            planes += 1
    specials = words[count * WORDS + LIMBS] != 0
    for e in range(begin, end):
        special, any_ = words[count * LIMBS + e] if specials else i8(0), i8(0)
        for n in range(planes):
            any_ |= words[count * used[n] + e]
        if not any_ and not special:
            continue
        digits[:] = 0
        for n in range(planes):
            digits[used[n]] = words[count * used[n] + e]
            words[count * used[n] + e] = 0
        if special:
            words[count * LIMBS + e] = 0
        special |= add_float(digits, i8(elements[e]))
        infinite = i8(MOST) << i8(SIGNIFICAND - 1)
        if special == {above}:
            elements[e] = infinite
        elif special == {below}:
            elements[e] = infinite | i8({sign})
        elif special:
            elements[e] = infinite | i8(1) << i8(SIGNIFICAND - 2)
        else:
            elements[e] = rounded(digits)
"""


@cache
def text_of(name: str) -> str:
    """The text for a type of floats, by NumPy's name of it."""
    kind = exact_sums.FORMATS[name]
    return TEXT.format(
        words=kind.words, significand=kind.significand, most=kind.most,
        sign=kind.sign if kind.sign < 2**63 else -(2**63), nan=exact_sums.NAN, above=exact_sums.ABOVE, below=exact_sums.BELOW,
    ).replace("-9223372036854775808", "-9223372036854775807 - 1")  # fmt: skip


def close(words: Any, array: Any) -> None:
    """Add the words to the elements of an array of NumPy, and make them zero again."""
    kernel: Any = cpu.own_kernel(text_of(array.dtype.name), "exact_sums")
    signed = array.view("int32" if array.itemsize == 4 else "int64")
    cpu.run_range(kernel, (words, signed), array.size, GRAIN)
    words[-exact_sums.FORMATS[array.dtype.name].words :] = 0
