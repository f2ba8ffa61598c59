"""Random numbers without a state, as ordinary Python: `lw.random(seed, step, ...)` of numbers and
NumPy arrays.

A number is a function of a seed and some counters, by Philox4x32-10: J. K. Salmon, M. A. Moraes, R.
O. Dror, D. E. Shaw, Parallel random
numbers: as easy as 1, 2, 3, SC11 (2011). What is made of its four words is computed in
integers, and rounded at the end alone: it has the same bits on every device.
`frontend/random_numbers.py` has the same functions in the kernel language.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.vectors import make_vector
from lanewise.support.checks import check_unmasked, shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError

Words = NDArray[np.uint64]  # 32 bits each, so that products fit
MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
MOST_WORDS = 4
MASK = np.uint64(0xFFFFFFFF)
# Polynomials through Chebyshev points, within 2^-31: log(1 + t) for t in [0, 1], in units of 2^-31,
# and of y = x^2 in [0, 1/4], in units of 2^-30, cos(x pi / 2) and sin(x pi / 2) / x. From the
# constant term on.
LOGARITHM = (
    0,
    2147483631,
    -1073740845,
    715805808,
    -536608764,
    427612517,
    -349020053,
    277709381,
    -200018874,
    118714816,
    -52040778,
    14529772,
    -1904374,
)
COSINE = (1073741824, -1324675879, 272375560, -22401992, 987048, -27060, 501)
SINE = (1686629713, -693598668, 85569306, -5026995, 172273, -3866, 63)
LOG_2 = 1488522236  # in units of 2^-31


def philox(
    counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]
) -> tuple[Words, Words, Words, Words]:
    """Philox4x32-10: four words of 32 bits of a counter of four words and a key of two, by element
    where they are arrays.
    """
    a, b, c, d = (np.asarray(x, np.uint64) for x in counter)
    first, second = (np.asarray(x, np.uint64) for x in key)
    for number in range(ROUNDS):
        if number:
            first = (first + np.uint64(WEYL[0])) & MASK
            second = (second + np.uint64(WEYL[1])) & MASK
        x, y = np.uint64(MULTIPLIERS[0]) * a, np.uint64(MULTIPLIERS[1]) * c
        a, b, c, d = _high(y) ^ b ^ first, y & MASK, _high(x) ^ d ^ second, x & MASK
    return a, b, c, d


def _high(x: Words) -> Words:
    return x >> np.uint64(32)


def words(
    name: str, seed: Any, counters: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The four words of a counter and the two of a key that a call `lw.name(seed, *counters)`
    has.
    """
    if not counters:
        raise ArgumentError(
            f"lw.{name} takes a seed and one counter or more, such as a step and an index, found a "
            "seed alone"
        )
    parts = [_integer(name, c) for c in counters]
    flat = [w for low, high, wide in parts for w in ((low, high) if wide else (low,))]
    if len(flat) > MOST_WORDS:
        raise ArgumentError(
            f"lw.{name}: the counters have {len(flat)} words of 32 bits, and {MOST_WORDS} are the "
            "most: integers of 64 bits have two, "
            "all others one"
        )
    low, high, _ = _integer(
        name, np.int64(seed) if type(seed) is int and -(2**63) <= seed < 2**63 else seed
    )
    return (*flat, *[np.uint64(0)] * (MOST_WORDS - len(flat))), (low, high)


def _whole(name: str, value: Any) -> Any:
    """An integer or an array of them."""
    check_unmasked(f"lw.{name}", value, ArgumentTypeError)
    try:
        array = np.asarray(value)
    except Exception as error:  # of the user's class, or of NumPy
        raise ArgumentTypeError(f"lw.{name} takes integers, found {shown(value)}") from error
    if isinstance(value, int) and not isinstance(value, bool):
        return array  # of any size: what does not fit is distinguished
    if array.dtype.kind not in "iu":
        raise ArgumentTypeError(f"lw.{name} takes integers, found {shown(value)}")
    return array


def _integer(name: str, value: Any) -> tuple[Any, Any, bool]:
    """The lower and the upper word of an integer, and whether both count: those of 64 bits have
    two.
    """
    array = _whole(name, value)
    if isinstance(value, int):
        wide = False
        if not -(2**31) <= value < 2**32:
            raise ArgumentError(
                f"lw.{name}: {value} does not fit into 32 bits: lw.i64({value}) has two words"
            )
    else:
        wide = array.dtype.itemsize == 8
    signed = array.astype(np.int64)
    bits = signed.view(np.uint64) if signed.ndim else np.uint64(int(signed) & 0xFFFF_FFFF_FFFF_FFFF)
    return bits & MASK, bits >> np.uint64(32), wide


# ------------------------------------------------------------ what is made of four words


def _unit(a: Words) -> Any:
    return (a >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)


def _horner(coefficients: tuple[int, ...], x: Any, bits: int) -> Any:
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = ((total * x) >> bits) + c
    return total


def _radius(word: Words) -> Any:
    """sqrt(-2 log u) of u = (word + 1) / 2^32."""
    x, shifts = word.astype(np.int64) + 1, np.zeros(np.shape(word), np.int64)
    for bits in (16, 8, 4, 2, 1, 1):
        small = x < 2 ** (33 - bits)
        x, shifts = np.where(small, x << bits, x), np.where(small, shifts + bits, shifts)
    log = _horner(LOGARITHM, (x - 2**32) >> 1, 31)
    return np.sqrt(np.maximum(shifts * LOG_2 - log, 0).astype(np.float32) * np.float32(2**-30))


