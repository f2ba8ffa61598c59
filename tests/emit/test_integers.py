"""Integers at and next to the limits of their types: one meaning everywhere, which is that of `whole.py`."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import Program
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.cuda_expressions import cuda_expression
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.language.types import F32, F64, I32, I64, U32, Scalar, convert, limits
from lanewise.planning.plan import Plan
from lanewise.runtime.memory import to_host
from lanewise.support.errors import VerificationError
from tests.corpus import LAYOUTS, Case
from tests.emit.operators import define
from tests.emit.whole import Whole, truncated
from tests.frontend.ways import run, run_python
from tests.harness import program

KINDS = (I32, I64, U32)
ARITHMETIC = (
    "a + b; a - b; a * b; -a; ~a; a // b; a % b; a << b; a >> b; a**3; (a * 3) // 3; (a * b) >> 5; -(a - b) * 7; (a + a) // 2; a // 7; "
    "(a << 3) + b * 5 - 1; a + 1 > a; a * a < 0; (a + b) - b == a; a - b < 0; a - 1 < b"
)
SIGNED = "abs(a); abs(a - 1); a // -1; a % -1; a * -1; -7 + a; (a - b) // -3"
ROWS = {k: ARITHMETIC.split("; ") + (SIGNED.split("; ") if k.kind == "i" else []) for k in KINDS}


def numbers(kind: Scalar) -> list[int]:
    """At and next to the limits, about zero, and what squares to more than the type holds."""
    low, high = (int(x) for x in limits(kind))
    half = 4 * kind.size
    near = [
        low,
        low + 1,
        high - 1,
        high,
        0,
        1,
        2,
        3,
        7,
        2**half,
        2**half + 1,
        3 * 2 ** (half - 1),
        half - 1,
        2 * half - 1,
        2 * half,
        2**30,
    ]
    return sorted({x for x in (*near, *(-x for x in near)) if low <= x <= high})


def is_test(text: str) -> bool:
    return bool(re.search("[<=>]=? ", text.replace("<<", "").replace(">>", "")))


def kernel_of(kind: Scalar, place: str) -> Any:
    """An elementwise kernel with a result for each expression, which it computes itself or has a helper compute."""
    rows = ROWS[kind]
    results = ", ".join("lw.bool" if is_test(x) else f"lw.{kind}" for x in rows)
    values = ", ".join(x.replace("abs(", "lw.abs(") for x in rows)
    cls = lw.record(type("Pair", (), {"__annotations__": {"a": getattr(lw, kind.name), "b": getattr(lw, kind.name)}}))
    if place == "helper":
        text = f"def helper(a, b):\n    return {values}\n"
        helper = lw.function(define(text, "helper"))
        text = f"def limits(e: Pair) -> tuple[{results}]:\n    return helper(e.a, e.b)\n"
        return lw.elementwise(define(text, "limits", Pair=cls, helper=helper)), cls
    text = f"def limits(e: Pair) -> tuple[{results}]:\n    a, b = e.a, e.b\n    return {values}\n"
    return lw.elementwise(define(text, "limits", Pair=cls)), cls


@cache
def pairs(kind: Scalar) -> tuple[list[int], list[int]]:
    rows = list(product(numbers(kind), numbers(kind)))
    return [a for a, _ in rows], [b for _, b in rows]


@cache
def defined(kind: Scalar) -> list[list[int]]:
    """What the language says, a column for each expression."""
    codes = [compile(x, "expression", "eval") for x in ROWS[kind]]
    rows = [
        [eval(c, {"a": Whole(a, kind), "b": Whole(b, kind)}) for c in codes] for a, b in zip(*pairs(kind), strict=True)
    ]
    return [[int(x.value) if isinstance(x, Whole) else int(x) for x in column] for column in zip(*rows, strict=True)]


def check(kind: Scalar, found: list[Any], way: str, every: int = 1) -> None:
    a, b = pairs(kind)
    for text, f, w in zip(ROWS[kind], found, defined(kind), strict=False):
        wrong = [n for n in range(0, len(a), every) if int(f[n // every]) != w[n]][:3]
        shown = [f"a = {a[n]}, b = {b[n]}: {f[n // every]} instead of {w[n]}" for n in wrong]
        assert not shown, f"{way}, {kind}: {text}: {shown}"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_integers_wrap_in_the_interpreter_and_in_python(kind: Scalar) -> None:
    every = 7  # of the pairs, all of which compiled devices see
    kernel, cls = kernel_of(kind, "function")
    a, b = (np.array(x[::every], kind.dtype) for x in pairs(kind))
    records = cls.array(a=a, b=b)
    check(kind, run(kernel, "python", {"e": records}), "interpreter", every)
    check(kind, run_python(kernel, {"e": records}), "kernel.python", every)


EVERYWHERE = list(product(KINDS, ("function", "helper"), LAYOUTS))
SHARE = [(I32, "function", "AoS"), (I64, "function", "SoA"), (I64, "helper", "AoAS"), (U32, "helper", "AoSoA")]


def _on_the_cpu(kind: Scalar, place: str, layout: str) -> None:
    kernel, cls = kernel_of(kind, place)
    a, b = pairs(kind)
    records = cls.array(a=np.array(a, kind.dtype), b=np.array(b, kind.dtype), layout=LAYOUTS[layout])
    check(kind, run(kernel, "cpu", {"e": records}), f"cpu, {place}, {layout}")


@pytest.mark.parametrize(("kind", "place", "layout"), SHARE, ids=lambda x: str(x))
def test_integers_wrap_on_the_cpu(kind: Scalar, place: str, layout: str) -> None:
    _on_the_cpu(kind, place, layout)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place", "layout"), EVERYWHERE, ids=lambda x: str(x))
def test_integers_wrap_on_the_cpu_in_every_layout(kind: Scalar, place: str, layout: str) -> None:
    _on_the_cpu(kind, place, layout)


@pytest.mark.cuda
@pytest.mark.parametrize(("kind", "place", "layout"), EVERYWHERE, ids=lambda x: str(x))
def test_integers_wrap_on_a_gpu(kind: Scalar, place: str, layout: str) -> None:
    kernel, cls = kernel_of(kind, place)
    a, b = pairs(kind)
    records = cls.array(a=np.array(a, kind.dtype), b=np.array(b, kind.dtype), layout=LAYOUTS[layout])
    check(kind, run(kernel, "cuda", {"e": records}), f"cuda, {place}, {layout}")


def cuda_program(kernel: Any, record: Any) -> Program:
    none: Any = dict
    return program(Case("integers", kernel, (record,), none, none), lw.SoA(), Plan(block=64), "cuda")


# ---------------------------------------------------------------- shifts by numbers of the text


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_only_shifts_that_cuda_defines_are_its_own(kind: Scalar) -> None:
    a, bits = ir.Local("a", kind), 8 * kind.size
    for n, operator in product(range(-2, 2 * bits + 2), ("<<", ">>")):
        shift = ir.Binary(operator, a, ir.Literal(n, kind), kind)  # pyright: ignore[reportArgumentType]
        text = cuda_expression(shift, lambda name: name)
        assert ("lw_shift" in text) == (not 0 <= n < bits or (operator, kind) == (">>", I64)), text


@lw.record
class Shifted:
    small: lw.i32
    large: lw.i64
    key: lw.u32


@lw.elementwise
def shifted(e: Shifted) -> tuple[lw.i32, lw.i64, lw.u32]:
    small, large, key = e.small, e.large, e.key
    for n in range(0, 72, 4):  # written out, with numbers that a text may not shift by
        small ^= (e.small << n) + (e.small >> n)
        large ^= (e.large << n) + (e.large >> n)
        key ^= (e.key << lw.u32(n)) + (e.key >> lw.u32(n))
    return small, large, key


@pytest.mark.parametrize("device", ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_shifts_of_loops_that_are_written_out(device: str) -> None:
    rows = [numbers(k) for k in KINDS]
    columns = [np.resize(np.array(x, k.dtype), max(map(len, rows))) for x, k in zip(rows, KINDS, strict=True)]
    fields: dict[str, Any] = dict(zip(("small", "large", "key"), columns, strict=True))
    for column, kind, found in zip(columns, KINDS, shifted(Shifted.array(**fields, device=device)), strict=True):
        expected = []
        for value in column.tolist():
            x = total = Whole(value, kind)
            for n in range(0, 72, 4):
                total = total.of(total.value ^ ((x << n) + (x >> n)).value)
            expected.append(total.value)
        assert to_host(found).tolist() == expected, kind


@lw.record
class Turned:
    x: lw.i64


@lw.elementwise
def turned(e: Turned) -> tuple[lw.i64, lw.i64, lw.i64, lw.i64, lw.i64, lw.i64]:
    x = e.x
    plus, minus = lw.i64(0), lw.i64(0)
    for n in range(1, 64):  # written out: what one number of a text is shifted by to the left and the rest to the right
        plus = 3 * plus + ((x << n) + (x >> (64 - n)))
        minus = 3 * minus + ((x << n) - (x >> (64 - n)))
    doubled = 2 * x + (x >> 63)
    products = (x * 4294967296 - x // 4294967296) ^ (x // 16777216 - x * 1099511627776)
    halves = ((x << 32) + (x >> 32)) ^ 7 * ((x >> 32) - (x << 32))
    ends = ((x << 63) - (x >> 1)) ^ 5 * ((x >> 56) - (x << 8))
    return plus, minus, doubled, products, halves, ends


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_sum_of_two_shifts_is_not_a_rotation(device: str) -> None:
    """An assembler of CUDA made one of them, of signed numbers and of differences too."""
    x = np.array([*numbers(I64), 2**40 + 3, -(2**40) - 3, 0x123456789ABCDEF], np.int64)
    with np.errstate(over="ignore"):
        plus, minus = np.zeros_like(x), np.zeros_like(x)
        for n in range(1, 64):
            plus, minus = 3 * plus + ((x << n) + (x >> (64 - n))), 3 * minus + ((x << n) - (x >> (64 - n)))
        products = (x * 2**32 - x // 2**32) ^ (x // 2**24 - x * 2**40)
        halves = ((x << 32) + (x >> 32)) ^ 7 * ((x >> 32) - (x << 32))
        ends = ((x << 63) - (x >> 1)) ^ 5 * ((x >> 56) - (x << 8))
        expected = plus, minus, 2 * x + (x >> 63), products, halves, ends
    for name, found, wanted in zip(
        "plus minus doubled products halves ends".split(),
        turned(Turned.array(x=x, device=device)),
        expected,
        strict=True,
    ):
        np.testing.assert_array_equal(to_host(found), wanted, name)


# ---------------------------------------------------------------- sums


@lw.record
class Counted:
    small: lw.i32
    large: lw.i64
    key: lw.u32


@lw.pairwise
def totals(target: Counted, source: Counted) -> tuple[lw.i32, lw.i64, lw.u32]:
    return source.small + target.small, source.large * 3, source.key


@lw.elementwise
def value(e: Counted) -> lw.i64:
    return e.large * 5


def test_sums_of_integers_wrap() -> None:
    n = 37
    rng = np.random.default_rng(3)
    fields: dict[str, Any] = {
        "small": rng.integers(2**30, 2**31, n), "large": rng.integers(2**61, 2**63, n), "key": rng.integers(2**31, 2**32, n),
    }  # fmt: skip
    exact = {name: [int(x) for x in column] for name, column in fields.items()}
    for device, layout in product(("python", "cpu"), (lw.SoA(), lw.AoSoA(8))):
        bodies = RECORDS[0].array(**fields, layout=layout, device=device)
        with lw.device(device):
            small, large, key = totals(bodies, bodies)
            reduced = value.sum(bodies)
        wanted = [Whole(0, I32).of(sum(exact["small"]) + n * x).value for x in exact["small"]]
        assert small.tolist() == wanted
        assert set(large.tolist()) == {Whole(0, I64).of(3 * sum(exact["large"])).value}
        assert set(key.tolist()) == {Whole(0, U32).of(sum(exact["key"])).value}
        assert int(reduced) == Whole(0, I64).of(5 * sum(exact["large"])).value


# ---------------------------------------------------------------- loops


@lw.record
class Bounds:
    a: lw.i32
    b: lw.i32
    c: lw.i64
    d: lw.i64


@lw.elementwise
def rounds(e: Bounds) -> tuple[lw.i32, lw.i32, lw.i64, lw.i64]:
    n, m, p, q = 0, 0, lw.i64(0), lw.i64(0)
    for i in range(e.a, e.b):
        n = n * 5 + i
        if i - e.a > 2 or i - e.a < 0:
            break
    for i in range(e.a, e.b, 3):
        m = m * 5 + i
        if i - e.a > 8 or i - e.a < 0:
            break
    for j in range(e.c, e.d, -1):
        p = p * 5 + j
        if e.c - j > 2 or e.c - j < 0:
            break
    for j in range(e.c, e.d, 2):
        q = q * 5 + j
        if j - e.c > 4 or j - e.c < 0:
            break
    return n, m, p, q


def test_loops_next_to_the_limits() -> None:
    """As many rounds as Python's, where the way from the start to the stop does not fit the type, or the next step."""
    ends = list(product((-(2**31), -(2**31) + 1, -3, 5, 2**31 - 3, 2**31 - 1), repeat=2))
    wide = [(a * 2**32 + (a > 0) * (2**32 - 1), b * 2**32 + (b > 0) * (2**32 - 1)) for a, b in ends]
    records = RECORDS[1].array(
        a=[a for a, _ in ends], b=[b for _, b in ends], c=[a for a, _ in wide], d=[b for _, b in wide]
    )
    found, expected = (run(rounds, device, {"e": records}) for device in ("cpu", "python"))
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)
    (kernel,) = cuda_program(rounds, Bounds).kernels
    text = emit_cuda(kernel, "")
    assert "i = i > 2147483644 ? t_2 : i + 3" in text
    assert "j = j > 9223372036854775805LL ? t_4 : j + 2LL" in text


