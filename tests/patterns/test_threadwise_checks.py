"""Indices outside of arrays: refused before a call where they surely are, else found with `checks=True`, and what each
is told.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.printer import print_kernel
from lanewise.launch.support import compile_kernel
from lanewise.passes import index_tests as guards
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.threadwise import run_stage
from tests.patterns.threadwise_kernels import CASES, Case

HOSTS = pytest.mark.parametrize("device", ["cpu", "python"])


@lw.threadwise
def matmul(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def scatter(i: lw.index, place: lw.Array1[lw.i64], values: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[place[i]] = values[i]


@lw.threadwise
def gather(
    y: lw.index, x: lw.index, row: lw.Array1[lw.i32], a: lw.Array2[lw.f32], w: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):
    s = lw.f32(0)
    for k in range(len(row)):
        s += a[row[k], x + row[k] - y] * w[k, x]
    c[y, x] += s


@lw.threadwise
def shift(i: lw.index, by: lw.i32, step: lw.i32, a: lw.Array1[lw.f64], c: lw.Array1[lw.f64]):
    c[i] = a[i + by] * step


@lw.threadwise
def follow(i: lw.index, after: lw.Array1[lw.i32], length: lw.Array1[lw.i32]):
    n, at = 0, i
    while at != 3:
        at = after[at]
        n += 1
    length[i] = n


@lw.threadwise
def chosen(y: lw.index, x: lw.index, column: lw.Array1[lw.i32], a: lw.Array2[lw.f32]) -> lw.f32:
    return a[y, column[x]]


@lw.threadwise
def cube(z: lw.index, y: lw.index, x: lw.index, at: lw.Array1[lw.i32], a: lw.Array3[lw.f32]) -> lw.f32:
    return a[z, y, at[x]]


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def told(error: pytest.ExceptionInfo[Any], kernel: Any) -> str:
    """An error without the name of this file, its line counted from the decorator of the kernel."""
    text = str(error.value)
    assert text.startswith(f"{__file__}:")
    line, _, rest = text.removeprefix(f"{__file__}:").partition(":")
    return f"{int(line) - inspect.getsourcelines(kernel.python)[1]}:{rest}"


@lw.threadwise
def second_row(y: lw.index, x: lw.index, n: lw.i32, u: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if n > 0 and x > 0:
        c[y, x] = u[1, x]
    else:
        c[y, x] = u[0, x]


# ------------------------------------------------------------ refused before anything is computed

TOO_FEW_ROWS = """\
4:24: matmul: 'b' is read outside of its elements
    s += a[y, k] * b[k, x]
                   ^^^^^^^
  found: index 0 goes from 0 to 4 with grid=(3, 7), and 'b' has the shape (4, 7)
  wanted: 0 to 3
  hint: arrays and a grid that fit each other, or a condition around the access"""
GRID_TOO_LARGE = """\
4:14: matmul: 'a' is read outside of its elements
    s += a[y, k] * b[k, x]
         ^^^^^^^
  found: index 0 goes from 0 to 3 with grid=(4, 7), and 'a' has the shape (3, 5)
  wanted: 0 to 2
  hint: arrays and a grid that fit each other, or a condition around the access"""
NO_COLUMNS = """\
5:5: matmul: 'c' is written outside of its elements
    c[y, x] = s
    ^^^^^^^
  found: index 1 is 0 with grid=(3, 1), and 'c' has the shape (3, 0)
  wanted: no access: there are no elements
  hint: arrays and a grid that fit each other, or a condition around the access"""
BEFORE_THE_FIRST = """\
2:12: shift: 'a' is read outside of its elements
    c[i] = a[i + by] * step
           ^^^^^^^^^
  found: the index goes from -1 to 2 with grid=4, and 'a' has the shape (4,)
  wanted: 0 to 3
  hint: arrays and a grid that fit each other, or a condition around the access"""
ONE_ROW = """\
3:19: second_row: 'u' is read outside of its elements
    c[y, x] = u[1, x]
              ^^^^^^^
  found: index 0 is 1 with grid=(1, 5), and 'u' has the shape (1, 5)
  wanted: 0 to 0
  hint: arrays and a grid that fit each other, or a condition around the access"""
REFUSED: dict[str, tuple[Any, tuple[Any, ...], Any, str]] = {
    "an array with too few rows": (matmul, (zeros(3, 5), zeros(4, 7), zeros(3, 7)), (3, 7), TOO_FEW_ROWS),
    "a grid larger than an array": (matmul, (zeros(3, 5), zeros(5, 7), zeros(3, 7)), (4, 7), GRID_TOO_LARGE),
    "an array without elements": (matmul, (zeros(3, 5), zeros(5, 7), zeros(3, 0)), (3, 1), NO_COLUMNS),
    "a row that some thread reads": (second_row, (1, zeros(1, 5), zeros(1, 5)), (1, 5), ONE_ROW),
    "a value that leads outside": (shift, (-1, 1, zeros(4, dtype=np.float64), zeros(4, dtype=np.float64)), 4, BEFORE_THE_FIRST),
}  # fmt: skip


@HOSTS
@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("what", REFUSED)
def test_calls_that_cannot_be_right_are_refused(what: str, checks: bool, device: str) -> None:
    kernel, arguments, grid, message = REFUSED[what]
    with lw.device(device), pytest.raises(lw.ArgumentError) as error:
        kernel(*arguments, grid=grid, checks=checks)
    assert told(error, kernel) == message


def test_a_condition_that_nobody_meets_hides_what_is_outside() -> None:
    """Also of calls like earlier ones: each is held to its own numbers."""
    one, two = zeros(1, 5), zeros(2, 5) + 1
    for n, rows, refused in ((0, one, False), (1, one, True), (0, one, False), (1, two, False), (2, one, True)):
        c = zeros(1, 5)
        for _ in range(3):
            if refused:
                with pytest.raises(lw.ArgumentError, match="index 0 is 1 with grid"):
                    second_row(n, rows, c, grid=(1, 5))
            else:
                second_row(n, rows, c, grid=(1, 5))
                np.testing.assert_array_equal(c, rows[:1] if n == 0 else [[1, 1, 1, 1, 1]])
    alone = zeros(1, 1)
    second_row(1, alone, alone.copy(), grid=(1, 1))  # no thread has x > 0


def test_every_way_to_run_refuses() -> None:
    kernel, arguments, grid, message = REFUSED["an array with too few rows"]
    for way in (kernel.compile, kernel.bind, kernel.tune):
        with pytest.raises(lw.ArgumentError) as error:
            way(*arguments, grid=grid)
        assert told(error, kernel) == message


def test_repeated_calls_are_held_to_the_values_of_each() -> None:
    """A value that no index is made of may change; one that indices are made of is looked at."""
    a, c = np.arange(5.0), np.zeros(4)
    for by, step in ((0, 2), (1, 2), (1, 3), (0, 3)):
        shift(by, step, a, c, grid=4)
        np.testing.assert_array_equal(c, a[by : by + 4] * step)
    calls = shift._calls.repeated[None]  # pyright: ignore[reportPrivateUsage]
    assert calls.find((1, 7, a, c), {"grid": 4}) is not None
    assert calls.find((2, 7, a, c), {"grid": 4}) is None
    with pytest.raises(lw.ArgumentError, match="the index goes from 2 to 5 with grid=4"):
        shift(2, 3, a, c, grid=4)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_correct_kernels_are_left_alone(case: Case) -> None:
    """With tests and without them, to the bit: on a CPU."""
    results: list[dict[str, Any]] = []
    for checks in (False, True):
        given, grid = case.make(np.random.default_rng(3), *case.sizes)
        case.kernel(**given, grid=grid, checks=checks)
        results.append(given)
    for name, value in results[0].items():
        np.testing.assert_array_equal(value, results[1][name])


# ------------------------------------------------------------ found where it happens

WRITTEN = """\
2:5: scatter: 'c' is written outside of its elements
    c[place[i]] = values[i]
    ^^^^^^^^^^^
  found: the index is {} in the thread i = {}, and 'c' has the shape (3,)
  wanted: 0 to 2"""


@HOSTS
def test_an_index_that_data_tell(device: str) -> None:
    """The first thread is told; what lies outside is not written, everything else is."""
    c = zeros(3)
    with lw.device(device):
        with pytest.raises(lw.VerificationError) as error:
            scatter(np.array([2, 0, -5, 3]), np.ones(4, np.float32), c, grid=4, checks=True)
        scatter(np.array([2, 1, 0]), np.full(3, 7, np.float32), zeros(3), grid=3, checks=True)
    assert told(error, scatter) == WRITTEN.format(-5, 2)
    np.testing.assert_array_equal(c, [1, 0, 1])


@HOSTS
@pytest.mark.parametrize(
    ("index", "text"), [(2**50 - 2, str(2**50 - 2)), (2**50 - 1, f"{2**50 - 1} or more"), (-(2**63), f"{-(2**50)} or less")]
)  # fmt: skip
def test_indices_of_any_size(index: int, text: str, device: str) -> None:
    with lw.device(device), pytest.raises(lw.VerificationError) as error:
        scatter(np.array([0, index]), np.ones(2, np.float32), zeros(3), grid=2, checks=True)
    assert told(error, scatter) == WRITTEN.format(text, 1)


SEVERAL = """\
6:14: gather: 'a' is read outside of its elements
    s += a[row[k], x + row[k] - y] * w[k, x]
         ^^^^^^^^^^^^^^^^^^^^^^^^^
  found: index {} in the thread y = {}, x = {}, and 'a' has the shape (4, 6)
  wanted: {}"""


@HOSTS
def test_the_first_of_several(device: str) -> None:
    """The first thread; of its failures that of the first dimension, and the least index there. Elements outside count
    as 0.
    """
    a, w, c = np.ones((4, 6), np.float32), np.ones((4, 3), np.float32), zeros(2, 3)
    with lw.device(device):
        with pytest.raises(lw.VerificationError) as error:
            gather(np.array([1, 9, 7, 3], np.int32), a, w, c, grid=(2, 3), checks=True)
        np.testing.assert_array_equal(c, np.full((2, 3), 2))
        assert told(error, gather) == SEVERAL.format("0 is 7", 0, 0, "0 to 3")
        with pytest.raises(lw.VerificationError) as error:
            gather(np.array([0, 3], np.int32), a, w, c, grid=(2, 3), checks=True)
        assert told(error, gather) == SEVERAL.format("1 is -1", 1, 0, "0 to 5")


@HOSTS
def test_a_thread_that_was_outside_leaves_its_loop(device: str) -> None:
    """An element outside reads as 0, from where `follow` would go round for ever."""
    length = np.full(4, -1, np.int32)
    with lw.device(device):
        with pytest.raises(lw.VerificationError, match="the index is 8 in the thread i = 0, and 'after'"):
            follow(np.array([1, 8, 3, 0], np.int32), length, grid=4, checks=True)
        follow(np.array([1, 2, 3, 0], np.int32), length, grid=4, checks=True)
    np.testing.assert_array_equal(length, [3, 2, 1, 0])


@HOSTS
def test_sums(device: str) -> None:
    """Their loops stay as they are: a kernel before them makes the tests."""
    a = np.random.default_rng(2).normal(size=(5, 40)).astype(np.float32)
    columns = np.array([0, 39, 3], np.int32)
    with lw.device(device):
        assert chosen(columns, a, grid=(5, 3), checks=True) == chosen(columns, a, grid=(5, 3))
        with pytest.raises(
            lw.VerificationError, match="index 1 is 40 in the thread y = 0, x = 2, and 'a' has the shape"
        ):
            chosen(np.array([39, 0, 40], np.int32), a, grid=(5, 3), checks=True)
        cubic = a.reshape(2, 5, 20)
        at = np.array([1, 20], np.int32)
        with pytest.raises(lw.VerificationError, match="index 2 is 20 in the thread z = 0, y = 0, x = 1"):
            cube(at, cubic, grid=(2, 5, 2), checks=True)
        out = np.zeros(1)
        assert cube(at - 1, cubic, grid=(2, 5, 2), checks=True, out=out) is out
        assert out[0] == pytest.approx(cubic[:, :, [0, 19]].sum(dtype=np.float64), rel=1e-12)


def test_bound_and_compiled_calls_test_each_time() -> None:
    place, values, c = np.array([2, 0, 1]), np.ones(3, np.float32), zeros(3)
    bound = scatter.bind(place, values, c, grid=3, checks=True)
    compiled = scatter.compile(place, values, c, grid=3, checks=True)
    assert "$outside" in print_kernel(compiled.reference)
    for _ in range(2):
        bound()
        compiled(place, values, c, grid=3)
    place[1] = 3
    for run in (bound, lambda: compiled(place, values, c, grid=3)):
        for _ in range(2):
            with pytest.raises(lw.VerificationError, match="the index is 3 in the thread i = 1"):
                run()
    place[1] = 0
    bound()


def test_what_is_proved_has_no_tests() -> None:
    """A matrix product that fits is compiled as without checks, and a stencil with its tests of edges."""
    a, b, c = zeros(3, 5), zeros(5, 7), zeros(3, 7)
    texts = [print_kernel(matmul.compile(a, b, c, grid=(3, 7), checks=x).reference) for x in (False, True)]
    assert texts[0] == texts[1]
    smooth = next(case for case in CASES if case.name == "smooth")
    given, grid = smooth.make(np.random.default_rng(1), 8, 9)
    assert "$outside" not in print_kernel(smooth.kernel.compile(**given, grid=grid, checks=True).reference)


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_checks_are_on_or_off(value: Any) -> None:
    with pytest.raises(lw.ArgumentError, match=r"^scatter: checks= is True or False, found "):
        scatter(np.zeros(1, np.int64), zeros(1), zeros(1), grid=1, checks=value)


def test_a_parameter_has_another_name() -> None:
    def kernel(i: lw.index, checks: lw.f32, c: lw.Array1[lw.f32]):
        c[i] = checks

    with pytest.raises(lw.CompileError, match="'checks' is a keyword of every call"):
        lw.threadwise(kernel)(1.0, zeros(1), grid=1)


# ------------------------------------------------------------ every stage, and GPUs

PLANS = {
    "naive": Plan(block=64), "points": Plan(block=64, rows=2, targets=4), "tiles": Plan(block=64, rows=2, targets=4, tile=8),
    "slices": Plan(block=64, slices=8), "parts": Plan(block=64, slices=4, parts=4),
}  # fmt: skip


def broken() -> dict[str, Any]:
    """Arguments of `gather`, whose threads are outside from the row on that is its least number and one."""
    row = np.array([3, 1, 3, 1, 2, 1, 1], np.int32)
    return {"row": row, "a": np.ones((4, 6), np.float32), "w": np.ones((7, 3), np.float32), "c": zeros(5, 3)}


@pytest.mark.parametrize("plan", PLANS)
def test_every_stage_for_a_gpu_finds_the_same(plan: str) -> None:
    given = broken()
    compiled = gather.compile(**given, grid=(5, 3), checks=True)
    stages: list[Any] = []
    build_program(compiled.reference, PLANS[plan].filled(NEUTRAL), "cuda", lambda name, kernel: stages.append(kernel))
    outcomes: list[Any] = []
    whole = [k for k in stages if not k.scratch and not any(a.name.startswith("$partial") for a in k.arrays)]
    for stage in whole:
        changed = {n: v.copy() for n, v in given.items()} | {"$outside": np.zeros((5, 3), np.int64)}
        run_stage(stage, changed, compiled.environment)
        outcomes.append(changed)
    first = outcomes[0]["$outside"]
    np.testing.assert_array_equal((first == guards.NONE)[:, 0], [True, True, False, False, False])
    for o in outcomes:
        np.testing.assert_array_equal(o["$outside"], first)
        np.testing.assert_array_equal(o["c"], outcomes[0]["c"])


@pytest.mark.parametrize("plan", PLANS)
def test_the_text_for_a_gpu_compiles(plan: str) -> None:
    given = broken()
    reference = gather.compile(**given, grid=(5, 3), checks=True).reference
    executable = compile_kernel(reference, PLANS[plan].filled(NEUTRAL), "cuda", arch="sm_90")
    assert all(c.resources.registers for c in executable.cubins)


@pytest.mark.cuda
@pytest.mark.parametrize("plan", [None, *PLANS])
def test_on_a_gpu(plan: str | None) -> None:
    import cupy

    given = broken()
    errors: list[str] = []
    for module in (np, cupy):
        changed = {n: module.asarray(v) for n, v in given.items()}
        changed["c"][:] = 0
        with pytest.raises(lw.VerificationError) as error:
            gather(**changed, grid=(5, 3), checks=True, plan=PLANS.get(plan or "") if module is cupy else None)
        errors.append(f"{told(error, gather)} {changed['c'].tolist()}")
    assert errors[0] == errors[1]


@pytest.mark.cuda
def test_calls_on_a_gpu() -> None:
    """Sums, repeated and bound calls, and what is refused."""
    import cupy

    place, values, c = cupy.array([2, 0, 1]), cupy.ones(3, np.float32), cupy.zeros(3, np.float32)
    bound = scatter.bind(place, values, c, grid=3, checks=True)
    bound()
    place[1] = -1
    for _ in range(2):
        with pytest.raises(lw.VerificationError, match="the index is -1 in the thread i = 1"):
            bound()
    a = cupy.asarray(np.random.default_rng(2).normal(size=(5, 40)).astype(np.float32))
    columns = cupy.array([0, 39, 3], np.int32)
    assert chosen(columns, a, grid=(5, 3), checks=True) == chosen(columns, a, grid=(5, 3))
    with pytest.raises(lw.VerificationError, match="index 1 is 40 in the thread y = 0, x = 1"):
        chosen(columns + 1, a, grid=(5, 3), checks=True)
    kernel, arguments, grid, message = REFUSED["an array with too few rows"]
    with pytest.raises(lw.ArgumentError) as error:
        kernel(*map(cupy.asarray, arguments), grid=grid)
    assert told(error, kernel) == message