def _circle(word: Words) -> tuple[Any, Any]:
    """Cosine and sine of word / 2^32 turns."""
    signed = word.astype(np.int64)
    quarter = ((signed + 2**29) & 0xFFFFFFFF) >> 30
    x = ((signed - (quarter << 30) + 2**31) & 0xFFFFFFFF) - 2**31
    y = (x * x) >> 30
    cosine, sine = _horner(COSINE, y, 30), (x * _horner(SINE, y, 30)) >> 30
    turned = np.where(quarter & 1, -sine, cosine), np.where(quarter & 1, cosine, sine)
    a, b = (np.where(quarter & 2, -t, t).astype(np.float32) * np.float32(2**-30) for t in turned)
    return a, b


def _vector(*components: Any) -> Any:
    """A vector of numbers, or an array whose last axis is that of the components."""
    return (
        np.stack(components, axis=-1)
        if np.ndim(components[0])
        else make_vector([c[()] for c in components])
    )


def _draw(name: str, seed: Any, counters: tuple[Any, ...]) -> tuple[Words, Words, Words, Words]:
    counter, key = words(name, seed, counters)
    try:
        np.broadcast_shapes(*(np.shape(w) for w in (*counter, *key)))
    except ValueError as error:
        raise ArgumentError(f"lw.{name}: seed and counters do not fit together: {error}") from error
    a, b, c, d = np.broadcast_arrays(*philox(counter, key))  # pyright: ignore[reportArgumentType]
    return a, b, c, d


def random(seed: int, *counters: Any) -> Any:
    """A float32 from 0 to below 1: one of 2^24 equally likely numbers.

    seed, counters: integers, such as `lw.random(seed, step, index)`. Equal ones give the same
    number on every device; a draw that differs in one counter is independent. Integers of 32
    bits are one word of Philox's counter, those of 64 bits (in NumPy, what `np.arange` makes) two;
    it has four.
    """
    return _unit(_draw("random", seed, counters)[0])[()]


def random4(seed: int, *counters: Any) -> Any:
    """Four independent float32 from 0 to below 1, a `vec4`, for the cost of one; the first is that
    of `random`.
    """
    return _vector(*map(_unit, _draw("random4", seed, counters)))


def drandom(seed: int, *counters: Any) -> Any:
    """A float64 from 0 to below 1: one of 2^53 equally likely numbers. See `random`."""
    a, b, _, _ = _draw("drandom", seed, counters)
    return ((((a << np.uint64(21)) | (b >> np.uint64(11))).astype(np.float64)) * 2.0**-53)[()]


def random_integer(low: Any, high: Any, seed: int, *counters: Any) -> Any:
    """An int32 from low to below high; all are equally likely, up to 1 in 2^32. If high is not
    above low, the result is low. See `random`.
    """
    a, b, _, _ = _draw("random_integer", seed, counters)
    first, last = (_whole("random_integer", x) for x in (low, high))
    for bound in (first, last):
        if bound.size and not (bound.min() >= -(2**31) and bound.max() < 2**31):
            raise ArgumentError(
                f"lw.random_integer: {shown(low)} to {shown(high)} are not integers of 32 "
                "bits with a sign"
            )
    try:
        np.broadcast_shapes(first.shape, last.shape, a.shape)
    except ValueError as error:
        raise ArgumentError(
            f"lw.random_integer: limits and counters do not fit together: {error}"
        ) from error
    count = ((last.astype(np.int64) - first.astype(np.int64)) & 0xFFFFFFFF).astype(np.uint64)
    place = _high(a * count + _high(b * count))
    drawn = (first.astype(np.int64) + place.astype(np.int64)).astype(np.int32)
    return np.where(last > first, drawn, first.astype(np.int32))[()]


def normal(seed: int, *counters: Any) -> Any:
    """A float32 of the standard normal distribution, by the formula of Box and Muller (1958).

    It is at most 6.66 away from 0. It is within 1e-6 of the formula; one in ten million, near 0, is
    within 5e-5. See `random`.
    """
    a, b, _, _ = _draw("normal", seed, counters)
    return (_radius(a) * _circle(b)[0])[()]


def normal4(seed: int, *counters: Any) -> Any:
    """Four independent numbers like those of `normal`, a `vec4`; the first is that of `normal`."""
    a, b, c, d = _draw("normal4", seed, counters)
    (x, y), (z, w), r, s = _circle(b), _circle(d), _radius(a), _radius(c)
    return _vector(r * x, r * y, s * z, s * w)


def unit_vector(seed: int, *counters: Any) -> Any:
    """A `vec3` of length 1; all directions are equally likely. See `random`."""
    a, b, _, _ = _draw("unit_vector", seed, counters)
    z = ((a.astype(np.int64) + 2**31) & 0xFFFFFFFF) - 2**31
    radius = np.sqrt((2**62 - z * z).astype(np.float32) * np.float32(2**-62))
    x, y = _circle(b)
    return _vector(radius * x, radius * y, z.astype(np.float32) * np.float32(2**-31))


def unit_vector2(seed: int, *counters: Any) -> Any:
    """A `vec2` of length 1; all directions are equally likely. See `random`."""
    return _vector(*_circle(_draw("unit_vector2", seed, counters)[0]))
