"""Points and rounds in the lanes of SIMD registers: every stage and the machine code compute what the reference does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.emit.llvm_vectors import FAR
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.ir.printer import print_kernel
from lanewise.language.target import CPU, Machine
from lanewise.patterns.threadwise.host_plans import suggested_on_host
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.emit.comments import comments, entry
from tests.lines import part_of_memory
from tests.patterns.reductions import softmax, total
from tests.patterns.test_threadwise import arguments, check, copies
from tests.patterns.threadwise import run_stage, stages
from tests.patterns.threadwise_kernels import BY_NAME, CASES, Case

PLANS = {
    "lanes": Plan(across=16), "few lanes": Plan(across=4, targets=3), "rows": Plan(across=8, rows=3, targets=2),
    "packed": Plan(across=4, rows=2, targets=2, tile=5), "square": Plan(across=4, rows=4), "layers": Plan(across=8, layers=2, rows=2),
    "slices": Plan(slices=16), "few slices": Plan(slices=4), "tiles": Plan(across=4, rows=4, tile=8), "kept": Plan(slices=4, tile=8),
}  # fmt: skip
REFUSED = (
    "do not touch neighbouring elements of", "the index space has", "no elements are read by all rows of a block in a loop",
    "it has no loop whose rounds several threads could share", "its rounds cannot be shared", "lanes run together",
    "compute the same value", "takes one number after the other", "booleans, which take a byte each", "its loops stand in a branch", "it scatters",
)  # fmt: skip


def bound(case: Case, sizes: tuple[int, ...], plan: Plan) -> None:
    """The machine code of a plan against NumPy."""
    data, grid = arguments(case, sizes)
    changed = copies(data)
    case.kernel(**changed, grid=grid, plan=plan)
    check(case, changed, data)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_plan_means_the_same(case: Case, name: str) -> None:
    sizes = tuple(min(n, 6) for n in case.sizes)
    data, grid = arguments(case, sizes)
    compiled = case.kernel.compile(**data, grid=grid, plan=Plan(across=0))
    stages: list[ir.Kernel] = []
    refused = ""
    try:
        build_program(compiled.reference, PLANS[name].filled(NEUTRAL), "cpu", lambda stage, k: stages.append(k))
    except PlanError as error:
        refused = str(error)
    if refused:
        assert any(reason in refused for reason in REFUSED), refused
        with pytest.raises(PlanError):
            case.kernel(**data, grid=grid, plan=PLANS[name])
        return
    for stage in stages:
        changed = copies(data)
        run_stage(stage, changed, compiled.environment)
        check(case, changed, data)
    bound(case, case.sizes, PLANS[name])


SIZES = st.sampled_from([0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 37, 64, 97])


@pytest.mark.quick("matmul-packed", "transpose-square", "smooth-rows", "rows_times-slices", "solve-lanes")
@pytest.mark.parametrize(("name", "plan"), [
    ("matmul", "packed"), ("matmul", "rows"), ("transpose", "square"), ("transpose", "tiles"), ("smooth", "rows"), ("outer", "lanes"), ("columns_times", "few lanes"),
    ("rows_times", "slices"), ("convolve", "rows"), ("laplace", "layers"), ("solve", "lanes"),
])  # fmt: skip
def test_shapes_of_all_kinds(name: str, plan: str) -> None:
    case = BY_NAME[name]

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[SIZES] * len(case.sizes)))
    def holds(sizes: tuple[int, ...]) -> None:
        bound(case, tuple(min(n, 17 if name in ("laplace", "convolve") else 97) for n in sizes), PLANS[plan])

    holds()


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(SIZES.filter(bool), SIZES.filter(bool), st.sampled_from([4, 8, 16, 32, 64]))
def test_rows_of_all_lengths(m: int, n: int, slices: int) -> None:
    a = np.random.default_rng(m * 100 + n).normal(size=(m, n)).astype(np.float32)
    c = np.zeros_like(a)
    softmax(a, c, grid=m, plan=Plan(slices=slices))
    e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(c, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(total(a, grid=a.shape, plan=Plan(slices=slices)), a.sum(dtype=np.float64), rtol=1e-6)


def test_large_arrays_are_written_past_the_caches() -> None:
    shape = (1031, 4099)
    assert np.prod(shape) * 4 > FAR
    rng = np.random.default_rng(1)
    u, v, c = rng.normal(size=shape[0]).astype("f4"), rng.normal(size=shape[1]).astype("f4"), np.zeros(shape, "f4")

    run = product.bind(u, v, c, grid=shape, plan=Plan(across=16, rows=4, targets=2))
    text = run.compiled.source
    assert "past the caches if far_c" in [line.strip() for line in comments(text)]
    assert re.search(r"store <16 x float> %\S+, ptr %\S+, align 64, !nontemporal", text)
    run()
    np.testing.assert_array_equal(c, u[:, None] * v)


@pytest.mark.slow
def test_rows_with_masked_ends_are_streams_where_they_are_long() -> None:
    for shape in ((1031, 4099), (4099, 1031), (4099, 1040)):
        a, c = np.random.default_rng(2).normal(size=shape).astype("f4"), np.zeros(shape, "f4")
        run = copied.bind(
            a, c, grid=shape, plan=Plan(across=16, rows=2)
        )  # one row beside the other, not in the order of memory
        rows = "far_c = len(c_array) > 4194304 and (x_extent % 16 == 0 or x_extent >= 2048)"
        assert comments(run.compiled.source)[0] == rows
        run()
        np.testing.assert_array_equal(c, a)
        c.fill(0)
        run = softmax.bind(a, c, grid=shape[0], plan=Plan(slices=16))
        unbroken = "  k_unbroken = k_whole == i64(a_shape1) or k_whole - k_begin >= 2048"
        assert unbroken in comments(run.compiled.source)
        run()
        e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
        np.testing.assert_allclose(c, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@lw.threadwise
def copied(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x]


@lw.threadwise
def product(y: lw.index, x: lw.index, u: lw.Array1[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = u[y] * v[x]


@lw.threadwise
def numbers(i: lw.index, a: lw.Array1[lw.i32], b: lw.Array1[lw.f32], c: lw.Array1[lw.f32], d: lw.Array1[lw.i32]):
    n = lw.clamp(a[i] * 3 - 7, -50, 60)
    x = lw.mix(b[i], lw.sqrt(lw.abs(b[i])), 0.25)
    if n > 4 and not b[i] < 0.0:
        x = lw.max(x, lw.floor(b[i] * 5.0)) if i % 4 == 1 else -x
        n = (n // 8) ^ (i << 2)
    c[i] = lw.min(x, lw.f32(n)) / 3.0
    d[i] = lw.i32(b[i] * 1e10) + (n >> 1) % 16


def test_operations_are_those_of_the_interpreter() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-99, 99, 101, np.int32), rng.normal(size=101).astype("f4") * 9
    b[::17] = np.nan
    results = []
    for plan, device in ((Plan(across=8, targets=2), "cpu"), (None, "python")):
        c, d = np.zeros(101, "f4"), np.zeros(101, np.int32)
        with lw.device(device):
            numbers(a, b, c, d, grid=101, plan=plan)
        results.append((c, d))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_array_equal(results[0][1], results[1][1])


# ------------------------------------------------------------ plans


def chosen(name: str, points: int, bits: int, **wish: Any) -> str:
    data, grid = arguments(BY_NAME[name])
    reference = BY_NAME[name].kernel.compile(**data, grid=grid, plan=Plan(across=0)).reference
    work = describe_work(reference, points, CPU)
    assert isinstance(work, Work)
    return complete_plan(Plan(**wish), Machine("cpu", 2, bits), work).short()


def test_default_plans() -> None:
    assert chosen("matmul", 10**6, 512) == "targets=3, tile=2048, across=16, rows=8, vector_bits=512"
    assert chosen("matmul", 10**6, 256) == "targets=2, tile=2048, across=8, rows=6"
    assert chosen("matmul", 100, 512) == "across=16, vector_bits=512", "few points"
    assert chosen("columns_times", 10**6, 512) == "targets=16, across=8, vector_bits=512", "numbers of 8 bytes"
    assert chosen("smooth", 10**6, 512) == "across=16, vector_bits=512"
    assert chosen("smooth", 10**6, 256) == "across=16", "a line of memory, two registers"
    assert chosen("transpose", 10**6, 512) == "tile=512, across=8, rows=8, vector_bits=512", "a page of what is read"
    assert chosen("transpose", 10**5, 512) == "tile=256, across=8, rows=8, vector_bits=512", "half of one"
    assert chosen("transpose", 10**4, 512) == "across=8, rows=8, vector_bits=512", "too few points for tiles"
    assert chosen("collatz", 10**6, 512) == "neutral"
    assert chosen("rows_times", 10**6, 512) == "neutral", "nothing says how long rows are"
    assert chosen("matmul", 10**6, 512, across=0) == "neutral", "a wish leaves the rest neutral"
    assert chosen("matmul", 10**6, 512, vector_bits=256).endswith("across=8, rows=6, vector_bits=256")


def test_windows_have_two_rows_at_once_where_rows_are_long_and_whole_lines() -> None:
    a = np.zeros((9, 70), "f4")
    reference = below.compile(a, np.zeros((7, 69), "f4"), grid=(7, 69), plan=Plan(across=0)).reference
    suggestions = suggested_on_host(reference)
    for length, rows in ((4096, 2), (4097, 1), (256, 1)):
        plan = suggestions.at({p.name: length for p in reference.counts}).first(lambda p: p.vector_bits == 512)
        assert plan is not None
        assert (plan.across, plan.rows) == (16, rows)


def test_lanes_of_several_registers_compute_what_several_loops_need() -> None:
    a = np.random.default_rng(3).normal(size=(130, 200)).astype(np.float32)
    assert softmax.bind(a, np.zeros_like(a), grid=130, plan=Plan(vector_bits=256)).compiled.plan.slices == 32
    reference = softmax.compile(a, np.zeros_like(a), grid=130, plan=Plan(across=0)).reference
    wide = suggested_on_host(reference).first(lambda p: p.vector_bits == 512)
    assert wide is not None
    assert wide.slices == 64


def test_blocks_at_an_edge_load_before_its_test() -> None:
    n = 50
    a = np.random.default_rng(4).normal(size=(3, 5, n)).astype(np.float32)
    c = np.full_like(a, 7)
    run = between.bind(a, c, grid=a.shape, plan=Plan(across=16))
    text = entry(run.compiled.source)
    assert "select <16 x i1>" not in text  # values of one side of a branch mean nothing to the other ones
    before, row = text.split("; " + "    if x_begin < x_inner:", 1)
    assert "z_first < a_shape0" in before  # what depends on the row is tested before it
    assert "z_first < a_shape0" not in row
    early, others = re.split(r"; +else:", row, maxsplit=1)
    first, inside, last = re.split(r"; +for x_number in range\(x_inner, x_outer\):|; +if x_outer < x_end:", early)
    for at_an_edge in (first, last):
        # what all lanes share is no mask
        assert re.search(r"%test_1\.\d+ = load i1, ptr %test_1\n  %test_2\.\d+ = load i1, ptr %test_2\n", at_an_edge)
        assert at_an_edge.count("load <16 x float>, ptr %.") == 2
        assert at_an_edge.count("call void @lw_pieces_v16f32(") == 1
    assert "masked" not in inside
    assert "lw_pieces" not in inside
    assert "@llvm.masked.load" not in early
    # the first and the last plane, and rows of which several blocks are at an end
    assert "@llvm.masked.load" in others
    run()
    expected = np.full_like(a, 7)
    expected[1:-1, :, 1:-1] = a[:-2, :, 1:-1] + a[1:-1, :, 2:]
    np.testing.assert_array_equal(c, expected)


@lw.threadwise
def between(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    if 0 < z < a.shape[0] - 1 and 0 < x < a.shape[2] - 1:
        c[z, y, x] = a[z - 1, y, x] + a[z, y, x + 1]


@pytest.mark.parametrize(("plan", "reason"), [
    (Plan(across=5), "a SIMD register has 4, 8 or 16 lanes; 5 were requested"), (Plan(across=16, rows=0), "0 points per lane were requested"),
    (Plan(across=16, layers=2), "the index space has 2 indices"), (Plan(rows=2), "choose across=16, or rows=1"),
    (Plan(across=16, down=2), "only a GPU has blocks of threads"), (Plan(across=16, order="panels"), "only a GPU has blocks of threads"),
    (Plan(slices=16, tile=64), "no two of its loops over one range, from 0 on, compute the same value"),
    (Plan(slices=3), "a SIMD register has 4, 8, 16, 32 or 64 lanes; 3 were requested"), (Plan(slices=16, parts=2), "parts is 1"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(plan: Plan, reason: str) -> None:
    data, grid = arguments(BY_NAME["matmul"])
    with pytest.raises(PlanError) as error:
        BY_NAME["matmul"].kernel(**data, grid=grid, plan=plan)
    assert reason in str(error.value)


def test_golden_texts(golden: Callable[[str, str], None]) -> None:
    cube = np.zeros((3, 5, 50), np.float32)
    for name, plan in (
        ("matmul", PLANS["packed"]),
        ("transpose", PLANS["square"]),
        ("rows_times", PLANS["few slices"]),
        ("transpose", PLANS["tiles"]),
        ("between", PLANS["lanes"]),
    ):
        if name == "between":
            compiled = between.compile(cube, np.zeros_like(cube), grid=cube.shape, plan=plan)
        else:
            data, grid = arguments(BY_NAME[name])
            compiled = BY_NAME[name].kernel.compile(**data, grid=grid, plan=plan)
        lanes = stages(compiled.reference, plan, "cpu")["SIMD lanes"]
        tiled = " in tiles" if name == "transpose" and plan.tile else ""
        golden(f"lanes of {name}{tiled}", "\n".join([print_kernel(lanes), entry(compiled.source)]))


@lw.threadwise
def beside(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x] - 2.0 * a[y, x + 1]


@lw.threadwise
def doubled(x: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[x] = 2.0 * a[x]


@pytest.mark.parametrize("before", [0, 1, 4, 15])
@pytest.mark.parametrize("columns", [2064, 2065, 48])
def test_registers_that_are_stored_are_lines_wherever_an_array_begins(before: int, columns: int) -> None:
    rows = 5
    a = np.random.default_rng(7).normal(size=(rows, columns + 1)).astype("f4")
    for kernel, data, grid, expected in (
        (beside, a, (rows, columns), a[:, :-1] - 2 * a[:, 1:]), (doubled, a.ravel(), rows * columns, 2 * a.ravel()[: rows * columns]),
    ):  # fmt: skip
        part = part_of_memory(expected.shape, before)
        run = kernel.bind(data, part.array, grid=grid, plan=Plan(across=16))
        said = comments(run.compiled.source)
        assert "  phase: i32 = @phase" in said
        assert any(line.endswith(" - row_phase" if kernel is beside else " - phase") for line in said)
        run()
        np.testing.assert_array_equal(part.array, expected)
        part.assert_nothing_beside()


@lw.threadwise
def below(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[y, x] + a[y + 1, x] + a[y + 2, x + 1] + a[y + 2, x]


def test_the_last_row_of_neighbours_is_asked_for_ahead() -> None:
    a = np.random.default_rng(8).normal(size=(9, 70)).astype("f4")
    c = np.zeros((7, 69), "f4")
    run = below.bind(a, c, grid=c.shape, plan=Plan(across=16))
    asked = [line.strip() for line in comments(run.compiled.source) if "prefetch" in line]
    # once a register, in the inside and at the edges
    assert asked == 2 * ["prefetch a_array[i64(y + 2) * i64(a_shape1) + i64(x_first) + 1 + 1536]"]
    assert run.compiled.source.count("call void @llvm.prefetch") == len(asked)
    run()
    np.testing.assert_array_equal(c, a[:7, :69] + a[1:8, :69] + a[2:, 1:] + a[2:, :69])


@lw.threadwise
def around(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    s = a[z, y + 1, x + 1] + a[z + 2, y + 1, x + 1] + a[z + 1, y, x + 1]
    c[z, y, x] = s + a[z + 1, y + 2, x + 1] + a[z + 1, y + 1, x] + a[z + 1, y + 1, x + 2]


def test_of_planes_before_the_last_the_last_row_is_asked_for_too() -> None:
    a = np.random.default_rng(9).normal(size=(5, 6, 70)).astype("f4")
    c = np.zeros((3, 4, 68), "f4")
    run = around.bind(a, c, grid=c.shape, plan=Plan(across=16))
    asked = [line for line in comments(run.compiled.source) if "prefetch a_array[" in line]
    last = [line for line in asked if "(z + 2)" in line and "(y + 1)" in line and line.endswith(" + 1536]")]
    before = [line for line in asked if "(z + 1)" in line and "(y + 2)" in line and line.endswith(" + 1024]")]
    assert len(last) == len(before) == 2  # once a register, in the inside and at the edges
    assert len(asked) == 4
    run()
    sides = (
        a[:-2, 1:-1, 1:-1]
        + a[2:, 1:-1, 1:-1]
        + a[1:-1, :-2, 1:-1]
        + a[1:-1, 2:, 1:-1]
        + a[1:-1, 1:-1, :-2]
        + a[1:-1, 1:-1, 2:]
    )
    np.testing.assert_allclose(c, sides, rtol=1e-5, atol=1e-5)


@lw.threadwise
def distances(y: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    for x in range(b.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += abs(a[y, k] - b[k, x])
        r[y, x] = s


@lw.threadwise
def distances_f64(y: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], r: lw.Array2[lw.f64]):
    for x in range(b.shape[1]):
        s = lw.f64(0.0)
        for k in range(a.shape[1]):
            s += abs(a[y, k] - b[k, x])
        r[y, x] = s


@lw.threadwise
def doubles(y: lw.index, b: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    for x in range(b.shape[1]):
        r[y, x] = b[y, x] * 2.0


@pytest.mark.parametrize(("kernel", "kind", "widest"), [(distances, "f4", 64), (distances_f64, "f8", 32)])
@pytest.mark.parametrize("bits", [512, 256])
def test_short_loops_that_write_what_a_loop_inside_gathers_are_shared(
    kernel: Any, kind: str, widest: int, bits: int
) -> None:
    """The fewest lanes that hold all rounds: a pass over them costs the loop inside, once for all of its rounds."""
    machine, widest = Machine("cpu", 2, bits), widest * bits // 512
    for columns in (3, 7, 8, 9, 16, 17, 32, 33, 53, 63):
        a, b, r = np.zeros((100, 70), kind), np.zeros((70, columns), kind), np.zeros((100, columns), kind)
        found = kernel.compile(a, b, r, grid=100, plan=Plan(across=0))
        environment = {p.name: int(found.environment[p.name]) for p in found.reference.counts}
        work = describe_work(found.reference, 100, CPU).at(environment, 100)
        slices = complete_plan(Plan(), machine, work).slices
        if columns < 8:
            assert slices == 1
        else:
            assert slices == widest or slices >= columns
            assert slices <= max(columns * 2 - 1, bits // 8 // np.dtype(kind).itemsize)


def test_rounds_in_lanes_add_in_the_order_of_the_loop() -> None:
    rng = np.random.default_rng(5)
    for columns in (8, 16, 31, 53):
        a, b = rng.random((9, 40), np.float32), rng.random((40, columns), np.float32)
        r, wanted = np.empty((9, columns), np.float32), np.zeros((9, columns), np.float32)
        for k in range(40):
            wanted += np.abs(a[:, k, None] - b[k])
        distances(a, b, r, grid=9)
        assert np.array_equal(r, wanted)
    short = np.zeros((9, 53), np.float32)
    assert doubles.compile(short, short.copy(), grid=9).plan.slices == 1  # nothing inside is worth a pass
