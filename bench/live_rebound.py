"""What does a viewer cost the steps of a run, here and in REBOUND? 1e5 particles that drift, with
and without a viewer of another process that takes 30 frames a second, in turns.

    python -m bench.live_rebound [--count 100000] [--rounds 7] [--seconds 1.0]

REBOUND takes its steps on one core of the machine, and its viewer has the others; so lanewise is
measured on one thread, too. REBOUND (bench/peers.txt) answers each request of its page with the
whole simulation, in float64, packed while the simulation waits; here a frame has positions of 16
bits and a colour. Both steps are checked: the particles are where time times velocity puts them.
Writes bench/results/live_rebound.{md,json}, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import lanewise as lw
from bench.harness import describe_machine, write_rows
from bench.live import RATE, Watching, words_heard
from lanewise.ladders.run import one_thread

DT = 1e-5
AT_ONCE = 20  # steps of one call of REBOUND, which answers between them
ALL, ONE, PEER = "lanewise", "lanewise, one thread", "REBOUND"
HERE = Path(__file__).resolve().parent


class Particle(lw.Record):
    """What drifts."""

    position: lw.dvec3
    velocity: lw.dvec3


@lw.elementwise
def drift(p: Particle, dt: lw.f64):
    p.position += dt * p.velocity


@dataclass(slots=True)
class Row:
    """One program with or without a viewer: what it does, and what was found."""

    step: Callable[[], int]  # the number of steps that it took
    watched: Callable[[], Any]
    within: Callable[[], AbstractContextManager[None]]
    seconds: list[float] = field(default_factory=list[float])
    frames: list[float] = field(default_factory=list[float])
    nbytes: float = 0.0


def start(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions in the unit cube, and velocities."""
    rng = np.random.default_rng(1)
    return rng.random((count, 3)), rng.normal(size=(count, 3))


@contextmanager
def rebound(count: int, port: int) -> Generator[tuple[Callable[[], int], Callable[[], Any]]]:
    """Steps without forces, the server, and its particles."""
    import rebound as peer

    simulation = peer.Simulation()
    simulation.gravity, simulation.integrator, simulation.dt = "none", "leapfrog", DT
    position, velocity = start(count)
    for (x, y, z), (vx, vy, vz) in zip(position, velocity, strict=True):
        simulation.add(m=0, x=x, y=y, z=z, vx=vx, vy=vy, vz=vz)
    simulation.start_server(port=port)

    def step() -> int:
        simulation.steps(AT_ONCE)
        return AT_ONCE

    yield step, lambda: Watching("-m", "bench.live_rebound", "--poll", str(port))
    found = np.empty((count, 3))
    simulation.serialize_particle_data(xyz=found)
    checked(found, position + simulation.t * velocity)
    simulation.stop_server(port=port)


@contextmanager
def ours(count: int) -> Generator[tuple[Callable[[], int], Callable[[], Any]]]:
    """The same with an elementwise function and `lw.view`."""
    position, velocity = start(count)
    particles = Particle.array(position=position, velocity=velocity)
    taken = 0
    view = lw.view(particles, port=0, rate=RATE, quiet=True)

    def step() -> int:
        nonlocal taken
        drift(particles, dt=DT)
        taken += 1
        view.update(taken)
        return 1

    address = urlsplit(view.url)
    token = address.fragment.removeprefix("t=")
    yield step, lambda: Watching.of(address.port or 0, token)
    checked(np.asarray(particles.position), position + taken * DT * velocity)
    view.close()


def checked(found: np.ndarray, wanted: np.ndarray) -> None:
    """Each in its place, but for the rounding of so many sums."""
    wrong = float(np.abs(found - wanted).max())
    if not wrong < 1e-8:
        raise SystemExit(f"a particle is {wrong:.2g} from where it should be")


def poll(port: int) -> None:
    """The other process."""
    words = words_heard()
    going, frames, nbytes, due = False, 0, 0, time.monotonic()
    while True:
        if not words.empty():
            word = words.get()
            if not word:
                return
            going = word == "go"
            print(json.dumps({"frames": frames, "bytes": nbytes}), flush=True)
            frames, nbytes = 0, 0
        now = time.monotonic()
        if not going or now < due:
            time.sleep(0.001)
            continue
        due = max(due + 1 / RATE, now)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/simulation", timeout=20) as answer:
            nbytes += len(answer.read())
        frames += 1


def window(row: Row, viewer: Any, seconds: float) -> None:
    """Steps for so long; with a viewer, if there is one."""
    with row.within():
        _window(row, viewer, seconds)


def _window(row: Row, viewer: Any, seconds: float) -> None:
    if viewer is not None:
        viewer.ask("go")
        until = time.perf_counter() + 0.3
        while time.perf_counter() < until:
            row.step()
        viewer.ask("go")
    begun, steps = time.perf_counter(), 0
    while (now := time.perf_counter()) < begun + seconds:
        steps += row.step()
    row.seconds.append((now - begun) / steps)
    if viewer is not None:
        told = viewer.ask("stop")
        row.frames.append(told["frames"] / (now - begun))
        row.nbytes = told["bytes"] / max(1, told["frames"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--port", type=int, default=8764)
    parser.add_argument("--poll", type=int)
    given = parser.parse_args()
    if given.poll is not None:
        poll(given.poll)
        return
    with ExitStack() as stack:
        programs = {
            ALL: stack.enter_context(ours(given.count)),
            ONE: stack.enter_context(ours(given.count)),
            PEER: stack.enter_context(rebound(given.count, given.port)),
        }
        viewers = {name: watched() for name, (_, watched) in programs.items()}
        rows = {
            (n, v): Row(*programs[n], one_thread if n == ONE else nullcontext)
            for n in programs
            for v in (False, True)
        }
        for _ in range(given.rounds):
            for (name, seen), row in rows.items():
                window(row, viewers[name] if seen else None, given.seconds)
        for viewer in viewers.values():
            viewer.close()
    written(given, rows)


def written(given: argparse.Namespace, rows: dict[tuple[str, bool], Row]) -> None:
    """The table, and all that was measured."""
    lines = [
        "| program | steps/s alone | with a viewer | share kept | frames/s | bytes a frame "
        "| ms of the run a frame |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = list[dict[str, Any]]()
    for name in (ALL, ONE, PEER):
        plain, seen = rows[name, False], rows[name, True]
        before, after = statistics.median(plain.seconds), statistics.median(seen.seconds)
        kept = statistics.median(a / b for a, b in zip(plain.seconds, seen.seconds, strict=True))
        frames = statistics.median(seen.frames)
        lines.append(
            f"| {name} | {1 / before:,.0f} | {1 / after:,.0f} | {kept:.2f} | {frames:.1f} "
            f"| {seen.nbytes:,.0f} | {1e3 * (1 - kept) / frames:.2f} |"
        )
        found.append(
            {"program": name, "particles": given.count, "plain": plain.seconds,
             "viewer": seen.seconds, "frames/s": seen.frames, "bytes a frame": seen.nbytes}
        )  # fmt: skip
    out = Path(os.environ.get("OUT", HERE / "results")) / "live_rebound"
    title = f"What a viewer costs {given.count:,} particles that drift, and REBOUND's"
    write_rows(out, title, describe_machine(), lines, found)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
