"""Formulas of papers, from counted instructions: what a kernel for each side of a branch gains, and
what unrolling saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """One side of a branch: its share of the branched kernel's time in seconds, and its occupancy
    (0 to 1) on its own.
    """

    seconds: float
    occupancy: float


def branch_splitting_speedup(
    branches: Sequence[Branch],
    branched_occupancy: float,
    launch_seconds: float,
    branched_seconds: float | None = None,
) -> float:
    """The time with all branches in one kernel over that of a kernel for each.

        speedup = T / (sum over i of t_i rho_min / rho_i + sigma)

    T is `branched_seconds`, the worst case in which every warp runs every branch: by default the
    sum of the branches' times t_i. rho_i is a branch's occupancy in its own kernel, rho_min the one
    that the branched kernel has, and sigma the time of the launches that are added. Source: loop
    and branch splitting for lattice Boltzmann on CUDA, eq. 1. Raises `ValueError` for times that
    are not positive and occupancies outside 0..1.
    """
    if not branches:
        raise ValueError("branch splitting needs at least one branch, found none")
    if any(b.seconds <= 0 for b in branches) or launch_seconds < 0:
        raise ValueError(
            f"times must be positive, found {[b.seconds for b in branches]} and {launch_seconds}"
        )
    if any(not 0 < x <= 1 for x in (branched_occupancy, *(b.occupancy for b in branches))):
        raise ValueError(
            f"an occupancy lies between 0 and 1, found {[b.occupancy for b in branches]}, "
            f"{branched_occupancy}"
        )
    together = sum(b.seconds for b in branches) if branched_seconds is None else branched_seconds
    apart = sum(b.seconds * branched_occupancy / b.occupancy for b in branches) + launch_seconds
    return together / apart


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """Instructions of one thread: once (`setup`, S), for each tile (`block`, B), and for each
    source (`inner`, P).
    """

    setup: float
    block: float
    inner: float

    def total(self, sources: int, tile: int) -> float:
        """Instructions of a thread over all sources: S + N/K B + N P."""
        return self.setup + sources / tile * self.block + sources * self.inner


def unrolling_speedup(rolled: LoopCosts, unrolled: LoopCosts, sources: int, tile: int) -> float:
    """The instructions of the rolled loop over those of the unrolled one.

        speedup = (S1 + N/K B1 + N P1) / (Sur + N/K Bur + N Pur)

    N is `sources`, K is `tile`, the sources of one tile. Source: optimising Gravit on CUDA, eq. 3.
    Raises `ValueError` for no sources or an empty tile.
    """
    if sources < 1 or tile < 1:
        raise ValueError(
            f"wanted at least one source and one source a tile, found {sources} and {tile}"
        )
    return rolled.total(sources, tile) / unrolled.total(sources, tile)
