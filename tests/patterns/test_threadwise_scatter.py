"""Scatters: what they mean for every number, races, refusals, the same bits whatever the order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.verify import verify_kernel
from lanewise.language.scatter import combined
from lanewise.language.types import BOOL, F32, I32
from lanewise.launch.executable import generated_texts
from lanewise.patterns.threadwise.build import ThreadwiseArguments, build_threadwise
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import array_module, to_host
from lanewise.support.errors import ArgumentError, CompileError, PlanError, VerificationError
from tests.patterns.threadwise_kernels import counted


@lw.threadwise
def extremes(i: lw.index, v: lw.Array1[lw.f32], low: lw.Array1[lw.f32], high: lw.Array1[lw.f32]):
    lw.scatter_min(low, 0, v[i])
    lw.scatter_max(high, 0, v[i])


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45]
NUMBERS = st.lists(st.sampled_from(SPECIAL) | st.floats(width=32), max_size=12)
DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu", "python"]


def extremes_of(values: np.ndarray[Any, Any], start: float, device: str) -> list[bytes]:
    low, high = np.full(1, start, np.float32), np.full(1, start, np.float32)
    arrays = [values, low, high]
    if device == "cuda":
        import cupy

        arrays = [cupy.asarray(a) for a in arrays]
        extremes(*arrays, grid=len(values))
        return [a.get().tobytes() for a in arrays[1:]]
    with lw.device(device):
        extremes(*arrays, grid=len(values))
    return [low.tobytes(), high.tobytes()]


@pytest.mark.parametrize("device", DEVICES)
@given(numbers=NUMBERS, start=st.sampled_from(SPECIAL), seed=st.integers(0, 9))
def test_extremes_of_floats_have_the_same_bits_in_any_order(
    device: str, numbers: list[float], start: float, seed: int
) -> None:
    values = np.array(numbers, np.float32)
    other = np.random.default_rng(seed).permutation(values)
    results = extremes_of(values, start, device)
    assert results == extremes_of(other, start, device)
    expected = np.float32(start)
    for v in values:
        expected = combined("min", expected, v)
    assert results[0] == expected.tobytes()
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.min([np.float32(start), *values]), expected, equal_nan=True), "as lw.min"


@lw.threadwise
def extremes_apart(
    i: lw.index, v: lw.Array1[lw.f32], w: lw.Array1[lw.f64], low: lw.Array1[lw.f32], high: lw.Array1[lw.f32],
    wide_low: lw.Array1[lw.f64], wide_high: lw.Array1[lw.f64],
):  # fmt: skip
    lw.scatter_min(low, i, v[i])
    lw.scatter_max(high, i, v[i])
    lw.scatter_min(wide_low, i, w[i])
    lw.scatter_max(wide_high, i, w[i])


@pytest.mark.parametrize("device", DEVICES)
def test_every_two_special_floats_have_their_smaller_and_their_larger(device: str) -> None:
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    values, starts = np.array(pairs).T.copy()
    arrays = [values.astype("f4"), values, *(starts.astype(kind) for kind in ("f4", "f4", "f8", "f8"))]
    given = arrays if device != "cuda" else [array_module(device).asarray(a) for a in arrays]
    results = [r.copy() for r in arrays[2:]]
    with lw.device(device):
        extremes_apart(*given, grid=len(pairs))
    for n, (start, found) in enumerate(zip(results, given[2:], strict=True)):
        operation, value = ("min", "max")[n % 2], arrays[n // 2]
        expected = [combined(operation, *both) for both in zip(start, value, strict=True)]
        assert to_host(found).tobytes() == np.array(expected).tobytes(), (operation, start.dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_counts_do_not_hang_on_threads(device: str) -> None:
    """Enough points that several threads count at once, into few elements."""
    size = 600 if device == "python" else 300_000
    a, c = np.arange(size, dtype=np.int32) * 7919 % 3, np.zeros(9, np.int32)
    if device == "cuda":
        import cupy

        device_a, device_c = cupy.asarray(a), cupy.asarray(c)
        for plan in (None, Plan(block=64), Plan(block=128, targets=8)):
            device_c[:] = 0
            counted(device_a, device_c, grid=size, plan=plan)
            np.testing.assert_array_equal(device_c.get(), np.bincount(a, minlength=9))
        return
    with lw.device(device):
        counted(a, c, grid=size)
    np.testing.assert_array_equal(c, np.bincount(a, minlength=9))


def test_python_scatters_as_kernels_do() -> None:
    c = np.array([250], np.uint8)
    lw.scatter_add(c, 0, 10)
    assert c[0] == 4
    d = np.zeros((2, 2))
    lw.scatter_max(d, (0, 1), 3)
    lw.scatter_min(d, (0, 1), 2.5)
    assert d[0, 1] == 2.5
    with pytest.raises(ArgumentError) as error:
        lw.scatter_add([1], 0, 1)
    assert str(error.value) == "lw.scatter_add changes an element of an array of NumPy, found list"


def test_the_text_of_a_scatter() -> None:
    compiled = counted.compile(np.zeros(8, np.int32), np.zeros(8, np.int32), grid=8)
    assert "scatter add c[a_2], 1" in print_kernel(compiled.reference)
    texts = {
        device: generated_texts(build_program(compiled.reference, NEUTRAL if device == "cpu" else Plan(block=32).filled(NEUTRAL), device), device, locations=False)[0]
        for device in ("cpu", "cuda")
    }  # fmt: skip
    assert re.search(r"add i32 %\S+, 1\n  store i32", texts["cpu"])  # a thread's own memory
    assert "atomicrmw" not in texts["cpu"]
    assert "lw_scatter_add(&c_array[a_1], 1);" in texts["cuda"]
    assert "atomicAdd(element, value)" in texts["cuda"]


def test_what_explanations_say() -> None:
    explanation = counted.compile(np.zeros(8, np.int32), np.zeros(8, np.int32), grid=8).explain()
    assert "c[a_2] scattered to, gathered" in str(explanation)
    (access,) = [a for a in explanation.as_dict()["analysis"]["accesses"] if a["scattered"]]
    assert access["apart"] is None


# ------------------------------------------------------------ races


@lw.threadwise
def increments(i: lw.index, at: lw.Array1[lw.i32], c: lw.Array1[lw.i32]):
    c[at[i]] += 1


def test_a_race_that_a_scatter_would_not_be() -> None:
    with lw.device("python"):
        with pytest.raises(VerificationError) as error:
            increments(np.zeros(2, np.int32), np.zeros(3, np.int32), grid=2)
        increments(np.arange(2, dtype=np.int32), np.zeros(3, np.int32), grid=2)
    assert "a race at c[0]: i = 0 writes it" in str(error.value)
    assert "lw.scatter_add" in str(error.value)


def test_an_index_outside() -> None:
    places, counts = np.array([0, 9], np.int32), np.zeros(3, np.int32)
    with lw.device("python"), pytest.raises(VerificationError, match="c is written at 9, outside of 0 to 2"):
        counted(places, counts, grid=2)
    with pytest.raises(VerificationError, match="'c' is written outside of its elements"):
        counted(places, counts, grid=2, checks=True)


# ------------------------------------------------------------ refusals


@lw.threadwise
def also_read(i: lw.index, c: lw.Array1[lw.i32], d: lw.Array1[lw.i32]):
    lw.scatter_add(c, i, 1)
    d[i] = c[i]


@lw.threadwise
def also_stored(i: lw.index, c: lw.Array1[lw.i32]):
    c[i] = 0
    lw.scatter_add(c, 0, 1)


@lw.threadwise
def two_ways(i: lw.index, c: lw.Array1[lw.i32]):
    lw.scatter_add(c, 0, 1)
    lw.scatter_max(c, 0, i)


@lw.threadwise
def truths(i: lw.index, c: lw.Array1[lw.bool]):
    lw.scatter_max(c, 0, True)


@lw.threadwise
def few(i: lw.index, c: lw.Array1[lw.i32]):
    lw.scatter_add(c, 0)


@lw.threadwise
def no_array(i: lw.index, c: lw.Array1[lw.i32]):
    c[i] = 1
    lw.scatter_add(i, 0, 1)


@lw.threadwise
def used(i: lw.index, c: lw.Array1[lw.i32]):
    c[i] = lw.scatter_add(c, 0, 1)


@lw.threadwise
def one_index(i: lw.index, c: lw.Array2[lw.i32]):
    lw.scatter_add(c, i, 1)


@lw.threadwise
def fraction(i: lw.index, c: lw.Array1[lw.i32]):
    lw.scatter_add(c, i, 0.5)


@lw.threadwise
def meeting(y: lw.index, x: lw.index, c: lw.Array1[lw.i32]):
    c[y] += 1


ONE, TWO = np.zeros(4, np.int32), np.zeros((4, 4), np.int32)
REFUSED: list[tuple[Any, tuple[Any, ...], tuple[str, ...]]] = [
    (also_read, (ONE, ONE.copy()), ("touched by lw.scatter_add alone", "c[i], read while other threads scatter to c")),
    (also_stored, (ONE,), ("c[i], stored while other threads scatter to c", "another array, or another kernel for it")),
    (two_ways, (ONE,), ("touched by lw.scatter_max alone", "c[0], lw.scatter_add while")),
    (truths, (np.zeros(1, bool),), ("booleans are not scattered", "in an array of numbers 1 with lw.scatter_max")),
    (few, (ONE,), ("lw.scatter_add takes an array, an index and a value", "lw.scatter_add(c, 0)")),
    (no_array, (ONE,), ("lw.scatter_add changes an element of an array among the parameters",)),
    (used, (ONE,), ("this cannot be called in a kernel", "it is a separate statement")),
    (one_index, (TWO,), ("'c' has 2 dimensions",)),
    (fraction, (ONE,), ("an element of 'c' is of type i32",)),
    (meeting, (ONE,), ("several threads write one element", "numbers are added by many threads with lw.scatter_add")),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "arrays", "texts"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_refused(kernel: Any, arrays: tuple[Any, ...], texts: tuple[str, ...]) -> None:
    with pytest.raises(CompileError) as error:
        kernel(*arrays, grid=(4, 4) if kernel is meeting else 4)
    for text in texts:
        assert text in str(error.value)


def test_threads_that_share_a_point_do_not_scatter() -> None:
    compiled = counted.compile(np.zeros(8, np.int32), np.zeros(8, np.int32), grid=8)
    with pytest.raises(PlanError, match="several threads that share a point would do so several times"):
        build_program(compiled.reference, Plan(block=64, slices=2).filled(NEUTRAL), "cuda")


I = ir.Local("i", I32)  # noqa: E741
ONE_MORE = ir.Literal(1, I32)


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ((ir.ScatterElement("c", (I,), "add", ir.Literal(1.0, F32)),), "add of f32 does not fit c of i32"),
        ((ir.ScatterElement("c", (I, I), "add", ONE_MORE),), "no written array c in global memory with 2 dimensions"),
        ((ir.ScatterElement("d", (I,), "add", ONE_MORE),), "no written array d in global memory with 1 dimensions"),
        ((ir.ScatterElement("b", (I,), "max", ir.Literal(True, BOOL)),), "max of bool does not fit b of bool"),
        ((ir.ScatterElement("c", (I,), "add", ONE_MORE), ir.LoadElement("c", (I,), "c_1")), "c is also touched in another way"),
    ],
)  # fmt: skip
def test_kernels_that_are_wrong(statements: tuple[ir.Statement, ...], message: str) -> None:
    f = ir.Function("work", (), (), statements)
    arrays = {"c": (I32, 1), "f": (F32, 1), "b": (BOOL, 1)}
    kernel = build_threadwise(f, ThreadwiseArguments(("i",), arrays, {}, I32, narrow=True))
    with pytest.raises(VerificationError) as error:
        verify_kernel(kernel)
    assert message in str(error.value)
