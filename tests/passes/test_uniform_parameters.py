from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.layouts import Layout
from lanewise.passes import thread_mapping, thread_merging, uniform_parameters
from lanewise.planning.plan import Plan
from tests.corpus import Case, case
from tests.corpus_kernels import Mixed
from tests.harness import Input, assert_close, expected, program, run_public, stages
from tests.passes.probe import PROBE, before_and_after, check, layouts, refusal, simple, small_inputs
from tests.passes.ptx import check_cubin


@lw.pairwise
def every_type(
    target: Mixed, source: Mixed, on: lw.bool, n: lw.i32, u: lw.u32, big: lw.i64, f: lw.f32, d: lw.f64, v: lw.vec3
) -> tuple[lw.f64, lw.i64]:
    return d + f + v.y if on else 0.0, big + n * lw.i64(source.cell.x) + lw.i64(u)


VALUES: dict[str, Any] = {
    "on": True, "n": -3, "u": 2**32 - 1, "big": 2**40, "f": 0.5, "d": 1e300, "v": (1.0, 2.0, 4.0)
}  # fmt: skip
EVERY_TYPE = Case("every_type", every_type, (Mixed, Mixed), case("grow").fill, lambda *_: (), VALUES)


def mapped(c: Case) -> ir.Kernel:
    """A kernel that is mapped to threads."""
    kernel = thread_merging.apply(simple(c), 1, 32)
    return thread_mapping.apply(kernel, 32, lanes=32)


def test_golden(golden):
    before = mapped(PROBE)
    golden("global", before_and_after(before, uniform_parameters.apply(before, "global")))


@given(small_inputs, layouts, st.sampled_from([1, 2]))
def test_meaning_is_kept(given: Input, layout: Layout, parts: int):
    """At every stage; the kernel that adds the parts has no uniforms."""
    before = simple(PROBE, same=given.same, layout=layout)
    plan = Plan(uniforms="global", parts=parts, targets=2)
    found = stages(PROBE, layout, plan, "cuda", same=given.same)
    assert any(name == "uniforms" for name, _ in found)
    check(given, before, found[-1][1], layout)


def test_every_type():
    before = simple(EVERY_TYPE)
    for _, kernels in stages(EVERY_TYPE, lw.SoA(), Plan(uniforms="global"), "cuda"):
        check(Input(EVERY_TYPE, 5), before, kernels, lw.SoA())


def test_packed():
    kernel = uniform_parameters.apply(mapped(EVERY_TYPE), "global")
    values = {**VALUES, "v.y": 2.0}
    found = uniform_parameters.packed(kernel, values)
    assert found is not None
    array, data = found
    assert [leaf.name for leaf in array.leaves] == ["on", "n", "u", "big", "f", "d", "v.y"]
    assert data[4:8].view(np.int32)[0] == -3
    assert data[:1].view(np.bool_)[0]
    assert uniform_parameters.packed(mapped(EVERY_TYPE), values) is None


@pytest.mark.cuda
@pytest.mark.parametrize(
    "c", [case("gravity"), case("gravity_f64"), case("kick_drift"), case("grow")], ids=lambda c: c.name
)
def test_cuda(c: Case):
    given = Input(c, 300)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", Plan(uniforms="global")), expected(given), c)


@pytest.mark.cuda
def test_cuda_every_type():
    given = Input(EVERY_TYPE, 40)
    found, wanted = (run_public(given, lw.SoA(), "cuda", Plan(uniforms=u)) for u in ("global", "constant"))
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(f, w)


@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_cubin(name: str):
    pytest.importorskip("cuda.bindings.nvrtc")
    plan = Plan(block=256, tile=256, uniforms="global")
    for k in program(case(name), lw.SoAoAS(), plan, "cuda").kernels:
        assert not k.uniforms
        check_cubin(k)


def test_refusals():
    cpu = refusal(lambda: run_public(Input(case("gravity"), 3), lw.SoA(), "cpu", Plan(uniforms="global")))
    assert cpu == (
        "uniforms in global memory cannot be applied to gravity: "
        "uniform arguments are passed in registers on a CPU; only the threads of a GPU load them"
    )
    assert refusal(lambda: program(case("count_ranks"), lw.SoA(), Plan(uniforms="global"), "cuda")) == (
        "uniforms in global memory cannot be applied to count_ranks: it has no values that all elements share"
    )
    assert refusal(lambda: uniform_parameters.apply(mapped(PROBE), "shared")) == (  # type: ignore[arg-type]
        "uniforms in global memory cannot be applied to probe: 'constant' or 'global' was wanted, found 'shared'"
    )
    assert uniform_parameters.apply(mapped(PROBE), "constant") == mapped(PROBE)
