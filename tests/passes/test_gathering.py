"""Gathering: element i reads record index[i], under every layout, in the interpreter and as compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT
from lanewise.ir.verify import verify_kernel
from lanewise.ladders.memory_cells import RECORD, MemoryCell, bind, cell_program, compile_cell, hot_total, make_bodies
from lanewise.language.types import F32, I32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.support import bind_record
from lanewise.layouts import Layout
from lanewise.passes import dead_code, gathering, thread_mapping
from lanewise.passes.gathering import INDEX
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.support.errors import VerificationError
from tests.corpus import LAYOUTS, case
from tests.harness import Array, reference_kernel, run_kernel
from tests.passes.probe import PULL, before_and_after, refusal, simple

layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.__getitem__)


def ungathered(layout: Layout) -> ir.Kernel:
    arguments = ElementwiseArguments({"body": (RECORD.__record__, layout)}, {}, {})
    return dead_code.apply(build_elementwise(hot_total.lowered, arguments, I32))


def interpret(kernel: ir.Kernel, layout: Layout, count: int, index: Array) -> Array:
    """The results of a gathered kernel of any stage."""
    bodies = make_bodies(count, seed=3).array(layout, "cpu")
    result = np.full(count, np.nan, np.float32)
    bound: dict[str, Any] = {"body": bind_record(bodies), "$result": bind_value_array(result, F32)}
    bound[INDEX] = bind_value_array(index.astype(np.int32), I32)
    run_kernel(kernel, bound, {COUNT: count})
    return result


def wanted(count: int, index: Array) -> Array:
    """In the order of the function's own additions, so that float32 gives the same bits."""
    fields = make_bodies(count, seed=3).fields
    p = fields["position"]
    return (p[:, 0] + p[:, 1] + p[:, 2] + fields["mass"])[index]


def test_golden(golden):
    before = ungathered(lw.SoAoAS())
    after = gathering.apply(before, "body")
    golden("gathered", before_and_after(before, after))
    golden("gpu", before_and_after(after, *cell_program(MemoryCell(lw.SoAoAS(), "gathered"), "cuda").kernels))


@given(layouts, st.integers(1, 40), st.integers(0, 99))
def test_meaning(layout: Layout, count: int, seed: int) -> None:
    index = np.random.default_rng(seed).integers(0, count, count)  # one record may serve several elements
    reference = gathering.apply(ungathered(layout), "body")
    verify_kernel(reference)
    np.testing.assert_array_equal(interpret(reference, layout, count, index), wanted(count, index))
    for device in ("cpu", "cuda"):
        (kernel,) = cell_program(MemoryCell(layout, "gathered"), device).kernels
        np.testing.assert_array_equal(interpret(kernel, layout, count, index), wanted(count, index))


@pytest.mark.parametrize("name", ["AoS", "SoAoAS", "AoSoA"])
def test_compiled_for_the_cpu(name: str) -> None:
    cell, data = MemoryCell(LAYOUTS[name], "gathered"), make_bodies(1000, seed=3)
    bound = bind(compile_cell(cell, "cpu"), data.array(cell.layout, "cpu"), data.order)
    bound.run()
    np.testing.assert_array_equal(bound.result, wanted(1000, data.order))


def test_an_index_outside_the_array_is_found() -> None:
    with pytest.raises(VerificationError, match=r"access to position.x of element 4, outside 0\.\.3"):
        interpret(gathering.apply(ungathered(lw.SoA()), "body"), lw.SoA(), 4, np.array([0, 4, 1, 2]))


def test_refusals() -> None:
    kernel = ungathered(lw.SoA())
    say = "gathering cannot be applied to {}: "
    assert refusal(lambda: gathering.apply(simple(PULL), "target")) == say.format("pull") + (
        "it is a pairwise kernel, and only an elementwise one reads a record an element"
    )
    assert refusal(lambda: gathering.apply(kernel, "bodies")) == say.format("hot_total") + "it has no array bodies"
    assert refusal(lambda: gathering.apply(kernel, "$result")) == say.format("hot_total") + (
        "it writes $result: two elements might have the same index"
    )
    updates = reference_kernel(case("kick_drift"), lw.SoA(), "cuda")
    assert refusal(lambda: gathering.apply(updates, "body")) == say.format("kick_drift") + (
        "it writes body: two elements might have the same index"
    )
    assert refusal(lambda: gathering.apply(gathering.apply(kernel, "body"), "body")) == say.format("hot_total") + (
        "it reads through an array of indices already"
    )
    mapped = thread_mapping.apply(kernel, 32)
    assert refusal(lambda: gathering.apply(mapped, "body")) == say.format("hot_total") + (
        "its elements are already mapped to threads"
    )
