"""What does a time loop cost: `lw.steps` beside the same calls in a loop of Python?

`python -m bench.steps [--device cuda]` writes bench/results/steps_{cpu,cuda}.{md,json}. First the
bits of every problem are compared after some steps; then plain calls, bound calls and the loop run
in turns. Arrays are small, so that what a step costs beside its kernels shows. On a GPU the host
waits once a turn. "beyond" is what a call of the loop takes beside the compiled functions that it
runs, called by hand (CPU).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.loops.flat import flat
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import array_module, to_host
from lanewise.runtime.prepared import Prepared
from lanewise.sims import gravity as product

STEPS, ROUNDS = {"cpu": 2000, "cuda": 2000}, 21
CHECKED = 70  # steps whose bits are compared
DT = 1e-4


class Body(lw.Record):
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


class Grain(lw.Record):
    """A disc of a unit square without edges."""

    position: lw.vec2
    velocity: lw.vec2


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


@lw.pairwise
def press(target: Grain, source: Grain, k: lw.f32) -> lw.vec2:
    d = source.position - target.position
    d -= lw.floor(d + lw.vec2(0.5, 0.5))
    r = lw.length(d)
    return lw.select(r > 0, k * (r - 0.05) / lw.max(r, 1e-6) * d, lw.vec2(0, 0))


@lw.elementwise
def move(grain: Grain, push: lw.vec2, dt: lw.f32, shake: lw.f32):
    grain.velocity += dt * (push - grain.velocity) + lw.vec2(shake, 0)
    grain.position += dt * grain.velocity
    grain.position -= lw.floor(grain.position)


@lw.threadwise
def heat(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], rate: lw.f32):
    h, w = a.shape
    if y > 0 and x > 0 and y < h - 1 and x < w - 1:
        b[y, x] = a[y, x] + rate * (
            a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1] - 4 * a[y, x]
        )


@dataclass(frozen=True)
class Problem:
    """calls: of a step. state: what is compared. plain, bound: step n; bound is None where values
    change.
    """

    calls: int
    state: Callable[[], list[Any]]
    plain: Callable[[int], None]
    bound: Callable[[int], None] | None
    loop: Any
    by_hand: list[Callable[[], object]] | None = None


def _bodies(count: int, device: str) -> Any:
    random = np.random.default_rng(0)
    return Body.array(
        position=random.random((count, 3), np.float32), velocity=np.zeros((count, 3), np.float32),
        mass=np.full(count, 1 / count, np.float32), device=device,
    )  # fmt: skip


def _functions(*calls: Any) -> list[Callable[[], object]] | None:
    """The compiled functions that the calls come to on a CPU."""
    launches = [call.launch for call in calls]
    if not all(isinstance(x, Prepared) for x in launches):
        return None
    return [work for x in launches for work in flat(x)]


def leapfrog(count: int, device: str) -> Problem:
    bodies = _bodies(count, device)
    force = gravity.bind(bodies, bodies, 1e-4)
    force()
    kick = kick_drift.bind(bodies, force.results[0], DT)

    acceleration = [force.results[0].copy()]

    def plain(n: int) -> None:
        kick_drift(bodies, acceleration[0], DT)
        acceleration[0] = gravity(bodies, bodies, 1e-4)

    def bound(n: int) -> None:
        kick()
        force()

    by_hand = _functions(kick, force) if device == "cpu" else None
    return Problem(
        2,
        lambda: [bodies.position, bodies.velocity],
        plain,
        bound,
        lw.steps([kick, force]),
        by_hand,
    )


def shaken(count: int, device: str) -> Problem:
    """A value that changes with the step."""
    bodies = _bodies(count, device)
    force = gravity.bind(bodies, bodies, 1e-4)
    force()

    def dt(n: int) -> float:
        return DT * (1 + 0.5 * math.sin(0.01 * n))

    kick = kick_drift.bind(bodies, force.results[0], lw.by_step(dt))

    acceleration = [force.results[0].copy()]

    def plain(n: int) -> None:
        kick_drift(bodies, acceleration[0], dt(n))
        acceleration[0] = gravity(bodies, bodies, 1e-4)

    state = lambda: [bodies.position, bodies.velocity]  # noqa: E731
    return Problem(2, state, plain, None, lw.steps([kick, force]))


def grains(count: int, device: str) -> Problem:
    """A search over a grid in a closed world."""
    random = np.random.default_rng(0)
    some = Grain.array(
        position=random.random((count, 2), np.float32), velocity=np.zeros((count, 2), np.float32),
        device=device,
    )  # fmt: skip
    over = press.using(lw.StaticGrid(radius=0.05, world=lw.Periodic((1, 1))))
    push = over.bind(some, some, 10.0)
    shift = move.bind(some, push.results[0], DT, 0.0)

    def plain(n: int) -> None:
        move(some, over(some, some, 10.0), DT, 0.0)

    def bound(n: int) -> None:
        push()
        shift()

    return Problem(2, lambda: [some.position, some.velocity], plain, bound, lw.steps([push, shift]))


def plates(side: int, device: str) -> Problem:
    """Two copies of a field that take turns."""
    module = array_module(device)
    a = module.asarray(np.random.default_rng(0).random((side, side), np.float32))
    b = a.copy()
    there, back = heat.bind(a, b, 0.2, grid=a.shape), heat.bind(b, a, 0.2, grid=a.shape)

    def plain(n: int) -> None:
        if n % 2:
            heat(b, a, 0.2, grid=a.shape)
        else:
            heat(a, b, 0.2, grid=a.shape)

    def bound(n: int) -> None:
        (back if n % 2 else there)()

    loop = lw.steps([[there], [back]], cycle=2)
    by_hand = _functions(there, back) if device == "cpu" else None
    return Problem(1, lambda: [a, b], plain, bound, loop, by_hand)


PROBLEMS: dict[str, Callable[[str], Problem]] = {
    "leapfrog, 32 bodies": lambda device: leapfrog(32, device),
    "leapfrog, 256 bodies": lambda device: leapfrog(256, device),
    "leapfrog, 4,096 bodies": lambda device: leapfrog(4096, device),
    "leapfrog whose step changes, 64 bodies": lambda device: shaken(64, device),
    "grains over a grid, 100": lambda device: grains(100, device),
    "grains over a grid, 20,000": lambda device: grains(20_000, device),
    "heat, 32 x 32": lambda device: plates(32, device),
    "heat, 512 x 512": lambda device: plates(512, device),
}
ON_GPUS = {"leapfrog, 4,096 bodies", "grains over a grid, 20,000", "heat, 512 x 512"}


def check(name: str, device: str) -> None:
    """Compare the bits of the loop with those of plain calls, the run divided."""
    plain, looped = PROBLEMS[name](device), PROBLEMS[name](device)
    for n in range(CHECKED):
        plain.plain(n)
    looped.loop.run(7).run(0).run(CHECKED - 7)
    for a, b in zip(plain.state(), looped.state(), strict=True):
        if to_host(a).tobytes() != to_host(b).tobytes():
            raise AssertionError(f"{name}: the loop has other bits than plain calls")


def versions(problem: Problem, steps: int, device: str) -> dict[str, Callable[[], None]]:
    wait = get_device(device).synchronize

    def repeated(step: Callable[[int], None]) -> Callable[[], None]:
        def run() -> None:
            for n in range(steps):
                step(n)
            wait()

        return run

    made = {"plain": repeated(problem.plain)}
    if problem.bound is not None:
        made["bound"] = repeated(problem.bound)
    made["lw.steps"] = lambda: problem.loop.run(steps)
    if (works := problem.by_hand) is not None:
        times = steps * problem.calls // len(works)

        def by_hand() -> None:
            for _ in range(times):
                for work in works:
                    work()

        made["by hand"] = by_hand
    return made


def measure(name: str, device: str, rounds: int) -> dict[str, Any]:
    """Microseconds a step of every version: medians of rounds in turns."""
    problem = PROBLEMS[name](device)
    steps = STEPS[device]
    probe = time.perf_counter()
    problem.loop.run(64)
    a_step = (time.perf_counter() - probe) / 64
    steps = max(32, min(steps, int(0.05 / a_step)))
    works = versions(problem, steps, device)
    times: dict[str, list[float]] = {n: [] for n in works}
    for turn in range(rounds + 1):
        for version in list(works)[:: -1 if turn % 2 else 1]:
            begin = time.perf_counter()
            works[version]()
            if turn:
                times[version].append((time.perf_counter() - begin) / steps * 1e6)
    found: dict[str, Any] = {n: statistics.median(t) for n, t in times.items()}
    if "by hand" in found:
        gaps = [a - b for a, b in zip(times["lw.steps"], times["by hand"], strict=True)]
        found["beyond"] = statistics.median(gaps) / problem.calls
    return {**found, "calls": problem.calls, "steps": steps}


def simulation(device: str, rounds: int) -> float:
    """Microseconds of a step of the simulation of gravity that comes with lanewise, 256 bodies."""
    bodies = product.make_bodies(product.make_initial_conditions("plummer", 256, 0), device=device)
    run = product.Simulation(bodies, softening=0.01)
    run.run(64, DT)
    times: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run.run(STEPS[device], DT)
        times.append((time.perf_counter() - begin) / STEPS[device] * 1e6)
    return statistics.median(times)


def table(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "| steps | plain | bound | lw.steps | plain / lw.steps | beyond, a call |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in rows.items():
        bound = f"{row['bound']:.1f}" if "bound" in row else ""
        beyond = f"{row['beyond']:.2f}" if "beyond" in row else ""
        ratio = row["plain"] / row["lw.steps"]
        lines.append(
            f"| {name} | {row['plain']:.1f} | {bound} | {row['lw.steps']:.1f} | {ratio:.1f} | "
            f"{beyond} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", default="")
    arguments = parser.parse_args()
    device: str = arguments.device
    names = [n for n in PROBLEMS if device == "cuda" or n not in ON_GPUS]
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        check(name, device)
        rows[name] = measure(name, device, arguments.rounds)
        print(name, {k: round(v, 2) for k, v in rows[name].items()}, flush=True)
    ours = simulation(device, arguments.rounds)
    machine = describe_machine()
    text = [
        f"# What a step of a loop costs ({device})",
        "",
        f"Microseconds a step, medians of {arguments.rounds} rounds in turns; the bits of all "
        "problems are those of plain calls.",
        "",
        *table(rows),
        "",
        "A step of `lanewise.sims.gravity` with 256 bodies (leapfrog, three kernels) takes "
        f"{ours:.1f}.",
        "",
        *(f"- {key}: {value}" for key, value in machine.items()),
        "",
    ]
    path = Path(arguments.out or Path(__file__).parent / "results" / f"steps_{device}.md")
    path.write_text("\n".join(text), encoding="utf-8")
    data = {"machine": machine, "rounds": arguments.rounds, "rows": rows, "simulation": ours}
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
