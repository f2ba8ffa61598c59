"""The sides of a thread's branch become kernels: figure 2 of Carrillo, Siegel and Li (2009), threadwise."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.ir.printer import print_kernel
from lanewise.ir.verify import verify_kernel
from lanewise.passes.points import sides
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import PlanError
from tests.patterns.reductions import reference, run


@lw.threadwise
def figure2(
    i: lw.index, mask: lw.Array1[lw.i32], a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], result: lw.Array1[lw.f32]
):
    """A light side, and a heavy one that reads what the light one does without."""
    x = a[i]
    if mask[i] == 0:
        result[i] = x * 2.0
    elif mask[i] == 1:
        y = x
        for k in range(6):
            y = y * b[i] + lw.sqrt(y + lw.f32(k))
        result[i] = y


@lw.threadwise
def around(
    i: lw.index,
    j: lw.index,
    mask: lw.Array2[lw.i32],
    a: lw.Array2[lw.f32],
    b: lw.Array2[lw.f32],
    result: lw.Array2[lw.f32],
):
    """What precedes and follows the branch, an element that is read and written, a condition of several statements."""
    m = mask[i, j]
    if_any = m % 2
    x = a[i, j]
    result[i, j] += 1.0
    if if_any == 1:
        x = x * b[i, j]
    else:
        x = x + 1.0
    result[i, j] += x


@lw.threadwise
def twice(i: lw.index, mask: lw.Array1[lw.i32], a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], result: lw.Array1[lw.f32]):
    """A variable that has another value once the condition is known."""
    m = mask[i]
    x = a[i] * lw.f32(m)
    m = m + 1
    if m > 1:
        result[i] = x
    else:
        result[i] = b[i]


KERNELS = {k.__name__: k for k in (figure2, around, twice)}


def inputs(name: str, n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    shape = (n, 3) if name == "around" else (n,)
    floats = (rng.uniform(1, 2, shape).astype(np.float32) for _ in range(3))
    return (rng.integers(0, 3, shape).astype(np.int32), *floats), shape if len(shape) > 1 else n


def test_golden(golden):
    given, grid = inputs("figure2", 8)
    golden("figure2", "\n".join(map(print_kernel, sides.apply(reference(figure2, given, grid)))))


def test_the_source_of_a_gpu(golden):
    golden("figure2.cu", "\n".join(emit_cuda(k, "test") for k in _program("apart")))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [1, 7, 100])
def test_bits_stay(name, n):
    given, grid = inputs(name, n)
    before = reference(KERNELS[name], given, grid)
    after = sides.apply(before)
    for k in after:
        verify_kernel(k)
    assert [k.name for k in after] == [f"{name}_if", f"{name}_else"]
    for one, other in zip(
        run(after, KERNELS[name], given, grid), run((before,), KERNELS[name], given, grid), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_public_interface(name, seed):
    (mask, a, b, result), grid = inputs(name, 77, seed)
    found, whole = result.copy(), result.copy()
    KERNELS[name].bind(mask, a, b, found, grid=grid, plan=Plan(branches="apart"))()
    KERNELS[name].bind(mask, a, b, whole, grid=grid, plan=Plan(branches="together"))()
    np.testing.assert_allclose(found, whole, rtol=1e-6)
    np.testing.assert_allclose(found, _wanted(name, mask, a, b, result), rtol=3e-6)


def _wanted(name, mask, a, b, result):
    """In float64, by masks."""
    a, b, result = (x.astype(np.float64) for x in (a, b, result))
    match name:
        case "figure2":
            y = a.copy()
            for k in range(6):
                y = y * b + np.sqrt(y + k)
            return np.where(mask == 0, a * 2, np.where(mask == 1, y, result))
        case "around":
            return result + 1 + np.where(mask % 2 == 1, a * b, a + 1)
        case _:
            return np.where(mask > 0, a * mask, b)


def _program(branches):
    given, grid = inputs("figure2", 8)
    plan = Plan(branches=branches, block=256).filled(NEUTRAL)
    return build_program(reference(figure2, given, grid), plan, "cuda").kernels


def test_the_light_side_takes_fewer_registers_and_loads_no_more_than_it_needs():
    registers = {
        k.name: compile_cubin(emit_cuda(k, "test"), k.name, "sm_90").resources.registers
        for branches in ("together", "apart")
        for k in _program(branches)
    }
    assert registers["figure2_if"] < registers["figure2"]
    arrays = {k.name: {a.name for a in k.arrays} for k in sides.apply(reference(figure2, *inputs("figure2", 8)))}
    assert arrays == {"figure2_if": {"mask", "a", "result"}, "figure2_else": {"mask", "a", "b", "result"}}


@lw.threadwise
def changes(i: lw.index, mask: lw.Array1[lw.i32], r: lw.Array1[lw.f32]):
    if mask[i] == 0:
        mask[i] = 1
    else:
        r[i] = 1.0


@lw.threadwise
def idle(i: lw.index, mask: lw.Array1[lw.i32], r: lw.Array1[lw.f32]):
    if mask[i] == 0:
        r[i] = 1.0


@lw.threadwise
def inside(i: lw.index, mask: lw.Array1[lw.i32], r: lw.Array1[lw.f32]):
    for k in range(3):
        if mask[i] == k:
            r[i] = 1.0


@lw.threadwise
def several(i: lw.index, mask: lw.Array1[lw.i32], r: lw.Array1[lw.f32]):
    if mask[i] == 0:
        r[i] = 1.0
    if mask[i] == 1:
        r[i] = 2.0


@lw.threadwise
def rounded(i: lw.index, mask: lw.Array1[lw.i32], r: lw.Array1[lw.f32]):
    x = lw.f32(mask[i])
    if x * x + x < 2.0:
        r[i] = 1.0
    else:
        r[i] = 2.0


@lw.threadwise
def total(i: lw.index, mask: lw.Array1[lw.i32]) -> lw.f32:
    if mask[i] == 0:
        return 1.0
    return 2.0


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (changes, "its condition reads mask, which the kernel writes: the second kernel would find other values"),
        (idle, "one side of its branch does nothing, which needs no kernel"),
        (inside, "its threads have no separate branch outside of loops"),
        (several, "its threads have 2 branches one after the other, which would make 4 kernels"),
        (rounded, "its condition adds products, which two kernels may round in two ways"),
        (total, "its points are summed: both kernels would have to add to one result"),
    ],
)
def test_refusals(kernel, reason):
    arrays = (np.zeros(5, np.int32), np.zeros(5, np.float32))[: 1 if kernel is total else 2]
    with pytest.raises(PlanError) as error:
        kernel.bind(*arrays, grid=5, plan=Plan(branches="apart"))
    assert str(error.value) == f"branch splitting cannot be applied to {kernel.__name__}: {reason}"
