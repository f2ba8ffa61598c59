"""Several elements a thread: they compute what single ones do, and leave what lies beyond the end alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import MANY
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.language.target import Machine
from lanewise.patterns import element_merging as merging
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.corpus import ELEMENTWISE, Case, case
from tests.emit.bodies import cuda_bodies
from tests.harness import Input, reference_kernel, run_kernels

GPU = Machine("cuda", 132)
LAYOUTS = [lw.SoA(), lw.AoS(), lw.SoAoAS(), lw.AoSoA(8)]


@lw.elementwise
def between(n: lw.f32, x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return x + lw.interpolate(t, n)


@lw.elementwise
def numbered(x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return x + t[lw.index_of(x)]


@lw.record
class Wide:
    a: lw.vec4
    b: lw.f32


@lw.elementwise
def wide(w: Wide) -> lw.f32:
    return w.a.x + w.a.y + w.a.z + w.a.w + w.b


@lw.elementwise
def scaled(w: Wide):
    w.b *= 2


@lw.elementwise
def looped(x: lw.f32) -> lw.f32:
    k = 0
    while k < 8:
        x = x * x + 1
        k += 1
    return x


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("given", ELEMENTWISE, ids=str)
@pytest.mark.parametrize(("targets", "count"), [(2, 1), (4, 131), (8, 64)])
def test_merged_elements_compute_the_same(given: Case, targets: int, count: int) -> None:
    layout = LAYOUTS[(targets + count) % len(LAYOUTS)]
    reference, arguments = reference_kernel(given, layout, "cuda"), Input(given, count)
    expected = run_kernels((reference,), arguments, layout)
    merged = merging.apply(reference, targets)
    verify_kernel(merged)
    lowered = build_program(reference, Plan(targets=targets, block=32).filled(NEUTRAL), "cuda").kernels
    for kernels in ((merged,), lowered):
        for found, answer in zip(run_kernels(kernels, arguments, layout), expected, strict=True):
            np.testing.assert_array_equal(found, answer)


def test_loads_come_before_stores() -> None:
    merged = merging.apply(reference_kernel(case("speed"), lw.SoA(), "cuda"), 4)
    kinds = [type(s) for s in statements(merged.body) if isinstance(s, ir.LoadRecord | ir.Apply | ir.StoreRecord)]
    assert kinds == sorted(kinds, key=[ir.LoadRecord, ir.Apply, ir.StoreRecord].index)
    assert kinds.count(ir.Apply) == 4


def test_golden(golden: Any) -> None:
    reference = reference_kernel(case("speed"), lw.SoA(), "cuda")
    golden("merged", print_kernel(merging.apply(reference, 2)))
    golden("cuda", cuda_bodies(build_program(reference, Plan(targets=2, block=128).filled(NEUTRAL), "cuda")))


@pytest.mark.parametrize("targets", [0, 3, 16])
def test_numbers_of_elements_that_are_none(targets: int) -> None:
    with pytest.raises(PlanError) as caught:
        merging.apply(reference_kernel(case("speed"), lw.SoA(), "cuda"), targets)
    assert str(caught.value).endswith(f"a thread computes 1, 2, 4 or 8 elements; {targets} were requested")


def test_a_cpu_has_registers_for_them() -> None:
    with pytest.raises(PlanError, match="on a CPU neighbouring elements share SIMD registers"):
        build_program(reference_kernel(case("speed"), lw.SoA(), "cpu"), Plan(targets=2).filled(NEUTRAL), "cpu")


def default(kernel: Any, arguments: dict[str, Any], count: int, machine: Machine = GPU) -> Plan:
    work = describe_work(kernel.compile(**arguments).reference, count, machine.target)
    return complete_plan(None, machine, work)


def test_very_many_small_elements_are_merged_by_default() -> None:
    values = np.zeros(4, np.float32)
    arguments = {"n": values, "x": values, "t": values}
    assert default(between, arguments, MANY).targets == 4
    assert default(between, arguments, MANY - 1).targets == 1
    assert default(numbered, {"x": values, "t": values}, MANY).targets == 4
    assert default(between, arguments, MANY, Machine("cpu", 8)).targets == 1


def test_elements_that_read_much_or_loop_or_change_have_threads_of_their_own() -> None:
    assert merging.suited(wide.compile(Wide.zeros(2)).reference) == 1
    assert merging.suited(scaled.compile(Wide.zeros(2)).reference) == 1
    assert merging.suited(looped.compile(np.zeros(2, np.float32)).reference) == 1
