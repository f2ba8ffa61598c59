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
from dataclasses import dataclass, field
from typing import Any

from lanewise.analysis.self_term import Proof
from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.functions import with_distinct_functions
from lanewise.ir.verify import verify_kernel
from lanewise.passes import (
    accumulation,
    branch_splitting,
    constant_folding,
    dead_code,
    fission,
    fma_rearrangement,
    invariant_code_motion,
    layout_lowering,
    prefetching,
    reciprocal_square_root,
    reciprocity,
    register_cap,
    self_term,
    shared_memory,
    slicing,
    splitting,
    thread_mapping,
    thread_merging,
    tiling,
    uniform_parameters,
    unrolling,
)
from lanewise.passes.base import refuse
from lanewise.plan import Plan

COMBINE_BLOCK = 128  # threads that add partial sums
VECTOR_BITS = (0, 256, 512)
MAX_SHARED_BYTES = 49_152  # what every GPU gives a block without being asked for more
Observer = Callable[[str, ir.Kernel], None]


@dataclass(frozen=True, slots=True)
class Program:
    """The kernels of one call, in order of launch. `naive` is the same work before any pass that reshapes it: the interpreter's input.

    They do that work for the values of the uniforms that `self_term` allows.
    """

    plan: Plan
    naive: ir.Kernel
    kernels: tuple[ir.Kernel, ...]
    self_term: Proof = field(default_factory=Proof)


def build_program(
    naive: ir.Kernel, plan: Plan, device_kind: str, observe: Observer = lambda stage, kernel: None
) -> Program:
    """Apply the passes that `plan` (every field decided) asks for on a "cpu" or "cuda" device.

    `observe` sees every stage by name: print the kernel, or run it. Raises `PlanError` for a plan that does not fit the kernel.
    """

    def checked(stage: str, kernel: ir.Kernel) -> ir.Kernel:
        verify_kernel(kernel)
        observe(stage, kernel)
        return kernel

    kernel = checked("pattern", with_distinct_functions(naive))
    kernel = checked("constant folding", constant_folding.apply(kernel))
    simple = checked("dead code", dead_code.apply(kernel))  # after folding, which leaves values unread
    _check_device(simple, plan, device_kind)
    arranged = _arrange(simple, plan, checked)
    parts = _divide(arranged, plan, checked)
    ready = _prepare_loops(parts, plan, checked)
    kernels = tuple(k for part in ready for k in _shape(part, plan, device_kind, checked))
    if registers := _decided(plan.registers, "registers"):
        kernels = tuple(checked("register cap", register_cap.apply(k, registers)) for k in kernels)
    kernels = tuple(checked("unused indices", dead_code.clean_loops(k)) for k in kernels)
    if plan.uniforms not in (None, "constant"):  # after the map to threads, each of which fetches them
        some = any(k.uniforms for k in kernels)  # a kernel that only adds partial sums has none
        kernels = tuple(
            k if some and not k.uniforms else checked("uniforms", uniform_parameters.apply(k, plan.uniforms))
            for k in kernels
        )
    # Last: no pass after it could tell which array a load belongs to.
    vector = device_kind == "cuda"
    kernels = tuple(checked("layout lowering", layout_lowering.apply(k, vector_loads=vector)) for k in kernels)
    for k in kernels:
        _check_shared_memory(k, plan)
    return Program(plan, simple, kernels, _proof(parts, plan))


def _arrange(kernel: ir.Kernel, plan: Plan, checked: Callable[[str, ir.Kernel], ir.Kernel]) -> ir.Kernel:
    """Rewrite the arithmetic of the functions, first of all: whatever divides or moves them takes the new form."""
    if plan.rsqrt not in (None, "written"):
        kernel = checked("reciprocal square root", reciprocal_square_root.apply(kernel, plan.rsqrt))
    return checked("FMA rearrangement", fma_rearrangement.apply(kernel)) if plan.fma else kernel


def _divide(kernel: ir.Kernel, plan: Plan, checked: Callable[[str, ir.Kernel], ir.Kernel]) -> tuple[ir.Kernel, ...]:
    """One kernel or several that run one after the other. Before everything that shapes loops, which each of them has for itself."""
    parts, fast_math = (kernel,), bool(plan.fast_math)
    if plan.fission:
        parts = tuple(checked("loop splitting", k) for k in fission.apply(kernel, fast_math=fast_math))
    if plan.branches != "apart":
        return parts
    reasons = [branch_splitting.legal(k, fast_math=fast_math) for k in parts]
    if all(reasons):  # a part without a branch stays whole, when another one has a branch
        raise refuse("branch splitting", kernel, reasons[0] or "")
    return tuple(
        side
        for k, reason in zip(parts, reasons, strict=True)
        for side in (
            (k,) if reason else (checked("branch splitting", s) for s in branch_splitting.apply(k, fast_math=fast_math))
        )
    )


