"""How long does a hierarchical search of a thesis's size take on this GPU, and a hundred times as
much?

`python -m bench.gpu_waves_search` writes bench/results/gpu_waves_search.{md,json}, or into the
folder that the variable OUT names. 84 stacks of 45 SFTs of two detectors, 45 directions, 9
spin-downs, 161 frequencies (J. Breitbart, Case studies on GPU usage and data structure design,
2008, chapter 4): F, Hough maps, and the best 100 candidates of each map. Loading the data stands
apart. The candidates of a direction are held against the CPU's kernels, those of a map against the
definition in NumPy. LALPulsar's search of these data takes 41.5 s on one core. `--device cpu
--small` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Measurement, describe_machine, write_results
from lanewise.sims import waves
from lanewise.sims.waves.hierarchical import CANDIDATE, MapSearch, merged

S, START, SPAN, STACKS = 10**9, 1238166018, 45 * 1800, 84
FREQUENCIES, DIRECTIONS, KEPT = 161, 45, 100
STEP = 2e-11  # Hz/s, of the spin-down
TARGET, LAL = 0.06, 41.5  # seconds: what is wanted, and what LALPulsar takes on one core
ROUNDS = 9


@dataclass(frozen=True)
class Prepared:
    """A search that is loaded, and how long that took with its first use."""

    grids: Any
    search: MapSearch
    loading: float


def grids_of(frequencies: int, ephemeris: waves.Ephemeris) -> Any:
    """Data of noise for that many frequencies, and the grids of the search."""
    count = STACKS * 45
    search = waves.Search(
        freq=60.0,
        freq_band=(frequencies - 1) / SPAN,
        f1dot=-4 * STEP,
        f1dot_band=8 * STEP,
        f1dot_step=STEP,
        reference=START * S + count * 1800 * S // 2,
        stack=float(SPAN),
        most_stacks=STACKS,
        residuals=1,
    )
    low, high = waves.search_cover(search, START * S, (START + 1800 * count) * S, 1800.0)
    margin = waves.search_margin(8) / 1800 + 0.01
    starts = {d: [START + 1800 * i for i in range(count)] for d in ("H1", "L1")}
    noise = {"H1": 1e-23, "L1": 1e-23}
    sfts = waves.make_data(starts, (low - margin, high + margin), sqrt_s=noise, ephemeris=ephemeris)
    return waves.set_up(sfts, search)


def sky(count: int) -> list[tuple[float, float]]:
    """Directions, in radians."""
    return [(1.0 + 0.02 * (i % 50), 0.3 + 0.01 * (i // 50)) for i in range(count)]


def run(search: MapSearch, grids: Any, directions: int) -> tuple[Any, float]:
    """The list of the best candidates, and the seconds."""
    work = [(a, d, f) for a, d in sky(directions) for f in grids.f1dot.tolist()]
    begin, top = time.perf_counter(), [np.empty(0, CANDIDATE)]
    for some in search.candidates(work, KEPT):
        top.append(some)
        if len(top) == 64:
            top = [merged(top, KEPT)]
    best = merged(top, KEPT)
    return best, time.perf_counter() - begin


def prepare(frequencies: int, ephemeris: waves.Ephemeris, device: str, directions: int) -> Prepared:
    grids = grids_of(frequencies, ephemeris)
    begin = time.perf_counter()
    search = MapSearch(grids, ephemeris, device=device)
    run(search, grids, directions)
    return Prepared(grids, search, time.perf_counter() - begin)


def check(ready: Prepared, ephemeris: waves.Ephemeris, device: str) -> None:
    """Raise where candidates differ from those of the CPU's kernels, or from the definition."""
    point = [(1.0, 0.3, float(f)) for f in ready.grids.f1dot]
    for name, work in (("cpu", point), ("numpy", point[4:5])):
        if name == device:
            continue
        ours = merged(list(ready.search.candidates(work, KEPT)), KEPT)
        theirs = merged(
            list(MapSearch(ready.grids, ephemeris, device=name).candidates(work, KEPT)), KEPT
        )
        for field in ("freq", "alpha", "delta", "f1dot", "count"):
            if not (ours[field] == theirs[field]).all():
                raise ValueError(f"{device} and {name} find other candidates: {field}")
        if not np.allclose(ours["twoF"], theirs["twoF"], atol=1e-4):
            raise ValueError(f"{device} and {name} find other 2F")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cuda")
    options.add_argument("--small", action="store_true", help="few directions, no larger searches")
    asked = options.parse_args()
    ephemeris = waves.Ephemeris.load("EPV00")
    directions = 2 if asked.small else DIRECTIONS
    ready = prepare(FREQUENCIES, ephemeris, asked.device, directions)
    check(ready, ephemeris, asked.device)
    run(ready.search, ready.grids, directions)  # buffers are those of this size again
    maps = directions * len(ready.grids.f1dot)
    seconds = [run(ready.search, ready.grids, directions)[1] for _ in range(ROUNDS)]
    rows = [Measurement(f"thesis-sized: {maps} maps", seconds, maps, "maps")]
    if not asked.small:
        run(ready.search, ready.grids, 10 * directions)
        ten = [run(ready.search, ready.grids, 10 * directions)[1] for _ in range(3)]
        rows.append(Measurement("ten times: directions", ten, 10 * maps, "maps"))
        wide = prepare(10 * FREQUENCIES, ephemeris, asked.device, directions)
        hundred = [run(wide.search, wide.grids, 10 * directions)[1] for _ in range(3)]
        rows.append(
            Measurement("a hundred times: 10 x directions, 10 x band", hundred, 10 * maps, "maps")
        )
    folder = Path(os.environ.get("OUT") or "bench/results")
    text = write_results(
        folder / "gpu_waves_search.md",
        "A hierarchical search of a thesis's size",
        rows,
        describe_machine(),
    )
    once = statistics.median(seconds)
    text += f"\nLoading and the first search, kernels compiled: {ready.loading:.2f} s. "
    text += f"Wanted for the search: {TARGET} s; LALPulsar on one core: {LAL} s.\n"
    for row, times in zip(rows[1:], (10, 100), strict=False):
        text += (
            f"{row.name}: {row.median / once / times:.2f} of {times} times the time (wanted: at "
            "most 1.2).\n"
        )
    (folder / "gpu_waves_search.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
