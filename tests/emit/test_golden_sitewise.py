"""The generated text of flow on D2Q9, read line by line."""

from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from tests.emit.bodies import cuda_bodies, llvm_bodies
from tests.emit.sitewise import site_program

BLOCKS = lw.AoSoA(32)


@pytest.mark.parametrize("phase", ["pull", "even", "odd"])
def test_float16_in_blocks_in_cuda(golden, phase):
    golden(f"cuda_{phase}", cuda_bodies(site_program(lw.D2Q9, phase, BLOCKS, storage="f16")))


def test_kinds_in_cuda(golden):
    golden("cuda_kinds", cuda_bodies(site_program(lw.D2Q9, "pull", BLOCKS, special="kinds")))
    golden("cuda_dense", cuda_bodies(site_program(lw.D2Q9, "pull", BLOCKS, special="dense")))
    golden("cuda_apart", cuda_bodies(site_program(lw.D2Q9, "pull", BLOCKS, plan=Plan(branches="apart"))))


@pytest.mark.parametrize("phase", ["pull", "even", "odd"])
def test_bulk_and_special_in_llvm(golden, phase):
    golden(f"llvm_{phase}", llvm_bodies(site_program(lw.D2Q9, phase, lw.SoA(), "cpu")))


def test_kinds_in_llvm(golden):
    """What is in the bulk is shown once: with the special sites of the same phase."""
    pull = llvm_bodies(site_program(lw.D2Q9, "pull", lw.SoA(), "cpu"))
    golden("llvm_kinds", llvm_bodies(site_program(lw.D2Q9, "pull", lw.SoA(), "cpu", special="kinds"), known=pull))
