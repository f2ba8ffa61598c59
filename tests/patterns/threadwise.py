"""What the tests of threadwise kernels share: the kernels of all stages, and running them on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.patterns.tables.names import extent_of, length_of
from lanewise.planning.plan import NEUTRAL, Plan

Array = np.ndarray[Any, Any]


def interpret(kernel: ir.Kernel, arrays: Mapping[str, Array], grid: tuple[int, ...], **uniforms: Any) -> None:
    """Run a kernel of any stage with the interpreter; written arrays change."""
    environment: dict[str, Any] = dict(uniforms)
    indices = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}[len(grid)]
    environment |= {extent_of(i): np.int32(n) for i, n in zip(indices, grid, strict=True)}
    for name, array in arrays.items():
        environment |= {length_of(name, d): np.int32(n) for d, n in enumerate(array.shape)}
    arguments = {a.name: a for a in kernel.arrays}
    flat = {n: a.reshape(-1) for n, a in arrays.items()}
    memories = {
        n: ArrayMemory(a.view(np.uint8), arguments[n].arrangement, a.size) for n, a in flat.items() if n in arguments
    }
    buffers = {b.name: flat[b.array] for b in kernel.buffers if b.space == "global"}
    Interpreter(kernel, environment, memories, buffers).run()


def stages(reference: ir.Kernel, plan: Plan, device: str = "cuda") -> dict[str, ir.Kernel]:
    """The kernel after each pass, by the name of the stage."""
    found: dict[str, ir.Kernel] = {}
    build_program(reference, plan.filled(NEUTRAL), device, found.__setitem__)
    return found


def run_stage(kernel: ir.Kernel, arguments: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    """Run a kernel of any stage on the arguments and the counts of a call; written arrays change."""
    flat = {n: a.reshape(-1) for n, a in arguments.items() if isinstance(a, np.ndarray)}
    kinds = {p.name: p.type.dtype.type for p in kernel.counts + kernel.uniforms}
    values = {n: kinds[n](v) if n in kinds else v for n, v in environment.items()}
    named = {a.name: a for a in kernel.arrays}
    memories = {n: ArrayMemory(a.view(np.uint8), named[n].arrangement, a.size) for n, a in flat.items() if n in named}
    buffers = {b.name: flat[b.array] for b in kernel.buffers if b.space == "global"}
    Interpreter(kernel, values, memories, buffers).run()