# ---------------------------------------------------------------- conversions


FLOATS = [
    0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32 - 1, 2.0**32, 5e9, -5e9, 2.0**63, -(2.0**63),
    2.0**64, 9.2e18, -9.3e18, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 1e-40,
]  # fmt: skip


@lw.record
class Floats:
    x: lw.f32
    y: lw.f64


@lw.elementwise
def whole(e: Floats) -> tuple[lw.i32, lw.u32, lw.i64, lw.i32, lw.u32, lw.i64, lw.f32]:
    return lw.i32(e.x), lw.u32(e.x), lw.i64(e.x), lw.i32(e.y), lw.u32(e.y), lw.i64(e.y), lw.f32(e.y)


@lw.elementwise
def whole_literals(e: Floats) -> tuple[lw.i32, lw.u32, lw.i64, lw.u32, lw.i32]:
    return lw.i32(5e9), lw.u32(-1.5), lw.i64(-1e30), lw.u32(-1), lw.i32(lw.f32(3e9))


@lw.threadwise
def converted(
    i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f64], c: lw.Array2[lw.i32], d: lw.Array2[lw.u32], e: lw.Array2[lw.i64]
):  # fmt: skip
    c[0, i], c[1, i] = lw.i32(a[i]), lw.i32(b[i])
    d[0, i], d[1, i] = lw.u32(a[i]), lw.u32(b[i])
    e[0, i], e[1, i] = lw.i64(a[i]), lw.i64(b[i])


