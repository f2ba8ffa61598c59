"""A plan: every decision about a kernel that is not its meaning. Each field is the option of exactly one pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from lanewise.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Decisions for one kernel on one device. Fields left at None are decided by `pipeline.default_plan`.

    targets: elements that one thread (or SIMD loop) computes together, sharing every source that it reads (thread
    merging).
    tile: sources in one tile; on CUDA a tile is staged in shared memory by the whole block, one source a thread. 0:
    no tiles.
    slices: groups of threads of one block that share the targets and divide every tile of the sources (CUDA).
    parts: blocks along the second axis of the grid that divide the sources; a second kernel adds their sums in order
    (CUDA).
    unroll: how many times the innermost source loop is written out; 0 means fully (CUDA; on a CPU LLVM decides).
    block: threads of a block (CUDA).
    min_blocks: blocks that must fit one multiprocessor; caps the registers of a thread (CUDA launch bounds). 0: no cap.
    accumulate: "native" adds in the precision of the result; "f64" adds the sums of tiles in float64.
    fast_math: allow the compiler every algebraic shortcut, also those that ignore NaN, infinity and rounding.
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

    def filled(self, defaults: Plan) -> Plan:
        """This plan, with the fields left at None taken from `defaults`."""
        return Plan(
            **{
                f.name: getattr(self, f.name) if getattr(self, f.name) is not None else getattr(defaults, f.name)
                for f in fields(self)
            }
        )

    def __str__(self) -> str:
        return ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) is not None
        )

    def as_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def power_of_two(name: str, value: int, low: int, high: int) -> None:
    """Refuse a plan value that is not a power of two within bounds."""
    if value < low or value > high or value & (value - 1):
        raise PlanError(f"Plan({name}={value}): wanted a power of two from {low} to {high}")
