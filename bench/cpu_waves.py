"""How long does the F-statistic take on this CPU, end to end, beside LALPulsar's?

`python -m bench.cpu_waves` writes bench/results/cpu_waves.{md,json}, or into the folder that the
variable OUT names. A band of frequencies, 90 SFTs of two detectors, 8 terms on each side; whole
calls of `f_statistic` (geometry, kernels, 2F of all detectors and of each), on all cores that the
process may use, and the first of them, which also makes what later searches of the same data take
again. Other programs take time from some rounds: compare the least ones, of which there are
`--rounds`. Where lalsuite is installed, ComputeFstat by its fastest demodulation runs on the same
files on one core, interleaved; else the report says that it is not. `--templates N` for a shorter
trial; `--lal PYTHON` names an interpreter that has lalsuite, if this one has not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.sims import waves
from lanewise.sims.waves.timing.ephemeris import EphemerisTable

START, DURATION, COUNT = 1238166018, 1800, 45
COVER = (99.95, 100.25)
DIRECTION = (2.0, 0.3)
LALPULSAR = "LALPulsar, DemodBest, one core"

LAL = r"""
import json, sys, time
import lal, lalpulsar
pattern, count, step, first = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
low, high, start = float(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7])
ephemeris = lalpulsar.InitBarycenter(sys.argv[8], sys.argv[9])
catalog = lalpulsar.SFTdataFind(pattern, lalpulsar.SFTConstraints())
arguments = lalpulsar.FstatOptionalArgs(lalpulsar.FstatOptionalArgsDefaults)
arguments.FstatMethod = getattr(lalpulsar, f"FMETHOD_{sys.argv[10]}")
arguments.Dterms = 8
data = lalpulsar.CreateFstatInput(catalog, low, high, step, ephemeris, arguments)
doppler = lalpulsar.PulsarDopplerParams()
doppler.refTime, doppler.Alpha, doppler.Delta = start, 2.0, 0.3
doppler.fkdot[0] = first
results = lalpulsar.FstatResults()
for line in sys.stdin:
    doppler.Alpha = 2.0 + float(line.strip() or 0)
    begin, work = time.perf_counter(), time.process_time()
    lalpulsar.ComputeFstat(results, data, doppler, count, lalpulsar.FSTATQ_2F)
    ends = float(results.twoF[0]), float(results.twoF[count - 1])
    print(json.dumps([time.perf_counter() - begin, time.process_time() - work, *ends]), flush=True)
"""


class Lal:
    """ComputeFstat in a process of its own, which has lalsuite."""

    def __init__(
        self,
        python: str,
        pattern: str,
        count: int,
        step: float,
        first: float,
        ephemeris: waves.Ephemeris,
        method: str = "DEMOD_BEST",
    ) -> None:
        numbers = [pattern, str(count), repr(step), repr(first), *map(repr, COVER), str(START)]
        numbers += [
            t.source for t in (ephemeris.earth, ephemeris.sun) if isinstance(t, EphemerisTable)
        ]
        numbers.append(method)
        environment = {**os.environ, "LAL_DEBUG_LEVEL": "0", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [python, "-c", LAL, *numbers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.ends: tuple[float, float] | None = None
        self.processor = 0.0  # seconds of the last call

    def __call__(self, turned: float = 0.0) -> float:
        """Seconds of one call by its own clock, in a direction turned by so many radians of right
        ascension.

        Raises OSError where the process cannot.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(turned, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise OSError("no lalsuite there")
        seconds, self.processor, first, last = json.loads(line)
        self.ends = first, last
        return seconds

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--lal", default="python", metavar="PYTHON")
    options = parser.parse_args()
    count, step, first = options.templates, 0.2 / options.templates, 100.0
    facts, notes = describe_machine(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        starts = START + DURATION * np.arange(COUNT)
        made = waves.make_data(
            {"H1": starts, "L1": starts}, (99.8, 100.4), sqrt_s={"H1": 1e-23, "L1": 1e-23}, seed=1
        )
        waves.write_sfts(folder, made)
        margin = waves.search_margin()
        data = waves.prepare(waves.load_sfts(f"{folder}/*.sft", COVER, margin=margin), COVER)
        ephemeris = waves.Ephemeris.load("DE405")
        templates = waves.Templates(
            first + step * np.arange(count), *DIRECTION, reference=START * 10**9
        )
        found: dict[str, waves.FStatistic] = {}

        def ours(kernel: waves.KernelMethod) -> Callable[[], None]:
            def run() -> None:
                found[kernel] = waves.f_statistic(
                    data, templates, ephemeris, device="cpu", kernel=kernel
                )

            return run

        def first_search() -> None:
            fresh = replace(data, data=data.data.copy())
            waves.f_statistic(fresh, templates, ephemeris, device="cpu")

        runs = {f"lanewise, {k}": ours(k) for k in ("interpolated", "dirichlet")}
        runs["lanewise, interpolated, first search of its data"] = first_search
        lal, own_clock = (
            Lal(options.lal, f"{folder}/*.sft", count, step, first, ephemeris),
            list[float](),
        )
        try:
            lal()
            runs[LALPULSAR] = lambda: own_clock.append(lal())
        except (OSError, ValueError) as error:
            notes.append(
                f"LALPulsar is not measured: {error}; name an interpreter that has lalsuite with "
                "--lal"
            )
        for run in runs.values():
            run()
        times = interleave(runs, options.rounds)
        lal.close()
    if lal.ends is not None:
        for name, result in found.items():
            away = max(
                abs(result.two_f[0, 0] - lal.ends[0]), abs(result.two_f[0, -1] - lal.ends[1])
            )
            notes.append(f"{name}: at most {away:.1e} from LALPulsar's 2F at both ends of the band")
            if not away <= 2e-3:
                raise ArithmeticError(notes[-1])
    pairs = float(count * len(data))
    rows = [
        Measurement(name, seconds, pairs, "template-SFTs", 0.0) for name, seconds in times.items()
    ]
    rows.sort(key=lambda row: row.median)
    out = Path(os.environ.get("OUT", Path(__file__).parent / "results"))
    path = out / "cpu_waves.md"
    text = write_results(path, f"F-statistic: {count:,} templates, {len(data)} SFTs", rows, facts)
    least = {row.name: min(row.seconds) / pairs * 1e9 for row in rows}
    theirs = least.get(LALPULSAR)
    lines = ["", "| version | least ns a template an SFT | LALPulsar's by it |", "|---|---:|---:|"]
    lines += [
        f"| {n} | {ns:.2f} | {f'{theirs / ns:.1f}' if theirs else ''} |" for n, ns in least.items()
    ]
    text += "\n".join([*lines, "", *(f"- {n}" for n in notes)]) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
