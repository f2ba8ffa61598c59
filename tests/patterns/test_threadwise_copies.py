"""Tiles that asynchronous copies bring: rings of two to four, in the interpreter, as text and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_block, print_kernel
from lanewise.ir.traverse import flat_map, statements
from lanewise.ir.verify import verify_kernel
from lanewise.ladders.compiler_kernels import batched, convolve
from lanewise.language.target import Machine, copies_asynchronously
from lanewise.language.types import BOOL, F32, I32
from lanewise.launch.executable import build_executable, generated_texts
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError, VerificationError
from tests.patterns.test_threadwise import copies
from tests.patterns.threadwise import run_stage, stages
from tests.patterns.threadwise_kernels import BY_NAME

matmul = BY_NAME["matmul"].kernel
SMALL = Plan(block=32, across=8, rows=1, targets=2, tile=4, prefetch="async3", unroll=2)
LARGE = Plan(block=128, across=16, rows=8, targets=8, tile=16, prefetch="async", unroll=0)
RINGS = {"async": 2, "async3": 3, "async4": 4}


@lw.threadwise
def matmul_f64(y: lw.index, x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], c: lw.Array2[lw.f64]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def blurred(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], n: lw.i32):
    """Two loops of different lengths around one that only adds: the second of them is copied again for each round of the first."""
    s = 0.0
    for _ in range(3):
        for k in range(n):
            s += a[y, k] * a[k, x]
        s = s * 0.5
    c[y, x] = s


@lw.threadwise
def voted(y: lw.index, x: lw.index, a: lw.Array2[lw.bool], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        if a[y, k]:
            s += b[k, x]
    c[y, x] = s


@lw.threadwise
def turned(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[x, y]


def product(kind: Any, m: int, k: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(m * k + n)
    a, b = (rng.integers(-4, 5, shape).astype(kind) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "c": np.full((m, n), np.nan, kind)}


def kernels(kernel: Any, given: dict[str, Any], grid: Any, plan: Plan, multiple: int = 1) -> dict[str, ir.Kernel]:
    """The kernel after each pass, where rows of arrays begin at multiples of so many elements."""
    reference = kernel.compile(**given, grid=grid).reference
    return stages(replace(reference, arrays=tuple(replace(a, multiple=multiple) for a in reference.arrays)), plan)


def found_copies(kernel: ir.Kernel) -> list[ir.CopyElement]:
    return [s for s in statements(kernel.body) if isinstance(s, ir.CopyElement)]


# ------------------------------------------------------------ what is made


def test_the_ring_of_a_matrix_product(golden: Any) -> None:
    """The text of the pass: copies of 8 bytes into a ring of three, with zeros at the edges."""
    given = product(np.float32, 8, 32, 8)
    golden("ring", print_kernel(kernels(matmul, given, (8, 8), SMALL, 2)["shared-memory tiles"]))


@pytest.mark.parametrize(("how", "stages"), RINGS.items())
def test_a_ring_has_so_many_tiles(how: Any, stages: int) -> None:
    given = product(np.float32, 8, 32, 8)
    kernel = kernels(matmul, given, (8, 8), replace(SMALL, prefetch=how))["shared-memory tiles"]
    assert [kernel.array(n).shape[0] for n in ("$tile.a", "$tile.b")] == [stages, stages]
    waits = {s.pending for s in statements(kernel.body) if isinstance(s, ir.WaitAsync)}
    assert waits == {stages - 2, 0}
    assert any(isinstance(s, ir.CommitAsync) for s in statements(kernel.body)) == (stages > 2)


def test_what_is_turned_round_is_copied_by_single_elements() -> None:
    """Rows of b lie as they are; what threads read of a along its first index lies side by side, along its second in memory."""
    given = product(np.float32, 64, 64, 64)
    kernel = kernels(matmul, given, (64, 64), LARGE, 4)["shared-memory tiles"]
    assert {(s.source, s.across) for s in found_copies(kernel)} == {("a", 1), ("b", 4)}
    tile = kernel.array("$tile.a")
    assert tile.shape[:2] == (2, 16)  # rounds, and rows of the block behind them
    text = generated_texts(build_program_of(LARGE, 4), "cuda", locations=False)[0]
    assert "lw_copy_async<4>(" in text
    assert "lw_copy_past_l1<16>(" in text
    assert "lw_copy_past_l1_or_zero<16>(" in text  # at the edges
    assert "cp.async.cg.shared.global" in text


def build_program_of(plan: Plan, multiple: int) -> Any:
    reference = matmul.compile(**product(np.float32, 64, 64, 64), grid=(64, 64)).reference
    wide = replace(reference, arrays=tuple(replace(a, multiple=multiple, narrow=True) for a in reference.arrays))
    return build_program(wide, plan.filled(NEUTRAL), "cuda")


def test_only_blocks_at_edges_test_what_they_copy() -> None:
    given = product(np.float32, 64, 64, 64)
    split = kernels(matmul, given, (64, 64), LARGE, 4)["shared-memory tiles"].body[-1]
    assert isinstance(split, ir.If)
    inside, edge = (
        next(s for s in statements(b) if isinstance(s, ir.For) and s.role == "tiles").body
        for b in (split.then, split.otherwise)
    )
    tests = [{s.there is None for s in statements(b) if isinstance(s, ir.CopyElement)} for b in (inside, edge)]
    assert tests == [{True}, {False}]


def test_tiles_of_three_dimensions_follow_each_other_in_the_first() -> None:
    a = np.zeros((5, 16, 16), np.float32)
    plan = Plan(block=32, across=4, down=4, rows=2, targets=2, layers=2, tile=4, prefetch="async3")
    kernel = kernels(batched, {"a": a, "b": a.copy(), "c": a.copy()}, a.shape, plan)["shared-memory tiles"]
    assert [len(kernel.array(n).shape) for n in ("$tile.a", "$tile.b")] == [3, 3]
    assert kernel.array("$tile.a").shape[0] % 3 == 0


# ------------------------------------------------------------ what it means


def meaning(kernel: Any, given: dict[str, Any], grid: Any, plan: Plan, expected: Any, multiple: int = 1) -> None:
    environment = kernel.compile(**given, grid=grid).environment
    for name, stage in kernels(kernel, given, grid, plan, multiple).items():
        if name not in ("shared-memory tiles", "wide accesses", "layout lowering"):
            continue
        changed = copies(given)
        run_stage(stage, changed, environment)
        np.testing.assert_array_equal(changed["c"], expected)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("how", RINGS)
@pytest.mark.parametrize("k", [0, 1, 4, 7, 13, 24])
def test_products_of_few_and_many_tiles(how: Any, k: int) -> None:
    given = product(np.float32, 5, k, 18)
    meaning(matmul, given, (5, 18), replace(SMALL, prefetch=how), given["a"] @ given["b"])


@pytest.mark.parametrize("how", RINGS)
def test_numbers_of_eight_bytes(how: Any) -> None:
    given = product(np.float64, 6, 12, 20)
    plan = replace(SMALL, prefetch=how, targets=4)
    meaning(matmul_f64, given, (6, 20), plan, given["a"] @ given["b"], multiple=2)
    sizes = {
        s.source: s.across for s in found_copies(kernels(matmul_f64, given, (6, 20), plan, 2)["shared-memory tiles"])
    }
    assert sizes == {"a": 2, "b": 2}


@pytest.mark.parametrize("how", RINGS)
def test_a_ring_is_filled_again(how: Any) -> None:
    """A tile of the next round of an outer loop goes over one that others may still read."""
    a = np.random.default_rng(3).integers(-3, 4, (9, 9)).astype(np.float32)
    expected = sum((a @ a) * 0.5**n for n in (1, 2, 3))
    plan = replace(SMALL, prefetch=how)
    meaning(blurred, {"a": a, "c": np.zeros((9, 9), np.float32), "n": 9}, (9, 9), plan, expected)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("how", RINGS)
@pytest.mark.parametrize("sizes", [(5, 7), (6, 6), (1, 9), (0, 3)])
def test_windows_whose_tiles_are_those_of_two_loops(how: Any, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-3, 4, (16, 16)).astype(np.float32)
    f = rng.integers(-3, 4, sizes).astype(np.float32)
    h, w = 17 - max(sizes[0], 1), 17 - max(sizes[1], 1)
    expected = np.zeros((h, w), np.float32)
    for j, i in np.ndindex(*sizes):
        expected += f[j, i] * a[j : j + h, i : i + w]
    given = {"a": a, "f": f, "c": np.zeros((h, w), np.float32)}
    meaning(convolve, given, (h, w), Plan(block=32, across=8, rows=2, targets=2, tile=3, prefetch=how), expected)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("how", RINGS)
@pytest.mark.parametrize(("shape", "rounds"), [((5, 8, 8), 8), ((3, 9, 10), 11)])
def test_batches(how: Any, shape: tuple[int, int, int], rounds: int) -> None:
    rng = np.random.default_rng(8)
    a = rng.integers(-3, 4, (*shape[:2], rounds)).astype(np.float32)
    b = rng.integers(-3, 4, (shape[0], rounds, shape[2])).astype(np.float32)
    plan = Plan(block=32, across=4, down=4, rows=2, targets=2, layers=2, tile=4, prefetch=how)
    meaning(batched, {"a": a, "b": b, "c": np.zeros(shape, np.float32)}, shape, plan, a @ b)


# ------------------------------------------------------------ what the interpreter finds


def mistake(change: Callable[[ir.Statement], ir.Block], stage: str, how: Any) -> str:
    """What it says about a product whose copies are waited for in a wrong way."""
    given = product(np.float32, 8, 24, 16)
    environment = matmul.compile(**given, grid=(8, 16)).environment
    kernel = kernels(matmul, given, (8, 16), replace(SMALL, prefetch=how))[stage]
    with pytest.raises(VerificationError) as error:
        run_stage(replace(kernel, body=flat_map(kernel.body, change)), copies(given), environment)
    return str(error.value)


STAGES = ["shared-memory tiles", "layout lowering"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", RINGS)
def test_a_missing_wait_is_found(how: Any, stage: str) -> None:
    text = mistake(lambda s: () if isinstance(s, ir.WaitAsync) else (s,), stage, how)
    assert text.endswith("is touched while an asynchronous copy to it is under way")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", ["async3", "async4"])
def test_a_wait_for_too_few_groups_is_found(how: Any, stage: str) -> None:
    def later(s: ir.Statement) -> ir.Block:
        return (ir.WaitAsync(s.pending + 1),) if isinstance(s, ir.WaitAsync) else (s,)

    assert mistake(later, stage, how).endswith("is touched while an asynchronous copy to it is under way")


@pytest.mark.parametrize("how", RINGS)
def test_a_missing_barrier_is_found(how: Any) -> None:
    text = mistake(lambda s: () if isinstance(s, ir.Barrier) else (s,), STAGES[0], how)
    assert "a race: two threads touch" in text or "under way" in text


def test_groups_are_waited_for_in_their_order() -> None:
    from lanewise.ir.interpreter import SharedMemory

    shared, done = SharedMemory(), list[int]()
    for n in range(3):
        shared.begin(0, [("tile", ".value", n)], lambda n=n: done.append(n))
        shared.commit(0)
    shared.wait(0, 2)
    assert done == [0]
    shared.touch("tile", ".value", 0, 0, write=False)
    with pytest.raises(VerificationError, match="under way"):
        shared.touch("tile", ".value", 1, 0, write=False)
    shared.begin(0, [("tile", ".value", 3)], lambda: done.append(3))  # in no group yet
    shared.wait(0, 1)
    assert done == [0, 1]
    shared.wait(0, 0)
    assert done == [0, 1, 2, 3]


def test_nothing_is_read_where_zeros_are_stored() -> None:
    """The place of a copy that brings zeros may be outside; without its condition it may not."""
    given = product(np.float32, 5, 7, 18)
    environment = matmul.compile(**given, grid=(5, 18)).environment
    kernel = kernels(matmul, given, (5, 18), SMALL)["shared-memory tiles"]
    body = flat_map(kernel.body, lambda s: (replace(s, there=None) if isinstance(s, ir.CopyElement) else s,))
    with pytest.raises(VerificationError, match=r"copy at a\[0, 7\], outside \[5, 7\]"):
        run_stage(replace(kernel, body=body), copies(given), environment)


# ------------------------------------------------------------ when it is the default


def default(kernel: Any, given: dict[str, Any], grid: Any, machine: Machine) -> Plan:
    return complete_plan(None, machine, describe_work(kernel.compile(**given, grid=grid).reference, 2**24))


@pytest.mark.parametrize(("copies", "how"), [(True, "async"), (False, "registers")])
def test_products_copy_where_the_gpu_does(copies: bool, how: str) -> None:
    given = product(np.float32, 8, 8, 8)
    assert default(matmul, given, (8, 8), Machine("cuda", 132, copies=copies)).prefetch == how


def test_smaller_products_and_wider_numbers_copy_too() -> None:
    given = product(np.float32, 8, 8, 8)
    reference = matmul.compile(**given, grid=(8, 8)).reference
    plans = [complete_plan(None, Machine("cuda", 132), describe_work(reference, n * n)) for n in (512, 1024, 2048)]
    assert {p.prefetch for p in plans} == {"async"}
    assert [p.targets * p.rows * p.block for p in plans] == sorted(p.targets * p.rows * p.block for p in plans)
    wide = default(matmul_f64, product(np.float64, 8, 8, 8), (8, 8), Machine("cuda", 132))
    assert (wide.prefetch, wide.rows, wide.targets) == ("async", 4, 4)


def test_what_copies_cannot_bring_is_loaded() -> None:
    given = {**product(np.float32, 8, 8, 8), "a": np.zeros((8, 8), np.bool_)}
    assert default(voted, given, (8, 8), Machine("cuda", 132)).prefetch == "registers"


def test_architectures_that_copy() -> None:
    assert [copies_asynchronously(a) for a in ("sm_75", "sm_80", "sm_90a", "sm_120")] == [False, True, True, True]


# ------------------------------------------------------------ what is refused


def test_elements_smaller_than_a_copy_are_refused() -> None:
    given = {**product(np.float32, 8, 8, 16), "a": np.zeros((8, 8), np.bool_)}
    with pytest.raises(PlanError) as error:
        kernels(voted, given, (8, 16), SMALL)
    assert str(error.value) == (
        "shared-memory tiles cannot be applied to voted: an asynchronous copy moves 4, 8 or 16 bytes, and elements of a are bool, 1 byte"
    )


def test_tiles_outside_of_loops_are_refused() -> None:
    """They are swizzled, and there is no next one."""
    a = np.zeros((64, 64), np.float32)
    plan = Plan(block=64, across=8, rows=4, targets=4, tile=1, prefetch="async")
    with pytest.raises(PlanError, match="only the tiles of loops are copied ahead"):
        kernels(turned, {"a": a, "c": a.copy()}, a.shape, plan)


def test_a_ring_larger_than_shared_memory_is_refused() -> None:
    given = product(np.float32, 64, 64, 64)
    with pytest.raises(PlanError, match=r"needs 50,\d+ bytes of shared memory for a block, and 49,152 are available"):
        kernels(matmul, given, (64, 64), replace(LARGE, prefetch="async4"), 4)


def test_older_architectures_are_refused() -> None:
    program = build_program_of(replace(LARGE, prefetch="async3"), 4)
    with pytest.raises(PlanError, match="asynchronous copies need architecture sm_80 or newer, and this is sm_75"):
        build_executable(program, "cuda", arch="sm_75")


ZERO = (ir.Literal(0, I32),) * 2
BROKEN = [
    (ir.CopyElement("$tile.b", (*ZERO, ZERO[0]), "nobody", ZERO), "no such arrays that have a shape"),
    (ir.CopyElement("c", ZERO, "b", ZERO), "a copy from global to global memory"),
    (ir.CopyElement("$tile.b", ZERO, "b", ZERO), "$tile.b needs 3 integers, found ['i32', 'i32']"),
    (ir.CopyElement("$tile.b", (*ZERO, ZERO[0]), "b", ZERO, 4), "4 elements at once do not fit the rows of b"),
    (ir.CopyElement("$tile.b", (*ZERO, ZERO[0]), "b", ZERO, 3), "3 elements at once do not fit the rows of $tile.b"),
    (ir.CopyElement("$tile.b", (*ZERO, ZERO[0]), "b", ZERO, there=ZERO[0]), "a condition of type i32"),
]


@pytest.mark.parametrize(("copy", "problem"), BROKEN, ids=lambda x: x if isinstance(x, str) else "")
def test_the_verifier_refuses_copies_that_do_not_fit(copy: ir.CopyElement, problem: str) -> None:
    kernel = kernels(matmul, product(np.float32, 8, 8, 8), (8, 8), SMALL)["shared-memory tiles"]
    with pytest.raises(VerificationError) as error:
        verify_kernel(replace(kernel, body=(copy,)))
    assert problem in str(error.value)


def test_how_the_statements_are_printed() -> None:
    here = ir.Literal(1, I32)
    test = ir.Compare("<", here, ir.Literal(3, I32))
    assert test.type == BOOL
    assert F32.size == 4
    block = (
        ir.CopyElement("t", (here,), "a", (here, here), 4, test),
        ir.CopyElement("t", (here,), "a", (here, here)),
        ir.CommitAsync(),
        ir.WaitAsync(2),
        ir.WaitAsync(),
    )
    assert print_block(block, 0).splitlines() == [
        "copy async t[1] <- a[1, 1], 4 elements if 1 < 3 else zeros",
        "copy async t[1] <- a[1, 1]",
        "commit async",
        "wait async but 2",
        "wait async",
    ]


# ------------------------------------------------------------ as machine code


@pytest.mark.quick("async-16-sm_80")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("how", "tile"), [("async", 16), ("async3", 16), ("async4", 8)])
def test_products_fit_the_registers(how: Any, tile: int, arch: str) -> None:
    loaded, copied = (
        build_executable(build_program_of(plan, 4), "cuda", arch=arch).cubins[0].resources
        for plan in (replace(LARGE, prefetch="registers"), replace(LARGE, prefetch=how, tile=tile))
    )
    assert copied.spill_stores == 0
    assert copied.registers < loaded.registers


# ------------------------------------------------------------ on a GPU

DEVICE = [
    replace(LARGE, prefetch=how, tile=tile, block=block)
    for how, tile in (("async", 16), ("async3", 16), ("async4", 8), ("async3", 8))
    for block in (64, 128)
]


@pytest.mark.cuda
@pytest.mark.parametrize("plan", [SMALL, *DEVICE], ids=str)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (128, 64, 128), (129, 67, 250), (300, 5, 33), (64, 0, 64), (256, 1000, 130)]
)
def test_products_on_a_gpu(plan: Plan, sizes: tuple[int, int, int]) -> None:
    cp = pytest.importorskip("cupy")
    for kernel, kind in ((matmul, np.float32), (matmul_f64, np.float64)):
        given = product(kind, *sizes)
        small = kind == np.float64 and plan is not SMALL
        wish = replace(plan, rows=4, targets=4, prefetch="async") if small else plan
        device = {n: cp.asarray(v) for n, v in given.items()}
        kernel(**device, grid=given["c"].shape, plan=wish)
        np.testing.assert_array_equal(device["c"].get(), given["a"] @ given["b"])


@pytest.mark.cuda
@pytest.mark.parametrize("how", RINGS)
def test_windows_and_batches_on_a_gpu(how: Any) -> None:
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(11)
    for n, (h, w) in ((70, (16, 16)), (97, (9, 21)), (64, (3, 40))):
        a, f = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((n + h - 1, n + w - 1), (h, w)))
        expected = sum(f[j, i] * a[j : j + n, i : i + n] for j in range(h) for i in range(w))
        c = cp.zeros((n, n), cp.float32)
        wish = Plan(block=128, across=4, rows=1, targets=16, adjacent=16, tile=8, unroll=0, min_blocks=1, prefetch=how)
        convolve(cp.asarray(a), cp.asarray(f), c, grid=(n, n), plan=wish)
        np.testing.assert_array_equal(c.get(), expected)
    for shape, k in (((50, 16, 16), 16), ((7, 30, 18), 13)):
        a, b = (rng.integers(-3, 4, s).astype(np.float32) for s in ((*shape[:2], k), (shape[0], k, shape[2])))
        c = cp.zeros(shape, cp.float32)
        wish = Plan(block=64, across=4, down=4, rows=4, targets=4, tile=4, unroll=0, prefetch=how)
        batched(cp.asarray(a), cp.asarray(b), c, grid=shape, plan=wish)
        np.testing.assert_array_equal(c.get(), a @ b)
