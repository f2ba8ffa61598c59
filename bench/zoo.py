"""How good default plans are on naive array kernels that nobody chose: the zoo of tests/zoo on a GPU.

    python -m bench.zoo [--first 0] [--count 64] [--size full] [--processes 15]
Each kernel runs with its default plan, with every plan that any family of kernels is offered, and with a
thread for each point; results are checked against the function itself in float64. Plans are timed in
turns, medians of 7. Writes bench/results/zoo.json and zoo.md, or into the folder that the variable
OUT names: how much slower the default plan is than the best one that was tried, and the model's time
over the measured one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.explanation.calls import find_model
from lanewise.models.predict import predict
from lanewise.patterns.threadwise import plans
from tests.fuzz.texts import executed
from tests.zoo.generate import Case, generate
from tests.zoo.truth import check

ROUNDS, LEAST = 7, 2e-3  # seconds of a round at least
SHARED = tuple(lw.Plan(block=256, slices=s, unroll=4) for s in (32, 256))
OTHERS = (
    plans.PRODUCTS[0], plans.PRODUCTS[6], *plans.BATCHES[:2], plans.CHANNELS[0], plans.WINDOWS[1], plans.TURNED[0],
    *plans.APART[:2], plans.NEAR[0], plans.LAYERS[0], *plans.STREAMS[1:], *SHARED, lw.Plan(block=256),
)  # fmt: skip


def main() -> int:
    asked = _asked()
    seeds = range(asked.first, asked.first + asked.count)
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        legal: dict[int, list[int]] = {}
        sizes = [asked.size] * len(seeds)
        for seed, found in zip(seeds, pool.map(_compiled, seeds, sizes), strict=True):
            legal[seed] = found
            print(f"seed {seed}: {len(found)} plans compiled", file=sys.stderr, flush=True)
    rows = [_measured(seed, asked.size, legal[seed]) for seed in seeds]
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    machine = describe_machine()
    text = json.dumps({"machine": machine, "size": asked.size, "rows": rows}, indent=1)
    (out / "zoo.json").write_text(text + "\n", encoding="utf-8")
    report = "\n".join(_report(rows, asked.size, machine))
    (out / "zoo.md").write_text(report + "\n", encoding="utf-8")
    print(report)
    return int(any("wrong" in row for row in rows))


def _given(case: Case, size: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    given, grid = case.arguments(size)
    return {n: cupy.asarray(a) for n, a in given.items()}, grid


@contextlib.contextmanager
def _kernel(case: Case) -> Iterator[Any]:
    with executed(case.text, f"zoo_{case.seed}.py") as names:
        yield names.kernel


def _compiled(seed: int, size: str) -> list[int]:
    """Which of the plans are legal; what they compile to is in the cache afterwards."""
    case = generate(seed)
    legal: list[int] = []
    with _kernel(case) as kernel:
        given, grid = _given(case, size)
        kernel.compile(**given, grid=grid)
        for n, plan in enumerate(OTHERS):
            with contextlib.suppress(lw.PlanError):
                kernel.compile(**given, grid=grid, plan=plan)
                legal.append(n)
    return legal


def _measured(seed: int, size: str, legal: list[int]) -> dict[str, Any]:
    """Times of the plans, the default one first."""
    case = generate(seed)
    with _kernel(case) as kernel:
        given, grid = _given(case, size)
        compiled = kernel.compile(**given, grid=grid)
        row: dict[str, Any] = {"seed": seed, "family": case.family, "plan": _short(compiled.plan)}
        kernel(**given, grid=grid)
        host = {n: cupy.asnumpy(a) for n, a in given.items()}
        try:
            row["error"] = check(case, kernel.python, host, host[case.written], grid, points=3)
        except AssertionError as error:
            return row | {"wrong": str(error)[:500]}
        wanted = given[case.written].copy()
        calls = {"default": kernel.bind(**given, grid=grid)}
        for n in legal:
            bound = kernel.bind(**given, grid=grid, plan=OTHERS[n])
            given[case.written][...] = cupy.nan
            bound()
            if not _close(given[case.written], wanted):
                row["wrong"] = f"{OTHERS[n]} differs from the default plan"
            calls[str(n)] = bound
        times = _times(calls)
        best = min(times, key=lambda n: times[n])
        program = compiled.executable.program
        expected = predict(program, compiled.environment, find_model("cuda", None), in_graph=True)
        row |= {
            "ms": times["default"] * 1e3,
            "best_ms": times[best] * 1e3,
            "predicted_ms": expected.seconds * 1e3,
        }
        return row | {"best": row["plan"] if best == "default" else str(OTHERS[int(best)])}


def _close(a: Any, b: Any) -> bool:
    finite = ~cupy.isnan(b)
    return bool(cupy.all(cupy.abs(a - b)[finite] <= 1e-3 * (1 + cupy.abs(b)[finite])))


def _times(calls: dict[str, Any]) -> dict[str, float]:
    """Medians in seconds; calls in turns. What takes ten times the best one is timed once."""

    def once(call: Any, repeat: int) -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(repeat):
            call()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end) * 1e-3 / repeat

    first = {n: once(c, 1) for n, c in calls.items()}
    near = [n for n in calls if n == "default" or first[n] <= 10 * min(first.values())]
    repeats = {n: max(1, min(20, int(LEAST / max(first[n], 1e-6)))) for n in near}
    rounds: dict[str, list[float]] = {n: [] for n in near}
    for _ in range(ROUNDS):
        for n in near:
            rounds[n].append(once(calls[n], repeats[n]))
    return first | {n: statistics.median(r) for n, r in rounds.items()}


def _short(plan: Any) -> str:
    shaping = (
        "block",
        "across",
        "down",
        "rows",
        "layers",
        "targets",
        "tile",
        "slices",
        "parts",
        "prefetch",
        "neighbours",
    )
    return ", ".join(
        f"{n}={v}"
        for n, v in plan.as_dict().items()
        if n in shaping and v not in (0, 1, "none", "last")
    )


def _report(rows: list[dict[str, Any]], size: str, machine: Any) -> Iterator[str]:
    yield "# Default plans of naive array kernels that nobody chose"
    yield f"\n{machine}; {len(rows)} kernels of tests/zoo, size {size}.\n"
    yield "| family | kernels | default / best: median | 95 % | most | predicted / measured: 5 % | median | 95 % | wrong |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    families = sorted({r["family"] for r in rows})
    for family in (*families, "all"):
        mine = [r for r in rows if family in (r["family"], "all")]
        done = [r for r in mine if "ms" in r]
        slower = np.array([r["ms"] / r["best_ms"] for r in done] or [np.nan])
        model = np.array([r["predicted_ms"] / r["ms"] for r in done] or [np.nan])
        five, half, most = (float(np.quantile(model, q)) for q in (0.05, 0.5, 0.95))
        yield (
            f"| {family} | {len(mine)} | {np.median(slower):.2f} | {np.quantile(slower, 0.95):.2f} | {slower.max():.2f} "
            f"| {five:.2f} | {half:.2f} | {most:.2f} | {sum('wrong' in r for r in mine)} |"
        )
    yield "\nThe ten whose default plan loses most (even seeds alone):\n"
    worst = sorted(
        (r for r in rows if "ms" in r and r["seed"] % 2 == 0), key=lambda r: -r["ms"] / r["best_ms"]
    )
    for r in worst[:10]:
        yield f"- seed {r['seed']}, {r['family']}: {r['ms']:.4g} ms by {r['plan']}; {r['best_ms']:.4g} by {r['best']}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--size", choices=("small", "wave", "full"), default="full")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
