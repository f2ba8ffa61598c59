"""Random numbers: the published vectors of Philox, the same bits everywhere, and distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language.random_numbers import philox
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from tests.written import module

SEED = 2**40 + 5
N = 300


@lw.record
class Agent:
    number: lw.i32
    born: lw.i64
    position: lw.vec3


@lw.elementwise
def floats(a: Agent, seed: lw.i64, step: lw.i32) -> tuple[lw.f32, lw.vec4, lw.f64, lw.f32, lw.vec4]:
    n = a.number
    return (
        lw.random(seed, step, n),
        lw.random4(seed, n),
        lw.drandom(seed, n, 1),
        lw.normal(seed, n, step),
        lw.normal4(1, n),
    )


@lw.elementwise
def others(a: Agent, seed: lw.i64, step: lw.i32) -> tuple[lw.i32, lw.vec3, lw.vec2, lw.f32]:
    dice = lw.random_integer(-step, a.number, seed, a.born)
    return dice, lw.unit_vector(seed, a.born, 7), lw.unit_vector2(a.number, 3), lw.random(-1, a.born, 4_000_000_000)


@lw.pairwise
def jostle(target: Agent, source: Agent, seed: lw.i64) -> lw.i64:
    return lw.i64(lw.random_integer(0, 1 << 30, seed, target.number, source.number))


@lw.threadwise
def fill(i: lw.index, seed: lw.u32, a: lw.Array1[lw.f32]):
    a[i] = lw.normal(seed, i)


def agents(device: str = "cpu", layout: Any = None) -> Any:
    rng = np.random.default_rng(0)
    number = np.concatenate([[0, 1, -1, 2**31 - 1, -(2**31)], rng.integers(-(2**31), 2**31, N - 5)])
    born = np.concatenate([[0, 2**62, -1], rng.integers(-(2**62), 2**62, N - 3)])
    return Agent.array(number=number, born=born, position=np.zeros((N, 3)), device=device, layout=layout or lw.SoA())


def host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else np.asarray(x)


def same_bits(device: str, layout: Any = None) -> None:
    a = agents(device, layout)
    n, born = (host(x) for x in (a.number, a.born))
    s, step = np.int64(SEED), 17
    expected = (
        lw.random(s, step, n), lw.random4(s, n), lw.drandom(s, n, 1), lw.normal(s, n, step), lw.normal4(1, n),
        lw.random_integer(-step, n, s, born), lw.unit_vector(s, born, 7), lw.unit_vector2(n, 3), lw.random(-1, born, 4_000_000_000),
    )  # fmt: skip
    for one, other in zip((*floats(a, SEED, step), *others(a, SEED, step)), expected, strict=True):
        np.testing.assert_array_equal(host(one), other)
        assert host(one).dtype == other.dtype


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_every_device_has_the_same_bits(device: str) -> None:
    same_bits(device)


@pytest.mark.quick("AoSoA(8)")
@pytest.mark.parametrize("layout", [lw.AoS(), lw.AoSoA(8), lw.SoAoAS()], ids=str)
def test_every_layout_has_the_same_bits(layout: Any) -> None:
    same_bits("cpu", layout)


def test_ordinary_python_has_the_same_bits() -> None:
    a = agents()
    for i in range(20):
        row = a[i]
        for one, other in zip(floats.python(row, np.int64(SEED), np.int32(17)), floats(a, SEED, 17), strict=True):
            np.testing.assert_array_equal(np.array(list(one) if hasattr(one, "__len__") else one), other[i])


def test_pairs_have_the_same_bits_in_every_order() -> None:
    a = agents()
    n = a.number
    expected = lw.random_integer(0, 1 << 30, np.int64(3), n[:, None], n[None, :]).astype(np.int64).sum(axis=1)
    np.testing.assert_array_equal(jostle(a, a, 3), expected)
    np.testing.assert_array_equal(jostle(a, a, 3, plan=lw.Plan(targets=4)), expected)
    back = Agent.array(number=n[::-1], born=a.born, position=a.position)
    np.testing.assert_array_equal(jostle(back, back, 3), expected[::-1])


def test_threads_have_the_numbers_of_python() -> None:
    a = np.empty(1000, np.float32)
    fill(2**32 - 1, a, grid=1000)
    np.testing.assert_array_equal(a, lw.normal(2**32 - 1, np.arange(1000, dtype=np.int32)))


def test_the_text_for_a_gpu_compiles() -> None:
    reference = fill.compile(1, np.empty(4, np.float32), grid=4).reference
    assert compile_kernel(reference, Plan(block=256).filled(NEUTRAL), "cuda", arch="sm_90").cubins


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the known answers of the authors' Random123
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)  # fmt: skip
def test_philox(counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]) -> None:
    assert tuple(int(w) for w in philox(counter, key)) == expected  # pyright: ignore[reportArgumentType]


def test_words_of_counters() -> None:
    """Low words of counters in their order, two for 64 bits; the seed is the key."""
    word = int(philox((5, 2**32 - 3, 2**32 - 1, 9), (1, 2))[0])
    seed = np.int64(2 * 2**32 + 1)
    expected = np.float32(word >> 8) * np.float32(2**-24)
    assert lw.random(seed, 5, np.int64(-3), 9) == lw.random(seed, np.uint32(5), 2**32 - 3, -1, 9) == expected


# ------------------------------------------------------------ distributions


def chi_squared(counts: Any, expected: Any) -> float:
    """In standard deviations of the distribution, about."""
    total = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    return (total - freedom) / math.sqrt(2 * freedom)


MANY = np.arange(1 << 18, dtype=np.int32)


@pytest.mark.parametrize(
    "counters", [(MANY,), (0, MANY), (MANY, MANY), (MANY // 1024, MANY % 1024)], ids=["one", "last", "both", "grid"]
)
def test_uniform(counters: tuple[Any, ...]) -> None:
    x = lw.random(7, *counters)
    assert 0 <= x.min()
    assert x.max() < 1
    bins = np.bincount((x * 1024).astype(int), minlength=1024)
    assert abs(chi_squared(bins, len(MANY) / 1024)) < 5
    pairs = np.bincount((x[:-1:2] * 32).astype(int) * 32 + (x[1::2] * 32).astype(int), minlength=1024)
    assert abs(chi_squared(pairs, len(MANY) / 2048)) < 5


def test_four_at_once_are_independent() -> None:
    x = np.concatenate([lw.random4(7, MANY), lw.normal4(8, MANY)], axis=1)
    np.testing.assert_array_equal(x[:, 0], lw.random(7, MANY))
    np.testing.assert_array_equal(x[:, 4], lw.normal(8, MANY))
    np.testing.assert_allclose(np.corrcoef(x.T), np.eye(8), atol=5 / math.sqrt(len(MANY)))


def test_normal() -> None:
    x = lw.normal4(3, MANY).astype(np.float64).ravel()
    edges = np.linspace(-4, 4, 65)
    share = np.diff([0.0, *(0.5 * (1 + math.erf(e / math.sqrt(2))) for e in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, x), minlength=66)
    assert abs(chi_squared(counts, len(x) * share)) < 5
    moments = [np.mean(x**k) for k in range(1, 5)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=5 * math.sqrt(96 / len(x)))


def test_normal_is_what_its_formula_says() -> None:
    """Beside the formula of Box and Muller in float64, from the same words."""
    a, b, _, _ = philox((MANY.view(np.uint32), 0, 0, 0), (3, 0))
    expected = np.sqrt(-2 * np.log((a + 1.0) / 2**32)) * np.cos(2 * np.pi * (b / 2**32))
    error = np.abs(lw.normal(3, MANY) - expected)
    assert np.quantile(error, 0.999) < 1e-6
    assert error.max() < 5e-5


def test_double_precision_has_53_bits() -> None:
    x = lw.drandom(7, MANY) * 2**53
    assert (x == np.floor(x)).all()
    assert len(np.unique(x.astype(np.int64) & 0xFFFFF)) > 200_000
    np.testing.assert_allclose(lw.drandom(7, MANY), lw.random(7, MANY), atol=2**-24)


def test_integers() -> None:
    counts = np.bincount(lw.random_integer(-3, 1000, 5, MANY) + 3, minlength=1003)
    assert len(counts) == 1003
    assert abs(chi_squared(counts, len(MANY) / 1003)) < 5
    wide = lw.random_integer(-(2**31), 2**31 - 1, 5, MANY).astype(float)
    assert wide.min() < -2.14e9
    assert wide.max() > 2.14e9
    assert lw.random_integer(4, 4, 1, 1) == lw.random_integer(4, 2, 1, 1) == 4


@pytest.mark.parametrize("name", ["unit_vector", "unit_vector2"])
def test_directions(name: str) -> None:
    x = getattr(lw, name)(5, MANY).astype(np.float64)
    size = x.shape[1]
    np.testing.assert_allclose((x**2).sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=5 / math.sqrt(size * len(MANY)))
    np.testing.assert_allclose(np.cov(x.T), np.eye(size) / size, atol=5e-3)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_integers_lie_between(low: int, high: int, seed: int) -> None:
    x = int(lw.random_integer(low, high, np.int64(seed), 1, 2))
    assert low <= x < high or x == low >= high


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lw.random(1), "lw.random takes a seed and one counter or more, such as a step and an index, found a seed alone"),
        (lambda: lw.normal(1, 2.5), "lw.normal takes integers, found 2.5"),
        (lambda: lw.random(1, 2**40), "lw.random: 1099511627776 does not fit into 32 bits: lw.i64(1099511627776) has two words"),
        (
            lambda: lw.random(1, np.arange(3), np.int64(1), 5),
            "lw.random: the counters have 5 words of 32 bits, and 4 are the most: integers of 64 bits have two, all others one",
        ),
    ],
)  # fmt: skip
def test_refused(call: Any, text: str) -> None:
    with pytest.raises(lw.ArgumentError) as refusal:
        call()
    assert str(refusal.value) == text


@lw.elementwise
def alone(a: Agent) -> lw.f32:
    return lw.random(a.number)


@lw.elementwise
def of_a_float(a: Agent) -> lw.f32:
    return lw.random(1, a.position.x)


@lw.elementwise
def too_many(a: Agent) -> lw.f32:
    return lw.random(1, a.born, a.born, 3)


@lw.elementwise
def too_large(a: Agent) -> lw.i32:
    return lw.random_integer(0, 6, 1, 1 << 40)


@pytest.mark.parametrize(
    ("kernel", "lines"),
    [
        (alone, ["lw.random takes a seed and counters", "found: 1 argument", "wanted: a seed and one counter or more, such as a step and an index"]),
        (of_a_float, ["lw.random takes integers", "found: a value of type f32", "wanted: integers"]),
        (too_many, ["the counters of lw.random have up to 4 words of 32 bits", "found: 5 words", "hint: lw.i32(x) of a counter that is small"]),
        (too_large, ["this number does not fit into 32 bits", "found: 1099511627776", "hint: lw.i64(1099511627776), which has two words"]),
    ],
)  # fmt: skip
def test_refused_in_kernels(kernel: Any, lines: list[str]) -> None:
    with pytest.raises(lw.CompileError) as refusal:
        kernel(agents())
    assert all(line in str(refusal.value) for line in lines), str(refusal.value)


SEEDS = [0, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, -(2**31), -(2**31) - 1, -(2**40), 2**63 - 1, -(2**63)]
INNER_SEEDS = [2**31 - 1, 2**32 - 1, 2**40, -(2**31), -(2**40)]  # the others are of every type, too


@pytest.mark.parametrize("seed", [pytest.param(s, marks=pytest.mark.slow if s in INNER_SEEDS else []) for s in SEEDS])
def test_a_seed_in_the_function_is_that_of_an_argument(seed: int) -> None:
    """Integers of every size, as a constant, as an argument, and in ordinary Python."""
    names = module(f"""
    @lw.elementwise
    def constant(n: lw.i32) -> lw.f32:
        return lw.random({seed}, n)


    @lw.elementwise
    def argument(n: lw.i32, seed: lw.i64) -> lw.f32:
        return lw.random(seed, n)
    """, f"seed_{SEEDS.index(seed)}.py")  # fmt: skip
    n = np.arange(40, dtype="i4")
    expected = lw.random(seed, n)
    for device in ("cpu", "python"):
        with lw.device(device):
            np.testing.assert_array_equal(names.constant(n), expected)
            np.testing.assert_array_equal(names.argument(n, seed), expected)


def test_seeds_of_more_than_64_bits_are_refused() -> None:
    too_wide = module(f"""
    @lw.elementwise
    def too_wide(n: lw.i32) -> lw.f32:
        return lw.random({2**63}, n)
    """, "too_wide.py").too_wide  # fmt: skip
    with pytest.raises(lw.CompileError, match="does not fit"):
        too_wide(np.arange(4, dtype="i4"))
    with pytest.raises(lw.ArgumentError, match="does not fit"):
        lw.random(2**63, np.arange(4))
