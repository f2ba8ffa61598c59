"""2F of a band by resampling and by demodulation, beside LALPulsar's, on one core: a table in Markdown.

    python -m bench.waves_resampling --lal PYTHON

PYTHON is an interpreter that has lalsuite. Every call has a direction of its own, as those of a search
have: LALPulsar keeps the resampled series of the last one. SFTs last 1800 s, half of them from each of
two detectors, without gaps. Processor time, the least of `--rounds`, in turns; run it with one thread
(LANEWISE_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.cpu_waves import COVER, DIRECTION, DURATION, START, Lal
from lanewise.sims import waves

COUNTS = (20, 98, 200)
FREQUENCIES = (300, 2000, 6000, 20_000)
FIRST = 100.0
METHODS = {"ResampGeneric": "RESAMP_GENERIC", "DemodBest": "DEMOD_BEST"}
AGREE = 2e-3
"""Of 2F of both programs by one method, at the ends of the band."""


def made(folder: Path, count: int) -> waves.SearchData:
    starts = {n: START + DURATION * np.arange(count // 2) for n in ("H1", "L1")}
    sfts = waves.make_data(starts, (99.8, 100.4), sqrt_s=dict.fromkeys(starts, 1e-23), seed=1)
    waves.write_sfts(folder, sfts)
    found = waves.load_sfts(f"{folder}/*.sft", COVER, margin=waves.search_margin())
    return waves.prepare(found, COVER)


def processor_time(lal: Lal) -> Callable[[float], float]:
    def call(turned: float) -> float:
        lal(turned)
        return lal.processor

    return call


def row(lal: str, folder: Path, data: waves.SearchData, frequencies: int, rounds: int) -> str:
    count, step = len(data), 1 / (4 * DURATION * (len(data) // 2))
    ephemeris = waves.Ephemeris.load("DE405")
    alpha, delta = DIRECTION
    theirs = {
        name: Lal(lal, f"{folder}/*.sft", frequencies, step, FIRST, ephemeris, method)
        for name, method in METHODS.items()
    }
    two_f: dict[str, tuple[float, float]] = {}

    def demodulated(turned: float) -> float:
        f = FIRST + step * np.arange(frequencies)
        templates = waves.Templates(f, alpha + turned, delta, reference=START * 10**9)
        return timed("demod", lambda: waves.f_statistic(data, templates, ephemeris, device="cpu"))

    def resampled(turned: float) -> float:
        return timed("resamp", lambda: waves.f_statistic_band(data, band(turned), ephemeris))

    def band(turned: float) -> waves.Band:
        return waves.Band(FIRST, step, frequencies, alpha + turned, delta, START * 10**9)

    def timed(name: str, call: Callable[[], waves.FStatistic]) -> float:
        begin = time.process_time()
        found = call()
        seconds = time.process_time() - begin
        two_f[name] = float(found.two_f[0, 0]), float(found.two_f[0, -1])
        return seconds

    calls: dict[str, Callable[[float], float]] = {
        "demod": demodulated,
        "resamp": resampled,
        **{name: processor_time(lal) for name, lal in theirs.items()},
    }
    least = dict.fromkeys(calls, float("inf"))
    for turn in range(rounds + 1):
        for name, call in calls.items():
            seconds = call(1e-3 * turn)
            if turn:  # the first one compiles
                least[name] = min(least[name], seconds)
    pairs = (("demod", "DemodBest"), ("resamp", "ResampGeneric"))
    away = max(
        float(np.abs(np.subtract(two_f[a], theirs[b].ends or np.nan)).max()) for a, b in pairs
    )
    if not away < AGREE:
        raise ArithmeticError(f"{count} SFTs, {frequencies} frequencies: 2F differs by {away:.1e}")
    for process in theirs.values():
        process.close()
    chosen = waves.choose_method(data, band(0.0), device="cpu").method
    ms = {name: f"{seconds * 1e3:.2f}" for name, seconds in least.items()}
    return (
        f"| {count} | {frequencies} | {ms['demod']} | {ms['resamp']} | {chosen} | "
        f"{ms['ResampGeneric']} | {ms['DemodBest']} | "
        f"{least['ResampGeneric'] / least[chosen]:.2f} | {away:.1e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lal", default="python", metavar="PYTHON")
    options = parser.parse_args()
    print(
        "| SFTs | frequencies | demodulation, ms | resampling, ms | `auto` takes "
        "| LAL ResampGeneric, ms | LAL DemodBest, ms | ResampGeneric by `auto` | 2F apart by |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            data = made(Path(folder), count)
            for frequencies in FREQUENCIES:
                if FIRST + frequencies / (2 * DURATION * count) < COVER[1] - 0.05:
                    print(
                        row(options.lal, Path(folder), data, frequencies, options.rounds),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
