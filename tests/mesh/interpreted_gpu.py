"""A device that is a GPU to all that is planned and generated, and whose kernels the interpreter runs.

Its arrays lie in memory of the host. So what only GPUs do, such as pairs both ways, runs on virtual parts of a mesh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import Interpreter
from lanewise.language.target import CUDA, TARGETS, Machine, is_gpu, target_of
from lanewise.launch import repeatable, support
from lanewise.launch.executable import Executable
from lanewise.launch.steps import task
from lanewise.patterns.search import searched_launch
from lanewise.planning.plan import CompletePlan
from lanewise.runtime import device, stepping
from lanewise.runtime.host_device import HostDevice
from lanewise.runtime.lease import Lease

NAME = "interpreted"


@dataclass(frozen=True, slots=True)
class InterpretedGpu(HostDevice):
    """See above. One multiprocessor: some hundred elements are worth what many thousands are elsewhere."""

    def machine(self) -> Machine:
        return Machine(NAME, 1)


@dataclass(frozen=True, slots=True)
class InterpretedKernel:
    """A kernel as it is launched, by its buffers and numbers."""

    kernel: ir.Kernel
    constant_lease: Lease

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        del grid
        buffers = [b for b in self.kernel.buffers if b.space == "global"]
        scalars = (*self.kernel.counts, *self.kernel.uniforms)
        assert len(arguments) == len(buffers) + len(scalars)
        memory = {b.name: a for b, a in zip(buffers, arguments, strict=False)}
        numbers = {p.name: a for p, a in zip(scalars, arguments[len(buffers) :], strict=True)}
        Interpreter(self.kernel, numbers, {}, memory).run()


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the device known, for a test."""
    target = replace(CUDA, name=NAME, compiled=False, host_memory=True, has_constant_memory=False)
    monkeypatch.setitem(TARGETS, NAME, target)
    monkeypatch.setitem(device.MAKERS, NAME, InterpretedGpu)
    for module in (task, stepping, repeatable, searched_launch):  # graphs and addresses are CUDA's
        monkeypatch.setattr(module, "is_gpu", _has_graphs)
    monkeypatch.setattr(support, "_compiled", _compiling(support._compiled))  # pyright: ignore[reportPrivateUsage]


def _has_graphs(name: str) -> bool:
    return is_gpu(name) and target_of(name).name != NAME


def _compiling(others: Callable[..., Executable]) -> Callable[..., Executable]:
    def compiled(reference: ir.Kernel, plan: CompletePlan, where: str, arch: str | None) -> Executable:
        if target_of(where).name != NAME:
            return others(reference, plan, where, arch)
        program = build_program(reference, plan, "cuda")
        return Executable(program, where, (), tuple(InterpretedKernel(k, Lease("nothing")) for k in program.kernels))

    return compiled