def _shape(
    kernel: ir.Kernel, plan: Plan, device_kind: str, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    if kernel.pattern == "pairwise":
        return _shape_pairwise(kernel, plan, device_kind, checked)
    if device_kind == "cuda":
        return (checked("mapping to threads", thread_mapping.apply(kernel, _decided(plan.block, "block"))),)
    return (kernel,)


def _prepare_loops(
    parts: tuple[ir.Kernel, ...], plan: Plan, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    """Lighten the loops over sources while there is one in each kernel: before it is cut into tiles, and before targets are merged.

    A part that has nothing to change stays as it is, when another one has.
    """
    choice, tested = plan.self_term or "test", _tested(parts)
    if choice != "test":
        targets, tile = _decided(plan.targets, "targets"), _decided(plan.tile, "tile")
        parts = tuple(
            checked("self term", self_term.apply(k, choice, targets, tile)) if k in tested else k for k in parts
        )
    if plan.hoist:
        moving = [k for k in parts if invariant_code_motion.legal(k) is None] or parts
        parts = tuple(
            checked("invariant code motion", invariant_code_motion.apply(k)) if k in moving else k for k in parts
        )
    return parts


def _tested(parts: tuple[ir.Kernel, ...]) -> tuple[ir.Kernel, ...]:
    """The kernels that self_term is about: those with a test for a pair of an element with itself, or all when none has one."""
    return tuple(k for k in parts if self_term.has_test(k)) or parts


def _proof(parts: tuple[ir.Kernel, ...], plan: Plan) -> Proof:
    """What the values of the uniforms have to be for the plan, whose passes were all applied."""
    proofs = [self_term.proof(k, plan.self_term or "test") for k in _tested(parts)]
    return Proof(tuple(dict.fromkeys(c for p in proofs if isinstance(p, Proof) for c in p.conditions)))


def _check_device(kernel: ir.Kernel, plan: Plan, device_kind: str) -> None:
    """Refuse what this kind of device does not have; passes refuse what a kernel does not allow."""
    if plan.vector_bits:
        if device_kind == "cuda":
            raise refuse("SIMD width", kernel, "SIMD registers belong to a CPU; on a GPU vector_bits is 0")
        if plan.vector_bits not in VECTOR_BITS:
            raise refuse("SIMD width", kernel, f"wanted 0, 256 or 512 bits, found {plan.vector_bits}")
    if plan.registers and device_kind != "cuda":
        raise refuse("register cap", kernel, register_cap.legal(kernel, plan.registers) or "")
    if plan.prefetch in (None, "none"):
        return
    if device_kind != "cuda":
        raise refuse("prefetching", kernel, "a CPU prefetches by itself")
    if kernel.pattern != "pairwise" or plan.block == 1:
        raise refuse("prefetching", kernel, prefetching.legal(kernel, plan.prefetch) or "")


def _check_shared_memory(kernel: ir.Kernel, plan: Plan) -> None:
    taken = sum(b.length * b.type.size * b.lanes for b in kernel.buffers if b.space == "shared")
    if taken > MAX_SHARED_BYTES:
        raise PlanError(
            f"Plan(tile={plan.tile}, block={plan.block}, slices={plan.slices}): {kernel.name} needs {taken:,} bytes of shared memory "
            f"for a block, and {MAX_SHARED_BYTES:,} are available; choose a smaller tile or block"
        )


def _shape_pairwise(
    kernel: ir.Kernel, plan: Plan, device_kind: str, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    if plan.reciprocity not in (None, "off"):
        return _shape_reciprocal(kernel, plan, device_kind, checked)
    tile = _decided(plan.tile, "tile")
    if tile:
        kernel = checked("tiling", tiling.apply(kernel, tile))
    if plan.accumulate == "f64":  # before merging, while each sum has one name
        kernel = checked("float64 accumulation", accumulation.apply(kernel))
    return _shape_for_gpu(kernel, plan, checked) if device_kind == "cuda" else (_shape_for_cpu(kernel, plan, checked),)


def _shape_reciprocal(
    kernel: ir.Kernel, plan: Plan, device_kind: str, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    """Pairs computed once: the tasks of one warp each take the place of blocks, tiles and slices."""
    if device_kind != "cuda":
        raise refuse(
            "reciprocity", kernel,
            "it is the threads of a GPU that exchange sums; the SIMD lanes of a CPU would have to scatter them",
        )  # fmt: skip
    fixed: dict[str, Any] = {
        "tile": 0, "slices": 1, "parts": 1, "hoist": False, "prefetch": "none",
    }  # fmt: skip
    for name, wanted in fixed.items():
        if getattr(plan, name) != wanted:
            reason = f"its tasks belong to single warps and need Plan({name}={wanted!r}), found {getattr(plan, name)!r}"
            raise refuse("reciprocity", kernel, reason)
    targets, unroll = _decided(plan.targets, "targets"), _decided(plan.unroll, "unroll")
    mode: reciprocity.Mode = "scratch" if plan.reciprocity == "scratch" else "ordered"
    min_blocks, wide = _decided(plan.min_blocks, "min_blocks"), plan.accumulate == "f64"
    threads = _decided(plan.block, "block")
    main, *rest = reciprocity.apply(kernel, targets, mode, unroll, threads=threads, min_blocks=min_blocks, wide=wide)
    combine = (checked("mapping to threads", thread_mapping.apply(k, COMBINE_BLOCK)) for k in rest)
    return (checked("reciprocity", main), *combine)


def _shape_for_cpu(kernel: ir.Kernel, plan: Plan, checked: Callable[[str, ir.Kernel], ir.Kernel]) -> ir.Kernel:
    for name in ("slices", "parts"):
        if _decided(getattr(plan, name), name) != 1:
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): only a GPU divides the sources of one target; on a CPU {name} is 1"
            )
    return checked("thread merging", thread_merging.apply(kernel, _decided(plan.targets, "targets"), 1))


def _shape_for_gpu(
    kernel: ir.Kernel, plan: Plan, checked: Callable[[str, ir.Kernel], ir.Kernel]
) -> tuple[ir.Kernel, ...]:
    targets, slices, parts = (
        _decided(plan.targets, "targets"),
        _decided(plan.slices, "slices"),
        _decided(plan.parts, "parts"),
    )
    tile, threads = _decided(plan.tile, "tile"), _decided(plan.block, "block")
    if threads == 1:
        kernel = checked("unrolling", unrolling.apply(kernel, _decided(plan.unroll, "unroll")))
        alone = thread_mapping.apply_serial(
            kernel,
            targets=targets,
            slices=slices,
            parts=parts,
            tile=tile,
            min_blocks=_decided(plan.min_blocks, "min_blocks"),
        )
        return (checked("mapping to one thread", alone),)
    if reason := thread_mapping.legal(kernel, threads):
        raise refuse("mapping to threads", kernel, reason)
    if slices < 1 or threads % slices or threads == slices:
        raise PlanError(
            f"Plan(block={threads}, slices={slices}): the threads of a block must divide evenly into slices of at least 2 threads"
        )
    lanes = threads // slices
    kernel = checked("thread merging", thread_merging.apply(kernel, targets, lanes))
    if slices > 1:  # after merging: the slices meet once for each target of a thread
        kernel = checked("slicing", slicing.apply(kernel, slices, tile))
    combine: tuple[ir.Kernel, ...] = ()
    if parts != 1:
        kernel, second = splitting.apply(kernel, parts)
        kernel = checked("splitting of sources", kernel)
        combine = (checked("mapping to threads", thread_mapping.apply(second, threads)),)
    if (
        tile and shared_memory.source_fetch(kernel) is not None
    ):  # after slicing, which narrows the loops over a tile but not its staging
        kernel = checked("shared-memory tiles", shared_memory.apply(kernel, tile, threads))
    if plan.prefetch is not None and plan.prefetch != "none":  # after everything that decides what is staged, and when
        kernel = checked("prefetching", prefetching.apply(kernel, plan.prefetch))
    kernel = checked("unrolling", unrolling.apply(kernel, _decided(plan.unroll, "unroll")))
    kernel = thread_mapping.apply(
        kernel, threads, targets=targets, lanes=lanes, min_blocks=_decided(plan.min_blocks, "min_blocks")
    )
    return (checked("mapping to threads", kernel), *combine)


def _decided(value: int | None, name: str) -> int:
    if value is None:
        raise PlanError(f"Plan({name}=None): the plan was not filled with defaults")
    return value
