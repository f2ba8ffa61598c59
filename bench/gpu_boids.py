"""How long does a step of a flock take on this GPU, and where does the time go?

`python -m bench.gpu_boids` writes bench/results/gpu_boids.{md,json}, or into the folder that the
variable OUT names. The flock has the thesis's rules (the 7 nearest within sqrt(18)) and the density
of 2^17 agents in a world of radius 200. A step is everything: structure, search, steering, update;
`advance` runs them in graphs and looks for lost agents at its end. Versions are interleaved, a step
of each is held against float64 before. What fails says so and costs the other parts nothing.
`--device cpu --most 15` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.cpu_boids.check import check_step
from bench.gpu_lbm import copy_kernel_bandwidth
from bench.harness import describe_machine, interleave
from lanewise.profiling.summary import summarise
from lanewise.runtime import cuda
from lanewise.sims.boids import Flock, State, make_state
from tests.boids.reference import THESIS

K, RADIUS = 7, 18**0.5
SEARCHES = ("static-grid", "dynamic-grid")
STATE_BYTES = 2 * 52  # of an agent, read and written once
LEAST = 14  # 2^14 agents
WARM_UP = 64  # steps, with which graphs are made
GRAPH = 32  # steps of a graph
LONGEST = 0.4  # seconds of one measurement
TARGETS = {18: 0.12, 20: 0.33, 22: 1.45}  # ms a step, by the power of two of the agents
PEERS = {  # ms a step on an NVIDIA H200, measured before
    "hand-written": {17: 0.090, 18: 0.124, 20: 0.345, 22: 1.51},
    "CUDA particles sample": {18: 0.302, 20: 0.587, 22: 1.98},
    "Warp 1.19": {17: 0.192, 20: 0.836, 22: 3.39},
}
NEAREST_TARGET = 1.5  # ms for 2^20 points
Row = Sequence[Any]


@dataclass(slots=True)
class Report:
    """Tables and notes, written anew after every part."""

    path: Path
    began: float = field(default_factory=time.perf_counter)
    sections: list[tuple[str, Sequence[str], list[Row]]] = field(default_factory=lambda: [])
    notes: dict[str, str] = field(default_factory=lambda: {})
    problems: list[str] = field(default_factory=lambda: [])

    def section(self, title: str, *header: str) -> list[Row]:
        """Begin a table; rows are appended to what this returns."""
        rows: list[Row] = []
        self.sections.append((title, header, rows))
        return rows

    def text(self) -> str:
        lines = ["# Steps of flocks on one GPU", ""]
        for title, header, rows in self.sections:
            lines += [
                f"## {title}",
                "",
                f"| {' | '.join(header)} |",
                "|---|" + "---:|" * (len(header) - 1),
            ]
            lines += [f"| {' | '.join(_cell(c) for c in row)} |" for row in rows] + [""]
        lines += [
            "Machine and checks:",
            "",
            *(f"- {name}: {value}" for name, value in self.notes.items()),
            "",
        ]
        return "\n".join(lines + [f"```text\n{p}\n```\n" for p in self.problems])

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.text(), encoding="utf-8")
        data = {
            "notes": self.notes,
            "problems": self.problems,
            "sections": [
                {"title": t, "header": list(h), "rows": [list(r) for r in rows]}
                for t, h, rows in self.sections
            ],
        }
        self.path.with_suffix(".json").write_text(
            json.dumps(data, indent=1) + "\n", encoding="utf-8"
        )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the command line chose. most: the power of two of the largest flock; steps: of one
    measurement.
    """

    device: str
    most: int
    steps: int
    rounds: int
    seconds: float

    def flock(
        self, state: State, world: float, search: str, profile: lw.Profile | None = None
    ) -> Flock:
        """A flock with its graphs made."""
        flock = Flock(
            state=state,
            world=world,
            semantics="thesis",
            k=K,
            search=search,
            device=self.device,
            profile=profile,
        )
        flock.advance(WARM_UP)
        return flock

    def milliseconds(self, flocks: dict[str, Flock]) -> dict[str, float]:
        """Of a step of each, the middle of the rounds."""
        steps = {name: self.fitting(flock) for name, flock in flocks.items()}

        def advancing(name: str) -> Callable[[], None]:
            return lambda: flocks[name].advance(steps[name])

        times = interleave({name: advancing(name) for name in flocks}, self.rounds)
        return {name: 1e3 * statistics.median(t) / steps[name] for name, t in times.items()}

    def fitting(self, flock: Flock) -> int:
        """As many steps as asked for; fewer where they take long, and the look for lost agents
        after them weighs little.
        """
        began = time.perf_counter()
        flock.advance(GRAPH)
        once = (time.perf_counter() - began) / GRAPH
        return max(min(GRAPH, self.steps), min(self.steps, round(LONGEST / once)) // GRAPH * GRAPH)


def world_of(agents: int) -> float:
    """The radius that gives them the density of 2^17 agents in 200."""
    return 200.0 * (agents / 2**17) ** (1 / 3)


@lru_cache(maxsize=3)
def start(agents: int, kind: str = "world", radius: float | None = None) -> State:
    return make_state(agents, start=kind, radius=radius, world=world_of(agents), seed=1)


def free(setting: Setting) -> None:
    """Give back what deleted flocks held."""
    if setting.device.startswith("cuda"):
        cuda.cupy().get_default_memory_pool().free_all_blocks()


# ------------------------------------------------------------ the parts


def check(setting: Setting, report: Report) -> None:
    """A step of each search against the reference."""
    power = min(17, setting.most)
    state, world = start(2**power), world_of(2**power)
    for search in SEARCHES:
        flock = setting.flock(state, world, search)
        before = flock.state
        flock.advance(1)
        found = check_step(before, flock.state, replace(THESIS, world=world), sample=100)
        report.notes[f"{search}, 2^{power} agents"] = f"{flock.describe_search()}; {found}"


def steps(setting: Setting, report: Report) -> None:
    """Whole steps from 2^14 agents on."""
    header = (
        "agents",
        *(f"{s}, ms" for s in SEARCHES),
        "target, ms",
        *(f"{name}, ms" for name in PEERS),
        "bound, ms",
    )
    rows = report.section("A whole step", *header, *(f"{s}, ns an agent" for s in SEARCHES))
    bandwidth = report_bandwidth(setting, report)
    each: dict[str, dict[int, float]] = {s: {} for s in SEARCHES}
    for power in dict.fromkeys((20, 18, 22, *range(LEAST, 23))):  # first what has a target
        if power > setting.most or out_of_time(setting, report, f"2^{power} agents"):
            continue
        state = start(2**power)
        flocks = {s: setting.flock(state, world_of(2**power), s) for s in SEARCHES}
        found = setting.milliseconds(flocks)
        bound = 1e3 * STATE_BYTES * 2**power / bandwidth
        peers = (p.get(power) for p in PEERS.values())
        nanoseconds = {s: 1e6 * found[s] / 2**power for s in SEARCHES}
        rows.append(
            (
                f"2^{power}",
                *found.values(),
                TARGETS.get(power),
                *peers,
                bound,
                *nanoseconds.values(),
            )
        )
        rows.sort(key=lambda row: int(row[0][2:]))
        for s in SEARCHES:
            each[s][power] = nanoseconds[s]
        report.write()
        del flocks
        free(setting)
    for s, times in each.items():
        by_size = [times[power] for power in sorted(times)]
        least = min(by_size)
        later = max(by_size[by_size.index(least) :])
        report.notes[f"{s}: time an agent"] = (
            f"least {least:.3g} ns; {by_size[0] / least:.2f} times that at first, "
            f"{later / least:.2f} times at most in larger flocks "
            "(wanted: at most 1.5 once the GPU is full)"
        )


def report_bandwidth(setting: Setting, report: Report) -> float:
    """Bytes a second of a copy; a CPU has it from a copy of NumPy's."""
    if setting.device.startswith("cuda"):
        found = copy_kernel_bandwidth()
    else:
        source, target = np.zeros(2**24), np.zeros(2**24)
        times = interleave({"copy": lambda: np.copyto(target, source)}, 5)["copy"]
        found = 2 * source.nbytes / statistics.median(times)
    report.notes["copy, bytes read and written"] = f"{found / 1e12:.3f} TB/s"
    return found


def parts(setting: Setting, report: Report) -> None:
    stages(setting, report, (20, 18))


def parts_of_many(setting: Setting, report: Report) -> None:
    stages(setting, report, (22,))


def stages(setting: Setting, report: Report, powers: Sequence[int]) -> None:
    """Where the time of a step goes."""
    rows = report.section(
        "Stages of a step, ms",
        "agents, search",
        "build",
        "search",
        "update",
        "whole",
        "steps sampled",
    )
    for power in dict.fromkeys(min(p, setting.most) for p in powers):
        if out_of_time(setting, report, f"stages of 2^{power} agents"):
            continue
        state = start(2**power)
        for search in SEARCHES:
            profile = lw.Profile()
            flock = setting.flock(state, world_of(2**power), search, profile)
            flock.advance(setting.steps)
            found = summarise(profile)
            count = found["steps"]["count"]
            each = {n: 1e3 * s["seconds"] / count for n, s in found["stages"].items()}
            whole = 1e3 * found["steps"]["seconds"] / count
            shown = (each.get(n, 0.0) for n in ("build", "search", "update"))
            rows.append((f"2^{power}, {search}", *shown, whole, found["steps"]["sampled"]))
            del flock
            free(setting)


def elsewhere(setting: Setting, report: Report) -> None:
    """Larger worlds and clusters: what a structure that follows the crowd must not mind."""
    power = min(20, setting.most)
    count, world = 2**power, world_of(2**power)
    small = world * 0.01 ** (1 / 3)
    even, ball, clusters = start(count), start(count, "ball", small), start(count, "clusters")
    cases = {
        f"world {world:.0f}, evenly": (even, world),
        f"world {4 * world:.0f}, the same agents": (even, 4 * world),
        "all in a ball of 1 % of the volume": (ball, world),
        "in eight balls, 1 % of the volume together": (clusters, world),
    }
    rows = report.section(
        f"2^{power} agents elsewhere", "agents", "search", "ms", "times evenly (dynamic: at most 2)"
    )
    for search in SEARCHES[::-1]:
        if out_of_time(setting, report, f"elsewhere, {search}"):
            return
        flocks = {
            name: setting.flock(state, radius, search) for name, (state, radius) in cases.items()
        }
        found = replace(setting, rounds=3).milliseconds(flocks)
        first = next(iter(found.values()))
        rows += [(name, search, ms, ms / first) for name, ms in found.items()]
        report.write()
        del flocks
        free(setting)


def nearest(setting: Setting, report: Report) -> None:
    """`lw.nearest` of points where they are."""
    power = min(20, setting.most)
    points: Any = np.asarray(start(2**power).position, np.float32)
    host, on_gpu = points, setting.device.startswith("cuda")
    points = cuda.cupy().asarray(points) if on_gpu else points

    def call() -> None:
        lw.nearest(points, k=K, radius=RADIUS)
        if on_gpu:
            cuda.cupy().cuda.Device().synchronize()

    rows = report.section("lw.nearest, k=7 within sqrt(18)", "points", "ms", "target, ms")
    indices, distances = (
        np.asarray(a.get() if on_gpu else a) for a in lw.nearest(points, k=K, radius=RADIUS)
    )
    report.notes[f"lw.nearest, 2^{power} points"] = check_nearest(host, indices, distances)
    times = interleave({"nearest": call}, 2 * setting.rounds + 1)["nearest"]
    rows.append(
        (f"2^{power}", 1e3 * statistics.median(times), NEAREST_TARGET if power == 20 else None)
    )


def check_nearest(points: Any, indices: Any, distances: Any) -> str:
    """A sample against all pairs in float64.

    Raises:
        ValueError: a distance differs.
    """
    worst = 0.0
    for i in np.linspace(0, len(points) - 1, 50).astype(int):
        d = np.sqrt(((points.astype(np.float64) - points[i].astype(np.float64)) ** 2).sum(axis=1))
        d[i] = np.inf
        wanted = np.sort(d)[:K]
        there = wanted < RADIUS
        if (indices[i] >= 0).sum() != there.sum():
            raise ValueError(
                f"point {i} has {(indices[i] >= 0).sum()} neighbours, wanted {there.sum()}"
            )
        worst = max(worst, float(np.abs(distances[i][there] - wanted[there]).max(initial=0.0)))
    if worst > 1e-3:
        raise ValueError(f"a distance is wrong by {worst:.1e}")
    return f"distances of 50 points right to {worst:.1e}"


def profiled(setting: Setting, report: Report) -> None:
    """What being measured costs, by two flocks without and two with it: equal flocks differ by
    where their memory lies, too.
    """
    columns = (
        "without, ms",
        "with, ms",
        "cost, % (at most 1)",
        "between the two without, %",
        "between the two with, %",
    )
    rows = report.section("With and without a profile", "agents", "steps a run", *columns)
    for power in dict.fromkeys(min(p, setting.most) for p in (20, 18)):
        if out_of_time(setting, report, f"profile of 2^{power} agents"):
            continue
        state, world = start(2**power), world_of(2**power)
        profiles = {
            "without": None,
            "with": lw.Profile(),
            "without again": None,
            "with again": lw.Profile(),
        }
        flocks = {
            name: setting.flock(state, world, SEARCHES[0], profile)
            for name, profile in profiles.items()
        }
        for steps in (setting.steps, 8 * setting.steps):
            longer = replace(setting, steps=steps, rounds=2 * setting.rounds + 1)
            a, b, c, d = longer.milliseconds(flocks).values()
            apart = (100 * abs(a / c - 1), 100 * abs(b / d - 1))
            rows.append(
                (
                    f"2^{power}",
                    steps,
                    (a + c) / 2,
                    (b + d) / 2,
                    100 * ((b + d) / (a + c) - 1),
                    *apart,
                )
            )


def out_of_time(setting: Setting, report: Report, what: str) -> bool:
    """Whether the time is up; says what is left out then."""
    late = time.perf_counter() - report.began > setting.seconds
    if late:
        report.problems.append(f"left out, since {setting.seconds:g} seconds are over: {what}")
    return late


PARTS = (check, steps, nearest, parts, profiled, elsewhere, parts_of_many)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cuda")
    options.add_argument("--most", type=int, default=22)
    options.add_argument("--steps", type=int, default=256)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=120.0)
    options.add_argument("--only", choices=[part.__name__ for part in PARTS])
    given = vars(options.parse_args())
    only = given.pop("only")
    setting = Setting(**given)
    name = "gpu_boids" + (f"_{only}" if only else "")
    report = Report(
        Path(os.environ.get("OUT", "bench/results")) / f"{name}.md", notes=describe_machine()
    )
    for part in (p for p in PARTS if only in (None, p.__name__)):
        began = time.perf_counter()
        try:
            if not out_of_time(setting, report, part.__name__):
                part(setting, report)
        except Exception:  # the other parts are still worth having
            report.problems.append(f"{part.__name__}:\n{traceback.format_exc()}")
            print(report.problems[-1], flush=True)
        free(setting)
        report.notes[f"seconds of {part.__name__!r}"] = f"{time.perf_counter() - began:.1f}"
        report.write()
    print(report.text())


if __name__ == "__main__":
    main()
