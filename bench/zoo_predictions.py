"""How far predictions are off for kernels that nobody chose: predicted over measured times of the zoo.

    LANEWISE_THREADS=1 python -m bench.zoo_predictions [--seconds 300] [--first 1] [--count 60] [--step 2]
    python -m bench.zoo_predictions --device cuda --seconds 80 --processes 14
Each kernel runs with its default plan, of a CPU at a size of some 5 to 100 ms, whose arrays are beyond the caches where
little is computed of each number; of searches the walk alone is timed, through a structure that is kept. On a GPU
searches alone are measured: bench.zoo and bench.zoo_records have the other families. Times are medians of 9 turns, on
a CPU those of the processor. Results are checked against the function itself in float64. Families are those by which
`explain` tells how sure a prediction is; kernels of no family are "none".
Writes zoo_cpu (zoo_walks_cuda) .jsonl, a line as soon as a kernel is measured, and at the end .md into bench/results, or
into the folder that the variable OUT names. `--report FILE` prints the report of a file of lines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from bench.zoo_case import on_gpu
from bench.zoo_runs import BEFORE_THE_END, in_processes, leave, print_report, turn, write_report
from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import find_model
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.rows_of_calls import subject_of
from lanewise.explanation.subject import Subject
from lanewise.models.deviations import FEWEST, SHORTEST
from tests.fuzz.texts import executed
from tests.zoo import every, record_forms, records, truth
from tests.zoo.generate import FULL
from tests.zoo.record_truth import call_of, check, records_of

TURNS = 9
LEAST = 5e-3  # seconds of a turn, in which a short call runs several times
FEW, MANY = 1 << 14, 1 << 26  # points of an array kernel on a CPU
HOST = "host"
"""The size of kernels over records on a CPU, whose counts are found for each."""
FEWEST_RECORDS = {"pairs": 1 << 12, "elements": 1 << 21, "searches": 1 << 13}
MOST_RECORDS = {"pairs": 1 << 15, "elements": 1 << 23, "searches": 1 << 17}


def measure_arrays(seed: int) -> dict[str, Any]:
    """A kernel over arrays on a CPU, at the least size whose prediction is as long as what is measured."""
    case = every.generate(seed)
    with executed(case.text, f"zoo_{seed}.py") as names, lw.device("cpu"):
        points = FEW
        while True:
            host, grid = case.made(points)
            found = _estimates(names.kernel, (), {**host, "grid": grid}, "cpu")
            if (predicted := _predicted(found)) is None:
                return {}  # of loops whose length data tell
            if predicted >= SHORTEST["cpu"] or points >= MANY:
                break
            points *= 2
        call = names.kernel.bind(**host, grid=grid)
        row = {
            "family": found.family or "none",
            "predicted_ms": predicted * 1e3,
            "drawn": case.family,
        }
        call()
        error = truth.check(
            case, names.kernel.python, host, host[case.written].copy(), grid, points=3
        )
        return row | {"error": error, "points": points} | _measured(call, "cpu")


def measure_records(seed: int, device: str) -> dict[str, Any]:
    """A kernel over records; of a search the walk alone."""
    case, size = record_forms.generate(seed), FULL if device.startswith("cuda") else HOST
    with executed(case.text, f"zoo_records_{seed}.py") as names, lw.device(device):
        tables = {n: _on(device, a) for n, a in case.given_arrays().items()}
        records.COUNTS[case.family][HOST] = FEWEST_RECORDS[case.family]
        while True:
            kernel = call_of(case, names.kernel, size)
            mine = records_of(case, names.Item, size)
            call = kernel.bind(*mine, *case.uniforms.values(), **tables)
            found = _of_subject(subject_of(call.compiled))
            if (predicted := _predicted(found)) is None:
                return {}  # of loops whose length data tell
            if (
                size != HOST
                or predicted >= SHORTEST["cpu"]
                or case.count(size)[0] >= MOST_RECORDS[case.family]
            ):
                break
            records.COUNTS[case.family][HOST] *= 2
        row = {
            "family": found.family or "none",
            "predicted_ms": predicted * 1e3,
            "drawn": case.family,
        }
        row["points"] = case.count(size)[0]
        with turn[0]:
            out = call()
            results = [
                _off(f) for f in (out if isinstance(out, tuple) else () if out is None else (out,))
            ]
        error = check(case, size, results, mine[0].numpy(), {n: _off(a) for n, a in tables.items()})
        work = walk_of(call) if case.family == "searches" else call
        return row | {"error": error} | _measured(work, device)


def walk_of(call: Any) -> Callable[[], Any]:
    """What walks through the structure that a bound call over a search has filled."""
    return call.launch.kernel


def _on(device: str, array: Any) -> Any:
    if not device.startswith("cuda"):
        return array
    import cupy

    return cupy.asarray(array)


def _off(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def _estimates(kernel: Any, given: Sequence[Any], named: dict[str, Any], kind: str) -> Estimates:
    subject, _, _ = call_subject(kernel, tuple(given), named, kind, find_model(kind, None))
    return _of_subject(subject)


def _of_subject(subject: Subject) -> Estimates:
    programs = BuiltPrograms(subject.reference, subject.kind, subject.unfit)
    return Estimates(subject, programs, {subject.plan: subject.taken} if subject.taken else {})


def _predicted(found: Estimates) -> float | None:
    seconds = found.seconds(found.subject.plan)
    return seconds if seconds is not None and np.isfinite(seconds) else None


def _measured(work: Callable[[], Any], device: str) -> dict[str, Any]:
    """The median of a turn in milliseconds, and the least."""
    once = _on_host if not device.startswith("cuda") else _on_a_gpu
    with turn[0]:
        repeats = max(1, min(100, int(LEAST / max(once(work, 1), 1e-6))))
        times = [once(work, repeats) for _ in range(TURNS)]
    return {"ms": statistics.median(times) * 1e3, "least_ms": min(times) * 1e3}


def _on_host(work: Callable[[], Any], repeat: int) -> float:
    """Of the processor, which other programs do not take."""
    begun = time.process_time()
    for _ in range(repeat):
        work()
    return (time.process_time() - begun) / repeat


def _on_a_gpu(work: Callable[[], Any], repeat: int) -> float:
    import cupy

    return on_gpu(cupy, work, repeat)


# ---------------------------------------------------------------- all of them


def main() -> int:
    asked = _asked()
    if asked.report:
        print_report(asked.report, report)
        return 0
    on_gpus = asked.device.startswith("cuda")
    if not on_gpus and os.environ.get("LANEWISE_THREADS") != "1":
        raise SystemExit(
            "LANEWISE_THREADS=1 python -m bench.zoo_predictions: times are those of one thread"
        )
    until = time.time() + asked.seconds - BEFORE_THE_END
    about = {"machine": describe_machine(), "device": asked.device}
    seeds = asked.seeds or range(asked.first, asked.first + asked.step * asked.count, asked.step)
    wanted = [
        (kind, seed)
        for seed in seeds
        for kind in ("arrays", "records")
        if not (on_gpus and kind == "arrays")
    ]
    if on_gpus:
        wanted = [w for w in wanted if record_forms.generate(w[1]).family == "searches"]
    rows = in_processes(_row, wanted, (asked, until), asked.processes, until)
    leave(write_report("zoo_walks_cuda" if on_gpus else "zoo_cpu", about, rows, report))
    return 0


def _row(which: tuple[str, int], asked: argparse.Namespace, until: float) -> dict[str, Any] | None:
    """What is found of a seed; None where the time was up before it began, or nothing is predicted."""
    if time.time() > until:
        return None
    kind, seed = which
    named = {"what": f"{kind} {seed}", "seed": seed}
    try:
        found = measure_arrays(seed) if kind == "arrays" else measure_records(seed, asked.device)
    except Exception as error:  # one kernel that fails does not hide the others
        return named | {"failed": f"{type(error).__name__}: {error}"[:500]}
    return named | found if found else None


def report(rows: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    done = [r for r in rows if "ms" in r]
    on_gpus = about["device"].startswith("cuda")
    what = "walks of searches" if on_gpus else "kernels that nobody chose"
    yield f"# Predicted over measured times of {what}"
    yield ""
    yield from (f"- {name}: {text}" for name, text in about["machine"].items())
    yield f"\n{len(done)} kernels of tests/zoo on {about['device']}{'' if on_gpus else ', one thread'}, size full.\n"
    for odd in (1, 0):  # odd seeds judge
        ratios: dict[str, list[float]] = {}
        times: dict[str, list[float]] = {}
        for r in (r for r in done if r["seed"] % 2 == odd):
            ratios.setdefault(r["family"], []).append(r["predicted_ms"] / r["ms"])
            times.setdefault(r["family"], []).append(r["predicted_ms"])
        if not ratios:
            continue
        if not odd:
            yield "\nEven seeds, to which models may be fitted:\n"
        yield "| family | kernels | predicted / measured: 5 % | median | 95 % | predicted ms: least | most |"
        yield "|---|--:|--:|--:|--:|--:|--:|"
        for family in sorted(ratios, key=lambda f: (f == "none", f)):
            mine = ratios[family]
            ends = (0, 0.5, 1) if len(mine) < FEWEST else (0.05, 0.5, 0.95)
            low, middle, high = (f"{np.quantile(mine, q):.2f}" for q in ends)
            least, most = f"{min(times[family]):.3g}", f"{max(times[family]):.3g}"
            yield f"| {family} | {len(mine)} | {low} | {middle} | {high} | {least} | {most} |"
    yield f"\nOf fewer than {FEWEST} kernels the least and the most stand for 5 % and 95 %."
    yield "Wrong or failed: " + str(sum("failed" in r for r in rows)) + "."
    yield from (f"- {r['what']}: {r['failed']}" for r in rows if "failed" in r)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", help="these, instead of --first and others")
    parser.add_argument("--seconds", type=float, default=300, help="of the whole run at most")
    parser.add_argument("--processes", type=int, default=1, help="which take turns at the device")
    parser.add_argument("--report", help="print the report of a file of lines")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
