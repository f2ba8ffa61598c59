"""Clocking: results stay as they are, every warp has a reading, and in the interpreter it is the number of
its loads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT
from lanewise.ir.verify import verify_kernel
from lanewise.ladders.memory_cells import (
    ACCESSES,
    NO_READING,
    Bodies,
    MemoryCell,
    cell_program,
    clocked_program,
    make_bodies,
)
from lanewise.language.types import F32, I32, I64
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.support import bind_record
from lanewise.layouts import Layout
from lanewise.layouts.traffic import streamed
from lanewise.passes import clocking, layout_lowering, thread_mapping
from lanewise.passes.clocking import CYCLES
from lanewise.passes.gathering import INDEX
from tests.corpus import LAYOUTS, case
from tests.emit.bodies import cuda_body
from tests.harness import Array, reference_kernel, run_kernel
from tests.passes.probe import PULL, before_and_after, refusal, simple

layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.__getitem__)
accesses = st.sampled_from(ACCESSES)


def mapped(cell: MemoryCell) -> ir.Kernel:
    return thread_mapping.apply(cell_program(cell, "cuda").reference, 64)


def interpret(kernel: ir.Kernel, layout: Layout, data: Bodies) -> tuple[Array, Array]:
    """The results and the readings of a kernel of any stage after the map to threads."""
    bodies = data.array(layout, "cpu")
    count = len(bodies)
    result, cycles = np.full(count, np.nan, np.float32), np.full(-(-count // 32), NO_READING, np.int64)
    bound: dict[str, Any] = {"body": bind_record(bodies), "$result": bind_value_array(result, F32)}
    bound |= {INDEX: bind_value_array(data.order, I32), CYCLES: bind_value_array(cycles, I64)}
    run_kernel(kernel, bound, {COUNT: count})
    return result, cycles


def test_golden(golden):
    for access in ("streamed", "gathered"):
        before = mapped(MemoryCell(lw.SoAoAS(), access))
        golden(access, before_and_after(before, clocking.apply(before)))
    (kernel,) = clocked_program(MemoryCell(lw.SoAoAS(), "gathered"), "cuda").kernels
    lines = cuda_body(kernel, "clocked").splitlines()
    golden("cuda", "\n".join(line for line in lines if not line.startswith("#line")))


@given(layouts, accesses, st.integers(1, 100), st.integers(0, 9))
def test_meaning(layout: Layout, access: Any, count: int, seed: int) -> None:
    data, cell = make_bodies(count, seed), MemoryCell(layout, access)
    before = mapped(cell)
    clocked = clocking.apply(before)
    verify_kernel(clocked)
    plain, nothing = interpret(before, layout, data)
    assert np.all(nothing == NO_READING)
    result, cycles = interpret(clocked, layout, data)
    np.testing.assert_array_equal(result, plain)
    assert np.all(cycles == 1)  # one load of one record, whatever its layout; that of the index came before


@given(layouts, accesses, st.integers(1, 100))
def test_readings_are_the_loads_of_the_layout(layout: Layout, access: Any, count: int) -> None:
    data, cell = make_bodies(count, 1), MemoryCell(layout, access)
    (kernel,) = clocked_program(cell, "cuda").kernels
    result, cycles = interpret(kernel, layout, data)
    np.testing.assert_allclose(result, data.sums(access), rtol=1e-6)
    leaves = [p.name.removeprefix("body.") for p in cell.kernel.lowered.function.parameters]
    loads = streamed(layout.arrange(cell.record.leaves), leaves, (), 32, vector=True).instructions
    assert np.all(cycles == loads)


def test_a_sum_that_is_no_number_leaves_no_reading() -> None:
    data = make_bodies(64, 0)
    data.fields["mass"][32] = np.nan
    for kernel in (
        clocking.apply(mapped(MemoryCell(lw.SoA(), "subset"))),
        *clocked_program(MemoryCell(lw.SoA(), "subset"), "cuda").kernels,
    ):
        result, cycles = interpret(kernel, lw.SoA(), data)
        assert np.flatnonzero(np.isnan(result)).tolist() == [32]
        assert (cycles == NO_READING).tolist() == [False, True]


@pytest.mark.parametrize("access", ACCESSES)
def test_order_in_the_text(access: Any) -> None:
    """Index, first reading, loads, function, second reading, stores."""
    (kernel,) = clocked_program(MemoryCell(lw.SoA(), access), "cuda").kernels
    text = emit_cuda(kernel, "").partition("_kernel(")[2]
    first, second = text.index("= lw_clock()"), text.rindex("= lw_clock()")
    loads = [n for n in (text.find(f"{name}_array[", first) for name in ("body_position_x", "body_mass")) if n > 0]
    assert len(loads) == 2
    assert all(first < n < second for n in loads)
    assert ("index_array[" in text) == (access == "gathered")
    assert "index_array[" not in text or text.index("index_array[") < text.index("const long long clock_start")
    assert second < text.rindex("cycles_array[") < text.rindex("result_array[")


def test_refusals() -> None:
    say = "clocking cannot be applied to {}: "
    assert refusal(lambda: clocked_program(MemoryCell(lw.SoA(), "subset"), "cpu")) == say.format("hot_total") + (
        "its elements are not mapped to the threads of a GPU; a thread of a CPU is timed from outside"
    )
    assert refusal(lambda: clocking.apply(simple(PULL))) == say.format("pull") + (
        "it is a pairwise kernel, and only an elementwise one has one use of its records to wait for"
    )
    kernel = mapped(MemoryCell(lw.SoA(), "subset"))
    assert (
        refusal(lambda: clocking.apply(clocking.apply(kernel)))
        == say.format("hot_total") + "it reads the clock already"
    )
    lowered = layout_lowering.apply(kernel, vector_loads=True)
    assert (
        refusal(lambda: clocking.apply(lowered)) == say.format("hot_total") + "its loads and stores are lowered already"
    )
    updates = thread_mapping.apply(simple(case("kick_drift")), 32)
    assert refusal(lambda: clocking.apply(updates)) == say.format("kick_drift") + (
        "its function has no result of floating point that the second reading could wait for"
    )


def test_other_kernels_of_the_corpus() -> None:
    """Plain arrays, several results: every elementwise kernel with a float result gets a reading that verifies."""
    for name in ("speed", "saxpy_norm"):
        kernel = thread_mapping.apply(reference_kernel(case(name), lw.SoA(), "cuda"), 32)
        verify_kernel(clocking.apply(kernel))
