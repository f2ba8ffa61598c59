"""Random numbers in kernels: the functions of `lanewise.language.random_numbers` in the kernel
language, to the bit.

All of it is arithmetic of integers, and roundings of single conversions, products and square
roots: no product of floats is added to anything, which a compiler might fuse.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from lanewise.frontend.helpers import HelperFunction, function
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number, Value
from lanewise.ir import nodes as ir
from lanewise.language import random_numbers as draws
from lanewise.language import types as t
from lanewise.language import values as v

i64, u32 = v.i64, v.u32


@function
def upper(a: v.i64) -> v.u32:
    """The upper word of an integer."""
    return u32(a >> 32)


@function
def philox(
    a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32
) -> tuple[v.u32, v.u32, v.u32, v.u32]:
    """Four words of a counter and a key: Philox4x32-10."""
    for number in range(10):
        if number > 0:
            low += 0x9E3779B9
            high += 0xBB67AE85
        x, y = i64(a) * 0xD2511F53, i64(c) * 0xCD9E8D57
        a, b, c, d = u32(y >> 32) ^ b ^ low, u32(y), u32(x >> 32) ^ d ^ high, u32(x)
    return a, b, c, d


@function
def unit(a: v.u32) -> v.f32:
    """From 0 on and below 1."""
    return v.f32(a >> 8) * 2.0**-24


@function
def scaled_31(a: v.i32, b: v.i32) -> v.i32:
    """Their product over 2^31, rounded down."""
    return v.i32((i64(a) * i64(b)) >> 31)


@function
def scaled_30(a: v.i32, b: v.i32) -> v.i32:
    """Their product over 2^30, rounded down."""
    return v.i32((i64(a) * i64(b)) >> 30)


@function
def radius(word: v.u32) -> v.f32:
    """sqrt(-2 log u) of u = (word + 1) / 2^32; the polynomial is `random_numbers.LOGARITHM`."""
    x, shifts = i64(word) + 1, 0
    if x < 2**17:
        x, shifts = x << 16, shifts + 16
    if x < 2**25:
        x, shifts = x << 8, shifts + 8
    if x < 2**29:
        x, shifts = x << 4, shifts + 4
    if x < 2**31:
        x, shifts = x << 2, shifts + 2
    if x < 2**32:
        x, shifts = x << 1, shifts + 1
    if x < 2**32:
        x, shifts = x << 1, shifts + 1
    t = v.i32((x - 2**32) >> 1)
    y = 14529772 + scaled_31(-1904374, t)
    y = -52040778 + scaled_31(y, t)
    y = 118714816 + scaled_31(y, t)
    y = -200018874 + scaled_31(y, t)
    y = 277709381 + scaled_31(y, t)
    y = -349020053 + scaled_31(y, t)
    y = 427612517 + scaled_31(y, t)
    y = -536608764 + scaled_31(y, t)
    y = 715805808 + scaled_31(y, t)
    y = -1073740845 + scaled_31(y, t)
    y = 2147483631 + scaled_31(y, t)
    log = i64(shifts) * 1488522236 - i64(scaled_31(y, t))
    return v.sqrt(v.f32(v.maximum(log, 0)) * 2.0**-30)


@function
def circle(word: v.u32) -> tuple[v.f32, v.f32]:
    """Cosine and sine of word / 2^32 turns; the polynomials are `random_numbers.COSINE` and
    `SINE`.
    """
    quarter = (word + 0x20000000) >> 30
    x = v.i32(word - (quarter << 30))
    y = scaled_30(x, x)
    cosine = -27060 + scaled_30(501, y)
    cosine = 987048 + scaled_30(cosine, y)
    cosine = -22401992 + scaled_30(cosine, y)
    cosine = 272375560 + scaled_30(cosine, y)
    cosine = -1324675879 + scaled_30(cosine, y)
    cosine = 1073741824 + scaled_30(cosine, y)
    sine = -3866 + scaled_30(63, y)
    sine = 172273 + scaled_30(sine, y)
    sine = -5026995 + scaled_30(sine, y)
    sine = 85569306 + scaled_30(sine, y)
    sine = -693598668 + scaled_30(sine, y)
    sine = 1686629713 + scaled_30(sine, y)
    sine = scaled_30(sine, x)
    if (quarter & 1) == 1:
        cosine, sine = -sine, cosine
    if (quarter & 2) == 2:
        cosine, sine = -cosine, -sine
    return v.f32(cosine) * 2.0**-30, v.f32(sine) * 2.0**-30


@function
def random(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.f32:
    """`lw.random` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    return unit(a)