def test_floats_become_the_nearest_integer_of_a_type_in_lanes_too() -> None:
    edges = [0.0, 0.5, 2.0**31, 2.0**31 - 1, 2.0**31 + 4096, 3e9, 2.0**32, 2.0**32 - 256, 2.0**63, 1e30, np.inf]
    b = np.array([*edges, *(-x for x in edges), np.nan, *range(-9, 10)] * 2)
    a, results = b.astype("f4"), []
    for plan, device in ((Plan(across=8), "cpu"), (Plan(across=0), "cpu"), (None, "python")):
        found = [np.zeros((2, len(b)), kind) for kind in ("i4", "u4", "i8")]
        with lw.device(device):
            converted(a, b, *found, grid=len(b), plan=plan)
        results.append(found)
    lanes = converted.compile(a, b, *results[0], grid=len(b), plan=Plan(across=8)).source
    assert ".sat." not in lanes, "LLVM would convert each lane apart"
    for found in results:
        for kind, values in zip((np.iinfo("i4"), np.iinfo("u4"), np.iinfo("i8")), found, strict=True):
            for floats, row in zip((a, b), values, strict=True):
                assert row.tolist() == [truncated(float(x), kind.min, kind.max) for x in floats]


RECORDS: tuple[Any, ...] = (Counted, Bounds, Floats)


