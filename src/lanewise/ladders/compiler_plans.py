"""From the naive plan of a kernel to its default plan, one pass after the other.

The plans are derived from the default one: its fields are turned on in the order below, those of a
pass together. Fields that are not listed come first, each as its own pass, as arithmetic and
the division into kernels do in the compiler: a default plan with a new decision has a rung for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewise.planning import DECLARED, FIELDS, CompletePlan, neutral_plan
from lanewise.sims.common.devices import target_of

BLOCK = 256  # threads of a block of the naive kernels: 16 x 16


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass, or what a plan leaves open of it: the name of its rung, and the fields of the plan
    that belong together.
    """

    name: str
    fields: tuple[str, ...]


MERGING, VECTORS = "thread merging", "vectorised accesses"
PREFETCHING = "prefetching"
COPIES = "asynchronous copies"
CAMPING = "diagonal blocks (partition camping)"
PASSES = (
    Pass("remapping of threads", ("neighbours",)),
    Pass("reduction: blocks", ("parts",)),  # first: one block alone would sum a whole array
    # before staging: the threads that share a row keep it
    Pass("reduction: threads of a block", ("slices",)),
    Pass("coalescing by staging", ("tile",)),
    Pass("thread-block merging", ("block", "across", "down")),
    Pass(MERGING, ("targets", "rows", "layers")),
    Pass(PREFETCHING, ("prefetch",)),
    Pass(VECTORS, ("adjacent",)),
    Pass("unrolling", ("unroll",)),
    Pass("order of blocks", ("order",)),
    Pass("register caps", ("min_blocks", "registers")),
)


ON_A_CPU = (
    Pass(
        "SIMD lanes", ("across", "slices", "targets", "rows", "layers", "vector_bits")
    ),  # squares have as many rows as lanes
    Pass("packing", ("tile",)),
)
"""The same on a CPU, whose plans have no blocks: packing requires rows, and rows on lanes."""


def every_pass() -> tuple[Pass, ...]:
    """One for each field of a plan that none of the passes above has, then these."""
    listed = {f for p in PASSES for f in p.fields}
    rest = sorted((f for f in FIELDS if f not in listed), key=lambda f: DECLARED[f].place)
    return (*(Pass(DECLARED[f].name, (f,)) for f in rest), *PASSES)


def naive_plan(device: str) -> CompletePlan:
    """A thread for each output: in blocks of 16 x 16 on a GPU, as the original's naive kernels;
    nothing else.
    """
    return neutral_plan(target_of(device), BLOCK)


@dataclass(frozen=True, slots=True)
class RungChange:
    """What a rung changes in the plan before it."""

    name: str
    fields: Mapping[str, Any]

    def on(self, plan: CompletePlan, refused: Mapping[str, Any]) -> CompletePlan:
        """The plan of the rung, with what was refused before it."""
        return replace(plan, **{**refused, **self.fields})


def changes(start: CompletePlan, goal: CompletePlan) -> Iterator[RungChange]:
    """The changes that lead from one plan to the other, in the order of the passes."""
    at = start
    for one in every_pass() if goal.block else ON_A_CPU:
        fields = {f: getattr(goal, f) for f in one.fields if getattr(goal, f) != getattr(at, f)}
        if one.name == MERGING and "targets" in fields and goal.adjacent != 1:
            # neighbouring points together, in one access, are the pass after it
            fields["adjacent"] = 1
        if fields:
            yield RungChange(one.name, fields)
            at = replace(at, **fields)


def left_out(plan: CompletePlan, rank: int) -> Iterator[RungChange]:
    """Asynchronous copies, and passes of the original that a default plan does without though there
    is something to apply them to.
    """
    if plan.slices != 1 or plan.parts != 1 or not plan.block:
        return
    if plan.tile and plan.prefetch == "none":
        yield RungChange(PREFETCHING, {"prefetch": "registers"})
    if plan.tile and not plan.prefetch.startswith("async"):
        yield RungChange(COPIES, {"prefetch": "async"})
    if rank == 2 and plan.order != "diagonal":
        yield RungChange(CAMPING, {"order": "diagonal"})
