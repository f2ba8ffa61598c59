"""Every CUDA text compiles for every architecture without warnings, spills or a stack frame. Needs NVRTC, no GPU.

What each kernel takes is read from its machine code and has to be what the assembler reports.
"""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import Program
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.names import entry_name
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import Machine
from lanewise.launch.executable import switches_of
from lanewise.launch.support import compile_kernel
from lanewise.layouts import default_layout
from lanewise.patterns.elementwise.build import ELEMENTWISE, ElementwiseArguments, build_elementwise, build_reduction
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.build import PAIRWISE, PairwiseArguments, build_pairwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import Cubin, code_resources, compile_cubin
from lanewise.sims.gravity.physics import RECORDS, make_physics
from tests.corpus import CASES, LAYOUTS, Case, case
from tests.harness import program
from tests.runtime.test_nvrtc import reported

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
PLANS = {
    "plain": Plan(block=128, tile=128, unroll=4, min_blocks=1),
    "sliced": Plan(block=256, tile=256, slices=4, targets=2, unroll=8, min_blocks=1),
    "split": Plan(block=128, tile=128, slices=2, parts=3, targets=4, accumulate="f64", min_blocks=1),
    "untiled": Plan(block=64, tile=0, targets=2, min_blocks=2),
}
GPU = Machine("cuda", 132)


def check(p: Program, arch: str, *, local_arrays: bool = False) -> None:
    """Compile what a program launches."""
    for kernel in p.kernels:
        cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, arch, switches_of(p.plan))
        check_cubin(cubin, local_arrays=local_arrays)
        assert code_resources(cubin.code, entry_name(kernel)) == reported(cubin.log), cubin.log


def check_cubin(cubin: Cubin, *, local_arrays: bool = False) -> None:
    """No warnings, no spills, and a stack only for local arrays."""
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


@pytest.mark.grid(every=40)
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


Launchable = tuple[ir.Kernel, Plan, Plan | None]  # the reference kernel, its complete plan, what the product asks for


def _pair(kernel: Pairwise, record: Record, bodies: int, plan: Plan | None) -> Launchable:
    layout = default_layout(record, "cuda")
    uniforms: dict[str, Any] = {"softening2": kernel.signature.parameters["softening2"]}
    reference = build_pairwise(
        kernel.lowered, PairwiseArguments(("target", record, layout), ("source", record, layout), uniforms, True), t.I32
    )
    wide = any(r.type.size == 8 for r in kernel.lowered.function.results)
    return reference, complete_plan(plan, GPU, Work(PAIRWISE, bodies, wide)), plan


def _elements(kernel: Elementwise, record: Record, arrays: tuple[str, ...], bodies: int) -> Launchable:
    kinds: dict[str, Any] = dict(kernel.signature.parameters)
    uniforms = {n: k for n, k in kinds.items() if n not in (*arrays, "body")}
    given = ElementwiseArguments(
        {"body": (record, default_layout(record, "cuda"))}, {n: kinds[n] for n in arrays}, uniforms
    )
    plan = complete_plan(None, GPU, Work(ELEMENTWISE, bodies))
    if kernel.__name__ == "moments":
        return build_reduction(kernel.lowered, given, t.I32, "sum", strided=True), plan, None
    return build_elementwise(kernel.lowered, given, t.I32), plan, None


def _gravity(precision: str, bodies: int, softened: bool, arch: str) -> None:
    """Compile every kernel of the product as it is compiled for a launch."""
    cls: Any = RECORDS[precision]
    physics, record = make_physics(cls, softened), cls.__record__
    wide = Plan(accumulate="f64")
    for reference, plan, wanted in (
        _pair(physics.acceleration, record, bodies, wide if precision == "mixed" else None),
        _pair(physics.potential, record, bodies, wide),
        _elements(physics.kick_drift, record, ("acceleration",), bodies),
        _elements(physics.kick, record, ("acceleration", "survived"), bodies),
        _elements(physics.moments, record, (), bodies),
    ):
        for cubin in compile_kernel(reference, plan, "cuda", requested=wanted, arch=arch).cubins:
            check_cubin(cubin)


@pytest.mark.slow_cases("mixed-524288")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("bodies", [1024, 16_384, 524_288])
@pytest.mark.parametrize("precision", RECORDS)
def test_gravity(precision: str, bodies: int) -> None:
    _gravity(precision, bodies, True, "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("bodies", [1024, 16_384, 524_288])
@pytest.mark.parametrize("precision", RECORDS)
def test_gravity_everywhere(precision: str, bodies: int, arch: str) -> None:
    for softened in (True, False):
        _gravity(precision, bodies, softened, arch)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_fast_math_is_local_to_a_plan(arch: str) -> None:
    check(program(case("yukawa"), lw.SoA(), Plan(fast_math=True), "cuda"), arch)


# ---------------------------------------------------------------- kernels that read nothing of their records


@lw.record
class Grain:
    mass: lw.f32
    number: lw.i64


@lw.pairwise
def one(target: Grain, source: Grain) -> lw.i32:
    return lw.i32(1)


@pytest.mark.parametrize("plan", PLANS)
def test_pairs_that_are_only_counted(plan: str) -> None:
    """A tile of no fields takes no memory."""
    counted = Case("one", one, (Grain, Grain), lambda rng, n: {"mass": rng.random(n)}, lambda *a, **k: ())
    p = program(counted, lw.AoS(), PLANS[plan], "cuda")
    check(p, "sm_90")
    grains = Grain.array(mass=[1.0] * 70)
    with lw.device("cpu"):
        assert one(grains, grains).tolist() == [70] * 70
