"""Kernels that apply every operator and intrinsic of a type to awkward values: extremes, signed zeros,
infinities, NaN.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.names import COUNT
from lanewise.ir.values import value_array
from lanewise.language import types as t
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32, Scalar
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.support import compile_kernel
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import bring, to_host

ARITHMETIC = "a + b; a - b; a * b; a // b; a % b"
COMMON = "a if a < b else b; lw.min(a, b); lw.max(a, b); lw.clamp(a, b, lw.max(a, b)); lw.select(a == b, a, b)"
TESTS = "a < b; a <= b; a == b; a != b; a > b; a >= b; not (a < b and b > a); a < b or a == b; (a < b) == (b < a)"
CONVERSIONS = "lw.i32(a < b); lw.f32(a == b); lw.f64(lw.f32(a)); lw.bool(a)"
BITS = "a & b; a | b; a ^ b; ~a; a << b; a >> b; a << (b & {mask}); (a & 255) << 3; a // 8; a % 8; a // 7; a % 7"
ROUNDING = "lw.floor(a); lw.ceil(a); lw.trunc(a); lw.isnan(a); lw.isinf(b); lw.isfinite(a)"
MATHEMATICS = (
    "lw.sqrt(a); lw.cbrt(a); lw.exp(a); lw.exp2(a); lw.log(a); lw.log2(a); lw.log10(a); lw.sin(a); lw.cos(a); lw.tan(a); lw.asin(a); "
    "lw.acos(a); lw.atan(a); lw.atan2(a, b); lw.sinh(a); lw.cosh(a); lw.tanh(a); lw.hypot(a, b); lw.pow(a, b); lw.rsqrt(lw.abs(a) + 0.5); "
    "lw.mix(a, b, 0.25); lw.fma(a, b, 1.0); a**3; a**-2; a**0.5"
)

EXACT: dict[Scalar, str] = {
    F32: f"{ARITHMETIC}; a / b; -a; lw.abs(a); {COMMON}; {TESTS}; {ROUNDING}; lw.f64(a) + lw.f64(b); lw.i32(a); lw.u32(a); lw.i64(b)",
    F64: f"{ARITHMETIC}; a / b; -a; lw.abs(a); {COMMON}; {TESTS}; {ROUNDING}; lw.f32(a); lw.i32(a); lw.u32(a); lw.i64(b)",
    I32: f"{ARITHMETIC}; -a; lw.abs(a); {COMMON}; {TESTS}; {CONVERSIONS}; {BITS.format(mask=31)}; lw.i64(a) * lw.i64(b); lw.u32(a)",
    U32: f"{ARITHMETIC}; -a; {COMMON}; {TESTS}; {CONVERSIONS}; {BITS.format(mask=31)}; lw.i64(a) * lw.i64(b); lw.i32(a)",
    I64: f"{ARITHMETIC}; -a; lw.abs(a); {COMMON}; {TESTS}; {CONVERSIONS}; {BITS.format(mask=63)}; lw.i32(a); lw.u32(a)",
}
CLOSE: dict[Scalar, str] = {F32: MATHEMATICS, F64: MATHEMATICS}

_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 7.0, 1e-3, 1e10, -1e30, np.inf, -np.inf, np.nan]
VALUES: dict[Scalar, list[Any]] = {
    F32: [*_FLOATS, 1e-40, 3.4e38],
    F64: [*_FLOATS, 1e-310, 1.7e308],
    I32: [0, 1, -1, 2, 3, -7, 8, 1000, 2**31 - 1, -(2**31), -(2**31) + 1, 12345678],
    U32: [0, 1, 2, 3, 7, 8, 1000, 2**31, 2**32 - 1, 2**31 - 1, 123456789],
    I64: [0, 1, -1, 2, 3, -7, 8, 1000, 2**63 - 1, -(2**63), 2**31, -(2**31), 2**32, 1234567890123],
}
TAME = [-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.0, 1.5, 3.0, 10.0]


def define(text: str, name: str, **known: Any) -> Any:
    """A function from text that `inspect` can read, as if from a file."""
    file = f"<{name} {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"lw": lw, **known}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def operator_kernel(kind: Scalar, expressions: str) -> Any:
    """An elementwise kernel of `a` and `b` with one result for each expression."""
    one = ", ".join(f"{_type(e, kind)}({e})" for e in expressions.split("; "))
    results = ", ".join(_type(e, kind) for e in expressions.split("; "))
    text = f"def operators(a: lw.{kind}, b: lw.{kind}) -> tuple[{results}]:\n    return {one}\n"
    return lw.elementwise(define(text, "operators"))


def _type(expression: str, kind: Scalar) -> str:
    """The type of a result: a conversion's own, a test's bool, else that of the operands."""
    if expression in TESTS.split("; ") or expression.startswith("lw.is"):
        return "lw.bool"
    for scalar in t.SCALARS:
        if expression.startswith(f"lw.{scalar}("):
            return f"lw.{scalar}"
    return f"lw.{kind}"


def operands(kind: Scalar, values: list[Any] | None = None) -> dict[str, Any]:
    """Every pair of awkward values."""
    values = values or VALUES[kind]
    a, b = np.meshgrid(np.array(values, kind.dtype), np.array(values, kind.dtype))
    return {"a": a.ravel(), "b": b.ravel()}


def interpreted(kernel: Any, given: dict[str, Any]) -> list[Any]:
    """What the interpreter says, one array for each result."""
    f = kernel.lowered.function
    rows = [call(f, dict(zip(given, pair, strict=True)))[0] for pair in zip(*given.values(), strict=True)]
    return [np.array(column, p.type.dtype) for column, p in zip(zip(*rows, strict=True), f.results, strict=True)]


def mismatches(expressions: str, given: dict[str, Any], found: Any, wanted: Any) -> list[str]:
    """Every difference in value, sign of zero or NaN, as text."""
    texts = []
    for e, f, w in zip(expressions.split("; "), found, wanted, strict=True):
        equal = f == w
        if f.dtype.kind == "f":
            either = any(n in e for n in ("lw.min(", "lw.max(", "lw.clamp("))  # of two zeros
            equal = equal & ((np.signbit(f) == np.signbit(w)) | either) | (f != f) & (w != w)
        for n in np.flatnonzero(~equal)[:2]:
            texts.append(f"{e}: a = {given['a'][n]}, b = {given['b'][n]}: found {f[n]}, wanted {w[n]}")
    return texts


def check_mathematics(kind: Scalar, device: str) -> None:
    """Every function close to the interpreter's on tame values."""
    kernel, given = operator_kernel(kind, CLOSE[kind]), operands(kind, TAME)
    with lw.device(device):
        found = [to_host(r) for r in kernel(**given)]
    rtol, atol = (3e-6, 1e-6) if kind == F32 else (1e-14, 1e-15)
    for e, f, w in zip(CLOSE[kind].split("; "), found, interpreted(kernel, given), strict=True):
        np.testing.assert_allclose(f, w, rtol=rtol, atol=atol, err_msg=e)


