"""The pattern of sites of a lattice, each updated by itself from what arrives at it, and its
default plans.

The plans are rules of thumb, each from a measurement (bench/results).
"""

from __future__ import annotations

from lanewise.compiler.stages import BOXES, elements
from lanewise.compiler.work import estimates_roots
from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, own
from lanewise.ir.pattern import Checked, HostCode, Pattern, bits_of_rows
from lanewise.ir.traverse import statements
from lanewise.language.target import Machine, Target
from lanewise.passes.base import refuse
from lanewise.passes.points import mapping
from lanewise.passes.points.shape import shape_of
from lanewise.patterns.sitewise.builder import FIELDS
from lanewise.patterns.sitewise.passes import boxes, merging, ranges, runs, splitting
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

NO_SUMS = "its sites sum nothing over sources"
DEPARTING = (
    "what departs from a site is computed from all that arrives there: no population is a result "
    "by itself"
)


def divide(
    kernel: ir.Kernel, target: Target, checked: Checked, fast_math: bool
) -> tuple[ir.Kernel, ...]:
    """The bulk and each kind of site; on a CPU the loop of the bulk takes all sites whose links
    lead alike.
    """
    parts = splitting.apply(kernel, spans=not target.has_blocks)
    bulk, *special = (checked("branch splitting", k) for k in parts)
    if not target.has_blocks and runs.legal(bulk) is None:
        bulk = checked("runs of sites", runs.apply(bulk))
    return (bulk, *special)


def whole(kernel: ir.Kernel) -> str | None:
    """Why loop splitting does not apply: populations depart from its sites.

    An observer only looks.
    """
    populations = (
        a for a in kernel.arrays if a.written and (not is_own(a.name) or a.name == own("next"))
    )
    return DEPARTING if any(populations) else None


def shape(
    kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked
) -> tuple[ir.Kernel, ...]:
    """Sites in a row, or boxes of them for each thread and each block."""
    if not target.has_blocks:
        return (kernel,)
    if all(getattr(plan, name) == getattr(NEUTRAL, name) for name in BOXES):
        mapped = elements(kernel, plan, checked)
        if not ranges.has_range(kernel):
            return mapped
        return tuple(checked("range of sites", ranges.apply(k, plan.targets)) for k in mapped)
    rank = boxes.rank(kernel)
    if reason := boxes.legal(kernel, (plan.targets, plan.rows, plan.layers)):
        raise refuse("thread merging", kernel, reason)
    chosen = shape_of(plan, rank)
    merged = checked("boxes of sites", boxes.apply(kernel, chosen.points[::-1]))
    return (
        checked(
            "mapping to threads",
            mapping.blocks(merged, plan.block, plan.min_blocks, chosen.threads),
        ),
    )


SITEWISE = Pattern(
    "sitewise",
    in_boxes=True,
    host=HostCode(inline=True, separate=True),
    slabs=True,
    shape=shape,
    divide=divide,
    merging=merging,
    no_sums=NO_SUMS,
    whole=whole,
)


LEAST_MERGED = 1 << 18  # sites that fill a GPU when a thread updates several of them
MOST_POPULATIONS = 40  # that a thread with four sites may hold
FLAT = Plan(targets=4, rows=4, block=256, across=64)
FLAT_ALONE = Plan(targets=1, rows=8, block=256, across=128)
DEEP = Plan(targets=4, rows=2, layers=4, block=256, across=32, down=4)
DEEP_ALONE = Plan(targets=1, rows=2, layers=4, block=256, across=64, down=4)
# Of stencils, by the axes of the box and the bytes of a field: the first is for rows of whole
# vectors (bench/results/gpu_stencil.md).
BOX_PLANS: dict[tuple[int, int], tuple[Plan, ...]] = {
    (2, 2): (FLAT, FLAT_ALONE),
    (2, 4): (FLAT, FLAT_ALONE),
    (2, 8): (Plan(targets=2, rows=2, block=256, across=64), FLAT_ALONE),
    (3, 2): (DEEP, DEEP_ALONE),
    (3, 4): (DEEP, DEEP_ALONE),
    (3, 8): (Plan(targets=2, rows=2, layers=4, block=256, across=64, down=4), DEEP_ALONE),
}


