"""Every CUDA text compiles for every architecture without warnings, spills or a stack frame. Needs NVRTC, no GPU."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise import types as t
from lanewise.emit.cuda import emit_cuda
from lanewise.kernels.elementwise import Elementwise
from lanewise.kernels.pairwise import Pairwise
from lanewise.layouts import default_layout
from lanewise.patterns.elementwise import ElementwiseArguments, build_elementwise
from lanewise.patterns.pairwise import PairwiseArguments, build_pairwise
from lanewise.patterns.reduction import build_reduction
from lanewise.pipeline import Program, build_program
from lanewise.plan import Plan
from lanewise.plans import Machine, Work, complete_plan
from lanewise.record import Record
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.sims.gravity.physics import RECORDS, make_physics
from tests.corpus import CASES, LAYOUTS, Case, case
from tests.harness import program

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
PLANS = {
    "plain": Plan(block=128, tile=128, unroll=4),
    "sliced": Plan(block=256, tile=256, slices=4, targets=2, unroll=8),
    "split": Plan(block=128, tile=128, slices=2, parts=3, targets=4, accumulate="f64"),
    "untiled": Plan(block=64, tile=0, targets=2, min_blocks=2),
}
GPU = Machine("cuda", 132)


def check(p: Program, arch: str, *, local_arrays: bool = False) -> None:
    """Compile what a program launches."""
    for kernel in p.kernels:
        cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, arch, fast_math=bool(p.plan.fast_math))
        found = cubin.resources
        assert "warning" not in cubin.log.lower(), cubin.log
        assert (found.spill_stores, found.spill_loads) == (0, 0), cubin.log
        assert local_arrays or found.stack_bytes == 0, cubin.log
        assert found.registers > 0


def plans_of(c: Case) -> list[str]:
    return list(PLANS) if c.pairwise else ["plain"]


def layouts_of(c: Case) -> list[str]:
    return list(LAYOUTS) if c.records else ["AoS"]


EVERYTHING = [
    (c.name, label, plan, arch)
    for c in CASES
    for label in layouts_of(c)
    for plan in plans_of(c)
    for arch in ARCHITECTURES
]
# Each kernel in each layout, each with one plan and one architecture, so that all meet all.
SHARE = [
    (c.name, label, plans[(i + j) % len(plans)], ARCHITECTURES[(i + 3 * j) % 4])
    for i, c in enumerate(CASES)
    for j, label in enumerate(layouts_of(c))
    for plans in (plans_of(c),)
]


def _compile(name: str, label: str, plan: str, arch: str) -> None:
    c = case(name)
    check(program(c, LAYOUTS[label], PLANS[plan], "cuda"), arch, local_arrays=c.local_arrays)


@pytest.mark.parametrize(("name", "label", "plan", "arch"), SHARE)
def test_corpus(name: str, label: str, plan: str, arch: str) -> None:
    _compile(name, label, plan, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_whole_corpus(name: str, arch: str) -> None:
    for row in EVERYTHING:
        if row[0] == name and row[3] == arch:
            _compile(*row)


# ---------------------------------------------------------------- the kernels of gravity


def _pair(kernel: Pairwise, record: Record, bodies: int, plan: Plan | None) -> Program:
    layout = default_layout(record, "cuda")
    kinds = kernel.signature.parameters
    uniforms: dict[str, Any] = {"softening2": kinds["softening2"]}
    naive = build_pairwise(
        kernel.lowered, PairwiseArguments(("target", record, layout), ("source", record, layout), uniforms, True), t.I32
    )
    wide = any(r.type.size == 8 for r in kernel.lowered.function.results)
    return build_program(naive, complete_plan(plan, GPU, Work("pairwise", bodies, wide)), "cuda")


def _elements(kernel: Elementwise, record: Record, arrays: tuple[str, ...], bodies: int) -> Program:
    kinds: dict[str, Any] = dict(kernel.signature.parameters)
    uniforms = {n: k for n, k in kinds.items() if n not in (*arrays, "body")}
    given = ElementwiseArguments(
        {"body": (record, default_layout(record, "cuda"))}, {n: kinds[n] for n in arrays}, uniforms
    )
    plan = complete_plan(None, GPU, Work("elementwise", bodies))
    if kernel.__name__ == "moments":
        return build_program(build_reduction(kernel.lowered, given, t.I32, "sum", strided=True), plan, "cuda")
    return build_program(build_elementwise(kernel.lowered, given, t.I32), plan, "cuda")


def _gravity(precision: str, bodies: int, softened: bool) -> list[Program]:
    cls: Any = RECORDS[precision]
    physics, record = make_physics(cls, softened), cls.__record__
    wide = Plan(accumulate="f64")
    return [
        _pair(physics.acceleration, record, bodies, wide if precision == "mixed" else None),
        _pair(physics.potential, record, bodies, wide),
        _elements(physics.kick_drift, record, ("acceleration",), bodies),
        _elements(physics.kick, record, ("acceleration", "survived"), bodies),
        _elements(physics.moments, record, (), bodies),
    ]


@pytest.mark.parametrize("bodies", [1024, 16_384, 524_288])
@pytest.mark.parametrize("precision", RECORDS)
def test_gravity(precision: str, bodies: int) -> None:
    for p in _gravity(precision, bodies, True):
        check(p, "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("bodies", [1024, 16_384, 524_288])
@pytest.mark.parametrize("precision", RECORDS)
def test_gravity_everywhere(precision: str, bodies: int, arch: str) -> None:
    for softened in (True, False):
        for p in _gravity(precision, bodies, softened):
            check(p, arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_fast_math_is_local_to_a_plan(arch: str) -> None:
    check(program(case("yukawa"), lw.SoA(), Plan(fast_math=True), "cuda"), arch)
