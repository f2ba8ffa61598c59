"""How good default plans are on naive array kernels that nobody chose: the zoo of tests/zoo on a GPU.

    python -m bench.zoo [--first 1] [--count 60] [--step 2] [--seeds ...] [--size full] [--seconds 190] [--processes 15]
Seeds from 100000 on are of tests/zoo/further.py, from 200000 on of tests/zoo/every.py.
Each kernel runs with its default plan, with those plans of other families that the model thinks best, and
with a thread for each point. Processes build and compile plans side by side, and take turns at the GPU;
results are checked against the function itself in float64. Plans are timed in turns, medians of 7; those
of smaller sizes as steps of a loop, in which the host does not wait for each.
Writes zoo.jsonl, a line as soon as a kernel is measured, and at the end zoo.md into bench/results, or into
the folder that the variable OUT names. Ends within the seconds asked for, with as many kernels as were
measured by then. `--offline` compiles and measures nothing, which needs no GPU: what it costs is printed.
`--report FILE` prints the report of a file of lines, `--again FILE` writes one with what today's models
predict for the plans that were measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.harness import describe_machine
from bench.zoo_case import compile_case, measure_case, predicted_again, shares
from bench.zoo_runs import (
    BEFORE_THE_END,
    in_processes,
    leave,
    print_report,
    read_lines,
    turn,
    write_report,
)


def main() -> int:
    asked = _asked()
    if asked.report:
        print_report(asked.report, report)
        return 0
    until = time.time() + asked.seconds - BEFORE_THE_END
    if asked.again:
        about, rows = read_lines(asked.again)
        again = in_processes(predicted_again, rows, (about["size"],), asked.processes, until)
        leave(write_report("zoo", about, again, report))
        return 0
    about = {"machine": describe_machine(), "size": asked.size, "offline": asked.offline}
    seeds = asked.seeds or range(asked.first, asked.first + asked.step * asked.count, asked.step)
    rows = in_processes(_row, seeds, (asked, until), asked.processes, until)
    leave(write_report("zoo", about, rows, report))
    return 0


def _row(seed: int, asked: argparse.Namespace, until: float) -> dict[str, Any] | None:
    """What is found of a seed; None where the time was up before it began."""
    begun = time.time()
    if begun > until:
        return None
    until = min(until, begun + asked.each)
    try:
        if asked.offline:
            return compile_case(seed, asked.size, asked.plans, until)
        return measure_case(seed, asked.size, asked.plans, until, turn[0])
    except Exception as error:  # one kernel that fails does not hide the others
        return {"seed": seed, "failed": f"{type(error).__name__}: {error}"[:500]}


def report(rows: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    yield "# Default plans of naive array kernels that nobody chose"
    yield ""
    yield from (f"- {name}: {text}" for name, text in about["machine"].items())
    yield f"\n{len(rows)} kernels of tests/zoo, size {about['size']}.\n"
    if about["offline"]:
        for name in ("build_s", "compile_s"):
            spent = [r[name] for r in rows if name in r]
            yield f"{name}: sum {sum(spent):.0f}, median {np.median(spent):.1f}, most {max(spent):.1f}"
        return
    # with nothing else measured in time, a default would be the best of one
    done = [r for r in rows if "ms" in r and len(r["each"]) > 1]
    alone = sum("ms" in r for r in rows) - len(done)
    if alone:
        yield f"Of {alone} of them the default plan alone was measured in time: left out below.\n"
    slower = [r["ms"] / r["best_ms"] for r in done]
    model = [r["predicted_ms"] / r["ms"] for r in done]
    reached = [r["bound_ms"] / r["ms"] for r in done if r["bound_ms"]]
    best = [r["bound_ms"] / r["best_ms"] for r in done if r["bound_ms"]]
    wrong = [r for r in rows if "wrong" in r or "failed" in r]
    yield "| target | wanted | found |"
    yield "|---|--:|--:|"
    yield f"| default within 5 % of the best plan tried | 95 % | {shares(slower, 0, 1.05):.0%} |"
    yield f"| within 15 % | 100 % | {shares(slower, 0, 1.15):.0%} |"
    yield f"| predicted / measured within 0.85 to 1.15 | 90 % | {shares(model, 0.85, 1.15):.0%} |"
    yield f"| within 0.67 to 1.5 | 100 % | {shares(model, 0.67, 1.5):.0%} |"
    yield f"| share of the bound, median | 60 % | {_quantile(reached, 0.5):.0%} |"
    yield f"| exceeded by 95 % | 30 % | {_quantile(reached, 0.05):.0%} |"
    yield f"| of the best plan tried, median; exceeded by 95 % | | {_quantile(best, 0.5):.0%}; {_quantile(best, 0.05):.0%} |"
    yield f"| wrong or failed | 0 | {len(wrong)} |"
    yield "\n| family | kernels | default / best: median | 95 % | most | predicted / measured: 5 % | median | 95 % | bound: median | 5 % |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for family in (*sorted({r["family"] for r in done}), *(["all"] if done else [])):
        mine = [n for n, r in enumerate(done) if family in (r["family"], "all")]
        s, m = [slower[n] for n in mine], [model[n] for n in mine]
        b = [done[n]["bound_ms"] / done[n]["ms"] for n in mine]
        yield (
            f"| {family} | {len(mine)} | {_quantile(s, 0.5):.2f} | {_quantile(s, 0.95):.2f} | {max(s):.2f} "
            f"| {_quantile(m, 0.05):.2f} | {_quantile(m, 0.5):.2f} | {_quantile(m, 0.95):.2f} "
            f"| {_quantile(b, 0.5):.0%} | {_quantile(b, 0.05):.0%} |"
        )
    for r in wrong:
        yield f"- seed {r['seed']}: {r.get('failed') or r['wrong']}"
    even = [r for r in done if r["seed"] % 2 == 0]  # odd ones judge, those from 401 on unseen
    if even:
        yield "\nThe ten whose default plan loses most (even seeds alone):\n"
    for r in sorted(even, key=lambda r: -r["ms"] / r["best_ms"])[:10]:
        yield f"- seed {r['seed']}, {r['family']}: {r['ms']:.4g} ms by {r['plan']}; {r['best_ms']:.4g} by {r['best']}"


def _quantile(values: list[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else float("nan")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", help="these, instead of --first and others")
    parser.add_argument("--size", choices=("small", "wave", "full"), default="full")
    parser.add_argument("--seconds", type=float, default=190, help="of the whole run at most")
    parser.add_argument(
        "--each", type=float, default=45, help="seconds to find and compile the plans of one kernel"
    )
    parser.add_argument("--plans", type=int, default=5, help="beside the default one")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--offline", action="store_true", help="compile, and measure nothing")
    parser.add_argument("--report", help="print the report of a file of lines")
    parser.add_argument(
        "--again", help="predict what a file of lines has measured, with today's models"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