def test_conversions_of_floats_have_one_meaning() -> None:
    """Truncated; the nearest limit beyond the type; 0 for NaN."""
    with np.errstate(over="ignore"):
        fields: dict[str, Any] = {"x": np.array(FLOATS, np.float32), "y": np.array([*FLOATS[:-1], 1e300])}
        narrow = fields["y"].astype(np.float32)
    records = RECORDS[2].array(**fields)
    kinds = (I32, U32, I64)
    wanted = [[truncated(float(v), *map(int, limits(k))) for v in fields[name]] for name in ("x", "y") for k in kinds]
    for way in ("python", "cpu"):
        *found, shortened = run(whole, way, {"e": records})[: len(wanted) + 1]
        assert [f.tolist() for f in found] == wanted, way
        np.testing.assert_array_equal(shortened, narrow)
        assert [int(x[0]) for x in run(whole_literals, way, {"e": records})[:5]] == [
            2**31 - 1,
            0,
            -(2**63),
            2**32 - 1,
            2**31 - 1,
        ]
    assert [f.tolist() for f in run_python(whole, {"e": records})[: len(wanted)]] == wanted
    for column, (name, kind) in zip(wanted, product(("x", "y"), kinds), strict=True):
        assert convert(fields[name], kind).tolist() == column  # an array at once


