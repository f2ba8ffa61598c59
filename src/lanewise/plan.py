"""A plan: every decision about a kernel that is not its meaning. Each field is the option of exactly one pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from lanewise.attributes import frozen
from lanewise.checks import check_fields, shown
from lanewise.errors import PlanError


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Decisions for one kernel on one device. Fields left at None are decided by `pipeline.default_plan`.

    targets: elements that one thread (or SIMD loop) computes together (thread merging): targets share every source that it
    reads; neighbouring sites of a lattice (1, 2 or 4, CUDA) are moved together.
    tile: sources in one tile; on CUDA a tile is staged in shared memory by the whole block, one source a thread. 0:
    no tiles.
    slices: groups of threads of one block that share the targets and divide every tile of the sources (CUDA).
    parts: blocks along the second axis of the grid that divide the sources; a second kernel adds their sums in order
    (CUDA).
    unroll: how many times the innermost source loop is written out; 0 means fully (CUDA; on a CPU LLVM decides).
    block: threads of a block (CUDA). 1: one thread of the whole GPU computes everything, for comparison.
    min_blocks: blocks that must fit one multiprocessor; caps the registers of a thread (CUDA launch bounds). 0: no cap.
    accumulate: "native" adds in the precision of the result; "f64" adds the sums of tiles in float64.
    fast_math: allow the compiler every algebraic shortcut, also those that ignore NaN, infinity and rounding.
    registers: the most registers a thread may take, at the price of spills (CUDA). 0: as many as the compiler likes.
    hoist: compute what does not depend on the source once a target, before the loop (invariant code motion).
    self_term: what becomes of the pair of an element with itself: "test" keeps the user's test for it in the loop, "loops"
    writes two loops that leave it out, "drop" removes the test, because the term is proved to be zero.
    rsqrt: "written" computes what the user wrote; "hardware" also computes 1 / sqrt(x) by the approximate instruction;
    "exact" computes lw.rsqrt(x) by a rounded square root and a division.
    fma: reorder sums of products so that each product joins its sum in one fused multiply-add.
    uniforms: where values that all elements share lie: in "constant" memory, or in "global" memory (CUDA).
    prefetch: fetch the next tile while this one is computed: "none", into "registers", or "async" (CUDA).
    fission: one kernel for each independent group of results (loop splitting).
    branches: "together" in one kernel, or "apart" in one kernel for each side of the function's branch.
    reciprocity: compute each pair once for both sides: "off", "scratch" with partial sums in memory, or "ordered" with
    blocks that add to the result in a fixed order (CUDA).
    vector_bits: width of SIMD registers on a CPU: 0 for what the compiler prefers, or 256 or 512.
    """

    targets: int | None = None
    tile: int | None = None
    slices: int | None = None
    parts: int | None = None
    unroll: int | None = None
    block: int | None = None
    min_blocks: int | None = None
    accumulate: Literal["native", "f64"] | None = None
    fast_math: bool | None = None
    registers: int | None = None
    hoist: bool | None = None
    self_term: Literal["test", "loops", "drop"] | None = None
    rsqrt: Literal["written", "hardware", "exact"] | None = None
    fma: bool | None = None
    uniforms: Literal["constant", "global"] | None = None
    prefetch: Literal["none", "registers", "async"] | None = None
    fission: bool | None = None
    branches: Literal["together", "apart"] | None = None
    reciprocity: Literal["off", "scratch", "ordered"] | None = None
    vector_bits: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, PlanError)

    def filled(self, defaults: Plan) -> Plan:
        """This plan, with the fields left at None taken from `defaults`."""
        result = object.__new__(Plan)  # of fields that were checked: every call of a kernel fills a plan
        for name in FIELDS:
            own = getattr(self, name)
            object.__setattr__(result, name, getattr(defaults, name) if own is None else own)
        return result

    def __str__(self) -> str:
        return ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) is not None
        )

    def short(self) -> str:
        """What differs from the neutral plan: the decisions that shape the kernel."""
        kept = {n: v for n, v in self.as_dict().items() if v is not None and v != getattr(NEUTRAL, n)}
        return str(Plan(**kept)) or "neutral"

    def as_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


FIELDS = tuple(f.name for f in fields(Plan))


def check_plan(place: str, plan: Any) -> Plan | None:
    """A plan or none; raises `PlanError` for anything else."""
    if plan is not None and not isinstance(plan, Plan):
        raise PlanError(f"{place}: plan takes lw.Plan(...), found {shown(plan)}")
    return plan


# Every optimisation switched off: what the ladders start from, and what an optimisation is compared with.
NEUTRAL = Plan(
    targets=1, tile=0, slices=1, parts=1, unroll=1, block=0, min_blocks=0, accumulate="native", fast_math=False,
    registers=0, hoist=False, self_term="test", rsqrt="written", fma=False, uniforms="constant", prefetch="none",
    fission=False, branches="together", reciprocity="off", vector_bits=0,
)  # fmt: skip