CLASSED = "; ".join(f"lw.isinf({e}); lw.isnan({e})" for e in MATHEMATICS.split("; ") if "rsqrt" not in e)
"""What a compiler that promises itself finite numbers gets wrong."""


def check_classes(kind: Scalar, device: str) -> None:
    """Every function is infinite, or no number, where the interpreter's is."""
    kernel, given = operator_kernel(kind, CLASSED), operands(kind, [*TAME, np.inf, -np.inf, np.nan, -0.0])
    with lw.device(device):
        found = [to_host(r) for r in kernel(**given)]
    assert mismatches(CLASSED, given, found, interpreted(kernel, given)) == []


LITERALS = [
    (F32, (0.0, -0.0, 1.0, -1.5, 1e30, -1e30, 1e-45, 1.1754942e-38, 3.4028234663852886e38, float("inf"), float("-inf"), float("nan"), 0.1, 1e22, 16777217.0)),
    (F64, (0.0, -0.0, 1.0, -1.5, 1e300, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 0.1, 1e22)),
    (I32, (0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1)),
    (U32, (0, 1, 2**31, 2**32 - 1)),
    (I64, (0, 1, -1, 2**31, -(2**31), 2**63 - 1, -(2**63), -(2**63) + 1)),
    (BOOL, (True, False)),
]  # fmt: skip


def literal_kernel(kind: Scalar, values: tuple[Any, ...], index: Scalar = I64) -> ir.Kernel:
    """`result[i] = literal`, twice: as it stands, and as the right operand of an operator that binds tightly."""
    results = tuple(ir.Parameter(f"result.{n}", kind) for n in range(2 * len(values)))
    plain = tuple(ir.Literal(v, kind) for v in values)
    x = ir.Local("x", kind)
    second = tuple(
        ir.Select(x, e, ir.Unary("not", e, BOOL), BOOL) if kind == BOOL else ir.Binary("-", x, e, kind) for e in plain
    )
    f = ir.Function("literals", (ir.Parameter("x", kind),), results, (ir.Return((*plain, *second)),))
    source = value_array("x", kind, written=False)
    arrays = [value_array(f"$out{n}", kind, written=True) for n in range(len(results))]
    i = ir.Local("$i", index)
    names = tuple(f"$r{n}" for n in range(len(results)))
    body = (
        ir.LoadRecord("x", i, (("value", "x"),)), ir.Apply(f, (x,), names),
        *(ir.StoreRecord(a.name, i, (("value", ir.Local(n, kind)),)) for a, n in zip(arrays, names, strict=True)),
    )  # fmt: skip
    loop = ir.Parallel("$i", ir.Local(COUNT, index), body)
    return ir.Kernel("literals", ELEMENTWISE, (source, *arrays), (), (ir.Parameter(COUNT, index),), (loop,))


def check_literals(kind: Scalar, values: tuple[Any, ...], device: str) -> None:
    """Compiled code returns every literal with every bit."""
    cuda = device.startswith("cuda")
    plan = Plan(block=32).filled(NEUTRAL) if cuda else NEUTRAL
    executable = compile_kernel(literal_kernel(kind, values, I32 if cuda else I64), plan, device)
    arrays = {a.name: bring(np.ones(1, kind.dtype), device) for a in executable.program.reference.arrays}
    executable.tasks.bound({n: bind_value_array(a, kind) for n, a in arrays.items()}, {COUNT: 1})()
    _, *found = (to_host(a)[0] for a in arrays.values())
    with np.errstate(all="ignore"):
        wanted = np.array(values, kind.dtype)
        second = wanted if kind == BOOL else np.ones(1, kind.dtype) - wanted
    np.testing.assert_array_equal(found, np.concatenate((wanted, second)))
    if kind.is_float:
        np.testing.assert_array_equal(np.signbit(found[: len(values)]), np.signbit(wanted))