@function
def random4(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.vec4:
    """`lw.random4` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    return v.vec4(unit(a), unit(b), unit(c), unit(d))


@function
def drandom(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.f64:
    """`lw.drandom` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    return v.f64((i64(a) << 21) | i64(b >> 11)) * 2.0**-53


@function
def random_integer(
    first: v.i32, last: v.i32, a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32
) -> v.i32:
    """`lw.random_integer` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    count = i64(u32(last - first))
    rest = u32((i64(b) * count) >> 32)
    product = i64(a) * count  # below 2^64: its upper half is what is kept
    carry = 1 if u32(product) + rest < rest else 0
    place = v.i32(u32(product >> 32) + u32(carry))
    return first + place if last > first else first


@function
def normal(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.f32:
    """`lw.normal` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    x, _ = circle(b)
    return radius(a) * x


@function
def normal4(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.vec4:
    """`lw.normal4` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    x, y = circle(b)
    z, w = circle(d)
    r, s = radius(a), radius(c)
    return v.vec4(r * x, r * y, s * z, s * w)


@function
def unit_vector(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.vec3:
    """`lw.unit_vector` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    z = i64(v.i32(a))
    r = v.sqrt(v.f32(4611686018427387904 - z * z) * 2.0**-62)
    x, y = circle(b)
    return v.vec3(r * x, r * y, v.f32(z) * 2.0**-31)


@function
def unit_vector2(a: v.u32, b: v.u32, c: v.u32, d: v.u32, low: v.u32, high: v.u32) -> v.vec2:
    """`lw.unit_vector2` of the words of a counter and a key."""
    a, b, c, d = philox(a, b, c, d, low, high)
    x, y = circle(a)
    return v.vec2(x, y)


_LANGUAGE: dict[Callable[..., Any], HelperFunction] = {
    draws.random: random,
    draws.random4: random4,
    draws.drandom: drandom,
    draws.random_integer: random_integer,
    draws.normal: normal,
    draws.normal4: normal4,
    draws.unit_vector: unit_vector,
    draws.unit_vector2: unit_vector2,
}


def drawing(python: Any) -> Callable[[Scope, list[Value], ast.AST], Value] | None:
    """How a call of a function of `lanewise.language.random_numbers` is lowered; None of others."""
    try:
        helper = _LANGUAGE.get(python)
    except TypeError:  # it cannot be hashed
        return None
    if helper is None:
        return None
    bounds = 2 if helper is random_integer else 0

    def lowered(scope: Scope, arguments: list[Value], node: ast.AST) -> Value:
        name = helper.__name__
        wanted = "a seed and one counter or more, such as a step and an index"
        if len(arguments) < bounds + 2:
            plural = "" if len(arguments) == 1 else "s"
            more = "the lowest and the first too large number, " if bounds else ""
            raise scope.error(
                f"lw.{name} takes {more}a seed and counters",
                node,
                found=f"{len(arguments)} argument{plural}",
                wanted=more + wanted,
            )
        numbers = [_whole(scope, name, a, node, wide=n == bounds) for n, a in enumerate(arguments)]
        seed = _words(scope, numbers[bounds], node)
        counters = [
            w
            for n in numbers[bounds + 1 :]
            for w in _words(scope, n, node)[: 2 if n.scalar == t.I64 else 1]
        ]
        if len(counters) > draws.MOST_WORDS:
            raise scope.error(
                f"the counters of lw.{name} have up to {draws.MOST_WORDS} words of 32 bits",
                node,
                found=f"{len(counters)} words: integers of 64 bits have two, all others one",
                wanted=f"{draws.MOST_WORDS} at most",
                hint="lw.i32(x) of a counter that is small",
            )
        where = scope.location(node)
        zero = Number(t.U32, (ir.Literal(0, t.U32, where),))
        limits: list[Value] = [scope.settle(n, t.I32) for n in numbers[:bounds]]
        return scope.call_helper(
            scope,
            helper,
            [*limits, *counters, *[zero] * (draws.MOST_WORDS - len(counters)), *seed],
            node,
        )

    return lowered


def _whole(scope: Scope, name: str, value: Value, node: ast.AST, *, wide: bool) -> Number:
    """An integer with a type: i32 or u32 for one of Python, if it fits. wide: of a seed, which
    has two words whatever its type.
    """
    if not isinstance(value, Number) or value.is_vector or not (value.scalar.is_integer):
        raise scope.error(
            f"lw.{name} takes integers", node, found=value.describe(), wanted="integers"
        )
    if value.constant is None:
        return scope.bind_number(scope.settle(value, t.computed(value.scalar)))
    number = int(value.constant)
    if wide and number not in range(-(2**31), 2**32) and number in range(-(2**63), 2**63):
        return scope.settle(value, t.I64)
    if not -(2**31) <= number < 2**32:
        raise scope.error(
            "this number does not fit into 32 bits",
            node,
            found=str(number),
            wanted="32 bits",
            hint=f"lw.i64({number}), which has two words",
        )
    return scope.settle(value, t.I32 if number < 2**31 else t.U32)


def _words(scope: Scope, number: Number, node: ast.AST) -> list[Number]:
    """The lower and the upper word of an integer."""
    low = scope.settle(number, t.U32, explicit=True)
    wide = scope.settle(number, t.I64, explicit=True)
    high = scope.call_helper(scope, upper, [wide], node)
    assert isinstance(high, Number)
    return [low, high]
