"""Functions of mathematics on a CPU: their errors over the whole range, what they give where numbers end, and the same
bits for numbers and for registers of every width.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda_expressions import cuda_expression
from lanewise.ir import nodes as ir
from lanewise.language.types import F32, F64, Scalar
from lanewise.planning.plan import Plan
from lanewise.runtime import llvm
from lanewise.runtime.mathematics import library
from lanewise.runtime.nvrtc import compile_cubin

TYPES = {"f32": ("float", np.float32), "f64": ("double", np.float64)}
# the most units in the last place, for float32 and float64
MOST = {
    "exp": (0.91, 0.91), "exp2": (1.0, 1.0), "expm1": (2.0, 2.0), "log": (0.91, 0.91), "log2": (1.5, 1.0), "log10": (1.5, 1.0),
    "log1p": (1.5, 1.5), "pow": (0.51, 1.0), "sin": (1.0, 1.0), "cos": (1.0, 1.0), "tan": (2.5, 2.5), "asin": (1.5, 1.5),
    "acos": (1.5, 1.5), "atan": (2.0, 2.0), "atan2": (2.0, 2.0), "sinh": (2.0, 2.0), "cosh": (1.5, 1.5), "tanh": (3.0, 2.5),
    "erf": (1.5, 1.5), "erfc": (3.5, 4.0), "cbrt": (1.5, 1.0), "hypot": (0.51, 1.0),
}  # fmt: skip
IN_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
inf, nan = math.inf, math.nan
SPECIAL = (-inf, -0.0, 0.0, inf, nan)
# at -inf, -0, 0, inf
AT_ENDS = {
    "exp": (0, 1, 1, inf), "exp2": (0, 1, 1, inf), "expm1": (-1, -0.0, 0, inf), "log": (nan, -inf, -inf, inf), "log2": (nan, -inf, -inf, inf),
    "log10": (nan, -inf, -inf, inf), "log1p": (nan, -0.0, 0, inf), "sin": (nan, -0.0, 0, nan), "cos": (nan, 1, 1, nan), "tan": (nan, -0.0, 0, nan),
    "asin": (nan, -0.0, 0, nan), "acos": (nan, math.pi / 2, math.pi / 2, nan), "atan": (-math.pi / 2, -0.0, 0, math.pi / 2), "sinh": (-inf, -0.0, 0, inf),
    "cosh": (inf, 1, 1, inf), "tanh": (-1, -0.0, 0, 1), "erf": (-1, -0.0, 0, 1), "erfc": (2, 1, 1, 0), "cbrt": (-inf, -0.0, 0, inf),
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
EACH = pytest.mark.parametrize("name", library.FUNCTIONS)
FORMATS = pytest.mark.parametrize("letters", TYPES)


@cache
def function(name: str, letters: str, count: int, scales: bool = True) -> Callable[..., Any]:
    """Of arrays, `count` numbers at once; 0: a loop of which LLVM makes vectors."""
    t = TYPES[letters][0]
    v = f"<{count} x {t}>" if count else t
    two = name in library.WITH_TWO
    full = f"lw.{name}.{f'v{count}' if count else ''}{letters}"
    text = f"""{library.declaration(name, count, letters)}
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at.a = getelementptr {t}, ptr %a, i64 %i
  %at.b = getelementptr {t}, ptr %b, i64 %i
  %at.out = getelementptr {t}, ptr %out, i64 %i
  %x = load {v}, ptr %at.a, align 4
  %y = load {v}, ptr %at.b, align 4
  %made = call {v} @{full}({v} %x{f", {v} %y" * two})
  store {v} %made, ptr %at.out, align 4
  %next = add nsw nuw i64 %i, {count or 1}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
    has_scaling, llvm.has_scaling = llvm.has_scaling, lambda: scales and has_scaling()
    try:
        content = llvm.machine_code(text)
    finally:
        llvm.has_scaling = has_scaling
    made = llvm._llvmlite()[0].JITLibraryBuilder().add_object_img(content).add_current_process().export_symbol("f")
    tracker = made.link(llvm._jit(), f"mathematics.{next(llvm._NUMBERS)}")
    compiled = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(tracker["f"])

    def call(x: Any, y: Any = None) -> Any:
        out = np.empty_like(x)
        compiled(x.ctypes.data, (x if y is None else y).ctypes.data, out.ctypes.data, len(x))
        return out

    call.tracker = tracker  # type: ignore[attr-defined]  # which its code is there as long as
    return call


