"""Layout lowering: the loads of every layout, and that memory ends up the same to the byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_kernel
from lanewise.language.types import F32, I64
from lanewise.passes import layout_lowering, thread_mapping
from tests.corpus import CASES, ELEMENTWISE, LAYOUTS, case
from tests.harness import Input, reference_kernel, run_kernels
from tests.lbm.boxes import LID, WALL, Box, boxes
from tests.lbm.kernels import NEGATED, REVERSED, SOURCE, exact
from tests.passes.probe import assert_equal, before_and_after, check, inputs, layouts, simple
from tests.patterns.sitewise import after, box_sites
from tests.patterns.sitewise import reference_kernel as reference_site_kernel


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
    from lanewise.language.types import I32
    from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise

    for layout in (*LAYOUTS.values(), lw.AoAS(8)):
        arguments = ElementwiseArguments({"item": (rotate.signature.parameters["item"], layout)}, {}, {})
        kernel = layout_lowering.apply(build_elementwise(rotate.lowered, arguments, I32), vector_loads=True)
        assert {b.lanes for b in kernel.buffers} == {1}


def test_corpus_buffers_are_named_apart():
    for c in CASES:
        for layout in LAYOUTS.values():
            kernel = layout_lowering.apply(reference_kernel(c, layout, "cuda"), vector_loads=True)
            assert len({b.name for b in kernel.buffers}) == len(kernel.buffers)


def test_a_vector_that_nobody_fetched_is_written_scalar_by_scalar():
    """Only then do the scalars beside it keep their values."""
    given = Input(case("kick_drift"), 3)
    plain = simple(given.case, layout=lw.SoAoAS())
    i = ir.Local("$i", plain.counts[0].type)
    write = ir.StoreRecord("body", i, (("position.y", ir.Local("dt", F32)),))
    kernel = replace(plain, body=(replace(plain.body[0], body=(write,)),))
    lowered = layout_lowering.apply(kernel, vector_loads=True)
    assert [b.lanes for b in lowered.buffers] == [1]
    assert_equal(run_kernels((lowered,), given, lw.SoAoAS()), run_kernels((kernel,), given, lw.SoAoAS()))


# ---------------------------------------------------------------- records whose variables have other names

GROUPED = (lw.AoAS(), lw.SoAoAS(), lw.AoS(), lw.AoSoA(4))
"""Layouts in which one load may bring several populations."""


@examples(
    boxes(lattices=(lw.D2Q9,), kinds=(0, REVERSED, SOURCE, NEGATED, WALL, LID), most=4),
    st.sampled_from(("pull", "push", "in-place")), st.sampled_from(GROUPED), st.integers(0, 1), st.booleans(),
)  # fmt: skip
def test_populations_leave_the_same_memory(box, form, layout, step, vector):
    """Loaded under names of their own, at several places, and put elsewhere: no lane beside them may get a stale value."""
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, form, layout=layout, steps=step)
    reference = reference_site_kernel(pair.flow, sites, **pair.values)
    lowered = layout_lowering.apply(reference, vector_loads=vector)
    verify_kernel(lowered)
    assert after(pair.flow, sites, reference, (lowered,), **pair.values) == after(
        pair.flow, sites, reference, (reference,), **pair.values
    )


@pytest.mark.parametrize("layout", GROUPED, ids=str)
@pytest.mark.parametrize("loaded", [("q0", "q1", "q2", "q3"), ("q1",), ("q5", "q2")], ids="-".join)
@pytest.mark.parametrize("names", ["other", "exchanged", "its own"])
@pytest.mark.parametrize("put", [("q1",), ("q0", "q1", "q2", "q3"), ("q2", "q5", "q8")], ids="-".join)
def test_a_record_under_any_names_that_is_written_in_part_keeps_the_rest(layout, loaded, names, put):
    """All combinations of what is read under which name, and what is written."""
    variables = {
        "other": [f"$own.{q}" for q in loaded],
        "exchanged": [f"f.{q}" for q in (*loaded[1:], loaded[0])],
        "its own": [f"f.{q}" for q in loaded],
    }[names]
    pair = exact(lw.D2Q9)
    sites = box_sites(pair.flow, plain_box(), "in-place", layout=layout)
    plain = reference_site_kernel(pair.flow, sites, **pair.values)
    (loop,) = plain.body
    n, read, written = ir.Local(loop.variable, I64), ir.Local(variables[0], F32), ir.Local("$new", F32)
    body = (
        ir.LoadRecord("f", n, tuple(zip(loaded, variables, strict=True))),
        ir.Assign(written.name, ir.Binary("*", read, ir.Literal(2.0, F32), F32)),
        ir.StoreRecord("f", n, tuple((leaf, written) for leaf in put)),
    )
    kernel = replace(plain, body=(replace(loop, body=body),))
    for vector in (True, False):
        lowered = layout_lowering.apply(kernel, vector_loads=vector)
        verify_kernel(lowered)
        assert after(pair.flow, sites, plain, (lowered,), **pair.values) == after(
            pair.flow, sites, plain, (kernel,), **pair.values
        )


def plain_box():
    return Box(lw.D2Q9, (3, 5), np.zeros((3, 5), np.int32), {})


def test_all_populations_of_a_site_move_in_vectors():
    """In place every even step reads and writes whole records: as wide as the layout allows, though their
    names differ.
    """
    pair = exact(lw.D2Q9)
    sites = box_sites(pair.flow, plain_box(), "in-place", layout=lw.AoAS())
    kernel = layout_lowering.apply(reference_site_kernel(pair.flow, sites, **pair.values), vector_loads=True)
    (loop,) = kernel.body
    for node, lanes in ((ir.Load, lambda s: s.names), (ir.Store, lambda s: s.values)):
        assert [len(lanes(s)) for s in loop.body if isinstance(s, node)] == [4, 4, 4]
