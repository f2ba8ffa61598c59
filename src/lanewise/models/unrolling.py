"""What unrolling saves, from counted instructions: equation 3 of the Gravit paper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """Instructions of one thread: once (`setup`, S), for each tile (`block`, B), and for each source (`inner`, P)."""

    setup: float
    block: float
    inner: float

    def total(self, sources: int, tile: int) -> float:
        """Instructions of a thread over all sources: S + N/K B + N P."""
        return self.setup + sources / tile * self.block + sources * self.inner


def unrolling_speedup(rolled: LoopCosts, unrolled: LoopCosts, sources: int, tile: int) -> float:
    """The instructions of the rolled loop over those of the unrolled one.

        speedup = (S1 + N/K B1 + N P1) / (Sur + N/K Bur + N Pur)

    N is `sources`, K is `tile`, the sources of one tile. Source: optimising Gravit on CUDA, eq. 3. Raises `ValueError`
    for no sources or an empty tile.
    """
    if sources < 1 or tile < 1:
        raise ValueError(f"wanted at least one source and one source a tile, found {sources} and {tile}")
    return rolled.total(sources, tile) / unrolled.total(sources, tile)
