"""Numbers of 8 and 16 bits in fields, arrays and values: stored as they are, computed as i32 and f32."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.language import types as t
from lanewise.language.interpolation import EDGES
from lanewise.launch.executable import switches_of
from lanewise.planning.plan import Plan
from lanewise.runtime.memory import bring, to_host
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import LAYOUTS, Case
from tests.harness import Input, assert_close, expected, program, run_kernels, run_public, stages

Array = np.ndarray[Any, Any]


@lw.record
class Pixel:
    red: lw.u8
    place: lw.vec2
    shift: lw.i8
    level: lw.u16
    height: lw.i16
    weight: lw.f16


@lw.elementwise
def tint(p: Pixel, more: lw.u8, light: lw.f32) -> tuple[lw.u8, lw.f16, lw.i32]:
    p.red = lw.u8(lw.i32(p.red) + lw.i32(p.shift) * more)
    p.level = lw.u16(p.level * light)
    p.height = lw.i16(-p.height)
    p.weight = lw.f16(p.weight * light)
    bright = 255 if p.red > 200 else p.shift
    return lw.u8(bright), p.weight, lw.i32(p.red) << 8 | (p.level & 255)


@lw.pairwise
def alike(a: Pixel, b: Pixel, light: lw.f32) -> tuple[lw.i32, lw.f32]:
    d = a.place - b.place
    return lw.select(a.red // 64 == b.red // 64, b.height + b.shift, 0), b.weight * light / (1 + lw.dot(d, d))


def fields(rng: np.random.Generator, n: int) -> dict[str, Array]:
    kinds = {"red": "u1", "shift": "i1", "level": "u2", "height": "i2"}
    whole = {k: rng.integers(np.iinfo(d).min, np.iinfo(d).max, n, endpoint=True).astype(d) for k, d in kinds.items()}
    whole |= {"place": rng.normal(size=(n, 2)).astype("f4"), "weight": rng.normal(size=n).astype("f2")}
    return {f.name: whole[f.name] for f in Pixel.__record__}


def tinted(p: dict[str, Array], more: int, light: float) -> Any:
    f = np.float32(light)
    red = (p["red"].astype("i4") + p["shift"].astype("i4") * more).astype("u1")
    level = np.clip(p["level"].astype("f4") * f, 0, 65535).astype("u2")
    weight = (p["weight"].astype("f4") * f).astype("f2")
    bright = np.where(red > 200, 255, p["shift"].astype("i4")).astype("u1")
    p |= {"red": red, "level": level, "weight": weight, "height": (-p["height"].astype("i4")).astype("i2")}
    return bright, weight, red.astype("i4") << 8 | (level.astype("i4") & 255)


def alike_of(a: dict[str, Array], b: dict[str, Array], same: bool, light: float) -> Any:
    r2 = ((a["place"][:, None].astype("f8") - b["place"]) ** 2).sum(-1)
    near = a["red"][:, None] // 64 == b["red"] // 64
    whole = np.where(near, b["height"].astype("i4") + b["shift"], 0).sum(1).astype("i4")
    return whole, (b["weight"].astype("f8") * light / (1 + r2)).sum(1)


CASES = [
    Case("tint", tint, (Pixel,), fields, tinted, {"more": 3, "light": 1.25}),
    Case("alike", alike, (Pixel, Pixel), fields, alike_of, {"light": 1.25}, atol=1e-3),
]


def wanted(given: Input) -> Any:
    if given.case.pairwise:
        return expected(given)
    p = dict(given.fields[0])
    return (*tinted(p, **given.case.values), *p.values())


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=str)
@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_layout_gives_what_numpy_does(c, layout, device):
    for n in (1, 33, 1000):
        given = Input(c, n, seed=n)
        for found, right in zip(run_public(given, layout, device), wanted(given), strict=True):
            if right.dtype.kind == "f":
                np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-2)
            else:
                np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("layout", ["AoS", "SoA", "SoAoAS"])
@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_stage_means_the_same(c, layout, kind):
    given = Input(c, 5, 7 if c.pairwise else None, seed=1)
    plan = Plan(block=32, tile=32, slices=2, targets=2) if kind == "cuda" and c.pairwise else Plan(targets=2)
    for _, kernels in stages(c, LAYOUTS[layout], plan, kind, same=given.same):
        assert_close(run_kernels(kernels, given, LAYOUTS[layout]), wanted(given), c)


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoAoAS()], ids=str)
@pytest.mark.parametrize("c", CASES, ids=str)
def test_cuda_texts_compile(c, layout):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    for uniforms in ("constant", "global"):
        p = program(c, layout, Plan(block=64, tile=64 if c.pairwise else 0, uniforms=uniforms), "cuda")
        for kernel in p.kernels:
            cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90", switches_of(p.plan))
            assert "warning" not in cubin.log.lower(), cubin.log


# ------------------------------------------------------------------ values and conversions


@lw.elementwise
def turned(x: lw.u16, y: lw.i16) -> tuple[lw.u8, lw.i8, lw.i16, lw.u16]:
    return lw.u8(x), lw.i8(y), lw.i16(y + 1), lw.u16(x * x)


def test_whole_numbers_wrap():
    x = np.arange(65536).astype("u2")
    y = x.view("i2")
    wide = x.astype("u4")
    right = x.astype("u1"), y.astype("i1"), (y.astype("i4") + 1).astype("i2"), (wide * wide).astype("u2")
    for found, each in zip(turned(x, y), right, strict=True):
        np.testing.assert_array_equal(found, each, strict=True)


@lw.elementwise
def square(x: lw.f16) -> lw.f16:
    return lw.f16(x * x)


def test_floats_of_16_bits_are_rounded_once():
    x = np.arange(65536).astype("u2").view("f2")
    with np.errstate(all="ignore"):
        right = (x.astype("f4") ** 2).astype("f2")
    np.testing.assert_array_equal(square(x), right, strict=True)


@lw.elementwise
def held(x: lw.f64) -> tuple[lw.u8, lw.i8, lw.u16, lw.i16]:
    return lw.u8(x), lw.i8(x), lw.u16(x), lw.i16(x)


def test_floats_become_the_nearest_limit():
    x = np.array([np.nan, -1, 127.9, 255.9, 300, 1e99, -1e99, np.inf, -32768.5, 65535.5])
    for found, kind in zip(held(x), (t.U8, t.I8, t.U16, t.I16), strict=True):
        np.testing.assert_array_equal(found, t.convert(x, kind), strict=True)


def test_totals_have_more_bits():
    x = np.arange(256, dtype="u1").repeat(1000)
    same = np.ones(len(x), "u1")
    assert scaled.sum(x, same) == x.astype("i8").sum()
    assert (scaled.min(x, same), scaled.max(x, same)) == (0, 255)
    assert (lw.sum(x), lw.min(x), lw.max(x)) == (x.sum(), 0, 255)
    assert lw.sum(np.full(5000, 100, "f2")) == 500_000


@lw.elementwise
def scaled(x: lw.u8, by: lw.u8) -> lw.u8:
    return lw.u8(x * by)


def test_arrays_of_other_types_and_shapes_are_converted_as_others_are():
    x = np.arange(60).reshape(6, 10)
    for given in (x, x.astype("u1").T, x.astype(">i2")[::2, ::-1]):
        np.testing.assert_array_equal(scaled(given, 3), (np.asarray(given) * 3).astype("u1"), strict=True)
    with pytest.raises(lw.ArgumentError, match="'by' holds u8: 300 does not fit"):
        scaled(x.astype("u1"), 300)


def test_python_gives_the_same():
    rows = Pixel.array(**fields(np.random.default_rng(2), 20))
    other = rows.copy()
    results = [tint.python(row, np.uint8(0), np.float32(1)) for row in rows]
    found = tint(other, 0, 1.0)
    for n in range(3):
        np.testing.assert_array_equal(found[n], [r[n] for r in results])
    for name, values in rows.numpy().items():
        np.testing.assert_array_equal(other.numpy()[name], values)


def test_files_keep_them(tmp_path):
    rows = Pixel.array(**fields(np.random.default_rng(3), 50))
    lw.save(tmp_path / "pixels.h5", rows)
    read = lw.load(tmp_path / "pixels.h5")
    for name, values in rows.numpy().items():
        np.testing.assert_array_equal(read.numpy()[name], values, strict=True)


# ------------------------------------------------------------------ arrays with shapes


@lw.threadwise
def blur(y: lw.index, x: lw.index, a: lw.Array2[lw.u8], b: lw.Array2[lw.u8], c: lw.Array2[lw.f16]):
    if 0 < x < a.shape[1] - 1:
        b[y, x] = lw.u8((a[y, x - 1] + 2 * a[y, x] + a[y, x + 1]) // 4)
        c[y, x] = lw.f16(a[y, x] * lw.f32(0.5))


@lw.threadwise
def product(y: lw.index, x: lw.index, a: lw.Array2[lw.i8], b: lw.Array2[lw.i8], c: lw.Array2[lw.i32]):
    s = 0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def across(y: lw.index, x: lw.index, a: lw.Array2[lw.u16], b: lw.Array2[lw.u16]):
    b[y, x] = a[x, y]


@lw.threadwise
def above(y: lw.index, a: lw.Array2[lw.u8], most: lw.Array1[lw.u8], rest: lw.Array2[lw.i16]):
    m = 0
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
    for k in range(a.shape[1]):
        rest[y, k] = lw.i16(a[y, k] - m)
    most[y] = lw.u8(m)


@pytest.mark.parametrize("shape", [(3, 5), (301, 300), pytest.param((2003, 4099), marks=pytest.mark.slow)], ids=str)
def test_threadwise_arrays(shape):
    rng = np.random.default_rng(7)
    a = rng.integers(0, 256, shape).astype("u1")
    wide, b, c = a.astype("i4"), np.zeros_like(a), np.zeros(shape, "f2")
    blur(a, b, c, grid=shape)
    np.testing.assert_array_equal(b[:, 1:-1], (wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]) // 4)
    np.testing.assert_array_equal(c[:, 1:-1], a[:, 1:-1] * np.float16(0.5))
    words, turn = (wide * 251).astype("u2"), np.zeros(shape[::-1], "u2")
    across(words, turn, grid=turn.shape)
    np.testing.assert_array_equal(turn, words.T)
    most, rest = np.zeros(len(a), "u1"), np.zeros(shape, "i2")
    above(a, most, rest, grid=len(a))
    np.testing.assert_array_equal(most, a.max(1))
    np.testing.assert_array_equal(rest, wide - a.max(1)[:, None])
    if shape[0] <= 301:
        left, right = rng.integers(-128, 128, shape).astype("i1"), rng.integers(-128, 128, shape[::-1]).astype("i1")
        sums = np.zeros((shape[0], shape[0]), "i4")
        product(left, right, sums, grid=sums.shape)
        np.testing.assert_array_equal(sums, left.astype("i4") @ right.astype("i4"))


@lw.elementwise
def looked_up(p: Pixel, table: lw.Array1[lw.u16], counts: lw.Array1[lw.i32]) -> lw.u16:
    lw.scatter_add(counts, p.red, 1)
    return table[p.red]


def test_tables_and_indices():
    rows = Pixel.array(**fields(np.random.default_rng(4), 999))
    table, counts = np.arange(1000, 1256).astype("u2"), np.zeros(256, "i4")
    red = np.asarray(rows.red)
    np.testing.assert_array_equal(looked_up(rows, table, counts), table[red], strict=True)
    np.testing.assert_array_equal(counts, np.bincount(red, minlength=256))


# ------------------------------------------------------------------ what is refused


@lw.threadwise
def narrowed(i: lw.index, a: lw.Array1[lw.u8]):
    a[i] = a[i] + 1


@lw.threadwise
def scattered(i: lw.index, a: lw.Array1[lw.u8]):
    lw.scatter_add(a, i, 1)


@lw.threadwise
def local(i: lw.index, a: lw.Array1[lw.u8]):
    kept = lw.zeros(lw.u8, 4)
    a[i] = lw.u8(kept[0])


@lw.threadwise
def declared(i: lw.index, a: lw.Array1[lw.u8]):
    x: lw.u8 = a[i]
    a[i] = x


@lw.threadwise
def twice(i: lw.index, a: lw.Array1[lw.f16], b: lw.Array1[lw.f64]):
    a[i] = lw.f16(b[i])


@lw.threadwise
def large(i: lw.index, a: lw.Array1[lw.u8]):
    a[i] = 300


REFUSED = {
    narrowed: "an element of 'a' is of type u8*found: a value of type i32*wanted: a value of type u8*lw.u8(...)",
    scattered: "lw.scatter_add combines numbers of 32 and 64 bits*wanted: an array of i32",
    local: "a local array holds scalars: numbers of 8 and 16 bits are in fields and arrays alone*found: the type u8",
    declared: "'x' is a variable: numbers of 8 and 16 bits are in fields and arrays alone*wanted: x: lw.i32 = ...",
    twice: "lw.f16 rounds a number of 32 bits*found: a value of type f64*hint: lw.f16(lw.f32(x)), which rounds twice",
    large: "300 does not fit u8*wanted: a number that u8 can hold",
}


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda k: k.__name__)
def test_what_has_too_few_bits_is_refused(kernel):
    arrays = (np.zeros(4, "f2"), np.zeros(4)) if kernel is twice else (np.zeros(4, "u1"),)
    with pytest.raises(lw.CompileError) as error:
        kernel(*arrays, grid=4)
    text = str(error.value)
    for part in REFUSED[kernel].split("*"):
        assert part in text, text


def test_lists_are_refused():
    lists = [np.zeros(2, "u1"), np.zeros(3, "u1")]
    with pytest.raises(lw.ArgumentError, match=r"holds f32, f64, i32, i64, u32 .* found values of uint8: convert them"):
        lw.ragged(lists)
    with pytest.raises(lw.ArgumentError, match="kind is the type of a value"):
        lw.ragged(lists, kind=lw.u8)


def test_pairs_and_gradients_are_refused():
    @lw.pairwise
    def red(a: Pixel, b: Pixel) -> lw.Min[lw.u8]:
        return b.red

    @lw.pairwise
    def weights(a: Pixel, b: Pixel) -> lw.f32:
        return a.weight * b.weight

    rows = Pixel.array(**fields(np.random.default_rng(5), 8))
    with pytest.raises(lw.CompileError, match="gathered in 32 or 64 bits, not in a u8"):
        red(rows, rows)
    with pytest.raises(lw.CompileError, match="weight is a float of 16 bits, which has no derivative"):
        weights.gradient(wrt="weight")(rows, rows)


def test_a_cpu_without_conversions_of_float16_says_so():
    text = """
        from lanewise.runtime import llvm
        triple, _, _ = llvm._host()
        llvm._host = lambda: (triple, "nehalem", "")
        import numpy as np, lanewise as lw
        from tests.kernels.test_stored_numbers import blur, square, scaled
        assert scaled(np.arange(3, dtype="u1"), 2).tolist() == [0, 2, 4]
        a, c = np.ones((40, 64), "u1"), np.ones((40, 64), "f2")
        for call in (lambda: square(np.ones(3, "f2")), lambda: blur(a, a.copy(), c, grid=a.shape)):
            try:
                call()
            except lw.DeviceError as error:
                print(error)
    """
    done = subprocess.run([sys.executable, "-c", dedent(text)], capture_output=True, text=True, check=True)
    reason = "this CPU (nehalem) has no instructions that convert float16 (F16C); keep such fields and arrays as f32"
    assert done.stdout.splitlines() == [f"square: {reason}", f"blur: {reason}"]


# ------------------------------------------------------------------ tables


@lw.elementwise
def between(x: lw.f16, wide: lw.f32, t: lw.Array1[lw.f32]) -> tuple[lw.f32, lw.f32, lw.f32, lw.f32, lw.bool]:
    clamp, repeat = lw.interpolate(t, x, edge="clamp"), lw.interpolate(t, x, edge="repeat")
    mirror, zero = lw.interpolate(t, x, edge="mirror"), lw.interpolate(t, x, edge="zero")
    same = clamp == lw.interpolate(t, wide, edge="clamp") and repeat == lw.interpolate(t, wide, edge="repeat")
    same = same and mirror == lw.interpolate(t, wide, edge="mirror") and zero == lw.interpolate(t, wide, edge="zero")
    return clamp, repeat, mirror, zero, same


@pytest.mark.parametrize("device", ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_coordinates_of_16_bits_are_computed_in_32(device: str) -> None:
    """Lengths of tables, and twice these, that no float of 16 bits is."""
    x = np.arange(0, 65536, 61).astype("u2").view("f2")
    for n in (1, 3, 2049, 70_001):
        t = np.random.default_rng(n).normal(size=n).astype("f4")
        with lw.device(device):
            *found, same = between(*(bring(a, device) for a in (x, x.astype("f4"), t)))
        assert (to_host(same) | ~np.isfinite(x)).all()
        for f, edge in zip(found, EDGES, strict=True):
            np.testing.assert_allclose(to_host(f), lw.interpolate(t, x.astype("f4"), edge=edge), 1e-5, 1e-5)


@pytest.mark.parametrize("edge", EDGES)
def test_interpolation_in_python_computes_in_32_bits(edge: Any) -> None:
    x = np.arange(0, 65536, 61).astype("u2").view("f2")
    for n in (1, 3, 2049, 70_001):
        t = np.random.default_rng(n).normal(size=n).astype("f4")
        found, right = (lw.interpolate(t, v, edge=edge) for v in (x, x.astype("f4")))
        np.testing.assert_array_equal(found, right, strict=True)
    few = np.arange(2049).astype("f2")
    np.testing.assert_array_equal(lw.interpolate(few, 2045.5), np.float32(2045.5), strict=True)


# ------------------------------------------------------------------ helpers


@lw.function
def thrice(a, b):
    a += b
    a += b
    return a


@lw.elementwise
def tripled(p: Pixel) -> tuple[lw.i32, lw.i32, lw.i32, lw.i32, lw.f32]:
    heights, weights = thrice(p.height, p.height), thrice(p.weight, p.weight)
    return thrice(p.red, p.red), thrice(p.shift, p.shift), thrice(p.level, p.level), heights, weights


@pytest.mark.parametrize("device", ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_parameters_of_helpers_are_variables_too(device: str) -> None:
    given = fields(np.random.default_rng(2), 100)
    found = tripled(Pixel.array(**given, device=device))
    for name, f in zip(("red", "shift", "level", "height", "weight"), found, strict=True):
        wide = given[name].astype("f4" if name == "weight" else "i4")
        np.testing.assert_array_equal(to_host(f), wide + wide + wide, strict=True)
