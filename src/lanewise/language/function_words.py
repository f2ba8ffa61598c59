"""What each scalar function is, for `help(lw.sqrt)` and the reference."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "sqrt": "The square root, rounded correctly; NaN below zero.",
        "rsqrt": "1 / sqrt(x) to a few units in the last place; NaN below zero, unspecified for "
        "zero, infinity and subnormal float32. `1 / lw.sqrt(x)` is exact to a rounding.",
        "cbrt": "The cube root, with the sign of its argument.",
        "exp": "e to the power of x; infinity where that is too large for the type.",
        "exp2": "2 to the power of x.",
        "expm1": "exp(x) - 1, without the loss of digits near zero.",
        "log": "The natural logarithm; minus infinity at zero, NaN below.",
        "log2": "The logarithm to base 2; minus infinity at zero, NaN below.",
        "log10": "The logarithm to base 10; minus infinity at zero, NaN below.",
        "log1p": "log(1 + x), without the loss of digits near zero; NaN below -1.",
        "sin": "The sine of an angle in radians, over the whole range; NaN of an infinity.",
        "cos": "The cosine of an angle in radians, over the whole range; NaN of an infinity.",
        "tan": "The tangent of an angle in radians, over the whole range; NaN of an infinity.",
        "asin": "The angle in radians, -pi/2 to pi/2, whose sine this is; NaN outside of -1 to 1.",
        "acos": "The angle in radians, 0 to pi, whose cosine this is; NaN outside of -1 to 1.",
        "atan": "The angle in radians, -pi/2 to pi/2, whose tangent this is.",
        "atan2": "The angle in radians, -pi to pi, of the point (x, y): `lw.atan2(y, x)`.",
        "sinh": "The hyperbolic sine.",
        "cosh": "The hyperbolic cosine.",
        "tanh": "The hyperbolic tangent, from -1 to 1.",
        "erf": "The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
        "erfc": "1 - erf(x), without the loss of digits where erf is near one.",
        "gamma": "The gamma function: (n - 1)! for an integer n > 0.",
        "pow": "x to the power of y: `lw.pow(x, y)`, also written `x ** y`; NaN for x < 0 and a "
        "y that is no integer.",
        "hypot": "sqrt(x^2 + y^2), without overflow on the way.",
        "fma": "`lw.fma(a, b, c)`: a * b + c, rounded once.",
        "mix": "`lw.mix(a, b, t)`: a + t (b - a), from a at t = 0 to b at t = 1.",
        "floor": "The largest integer that is not above x, as a float.",
        "ceil": "The smallest integer that is not below x, as a float.",
        "trunc": "The integer part of x, towards zero, as a float.",
        "round": "The nearest integer, of two the even one, as a float.",
        "abs": "The absolute value. Of the lowest integer of a type it is that integer.",
        "min": "The smaller one; NaN if either is NaN.",
        "max": "The larger one; NaN if either is NaN.",
        "clamp": "`lw.clamp(x, low, high)`: x, but not below low and not above high.",
        "isnan": "Whether x is NaN, as a boolean.",
        "isinf": "Whether x is an infinity of either sign, as a boolean.",
        "isfinite": "Whether x is neither NaN nor infinite, as a boolean.",
    }
)


def words_of(name: str) -> str:
    """The docstring of a function."""
    return (
        f"{WORDS[name]}\n\nOf numbers, or of vectors by component, in the type that its arguments "
        "have in common; in kernels, and in ordinary Python. Raises `ArgumentTypeError` for what "
        "is no number."
    )
