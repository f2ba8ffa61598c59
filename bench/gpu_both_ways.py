"""What do reductions over one array gain on a GPU when each pair is computed once for both sides?

`python -m bench.gpu_both_ways [--bodies 262144 ...]` writes bench/results/gpu_both_ways.{md,json},
or into the folder that the variable OUT names. Each kernel runs from one side, by its default plan,
and both ways with every number of targets; all results are held against those from one side (to the
bit where the reduction is exact), and these of some targets against float64, before anything is
timed. Rounds go through all versions in turn; times are medians of bound calls in a row, by events.
The bound is that of the plan's busiest unit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.models.devices import device_model
from lanewise.models.least import least_time
from lanewise.runtime.device import get_device
from lanewise.runtime.programs import repeat

ROUNDS, SECONDS, CHECKED = 5, 0.02, 64
RADIUS2 = 1e-3
OFF = lw.Plan(reciprocity="off")
ONCE = lw.Plan(block=32, tile=0, slices=1, parts=1, unroll=8)
MOST_SCRATCH = 65_536  # bodies


class Ball(lw.Record):
    """A body with a charge."""

    position: lw.vec3
    charge: lw.f32


@lw.pairwise
def nearest(target: Ball, source: Ball) -> lw.Min[lw.f32]:
    d = source.position - target.position
    return lw.dot(d, d) if not lw.same(target, source) else math.inf


@lw.pairwise
def strongest(target: Ball, source: Ball) -> lw.Max[lw.f32]:
    d = source.position - target.position
    return target.charge * source.charge * lw.rsqrt(lw.dot(d, d) + 0.01)


@lw.pairwise
def crowd(target: Ball, source: Ball, radius2: lw.f32) -> lw.Count:
    d = source.position - target.position
    return lw.dot(d, d) < radius2


@lw.pairwise
def touched(target: Ball, source: Ball, radius2: lw.f32) -> lw.Any:
    d = source.position - target.position
    return lw.dot(d, d) < radius2 and not lw.same(target, source)


@lw.pairwise
def who(target: Ball, source: Ball) -> lw.ArgMin[lw.f32]:
    d = source.position - target.position
    return lw.dot(d, d) if not lw.same(target, source) else math.inf


@lw.pairwise
def five(target: Ball, source: Ball) -> lw.KMin[lw.f32, 5]:
    d = source.position - target.position
    return lw.dot(d, d)


@lw.pairwise
def soft(target: Ball, source: Ball) -> lw.LogSumExp[lw.f32]:
    d = source.position - target.position
    return -lw.dot(d, d)


@lw.pairwise
def energy(target: Ball, source: Ball) -> lw.f32:
    d = source.position - target.position
    return target.charge * source.charge * lw.rsqrt(lw.dot(d, d) + 0.01)


KERNELS = (nearest, strongest, crowd, touched, who, five, soft, energy)


def exact(name: str, x: Any, charge: Any) -> Any:
    """What some targets have in float64."""
    d2 = ((x[:CHECKED, None].astype("f8") - x[None]) ** 2).sum(-1)
    others = d2.copy()
    others[np.arange(CHECKED), np.arange(CHECKED)] = math.inf
    potential = charge[:CHECKED, None].astype("f8") * charge / np.sqrt(d2 + 0.01)
    match name:
        case "nearest":
            return others.min(1)
        case "strongest":
            return potential.max(1)
        case "crowd":
            return (d2 < RADIUS2).sum(1)
        case "touched":
            return (others < RADIUS2).any(1)
        case "who":
            return others.argmin(1)
        case "five":
            return np.sort(d2, axis=1)[:, :5]
        case "soft":
            return np.log(np.exp(-d2).sum(1))
        case _:
            return potential.sum(1)


def milliseconds(run: Callable[[], Any], calls: int) -> float:
    """Of one of several calls in a row."""
    return 1e3 * get_device("cuda").seconds(lambda: repeat((run,), calls)) / calls


def versions(kernel: Any, balls: Any, values: tuple[float, ...], count: int) -> dict[str, Any]:
    """Bound calls by name, those of other plans with the results from one side."""
    plans: dict[str, lw.Plan | None] = {"one side": OFF, "default": None}
    mode = "scratch" if count <= MOST_SCRATCH else "ordered"
    plans |= {f"{mode}, {n}": replace(ONCE, reciprocity=mode, targets=n) for n in (2, 4, 8, 12)}
    calls = {name: kernel.bind(balls, balls, *values, plan=plan) for name, plan in plans.items()}
    wanted = calls["one side"]().get()
    for name, call in calls.items():
        if kernel in (soft, energy):
            np.testing.assert_allclose(call().get(), wanted, rtol=2e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(call().get(), wanted, err_msg=name)
    return calls


def rows_of(count: int) -> list[dict[str, Any]]:
    """One row for each kernel, over so many bodies."""
    random = np.random.default_rng(1)
    x, charge = random.random((count, 3)).astype("f4"), random.uniform(0.5, 1.5, count).astype("f4")
    balls = Ball.array(position=x, charge=charge, device="cuda")
    rows: list[dict[str, Any]] = []
    for kernel in KERNELS:
        name = kernel.__name__
        values = (RADIUS2,) if kernel in (crowd, touched) else ()
        calls = versions(kernel, balls, values, count)
        found = calls["one side"]().get()[:CHECKED]
        np.testing.assert_allclose(found, exact(name, x, charge), rtol=1e-4, atol=1e-6)
        once = {n: milliseconds(c, 2) for n, c in calls.items()}
        times: dict[str, list[float]] = {n: [] for n in calls}
        for turn in range(ROUNDS):
            for n in list(calls)[:: -1 if turn % 2 else 1]:
                times[n].append(milliseconds(calls[n], max(1, int(1e3 * SECONDS / once[n]))))
        medians = {n: statistics.median(t) for n, t in times.items()}
        plan = calls["default"].compiled.plan
        counts = {"$target.count": count, "$source.count": count, "radius2": RADIUS2}
        bound = (
            1e3
            * least_time(
                calls["default"].compiled.executable.program, counts, device_model("cuda")
            ).seconds
        )
        best = min(
            (n for n in medians if n not in ("one side", "default")), key=medians.__getitem__
        )
        rows.append(
            {
                "kernel": name,
                "bodies": count,
                "bound": bound,
                "medians": medians,
                "times": times,
                "best": best,
            }
            | {
                "default": f"{plan.reciprocity}, {plan.targets}"
                if plan.reciprocity != "off"
                else "one side"
            }
        )
        print(
            rows[-1]["kernel"],
            count,
            {n: round(t, 4) for n, t in medians.items()},
            rows[-1]["default"],
            flush=True,
        )
    return rows


def text_of(rows: list[dict[str, Any]], machine: dict[str, str]) -> str:
    """The table."""
    lines = [
        "# Reductions over one array, from one side and both ways",
        "",
        "Milliseconds of a call; in brackets how pairs are computed, and targets a thread. The "
        "bound: the default plan's busiest unit,",
        "which for the five smallest counts an insertion for every pair (they are rare).",
        "",
        "| kernel | bodies | one side | default | | both ways, best | | faster than one side: "
        "default, best | bound |",
        "|---|---:|---:|---:|---|---:|---|---:|---:|",
    ]
    for r in rows:
        m = r["medians"]
        one, default, best = m["one side"], m["default"], m[r["best"]]
        lines.append(
            f"| {r['kernel']} | {r['bodies']:,} | {one:.4g} | {default:.4g} | ({r['default']}) | "
            f"{best:.4g} | ({r['best']}) | "
            f"{one / default:.2f}, {one / best:.2f} | {r['bound']:.4g} |"
        )
    return "\n".join([*lines, "", *(f"- {n}: {v}" for n, v in machine.items())]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, nargs="+", default=[16_384, 65_536, 262_144])
    given = parser.parse_args()
    rows = [row for count in given.bodies for row in rows_of(count)]
    machine = describe_machine()
    out = Path(os.environ.get("OUT", "bench/results")) / "gpu_both_ways.md"
    out.write_text(text_of(rows, machine), encoding="utf-8")
    out.with_suffix(".json").write_text(
        json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8"
    )
    print(text_of(rows, machine))


if __name__ == "__main__":
    main()
