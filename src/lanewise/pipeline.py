"""From an element function to the kernels of a plan: the table of contents of the compiler.

    frontend   Python source            -> Function                     frontend/function.py
    pattern    Function + arguments     -> naive Kernel                 patterns/
    passes     Kernel + Plan + target   -> Kernel(s) for the machine    passes/, one file an optimisation
    emission   Kernel                   -> CUDA C++ or Python text      emit/
    runtime    text                     -> compiled, cached, launched   runtime/

The order of the passes stands here, with the reason where it matters. The IR is verified after each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_kernel
from lanewise.passes import (
    accumulation,
    constant_folding,
    dead_code,
    layout_lowering,
    shared_memory,
    slicing,
    splitting,
    thread_mapping,
    thread_merging,
    tiling,
    unrolling,
)
from lanewise.plan import Plan

Observer = Callable[[str, ir.Kernel], None]


@dataclass(frozen=True, slots=True)
class Program:
    """The kernels of one call, in order of launch. `naive` is the same work before any pass that reshapes it: the interpreter's input."""

    plan: Plan
    naive: ir.Kernel
    kernels: tuple[ir.Kernel, ...]


def build_program(naive: ir.Kernel, plan: Plan, device_kind: str, observe: Observer = lambda stage, kernel: None) -> Program:
    """Apply the passes that `plan` (every field decided) asks for on a "cpu" or "cuda" device."""

    def checked(stage: str, kernel: ir.Kernel) -> ir.Kernel:
        verify_kernel(kernel)
        observe(stage, kernel)
        return kernel

    kernel = checked("pattern", naive)
    kernel = checked("constant folding", constant_folding.apply(kernel))
    kernel = checked("dead code", dead_code.apply(kernel))  # after folding, which leaves values unread
    simple = kernel
    kernels = (kernel,)
    if naive.pattern == "pairwise":
        kernels = _shape_pairwise(kernel, plan, device_kind, checked)
    elif device_kind == "cuda":
        kernels = (checked("mapping to threads", thread_mapping.apply(kernel, _decided(plan.block, "block"))),)
    # Last: no pass after it could tell which array a load belongs to.
    vector = device_kind == "cuda"
    kernels = tuple(dead_code.clean_loops(k) for k in kernels)
    kernels = tuple(checked("layout lowering", layout_lowering.apply(k, vector_loads=vector)) for k in kernels)
    return Program(plan, simple, kernels)


def _shape_pairwise(
    kernel: ir.Kernel, plan: Plan, device_kind: str, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    targets, slices = _decided(plan.targets, "targets"), _decided(plan.slices, "slices")
    tile, threads = _decided(plan.tile, "tile"), _decided(plan.block, "block")
    cuda = device_kind == "cuda"
    if cuda and threads % slices:
        raise PlanError(f"Plan(block={threads}, slices={slices}): the threads of a block must divide evenly into slices")
    lanes = threads // slices if cuda else 1
    if tile:
        kernel = checked("tiling", tiling.apply(kernel, tile))
    if plan.accumulate == "f64":  # before merging, while each sum has one name
        kernel = checked("float64 accumulation", accumulation.apply(kernel))
    kernel = checked("thread merging", thread_merging.apply(kernel, targets, lanes))
    if slices > 1:  # after merging: the slices meet once for each target of a thread
        kernel = checked("slicing", slicing.apply(kernel, slices, tile))
    combine: tuple[ir.Kernel, ...] = ()
    if _decided(plan.parts, "parts") > 1:
        kernel, second = splitting.apply(kernel, _decided(plan.parts, "parts"))
        kernel = checked("splitting of sources", kernel)
        combine = (checked("mapping to threads", thread_mapping.apply(second, threads)),) if cuda else (second,)
    if not cuda:
        return (kernel, *combine)
    if tile:  # after slicing, which narrows the loops over a tile but not its staging
        kernel = checked("shared-memory tiles", shared_memory.apply(kernel, tile, threads))
    kernel = checked("unrolling", unrolling.apply(kernel, _decided(plan.unroll, "unroll")))
    kernel = thread_mapping.apply(kernel, threads, targets=targets, lanes=lanes, min_blocks=_decided(plan.min_blocks, "min_blocks"))
    return (checked("mapping to threads", kernel), *combine)


def _decided(value: int | None, name: str) -> int:
    if value is None:
        raise PlanError(f"Plan({name}=None): the plan was not filled with defaults")
    return value
