"""The generated text of gravity in every layout and of its plans, read line by line; and of the kernels with branches,
loops and arrays.
"""

from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from tests.corpus import LAYOUTS, case
from tests.emit.bodies import cuda_bodies, llvm_bodies
from tests.harness import program

GPU = Plan(targets=1, tile=128, block=128, unroll=8)


def cuda_text(name: str, layout: lw.Layout, plan: Plan = GPU) -> str:
    return cuda_bodies(program(case(name), layout, plan, "cuda"))


def llvm_text(name: str, layout: lw.Layout, plan: Plan, *, fast_math: bool = False) -> str:
    return llvm_bodies(program(case(name), layout, plan, "cpu"), fast_math=fast_math)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gravity_in_cuda(golden, layout):
    golden(f"cuda_{layout}", cuda_text("gravity", LAYOUTS[layout]))


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("targets", Plan(targets=2, tile=256, block=128, unroll=0, min_blocks=4)),
        ("f64", Plan(targets=2, tile=128, block=128, accumulate="f64")),
        ("slices", Plan(targets=2, tile=128, block=128, slices=4)),
        ("parts", Plan(targets=1, tile=128, block=128, parts=8)),
        ("no_tiles", Plan(targets=4, tile=0, block=64)),
    ],
)
def test_plans_of_gravity_in_cuda(golden, name, plan):
    golden(f"cuda_plan_{name}", cuda_text("gravity", lw.SoAoAS(), plan.filled(GPU)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gravity_in_llvm(golden, layout):
    golden(f"llvm_{layout}", llvm_text("gravity", LAYOUTS[layout], Plan(targets=1)))


def test_plans_of_gravity_in_llvm(golden):
    golden("llvm_plan_targets", llvm_text("gravity", lw.SoA(), Plan(targets=4)))
    golden("llvm_plan_f64", llvm_text("gravity", lw.SoA(), Plan(targets=2, tile=512, accumulate="f64")))
    golden("llvm_plan_fast_math", llvm_text("gravity", lw.SoA(), Plan(targets=1), fast_math=True))


@pytest.mark.parametrize(
    "name", ["gravity_mixed", "lennard_jones", "ranked_distance", "count_ranks", "order", "grow", "march", "histogram"]
)
def test_branches_loops_arrays_and_types(golden, name):
    golden(f"cuda_{name}", cuda_text(name, lw.SoAoAS(), Plan(tile=64, block=64, unroll=1)))
    golden(f"llvm_{name}", llvm_text(name, lw.SoA(), Plan(targets=1)))
