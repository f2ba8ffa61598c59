"""Layout lowering: the loads of every layout, and that memory ends up the same to the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_kernel
from lanewise.passes import layout_lowering, thread_mapping
from lanewise.types import F32
from tests.corpus import CASES, ELEMENTWISE, LAYOUTS, case
from tests.harness import Input, naive_kernel, run_kernels
from tests.passes.probe import assert_equal, before_and_after, check, inputs, layouts, simple


@lw.record
class Switches:
    a: lw.bool
    b: lw.bool
    c: lw.bool
    d: lw.bool


@lw.elementwise
def rotate(item: Switches):
    item.a, item.b, item.c = item.b, item.c, item.a


@pytest.mark.parametrize("layout", LAYOUTS)
def test_golden_on_a_gpu(golden, layout):
    before = simple(case("kick_drift"), layout=LAYOUTS[layout])
    golden(
        f"gpu_{layout}",
        before_and_after(before, layout_lowering.apply(thread_mapping.apply(before, 32), vector_loads=True)),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_golden_on_a_cpu(golden, layout):
    before = simple(case("kick_drift"), layout=LAYOUTS[layout], device_kind="cpu")
    golden(f"cpu_{layout}", before_and_after(before, layout_lowering.apply(before, vector_loads=False)))


def test_golden_every_scalar_type(golden):
    before = simple(case("grow"), layout=lw.SoAoAS())
    golden("types", before_and_after(before, layout_lowering.apply(before, vector_loads=True)))


@settings(max_examples=12)
@examples(inputs, layouts, st.booleans())
def test_meaning_is_kept(given, layout, vector):
    before = simple(given.case, same=given.same, layout=layout)
    check(given, before, (layout_lowering.apply(before, vector_loads=vector),), layout)


@pytest.mark.parametrize("vector", [True, False], ids=["vectors", "scalars"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [c.name for c in ELEMENTWISE])
def test_elementwise_kernels_leave_the_same_memory(name, layout, vector):
    given = Input(case(name), 13)
    before = simple(given.case, layout=LAYOUTS[layout])
    lowered = layout_lowering.apply(before, vector_loads=vector)
    verify_kernel(lowered)
    assert_equal(run_kernels((lowered,), given, LAYOUTS[layout]), run_kernels((before,), given, LAYOUTS[layout]))


def test_a_vector_that_is_written_in_part_keeps_the_rest():
    kernel = layout_lowering.apply(simple(case("kick_drift"), layout=lw.SoAoAS()), vector_loads=True)
    stores = [s for s in kernel.body[0].body if isinstance(s, ir.Store) and len(s.values) == 4]
    assert any(ir.Local("body.mass", s.values[3].type) == s.values[3] for s in stores)


def test_truth_values_are_loaded_one_by_one():
    from lanewise.patterns.elementwise import ElementwiseArguments, build_elementwise
    from lanewise.types import I32

    for layout in (*LAYOUTS.values(), lw.AoAS(8)):
        arguments = ElementwiseArguments({"item": (rotate.signature.parameters["item"], layout)}, {}, {})
        kernel = layout_lowering.apply(build_elementwise(rotate.lowered, arguments, I32), vector_loads=True)
        assert {b.lanes for b in kernel.buffers} == {1}


def test_corpus_buffers_are_named_apart():
    for c in CASES:
        for layout in LAYOUTS.values():
            kernel = layout_lowering.apply(naive_kernel(c, layout, "cuda"), vector_loads=True)
            assert len({b.name for b in kernel.buffers}) == len(kernel.buffers)


def test_a_vector_that_nobody_fetched_is_written_scalar_by_scalar():
    """Only then do the scalars beside it keep their values."""
    given = Input(case("kick_drift"), 3)
    plain = simple(given.case, layout=lw.SoAoAS())
    i = ir.Local("$i", plain.counts[0].type)
    write = ir.Commit("body", i, (("position.y", ir.Local("dt", F32)),))
    kernel = replace(plain, body=(replace(plain.body[0], body=(write,)),))
    lowered = layout_lowering.apply(kernel, vector_loads=True)
    assert [b.lanes for b in lowered.buffers] == [1]
    assert_equal(run_kernels((lowered,), given, lw.SoAoAS()), run_kernels((kernel,), given, lw.SoAoAS()))