def arguments(name: str, letters: str) -> tuple[Any, ...]:
    """Numbers of all sizes, near the ends of functions, and multiples of a quarter of a circle; a multiple of 64 of them."""
    dtype, rng = TYPES[letters][1], np.random.default_rng(len(name))
    bits = 8 * np.dtype(dtype).itemsize
    parts = [np.arange(0, 1 << 32, 29989, dtype=np.uint32).view(np.float32)] if bits == 32 else []
    parts.append(rng.integers(0, 1 << bits, 8000, np.uint32 if bits == 32 else np.uint64).view(dtype))
    parts += [rng.standard_normal(2000).astype(dtype) * dtype(s) for s in (1e-6, 0.01, 0.5, 1, 3, 30, 300, 1e4, 1e7)]
    parts += [(rng.integers(-(10**6), 10**6, 2000) * (math.pi / 2)).astype(dtype), np.array(SPECIAL, dtype)]
    parts.append(np.array([6381956970095103 * 2.0**797, 0.5, 1, -1, 5e-324, 1e-40, 1e-310, 3.4e38], dtype))
    x = np.concatenate(parts)
    x = x[-(len(x) // 64 * 64) :]
    if name not in library.WITH_TWO:
        return (x,)
    y = rng.permutation(x)
    if name == "pow":  # half of them with a result that a float holds
        half = len(x) // 2
        x[:half] = np.abs(x[:half])
        with np.errstate(all="ignore"):
            y[:half] = rng.uniform(*((-152, 130) if bits == 32 else (-1080, 1030)), half) / np.log2(
                x[:half].astype(np.float64)
            )
    return x, y


def exact(name: str, letters: str, *given: Any) -> Any:
    wide = np.float64 if letters == "f32" else np.longdouble
    if name in ("erf", "erfc"):
        return np.array([getattr(math, name)(float(v)) for v in given[0]])
    with np.errstate(all="ignore"):
        return getattr(np, IN_NUMPY.get(name, name))(*(x.astype(wide) for x in given))


def units(found: Any, wanted: Any) -> float:
    """The largest distance, in units of the last place; infinite where one is a number or finite and the other is not."""
    rounded = wanted.astype(found.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.abs(wanted))[1] - 1, info.minexp)
        distance = np.abs(found.astype(wanted.dtype) - wanted) / np.ldexp(wanted.dtype.type(1), exponent - info.nmant)
    return float(np.where(same & ~np.isfinite(distance), 0, np.where(np.isnan(distance), inf, distance)).max())


@EACH
@FORMATS
def test_errors_over_the_whole_range(name: str, letters: str) -> None:
    if letters == "f64" and np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long double has no more bits than double here")
    if letters == "f64" and name in ("erf", "erfc"):
        rows = [
            r.split() for r in (Path(__file__).parent / "error_functions.txt").read_text(encoding="utf-8").splitlines()
        ]
        x, high, low = (np.array([float.fromhex(r[n]) for r in rows if r[0] == name]) for n in (1, 2, 3))
        padded = np.resize(x, -(-len(x) // 64) * 64)
        found, wanted = function(name, letters, 0)(padded)[: len(x)], high.astype(np.longdouble) + low
        assert units(found, wanted) < MOST[name][1]
        return
    given = arguments(name, letters)
    assert units(function(name, letters, 0)(*given), exact(name, letters, *given)) < MOST[name][letters == "f64"]


WIDTHS = [
    ((0, True), (4, True), (16, False)),
    pytest.param(
        ((2, False), (2, True), (8, True), (8, False), (16, True), (32, True), (32, False)), marks=pytest.mark.slow
    ),
]


@pytest.mark.grid(every=8)
@EACH
@FORMATS
@pytest.mark.parametrize("widths", WIDTHS, ids=("some", "others"))
def test_numbers_and_registers_of_every_width_have_the_same_bits(
    name: str, letters: str, widths: tuple[tuple[int, bool], ...]
) -> None:
    given = arguments(name, letters)
    first = function(name, letters, 0, False)(*given)
    number = ~np.isnan(first)
    for count, scales in widths:
        found = function(name, letters, count, scales)(*given)
        np.testing.assert_array_equal(np.isnan(found), ~number)
        np.testing.assert_array_equal(found[number], first[number], err_msg=f"{count} {scales}")
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(first[number]))


def test_neighbouring_calls_become_one_of_twice_as_many_numbers() -> None:
    call, power = (
        "call <8 x double> @lw.exp.v8f64(<8 x double> {})",
        "tail call contract <4 x float> @lw.pow.v4f32({}) #3",
    )
    two = f"  %1 = {call.format('%a')}\n  %2 = {call.format('%b')}"
    joined = library.side_by_side(two).splitlines()
    assert [line.split(" = ")[0].strip() for line in joined] == ["%side.by.side.1.0", "%side.by.side.1", "%1", "%2"]
    assert "shufflevector <8 x double> %a, <8 x double> %b" in joined[0]
    assert joined[1].endswith("call <16 x double> @lw.exp.v16f64(<16 x double> %side.by.side.1.0)")
    powers = [power.format(f"<4 x float> {x}, <4 x float> splat (float 2.5)") for x in ("%a", "%b")]
    joined = library.side_by_side(f"  %p = {powers[0]}\n  %q = {powers[1]}").splitlines()
    assert "<4 x float> splat (float 2.5), <4 x float> splat (float 2.5)" in joined[1]
    for apart in (
        f"  %1 = {call.format('%a')}\n  %2 = {call.format('%1')}",  # waits for the first
        two.replace("exp", "log", 1),
        two.replace("\n", "\n  store i32 1, ptr %p\n"),
        two.replace("8 x", "16 x").replace("v8", "v16"),  # larger than two registers
    ):
        assert library.side_by_side(apart) == apart
    three = f"{two}\n  %3 = {call.format('%2')}"
    assert library.side_by_side(three).count("@lw.exp.v16f64") == 1


@lw.elementwise
def each(x: lw.f32) -> lw.f32:
    return lw.sin(x) + lw.log(lw.exp(x) + lw.tanh(x) ** 2.0)


class Number(lw.Record):
    x: lw.f32


@lw.pairwise
def each_of_pairs(a: Number, b: Number) -> lw.f32:
    return lw.sin(b.x) + lw.log(lw.exp(b.x) + lw.tanh(b.x) ** 2.0)


@lw.threadwise
def each_in_lanes(i: lw.index, x: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[i] = lw.sin(x[i]) + lw.log(lw.exp(x[i]) + lw.tanh(x[i]) ** 2.0)


@pytest.mark.parametrize("count", [1, 7, 100])
def test_patterns_and_lanes_have_the_same_bits(count: int) -> None:
    x = np.linspace(-3, 70000, count, dtype=np.float32)
    wanted = each(x)
    for plan in (Plan(across=4), Plan(across=16), Plan(across=0)):
        out = np.empty_like(x)
        each_in_lanes(x, out, grid=count, plan=plan)
        np.testing.assert_array_equal(out, wanted)
    for n in range(count):  # sums of one
        pair = each_of_pairs(Number.array(x=x[:1]), Number.array(x=x[n : n + 1]))
        assert pair[0] == wanted[n]


@pytest.mark.parametrize("name", AT_ENDS)
@FORMATS
def test_where_numbers_end(name: str, letters: str) -> None:
    dtype = TYPES[letters][1]
    wanted = np.array([*AT_ENDS[name], nan], dtype)
    for lane in range(16):  # each special value in each lane, beside numbers of all kinds
        x = np.resize(np.array([0.3, -2.5, 1e30, 7.0], dtype), 16 * len(SPECIAL))
        x[lane::16] = SPECIAL
        found = function(name, letters, 16)(x)[lane::16]
        np.testing.assert_array_max_ulp(found[:4][wanted[:4] == wanted[:4]], wanted[:4][wanted[:4] == wanted[:4]], 1)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


@FORMATS
@pytest.mark.parametrize("name", sorted(library.WITH_TWO))
def test_pairs_of_special_numbers(name: str, letters: str) -> None:
    dtype = TYPES[letters][1]
    some = [*SPECIAL, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-30, 1e30, -1e30, 2.5, 2.0**60]
    x, y = (
        np.resize(a.ravel(), -(-a.size // 64) * 64) for a in np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    )
    found, wanted = function(name, letters, 16)(x, y), exact(name, "f32", x, y).astype(dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    number = ~np.isnan(wanted)
    np.testing.assert_array_max_ulp(found[number], wanted[number], 2)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "cbrt"])
@FORMATS
def test_odd_functions_are_odd(name: str, letters: str) -> None:
    (x,) = arguments(name, letters)
    call = function(name, letters, 0)
    np.testing.assert_array_equal(call(-x), -call(x))


@pytest.mark.parametrize("name", sorted(library.FUNCTIONS.keys() - {"sin", "cos", "tan"}))
def test_a_loop_calls_nothing_but_for_unusual_numbers(name: str) -> None:
    two = ", float %x" * (name in library.WITH_TWO)
    text = f"""{library.declaration(name, 0, "f32")}
define void @f(ptr noalias %a, ptr noalias %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %a, i64 %i
  %to = getelementptr float, ptr %out, i64 %i
  %x = load float, ptr %from
  %made = call float @lw.{name}.f32(float %x{two})
  store float %made, ptr %to
  %next = add nsw nuw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
    assembly = llvm.assembly(text)
    if "+fma" in llvm._host()[2].split(","):  # pyright: ignore[reportPrivateUsage]
        called = re.findall(r"\bcall\w*\s+(\S+)", assembly)
        assert all(re.match(rf"lw\.{name}_unusual\.", f) for f in called)
        assert "ymm" in assembly or "zmm" in assembly


@lw.elementwise
def others(x: lw.f64) -> lw.dvec2:
    return lw.dvec2(lw.gamma(x), lw.round(x))


def test_gamma_and_the_nearest_whole_number() -> None:
    x = np.array([-inf, -2.5, -2.0, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 5.0, 171.0, 172.0, inf, nan])
    gamma, whole = np.asarray(others(x)).T
    wanted = np.array([lw.gamma(v) for v in x])
    np.testing.assert_array_equal(np.isnan(gamma), np.isnan(wanted))
    np.testing.assert_allclose(gamma, wanted, rtol=1e-14)
    np.testing.assert_array_equal(whole, np.rint(x))
    np.testing.assert_array_equal(np.signbit(whole), np.signbit(np.rint(x)))


def test_the_error_functions_in_a_kernel_and_its_gradient() -> None:
    def bell(x: lw.f32) -> lw.f32:
        return lw.erf(x) + 2.0 * lw.erfc(x) + lw.expm1(x) - lw.log1p(x)

    x = np.linspace(0.01, 3, 50, dtype=np.float32)
    wide = x.astype(np.float64)
    wanted = [math.erf(v) + 2 * math.erfc(v) + math.expm1(v) - math.log1p(v) for v in wide]
    kernel = lw.elementwise(bell)
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-6)
    slope = -2 / math.sqrt(math.pi) * np.exp(-(wide**2)) + np.exp(wide) - 1 / (1 + wide)
    np.testing.assert_allclose(kernel.gradient("x")(x), slope, rtol=1e-5, atol=1e-6)


def test_gamma_has_no_gradient() -> None:
    with pytest.raises(lw.ArgumentError, match="digamma"):
        lw.elementwise(_every).gradient("x")(np.ones(4, np.float32))


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
def test_cuda_knows_them(kind: Scalar) -> None:
    c, end = ("float", "f") if kind == F32 else ("double", "")
    lines = list[str]()
    for name, spelled in {
        "erf": "erf",
        "erfc": "erfc",
        "gamma": "tgamma",
        "round": "rint",
        "expm1": "expm1",
        "log1p": "log1p",
    }.items():
        text = cuda_expression(ir.Call(name, (ir.Local("x", kind),), kind), str)
        assert text == f"{spelled}{end}(x)"
        lines.append(f"  x += {text};")
    body = "\n".join(lines)
    text = f'extern "C" __global__ void every_kernel({c}* a) {{\n  {c} x = a[0];\n{body}\n  a[0] = x;\n}}\n'
    assert "warning" not in compile_cubin(text, "every", "sm_90").log


def _every(x: lw.f32) -> lw.f32:
    return lw.erf(x) + lw.gamma(x)


@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize(
    "names",
    [("exp", "sin", "pow"), pytest.param(tuple(library.FUNCTIONS), marks=pytest.mark.slow)],
    ids=("some", "all"),
)
def test_processors_with_fewer_instructions_have_the_same_bits(
    processor: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    triple, known, _ = llvm._host()  # pyright: ignore[reportPrivateUsage]
    if not triple.startswith("x86_64"):
        pytest.skip(f"this is no x86-64 but {known}")
    given = {(n, k): tuple(a[:1024] for a in arguments(n, k)) for n in names for k in TYPES}
    wanted = {key: function(*key, 0)(*given[key]) for key in given}
    clear = (llvm._machine.cache_clear, llvm._jit.cache_clear, function.cache_clear)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(llvm, "_host", lambda: (triple, processor, ""))
    monkeypatch.setattr(llvm, "has_scaling", lambda: False)
    try:
        for forget in clear:
            forget()
        for key, values in given.items():
            found = function(*key, 0)(*values)
            np.testing.assert_array_equal(found, wanted[key], err_msg=str(key))
    finally:
        for forget in clear:
            forget()
