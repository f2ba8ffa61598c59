"""The generated text of kernels that read fields at neighbours, read line by line; and that it compiles without spills."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.layouts import SoA
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.planning.plan import Plan
from tests.emit.bodies import cuda_bodies, llvm_bodies
from tests.emit.sitewise import CPU, GPU
from tests.patterns.sitewise import read_by_place, reference_kernel
from tests.sites.fields import two_phases
from tests.sites.test_fields_and_tables import RATES, paint


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


heat.wall(1, "hot", t="heating")


def program(kernel: object, machine: Machine, sites: object, plan: Plan | None = None, **values: Any) -> Program:
    reference = reference_kernel(kernel, sites, t.I32 if machine is GPU else t.I64, **values)
    kind = "cuda" if machine is GPU else "cpu"
    return build_program(reference, complete_site_plan(plan, machine, reference), kind)


def heated() -> Program:
    box = read_by_place(heat.sites((4, 16), edges={"y": "hot"}, layout=SoA(), device="python"))
    box.row_block = 4
    return program(heat, GPU, box, rate=0.2, heating=1.0)


def separating(form: str) -> Program:
    box = two_phases.sites((4, 32), layout=lw.AoSoA(32), streaming=form, device="python")
    box.step, box.fresh = 1, False
    return program(two_phases, GPU, read_by_place(box) if form == "pull" else box, attraction=-5.0)


def painted() -> Program:
    box = read_by_place(paint.sites((4, 16), layout=SoA(), device="python"))
    box.row_block = 4
    return program(paint, GPU, box, rates=RATES, source=np.zeros((4, 16), np.float32))


def test_a_stencil_in_cuda(golden):
    golden("cuda_stencil", cuda_bodies(heated()))


def test_a_stencil_in_python(golden):
    box = heat.sites((4, 16), edges={"y": "hot"}, layout=SoA(), device="python")
    golden("llvm_stencil", llvm_bodies(program(heat, CPU, box, rate=0.2, heating=1.0)))


def test_two_phases_in_cuda(golden):
    golden("cuda_two_phases", cuda_bodies(separating("pull")))


def test_they_compile_without_spills():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from tests.emit.test_cubins import check

    for made in (heated(), painted(), *(separating(form) for form in ("pull", "push", "in-place"))):
        check(made, "sm_90")