def complete_site_plan(
    requested: Plan | None,
    machine: Machine,
    reference: ir.Kernel,
    count: int = LEAST_MERGED,
    shape: tuple[int, ...] = (),
) -> CompletePlan:
    """As `plans.complete_plan`, for a kernel over that many sites of a lattice, in a box of that
    shape if it is known.

    One plan serves all phases of a streaming form. Where all sites of a phase do the same, there is
    nothing to split. Raises `PlanError` for a request to keep classes apart that the kernel does
    not allow.
    """
    requested = requested or Plan()
    on_gpu = machine.target.has_blocks
    undivided = splitting.legal(reference)
    divided = undivided is None
    default = Plan(
        targets=_sites_of_a_thread(reference) if on_gpu and count >= LEAST_MERGED else 1,
        # Many loads of few bytes, or sites that all read their flags first: small blocks wait less
        # for each other.
        block=0
        if not on_gpu
        else 64
        if reference.arrays[0].leaves[0].type.size == 2 or undivided == splitting.DENSE
        else 256,
        # SIMD loops run over the bulk alone; on a GPU the marks cost less than lists
        # (bench/results/gpu_lbm.md).
        branches="apart" if divided and not on_gpu else "together",
        vector_bits=0 if on_gpu else _bits(machine, reference),
    ).filled(NEUTRAL)
    if (
        on_gpu
        and count >= LEAST_MERGED
        and (boxed := _boxes(requested, reference, shape)) is not None
    ):
        default = boxed.filled(default)
    plan = requested.filled(default)
    if on_gpu and merging.is_first(reference):
        plan = Plan(targets=1).filled(plan)
    if plan.branches != "apart" or undivided == splitting.ALIKE:
        return Plan(branches="together").filled(plan)
    if undivided is not None:
        raise refuse("branch splitting", reference, undivided)
    if not on_gpu:
        return plan
    if requested.targets not in (None, 1):
        raise refuse(
            "thread merging",
            reference,
            "with its branches apart special sites come from lists, one per thread",
        )
    return Plan(targets=1).filled(plan)


def _sites_of_a_thread(reference: ir.Kernel) -> int:
    """With two bytes a population accesses of single sites are too small; a thread has registers
    for 4 or 2 (bench/results/gpu_lbm.md).
    """
    leaves = reference.arrays[0].leaves
    if (
        reference.arrays[0].name == FIELDS
    ):  # single accesses are too few bytes on their way (bench/results/gpu_stencil.md)
        return next((n for n in (4, 2) if merging.legal(reference, n) is None), 1)
    if leaves[0].type.size != 2:
        return 2 if _reads_fields(reference) and merging.legal(reference, 2) is None else 1
    most = 4 if 4 * len(leaves) <= MOST_POPULATIONS else 2
    return next((n for n in (most, 2) if merging.legal(reference, n) is None), 1)


def _boxes(requested: Plan, reference: ir.Kernel, shape: tuple[int, ...]) -> Plan | None:
    """Rows and layers for each thread of a stencil, where no requested field is about them."""
    if any(getattr(requested, n) is not None for n in ("targets", "block", "branches", *BOXES)):
        return None
    for plan in BOX_PLANS.get((len(shape), reference.arrays[0].leaves[0].type.size), ()):
        points = (plan.targets or 1, plan.rows or 1, plan.layers or 1)
        fits = all(n >= p for n, p in zip(reversed(shape), points, strict=False))
        if fits and boxes.legal(reference, points) is None:
            return plan
    return None


def _reads_fields(reference: ir.Kernel) -> bool:
    """Whether sites read arrays other than populations at their neighbours: two of them share what
    they read.
    """
    (loop,) = reference.body
    assert isinstance(loop, ir.Parallel)
    values = {a.name for a in reference.arrays[1:] if not is_own(a.name)}
    site = loop.variable
    loads = (
        s for s in statements(reference.body) if isinstance(s, ir.LoadRecord) and s.array in values
    )
    return any(s.index != ir.Local(site, s.index.type) for s in loads)


def _bits(machine: Machine, reference: ir.Kernel) -> int:
    """In place every line that is stored was read, and whole registers pay; two copies leave the
    width to the compiler.
    """
    wide = machine.vector_bits == 512 and _in_place(reference)
    return bits_of_rows(machine, estimates_roots(reference.body), 512 if wide else 0)


def _in_place(reference: ir.Kernel) -> bool:
    """Whether the populations are written where they are read."""
    return reference.arrays[0].written
