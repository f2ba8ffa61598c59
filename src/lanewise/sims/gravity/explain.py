"""What the force kernel of gravity is on a device: compiled for it, launched nowhere."""

from __future__ import annotations

from typing import Any

from lanewise.analysis.counts import count_operations
from lanewise.analysis.reciprocity import reciprocity
from lanewise.errors import InputError
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.kernels.support import compile_kernel, index_type
from lanewise.layouts import SoA, default_layout, draw, layout_by_name
from lanewise.models.resources import kernel_resources
from lanewise.patterns.pairwise import PairwiseArguments, build_pairwise
from lanewise.plan import Plan
from lanewise.plans import Machine, Work, complete_plan
from lanewise.record import Record
from lanewise.runtime.devices import cpu_threads
from lanewise.sims.gravity.physics import RECORDS, make_physics
from lanewise.types import F64

REASONS = {
    "targets": "targets that share every source they meet",
    "tile": "sources staged together in shared memory (0: none)",
    "slices": "groups of threads that divide a tile's sources",
    "parts": "blocks that divide the sources, for few targets",
    "unroll": "copies of the inner loop's body",
    "block": "threads of a block (0: no blocks)",
    "min_blocks": "blocks asked for on a multiprocessor (0: no cap on registers)",
    "accumulate": "how sums are added",
    "fast_math": "algebraic shortcuts that ignore NaN and rounding",
    "registers": "most registers of a thread (0: no cap)",
    "hoist": "what no source changes is computed before the loop",
    "self_term": "the pair of a body with itself",
    "rsqrt": "how reciprocal square roots are computed",
    "fma": "sums of products reordered for fused multiply-adds",
    "uniforms": "where values for all lie",
    "prefetch": "the next tile is fetched while this one is computed",
    "fission": "one kernel for each independent result",
    "branches": "branches in one kernel or apart",
    "reciprocity": "each pair computed once for both sides",
    "vector_bits": "width of SIMD registers (0: the compiler's choice)",
}


def explain_gravity(
    device: str, bodies: int, precision: str, layout_name: str | None, arch: str, multiprocessors: int
) -> tuple[str, str]:
    """A report (plan, layout drawing, resources) and the generated source."""
    if precision not in RECORDS:
        raise InputError(f"unknown precision {precision!r}; wanted one of {', '.join(RECORDS)}")
    cls: Any = RECORDS[precision]
    record: Record = cls.__record__
    physics = make_physics(cls, True)
    layout = layout_by_name(layout_name) if layout_name else default_layout(record, device)
    machine = Machine("cuda", multiprocessors) if device == "cuda" else Machine("cpu", cpu_threads())
    wanted = Plan(parts=1, accumulate="f64" if precision == "mixed" else None)
    plan = complete_plan(wanted, machine, Work("pairwise", bodies, physics.pair == F64, layout != SoA()))
    arguments = PairwiseArguments(
        ("target", record, layout), ("source", record, layout), {"softening2": physics.pair}, True
    )
    naive = build_pairwise(physics.acceleration.lowered, arguments, index_type(device))
    executable = compile_kernel(naive, plan, device, wanted=wanted, arch=arch if device == "cuda" else None)
    decisions = "\n".join(
        f"  {name:11} {value!s:7} {REASONS[name]}" for name, value in executable.program.plan.as_dict().items()
    )
    resources = "\n".join(f"  {name:13} {value}" for name, value in kernel_resources(executable, arch).items())
    where = (
        f"{device} ({arch}, {multiprocessors} multiprocessors)"
        if device == "cuda"
        else f"cpu ({cpu_threads()} threads)"
    )
    names = list(physics.acceleration.signature.parameters)[:2]
    report = (
        f"gravity of {bodies:,} bodies in {precision} on {where}\n\nplan\n{decisions}\n\nlayout {layout}\n  "
        + draw(layout.arrange(record.leaves)).replace("\n", "\n  ")
        + f"\n\nforce function\n{_force_function(executable.program.naive, *names)}"
        + f"\n\nresources\n{resources}\n\nThe generated source: lanewise explain gravity --source {device}"
    )
    return report, executable.source


def _force_function(naive: ir.Kernel, target: str, source: str) -> str:
    """What one pair costs, and what the opposite direction of the pair would add."""
    function = list(functions(naive.body).values())[-1]  # helpers come before their users
    counts = ", ".join(f"{number} {name}" for name, number in sorted(count_operations(function).items()))
    found = reciprocity(function, target, source)
    if isinstance(found, str):
        return f"  operations   {counts}\n  third law    not known: {found}"
    shared = 2 * found.alone - found.together
    law = f"the two directions of a pair share {shared} of {found.alone} operations"
    return f"  operations   {counts}\n  third law    {law}"