def test_own_index_arithmetic_that_leaves_its_type_is_an_error() -> None:
    e = build.add(ir.Local("$i", I32), 1)
    assert evaluate(e, {"$i": np.int32(5)}) == 6
    with pytest.raises(VerificationError, match="2147483647 \\+ 1 of an index is beyond i32"):
        evaluate(e, {"$i": np.int32(2**31 - 1)})


# ---------------------------------------------------------------- CUDA


TEXTS = {
    "a + b": "({t})(({u})a + ({u})b)",
    "a * 3 - b": "({t})(({u})a * 3{s} - ({u})b)",
    "a - (b - 1)": "({t})(({u})a - (({u})b - 1{s}))",
    "-a": "({t})(0{s} - ({u})a)",
    "-(a + b) * a": "({t})((0{s} - (({u})a + ({u})b)) * ({u})a)",
    "a * -7": "({t})(({u})a * ({u})(-7{l}))",
    "a << 3": "({t})(({u})a << 3{l})",
    "a << b": "lw_shift_left(a, b)",
    "a >> b": "lw_shift_right(a, b)",
    "a >> 3": "a >> 3{l}",
    "a // b": "lw_any_floor_divide(a, b)",
    "a % b": "lw_any_modulo(a, b)",
    "a // 7": "lw_floor_divide(a, 7{l})",
    "a // -1": "lw_any_floor_divide(a, -1{l})",
    "a // 8": "a >> 3",
    "(a + 1) // 8": "({t})(({u})a + 1{s}) >> 3",
    "lw.abs(a - b)": "lw_abs(({t})(({u})a - ({u})b))",
    "(a + 1) * 2 > a": "({t})((({u})a + 1{s}) * 2{s}) > a",
}
LONG_TEXTS = {  # 64 bits are shifted by halves (lw_shift_right says why)
    "a >> 3": "lw_shift_right(a, 3LL)",
    "a // 8": "lw_shift_right(a, 3LL)",
    "(a + 1) // 8": "lw_shift_right(({t})(({u})a + 1{s}), 3LL)",
}


@pytest.mark.parametrize("kind", [I32, I64], ids=str)
@pytest.mark.parametrize("text", TEXTS)
def test_cuda_texts_have_no_signed_arithmetic(kind: Scalar, text: str) -> None:
    """C++ leaves open what does not fit a signed type, and compilers use that."""
    result = "bool" if is_test(text) else kind.name
    f = lw.elementwise(define(f"def f(a: lw.{kind}, b: lw.{kind}) -> lw.{result}:\n    return {text}\n", "f"))
    returned = f.lowered.function.body[-1]
    assert isinstance(returned, ir.Return)
    words = {"t": "int", "u": "unsigned int", "s": "u", "l": ""} if kind == I32 else {"t": "long long", "u": "unsigned long long", "s": "ULL", "l": "LL"}  # fmt: skip
    expected = {**TEXTS, **LONG_TEXTS} if kind == I64 else TEXTS
    assert cuda_expression(returned.values[0], str) == expected[text].format(**words)


def test_ptx_keeps_what_signed_arithmetic_would_lose() -> None:
    """The comparisons and the division that NVVM folded when the arithmetic had a sign."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from tests.passes.ptx import ptx

    wanted = {
        "lw.i32(e.a + 1 > e.a)": "setp|selp",
        "lw.i32(e.a * e.a < 0)": "mul",
        "(e.a * 3) // 3": "mul.lo.s32|mul.lo.u32|mad.lo",
    }
    for text, instruction in wanted.items():
        f = lw.elementwise(define(f"def f(e: Bounds) -> lw.i32:\n    return {text}\n", "f", Bounds=Bounds))
        (kernel,) = cuda_program(f, Bounds).kernels
        found = ptx(kernel)
        assert re.search(instruction, found), (text, found)


@pytest.mark.parametrize(("given", "wanted"), list(product((F32, F64), (I32, U32, I64))), ids=str)
def test_cuda_conversions_saturate(given: Scalar, wanted: Scalar) -> None:
    """`cvt.rzi` saturates by its definition; where it makes the smallest number of NaN, NaN is requested first."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from tests.passes.ptx import ptx

    field = "x" if given == F32 else "y"
    f = lw.elementwise(
        define(f"def f(e: Floats) -> lw.{wanted}:\n    return lw.{wanted}(e.{field})\n", "f", Floats=Floats)
    )
    (kernel,) = cuda_program(f, Floats).kernels
    name = {I32: "s32", U32: "u32", I64: "s64"}[wanted]
    instruction = f"cvt.rzi.{name}.{given}"
    found = ptx(kernel)
    assert instruction in found, found
    tested = "setp.nan" in found or "setp.num" in found or "setp.neu" in found or "setp.eq" in found
    assert tested == (given == F64 or wanted == I64), found
