"""When a block loads its tiles and when it computes with them, by the model: in turn, or the next
tile while it computes with this one (figure 6 of the study of naive kernels).

It is the timeline of one block that has a multiprocessor to itself. Blocks that are there together
hide each other's loads in the same way, so the gain of a launch is smaller: the row "data
prefetching" has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanewise.analysis.region import Region
from lanewise.analysis.regions import KernelWork
from lanewise.language.target import WARP
from lanewise.models.devices import DeviceModel
from lanewise.models.gpu_time import TILE_CYCLES, busy_cycles, unit_cycles
from lanewise.support.numerals import time_text

TILES, SECTOR = "loop over tiles", 32
DRAWN, LETTERS = 4, 6  # rounds, and letters of the longer part of one


@dataclass(frozen=True, slots=True)
class Timeline:
    """Seconds of one block. rounds: tiles, one after the other."""

    rounds: int
    load: float
    compute: float

    @property
    def in_turn(self) -> float:
        """Every load waited for."""
        return self.rounds * (self.load + self.compute)

    @property
    def ahead(self) -> float:
        """The first load waited for, each other one made during the round before it."""
        return (
            self.load + (self.rounds - 1) * max(self.load, self.compute) + self.compute
        )  # the last round loads nothing

    def drawn(self) -> tuple[str, str]:
        """The first rounds, a letter for some time of loading (L) or computing (C); loaded ahead
        what is done at once is `B`.
        """
        longer = max(self.load, self.compute)
        load, compute = (max(1, round(LETTERS * t / longer)) for t in (self.load, self.compute))
        both, rest = min(load, compute), "L" if load > compute else "C"
        shown = min(self.rounds, DRAWN)
        together = "B" * both + rest * (max(load, compute) - both)
        one, ahead = "L" * load + "C" * compute, ["L" * load, *[together] * (shown - 1)]
        if self.rounds > DRAWN:
            return "|".join([one] * shown) + " ...", "|".join(ahead) + " ..."
        return "|".join([one] * shown), "|".join([*ahead, "C" * compute])


def timeline(work: KernelWork, device: DeviceModel) -> Timeline | None:
    """Of a kernel that goes over tiles; None for others."""
    loops = [r for r in work.regions if r.role == TILES and r.executions >= 2]
    if not loops:
        return None
    loop = max(loops, key=lambda r: r.executions)
    warps = -(-work.threads // WARP)
    sectors = sum(
        r.executions * a.sectors
        for r in work.regions
        if _is_in(r, loop)
        for a in r.accesses
        if a.space == "global" and not a.write
    )
    share = device.l2_bandwidth / device.multiprocessors
    load = TILE_CYCLES / device.clock_hz + sectors / loop.executions * SECTOR * warps / share
    accesses = [(a, r.executions) for r in work.regions for a in r.accesses]
    cycles = unit_cycles(work.instructions, accesses, device)
    compute = busy_cycles(cycles, work.instructions, device) * warps / device.clock_hz
    return Timeline(round(loop.executions), load, compute / loop.executions)


def _is_in(region: Region | None, loop: Region) -> bool:
    while region is not None:
        if region is loop:
            return True
        region = region.parent
    return False


def timeline_facts(
    work: KernelWork, device: DeviceModel, prefetch: str
) -> tuple[list[str], dict[str, Any]]:
    """Lines about it, that of the plan first, and the same as facts; nothing of a kernel without
    tiles.
    """
    found = timeline(work, device)
    if found is None:
        return [], {}
    in_turn, ahead = found.drawn()
    ways = [
        f"one after the other  {in_turn}  {time_text(found.in_turn)}",
        f"loaded ahead         {ahead}  {time_text(found.ahead)}",
    ]
    texts = [
        f"a block alone: {found.rounds} rounds, {time_text(found.load)} to load a tile (L) and "
        f"{time_text(found.compute)} to compute with it (C), both at once (B)",
        *(ways if prefetch == "none" else reversed(ways)),
    ]
    facts = {
        "rounds": found.rounds,
        "load_seconds": found.load,
        "compute_seconds": found.compute,
        "in_turn_seconds": found.in_turn,
        "ahead_seconds": found.ahead,
        "loaded_ahead": prefetch != "none",
    }
    return texts, facts
