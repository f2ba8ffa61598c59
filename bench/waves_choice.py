"""Processor time of both ways to 2F of a band, beside the one that `choose_method` takes: a table in
Markdown.

    python -m bench.waves_choice
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from lanewise.sims import waves

START = 1_369_015_218
SIZES = [
    (n, d, f) for n in (20, 100) for d in (1, 2) for f in (1, 300, 600, 1200, 3000, 10_000, 25_000)
]
REPEATS = 3


def seconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least processor time of each, one after the other."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def main() -> None:
    tables = waves.Ephemeris.load("EPV00")
    print(
        "| SFTs | detectors | frequencies | demodulation by | demod, ms | resamp, ms | chosen "
        "| over the best |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for count, detectors, frequencies in SIZES:
        names = ("H1", "L1")[:detectors]
        starts = {n: START + 1800 * np.arange(count) for n in names}
        sfts = waves.make_data(starts, (59.8, 60.3), sqrt_s=dict.fromkeys(names, 1e-23), seed=1)
        data = waves.prepare(sfts, (59.9, 60.2))
        step = 1 / (8 * 1800 * count)
        band = waves.Band(60.0, step, frequencies, 1.0, 0.3, START * 10**9)
        templates = waves.Templates(band.frequencies, 1.0, 0.3, reference=START * 10**9)
        if band.frequencies[-1] > 60.18:
            continue
        found = seconds({
            "numpy": partial(waves.f_statistic, data, templates, tables),
            "cpu": partial(waves.f_statistic, data, templates, tables, device="cpu"),
            "resamp": partial(waves.f_statistic_band, data, band, tables),
        })  # fmt: skip
        for device in ("numpy", "cpu"):
            times = {"demod": found[device], "resamp": found["resamp"]}
            chosen = waves.choose_method(data, band, device=device).method
            over = times[chosen] / min(times.values())
            print(
                f"| {count * detectors} | {detectors} | {frequencies} | {device} | "
                f"{times['demod'] * 1e3:.1f} | {times['resamp'] * 1e3:.1f} | {chosen} | {over:.2f} |"
            )


if __name__ == "__main__":
    main()
