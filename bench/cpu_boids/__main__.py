"""How long does a step of a flock take on this CPU, beside Warp in the same run and beside
OpenSteer as measured before?

`WARP_PYTHON=/path/to/python python -m bench.cpu_boids` writes bench/results/cpu_boids.{md,json}.
That Python has warp-lang 1. Versions of one flock are interleaved in one run and start from the
same agents; a step of each is held against the float64 reference of the tests before anything is
timed. OpenSteer (one thread, its own program) is not run here: its figure is one measured on the
same kind of machine, an AMD EPYC with two cores.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.cpu_boids.check import check_step
from bench.cpu_boids.peer import Warp
from bench.harness import describe_machine, interleave
from lanewise.profiling.summary import summarise
from lanewise.sims.boids import Flock
from tests.boids.reference import OPENSTEER, THESIS, Rules

RESULT = Path("bench/results/cpu_boids.md")
OPENSTEER_STEP = 45.5e-3  # seconds: one thread, 16,384 agents, W=100, all neighbours within 9
THREADS = (1, 2)
WARM_UP = 20
ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Case:
    """A flock, how many steps a round takes, the rules of the reference, and how often faster than
    the peer it shall be.
    """

    name: str
    options: dict[str, Any]
    searches: tuple[str, ...]
    rules: Rules
    steps: int
    peer: str
    wanted: float


CASES = (
    Case(
        "all within 9, 16,384 agents, W=100",
        {"agents": 16_384, "world": 100.0},
        ("auto", "static-grid", "dynamic-grid"),
        OPENSTEER,
        10,
        "OpenSteer",
        5,
    ),
    Case(
        "thesis, the 7 nearest within sqrt(18), 16,384 agents, W=100",
        {"agents": 16_384, "world": 100.0, "semantics": "thesis", "k": 7},
        ("auto", "static-grid", "dynamic-grid"),
        THESIS,
        10,
        "Warp",
        3,
    ),
    Case(
        "thesis, the 7 nearest within sqrt(18), 2^18 agents, W=200",
        {"agents": 2**18, "world": 200.0, "semantics": "thesis", "k": 7},
        ("auto", "static-grid", "dynamic-grid"),
        THESIS,
        2,
        "Warp",
        3,
    ),
)


def make_flock(case: Case, search: str, profile: lw.Profile | None = None) -> Flock:
    """The flock of a case after a few steps."""
    flock = Flock(
        start="world", search=search, device="cpu", seed=1, profile=profile, **case.options
    )
    flock.advance(WARM_UP)
    return flock


def checked(case: Case, flock: Flock) -> str:
    """Take a step and compare it."""
    before = flock.state
    flock.advance(1)
    return check_step(before, flock.state, replace(case.rules, world=flock.settings.world))


def on(threads: int, flock: Flock, steps: int) -> Callable[[], None]:
    """Steps of a flock on that many threads."""

    def run() -> None:
        os.environ["LANEWISE_THREADS"] = str(threads)
        flock.advance(steps)

    return run


def neighbours(flock: Flock) -> float:
    """How many flockmates an agent has within the radius, on average."""
    rows = lw.neighbors(np.array(flock.state.position), flock.settings.parameters.radius)
    return float(len(rows.indices) / len(flock))


def parts(case: Case) -> dict[str, float]:
    """Seconds of a step by stage, on all threads, with the search that is chosen."""
    os.environ.pop("LANEWISE_THREADS", None)
    profile = lw.Profile()
    flock = make_flock(case, "auto", profile)
    flock.advance(10 * case.steps)
    found = summarise(profile)
    steps = found["steps"]["count"]
    stages = {n: s["seconds"] / steps for n, s in found["stages"].items()}
    return {n: s for n, s in stages.items() if n in ("build", "search", "update", "steps")}


def measure(case: Case, warp: Warp | None, notes: dict[str, str]) -> dict[str, list[float]]:
    """Seconds a step of every version in every round."""
    versions: dict[str, Callable[[], None]] = {}
    flocks: dict[str, Flock] = {}
    for search in case.searches:
        for threads in THREADS if search == "auto" else THREADS[-1:]:
            name = f"lanewise, {search}, {threads} thread(s)"
            flocks[name] = make_flock(case, search)
            notes[f"{case.name}: {name}"] = (
                f"{flocks[name].describe_search()}; {checked(case, flocks[name])}"
            )
            versions[name] = on(threads, flocks[name], case.steps)
    first = flocks[next(iter(flocks))]
    density = f"{neighbours(first):.1f}"
    if warp is not None and case.peer == "Warp":
        warp.take(first)
        before = first.state
        warp.run(1)
        error = check_step(before, warp.agents(), replace(case.rules, world=first.settings.world))
        notes[f"{case.name}: Warp, CPU device"] = error
        versions["Warp, CPU device"] = lambda: warp.run(case.steps)
    times = interleave(versions, ROUNDS)
    notes[f"{case.name}: flockmates within the radius, at first and at last"] = (
        f"{density}, {neighbours(first):.1f}"
    )
    return {name: [t / case.steps for t in seconds] for name, seconds in times.items()}


def table(case: Case, seconds: dict[str, list[float]], stages: dict[str, float]) -> list[str]:
    """A case in markdown: medians, and how often faster than the peer."""
    middle = {name: statistics.median(s) for name, s in seconds.items()}
    peer = OPENSTEER_STEP if case.peer == "OpenSteer" else middle.get("Warp, CPU device")
    lines = [
        f"## {case.name}",
        "",
        f"| version | ms a step | {case.peer} / this | wanted |",
        "|---|---:|---:|---:|",
    ]
    for name, s in middle.items():
        wanted = f"{case.wanted:g}" if "2 thread" in name else ""
        lines.append(f"| {name} | {1e3 * s:.2f} | {f'{peer / s:.1f}' if peer else ''} | {wanted} |")
    if case.peer == "OpenSteer":
        lines.append(
            f"| OpenSteer, one thread (measured before) | {1e3 * OPENSTEER_STEP:.1f} | 1.0 | |"
        )
    shown = ", ".join(f"{n} {1e3 * s:.2f}" for n, s in stages.items())
    return [*lines, "", f"By stage, in a run of its own, ms: {shown}.", ""]


def main() -> None:
    python = os.environ.get("WARP_PYTHON")
    warp, notes = Warp(python) if python else None, describe_machine()
    notes["Warp"] = (
        warp.ask(version=0)["version"]
        if warp
        else "not measured: WARP_PYTHON names no Python that has it"
    )
    lines, data = ["# Steps of flocks on a CPU", ""], dict[str, Any]()
    load = [f"{os.getloadavg()[0]:.1f}"]
    for case in CASES:
        print(f"measuring {case.name}", flush=True)
        seconds = measure(case, warp, notes)
        stages = parts(case)
        data[case.name] = {
            "seconds": seconds,
            "stages": stages,
            "peer": case.peer,
            "wanted": case.wanted,
        }
        lines += table(case, seconds, stages)
        load.append(f"{os.getloadavg()[0]:.1f}")
    if warp is not None:
        warp.close()
    notes["load average before and after each case"] = ", ".join(load)
    lines += ["Machine and checks:", "", *(f"- {name}: {value}" for name, value in notes.items())]
    text = "\n".join(lines) + "\n"
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
    whole = {"notes": notes, "OpenSteer seconds": OPENSTEER_STEP, "cases": data}
    RESULT.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
