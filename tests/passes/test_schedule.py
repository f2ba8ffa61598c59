"""The order of instructions: targets one after the other, and an assembler that leaves them so."""

from __future__ import annotations

import re

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.emit.cuda import emit_cuda
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from tests.corpus import case
from tests.harness import Input, assert_close, expected, program, reference_kernel, run_kernels, run_public
from tests.passes.probe import refusal

SHAPE = Plan(tile=128, block=128, targets=2, unroll=8)
ORDERS = ("free", "written")


def test_the_assembler_is_asked_for_another_order():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    reference = reference_kernel(case("yukawa"), lw.SoA(), "cuda")
    made = [
        compile_kernel(reference, Plan(schedule=o).filled(SHAPE).filled(NEUTRAL), "cuda", arch="sm_90") for o in ORDERS
    ]
    free, written = (m.cubins for m in made)
    assert [c.code for c in free] != [c.code for c in written]
    assert all(c.resources.spill_stores == 0 for c in written)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_search_tells_both_apart_also_where_their_kernels_are_the_same(targets):
    programs = BuiltPrograms(reference_kernel(case("gravity"), lw.SoA(), "cuda"), "cuda")
    plan = Plan(targets=targets).filled(SHAPE).filled(NEUTRAL)
    assert programs.possible(plan, "schedule", "written") is None
    changed = programs.get(Plan(schedule="written").filled(plan))
    assert not isinstance(changed, str)
    assert changed.plan.schedule == "written"
    kernels = [p.kernels for p in (programs.get(plan), changed) if not isinstance(p, str)]
    assert (kernels[0] == kernels[1]) == (targets == 1)


def test_targets_come_one_after_the_other():
    """What is done for one target stands together, where else each statement is repeated for all of them."""
    orders = []
    for order in ORDERS:
        p = program(case("gravity"), lw.SoA(), Plan(schedule=order, unroll=1).filled(SHAPE), "cuda")
        text = emit_cuda(p.kernels[0], "test")
        loop = text[text.index("for (int k") :]
        orders.append(re.findall(r"(gravity\(|sum_x_[01] =)", loop)[:4])
    assert orders[0] == ["gravity(", "gravity(", "sum_x_0 =", "sum_x_1 ="]
    assert orders[1] == ["gravity(", "sum_x_0 =", "gravity(", "sum_x_1 ="]


@pytest.mark.parametrize("name", ["gravity", "yukawa", "lennard_jones"])
def test_meaning_is_kept(name):
    given = Input(case(name), 70)
    p = program(case(name), lw.SoA(), Plan(schedule="written", targets=3, block=32, tile=32, parts=2), "cuda")
    assert_close(run_kernels(p.kernels, given, lw.SoA()), expected(given), case(name))


@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_a_cpu_has_no_such_switch(name):
    assert refusal(lambda: program(case(name), lw.SoA(), Plan(schedule="written"), "cpu")) == (
        f"instruction order cannot be applied to {name}: LLVM has no such switch; on a CPU schedule is 'free'"
    )


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["gravity", "yukawa", "lennard_jones", "kick_drift"])
def test_results_on_a_gpu(name):
    c = case(name)
    given = Input(c, 1000)
    free, written = (
        run_public(
            given, lw.SoA(), "cuda", Plan(schedule=o) if name == "kick_drift" else Plan(schedule=o).filled(SHAPE)
        )
        for o in ORDERS
    )
    assert_close(written, expected(given), c)
    for a, b in zip(free, written, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
