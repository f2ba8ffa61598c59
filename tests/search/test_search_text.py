"""The generated text of kernels over grids, read line by line, and what the compiler says of it."""

from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.printer import print_kernel
from lanewise.language import types as t
from lanewise.launch.executable import build_executable
from lanewise.planning.plan import NEUTRAL, Plan
from tests.emit.bodies import cuda_body, llvm_body
from tests.search.kernels import Boid, cuda_program, reference_kernel, steer
from tests.search.numbered import KINDS, numbered

RECORDS = Boid.zeros(10)
SEARCHES = {
    "radius": lw.StaticGrid(radius=0.5, cells=2),
    "nearest": lw.StaticGrid(radius=0.5, k=2, cells=2),
    "periodic": lw.StaticGrid(radius=0.5, cells=2, world=lw.Periodic((2.0, 2.0, 2.0))),
    "rings": lw.StaticGrid(k=2, cells=2),
    "curve": lw.DynamicGrid(radius=0.5),
    "curve_nearest": lw.DynamicGrid(radius=0.5, k=2),
    "curve_anywhere": lw.DynamicGrid(k=2),
    "slices": lw.DynamicGrid(radius=0.5, order="1-D"),
    "all_leaves": lw.DynamicGrid(radius=0.5, order="3-D", world=lw.Periodic((2.0, 2.0, 2.0))),
    "leaves_around": lw.DynamicGrid(radius=0.5, order="3-D", leaves="around"),
}
MORE = {"columns": lw.CellArray(radius=0.5), "nearest_in_columns": lw.CellArray(radius=0.5, k=2)}
CUDA_GOLDEN = ["radius", "nearest", "curve", "curve_nearest", "slices", "leaves_around"]


@pytest.mark.parametrize("name", SEARCHES)
def test_naive_kernel(golden, name):
    golden(
        f"reference_{name}",
        print_kernel(reference_kernel(steer, SEARCHES[name], RECORDS, RECORDS), with_functions=False),
    )


@pytest.mark.parametrize("name", CUDA_GOLDEN)
def test_text_in_cuda(golden, name):
    program = cuda_program(steer, SEARCHES[name], RECORDS, RECORDS)
    golden(f"cuda_{name}", cuda_body(program.kernels[0], f"lanewise: steer\nplan: {program.plan.short()}"))


@pytest.mark.parametrize("name", ["radius", "nearest", "curve_nearest", "leaves_around"])
def test_text_in_llvm(golden, name):
    program = build_program(reference_kernel(steer, SEARCHES[name], RECORDS, RECORDS, index=t.I64), NEUTRAL, "cpu")
    golden(f"llvm_{name}", llvm_body(program.kernels[0], "lanewise: steer"))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", [*SEARCHES, *MORE])
@pytest.mark.parametrize(("dtype", "axes"), KINDS)
def test_kernels_keep_their_values_in_registers(name, dtype, axes):
    """A few bytes are put away around the slow path of the function's square root, which hardly ever runs."""
    search = (SEARCHES | MORE)[name]
    if isinstance(search.world, lw.Periodic):
        search = replace(search, world=lw.Periodic((2.0,) * axes))
    records = numbered(np.zeros((4, axes), dtype))
    program = cuda_program(KINDS[dtype, axes][1], search, records, records)
    (cubin,) = build_executable(program, "cuda", "sm_90").cubins
    assert cubin.resources.spill_stores <= 16
    assert cubin.resources.registers <= (64 if dtype == "f4" else 96)


def test_an_index_in_constant_memory():
    reference = reference_kernel(steer, SEARCHES["radius"], RECORDS, RECORDS)
    arrays = tuple(replace(a, constant=9) if a.name == "$starts" else a for a in reference.arrays)
    program = build_program(replace(reference, arrays=arrays), Plan(block=128).filled(NEUTRAL), "cuda")
    executable = build_executable(program, "cuda", "sm_90")
    assert "__constant__ int starts_array[9];" in executable.source
    assert "const int *__restrict__ starts_array" not in executable.source
    assert b"starts_array" in executable.cubins[0].code  # the name that the launch finds it by


@pytest.mark.parametrize("search", [lw.StaticGrid(radius=4.0, k=7, cells=2), lw.DynamicGrid(radius=4.0, k=7)], ids=str)
def test_seven_nearest_fit_the_registers_of_nine_blocks(search):
    """The flock of the thesis: 56 registers let nine blocks of 128 threads run on a multiprocessor."""
    program = cuda_program(steer, search, RECORDS, RECORDS)
    (cubin,) = build_executable(program, "cuda", "sm_90").cubins
    assert cubin.resources.registers <= 56
    assert cubin.resources.spill_stores == 0
