"""What does a view cost the run that it shows? The same steps without a view, with one that nobody
watches, and with a viewer that reads 30 frames a second, in turns.

    python -m bench.live [--device cuda] [--rounds 7] [--seconds 1.0] [--apart] [ROW ...]

Each of the three has a state of its own, which takes the same steps; at the end their bits are
compared. The viewer is another process of this machine. CPU time is that of all threads of the
process, the server's too; it says more where other programs run (the machine's load is in the
table). Writes
bench/results/live_{cpu,cuda}.{md,json}, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
MODES = ("plain", "nobody", "viewer")
RATE = 30.0
DT = 1e-3


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that runs: steps of it, what is seen of it, and all of its numbers."""

    step: Callable[[int], Any]
    live: Any
    state: Any
    bits: Callable[[], list[Any]]


def gravity(count: int, device: str) -> Subject:
    from lanewise.runtime.memory import to_host
    from lanewise.sims.gravity import live, runner

    run = runner.start(bodies=count, device=device, method="auto", softening=0.05, seed=1, steps=1)
    simulation = run.state.simulation

    def bits() -> list[Any]:
        bodies = simulation.bodies
        return [to_host(bodies.position), to_host(bodies.velocity)]

    return Subject(lambda n: simulation.run(n, dt=DT), live, run.state, bits)


def flock(count: int, device: str) -> Subject:
    from lanewise.sims.boids import live, run

    world = 50.0 * (count / 1000) ** (1 / 3)
    made = run.start({"agents": count, "seed": 1, "device": device, "world": world}, steps=1)
    flying = made.state.flock

    def bits() -> list[Any]:
        state = flying.state
        return [np.asarray(state.position), np.asarray(state.forward), np.asarray(state.speed)]

    return Subject(flying.run, live, made.state, bits)


def flow(size: int, device: str) -> Subject:
    from lanewise.runtime.memory import to_host
    from lanewise.sims.lbm import live, runner
    from lanewise.sims.lbm.cases import find_case
    from lanewise.sims.lbm.options import End, Method, Output

    case = find_case("cavity")
    made = runner.start(
        case, case.request(size=size, re=size), Method(device=device), End(steps=1), Output()
    )  # fmt: skip
    simulation = made.state.simulation

    def bits() -> list[Any]:
        return [to_host(simulation.density), to_host(simulation.velocity)]

    return Subject(simulation.run, live, made.state, bits)


ROWS: dict[str, tuple[Callable[[int, str], Subject], int]] = {
    "gravity 1e5": (gravity, 100_000),
    "gravity 1e6": (gravity, 1_000_000),
    "gravity 1e7": (gravity, 10_000_000),
    "flock 2^17": (flock, 1 << 17),
    "flock 2^20": (flock, 1 << 20),
    "flow 512^2": (flow, 512),
    "flow 2048^2": (flow, 2048),
}


class Watching:
    """A viewer in another process of Python, which reads while it is told to."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @classmethod
    def of(cls, port: int, token: str, rate: float = RATE) -> Watching:
        """Of a view."""
        from lanewise.live.protocol import PATH

        return cls(str(Path(__file__)), "--read", f"ws://127.0.0.1:{port}{PATH}", token, str(rate))

    def ask(self, what: str) -> dict[str, Any]:
        """go: read; stop: what was read since then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(what, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def words_heard() -> queue.SimpleQueue[str]:
    """What the other process is told, as it comes; an empty word at the end."""
    words: queue.SimpleQueue[str] = queue.SimpleQueue()

    def hear() -> None:
        for line in sys.stdin:
            words.put(line.strip())
        words.put("")

    threading.Thread(target=hear, daemon=True).start()
    return words


def read(address: str, token: str, rate: str) -> None:
    """The other process."""
    from websockets.sync.client import connect

    from lanewise.live.frame import decode

    words = words_heard()
    with connect(address, max_size=None, compression=None) as connection:

        def say(**message: Any) -> None:
            connection.send(json.dumps(message))

        say(do="hello", token=token)
        say(do="rate", n=float(rate))
        frames, nbytes = 0, 0
        while True:
            if not words.empty():
                word = words.get()
                if not word:
                    return
                say(do="credit", n=2 if word == "go" else 0)
                print(json.dumps({"frames": frames, "bytes": nbytes}), flush=True)
                frames, nbytes = 0, 0
            try:
                data = connection.recv(0.005)
            except TimeoutError:
                continue
            if isinstance(data, bytes) and (header := decode(data)[0]).kind != "statistics":
                frames, nbytes = frames + 1, nbytes + len(data)
                say(do="ack", sequence=header.sequence, decode=0, draw=0, queue=0)


class Pieces:
    """A watcher that has steps cut as a viewer does, and does nothing between them."""

    seconds = 1 / RATE

    def due(self, step: int) -> None:
        """Any step may be passed."""

    def look(self, step: int, asked: Callable[[], bool]) -> None:
        """Nothing."""


@dataclass(slots=True)
class Shown:
    """One of the three states, and what was found of it."""

    subject: Subject
    feed: Any = None
    viewer: Watching | None = None
    seconds: list[float] = field(default_factory=list[float])
    busy: list[float] = field(default_factory=list[float])
    making: list[float] = field(default_factory=list[float])
    frames: int = 0
    nbytes: int = 0


def prepared(mode: str, subject: Subject, stack: ExitStack) -> Shown:
    """With a feed and a viewer as the mode says."""
    if mode == "plain":
        return Shown(subject)
    if mode == "pieces":
        stack.enter_context(subject.live.steps_of(subject.state).watched(Pieces()))
        return Shown(subject)
    from lanewise.live.feed import Feed
    from lanewise.live.server import Server, Serving

    shown = Shown(subject, Feed(subject.live.scene_of(subject.state), rate=RATE))
    make = shown.feed.make

    def timed() -> None:
        begin = time.perf_counter()
        make()
        shown.making.append(time.perf_counter() - begin)

    shown.feed.make = timed
    server = Server(shown.feed, Serving(port=0))
    server.start()
    stack.callback(server.stop)
    shown.feed.make()  # compiles
    stack.enter_context(subject.live.steps_of(subject.state).watched(shown.feed))
    if mode == "viewer":
        shown.viewer = Watching.of(server.port, server.token)
        stack.callback(shown.viewer.close)
    return shown


def take(shown: Shown, steps: int, *, counted: bool = True) -> float:
    """So many steps and the seconds that they took; the viewer reads meanwhile."""
    if shown.viewer is not None:
        shown.viewer.ask("go")
        while not shown.feed.watched:
            time.sleep(0.001)
    begin, busy = time.perf_counter(), time.process_time()
    shown.subject.step(steps)
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    if shown.viewer is not None:
        found = shown.viewer.ask("stop")
        while shown.feed.watched:
            time.sleep(0.001)
        shown.frames += found["frames"] * counted
        shown.nbytes += found["bytes"] * counted
    if counted:
        shown.seconds.append(seconds / steps)
        shown.busy.append(busy / steps)
    else:
        shown.making.clear()
    return seconds


def calibrated(states: dict[str, Shown], seconds: float) -> int:
    """How many steps take the seconds; all states have taken the same ones afterwards."""
    count = 1
    while True:
        # the first of two may compile
        for _ in range(2):
            took, *_ = [take(shown, count, counted=False) for shown in states.values()]
        if took > seconds / 3:
            return max(1, round(count * seconds / took))
        count *= 4


def compare(row: str, device: str, rounds: int, seconds: float, *, apart: bool) -> dict[str, Any]:
    """One row."""
    make, size = ROWS[row]
    modes = ("plain", "nobody", "pieces", "viewer") if apart else MODES
    with ExitStack() as stack:
        states = {m: prepared(m, make(size, device), stack) for m in modes}
        steps = calibrated(states, seconds)
        loads = [os.getloadavg()[0]]
        for turn in range(rounds):
            for mode in modes[:: -1 if turn % 2 else 1]:
                take(states[mode], steps)
            loads.append(os.getloadavg()[0])
        plain, viewer = states["plain"], states["viewer"]
        bits = [s.subject.bits() for s in states.values()]
    equal = all(
        np.array_equal(a, b) for other in bits[1:] for a, b in zip(bits[0], other, strict=True)
    )
    total = sum(s * steps for s in viewer.seconds)
    return {
        "row": row,
        "steps": steps,
        "step": 1e3 * statistics.median(plain.seconds),
        **{m: {**ratios(states[m].seconds, plain.seconds), "cpu": ratio(states[m].busy, plain.busy)}
           for m in modes[1:]},
        "frames/s": viewer.frames / total,
        "MB/s": viewer.nbytes / total / 1e6,
        "frame, ms": 1e3 * statistics.median(viewer.making) if viewer.making else float("nan"),
        "equal": equal,
        "load": [min(loads), max(loads)],
    }  # fmt: skip


def ratio(times: list[float], plain: list[float]) -> float:
    """The median over the rounds."""
    return statistics.median(t / p for t, p in zip(times, plain, strict=True))


def ratios(times: list[float], plain: list[float]) -> dict[str, float]:
    """And that of the least times."""
    return {"ratio": ratio(times, plain), "least": min(times) / min(plain)}


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    """The rows as Markdown."""
    yield (
        "| row | step, ms | nobody by plain | of the least | of CPU time | viewer by plain "
        "| of the least | of CPU time | frames/s | MB/s | the run's thread a frame, ms | load | bits |"
    )
    yield "| --- |" + " ---: |" * 11 + " --- |"
    for f in found:
        by = " | ".join(f"{f[m][k]:.4f}" for m in MODES[1:] for k in ("ratio", "least", "cpu"))
        yield (
            f"| {f['row']} | {f['step']:,.3f} | {by} | {f['frames/s']:.1f} | {f['MB/s']:.1f} "
            f"| {f['frame, ms']:.2f} | {f['load'][0]:.0f} to {f['load'][1]:.0f} "
            f"| {'equal' if f['equal'] else 'DIFFERENT'} |"
        )


def main() -> None:
    """Compares, prints as it goes, and writes."""
    from bench.harness import describe_machine, write_rows

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a measurement")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument(
        "--apart", action="store_true",
        help="also with steps cut as for a viewer and nothing made; prints, and writes nothing",
    )  # fmt: skip
    parser.add_argument("rows", nargs="*", metavar="ROW")
    options = parser.parse_args()
    began, found = time.monotonic(), list[dict[str, Any]]()
    out = Path(os.environ.get("OUT", HERE / "results")) / f"live_{options.device}"
    machine = describe_machine()
    rows = options.rows or list(ROWS)
    for row in rows:
        if time.monotonic() - began > options.limit:
            print(f"out of time: {len(rows) - len(found)} rows were not run", flush=True)
            break
        one = compare(row, options.device, options.rounds, options.seconds, apart=options.apart)
        found.append(one)
        print(list(table(found))[-1], flush=True)
        if options.apart:
            print(f"  of this for steps in pieces: {one['pieces']['ratio']:.4f}", flush=True)
            continue
        write_rows(out, "What a view costs the run that it shows", machine, table(found), found)
    if wrong := [f["row"] for f in found if not f["equal"]]:
        raise SystemExit(f"different bits: {', '.join(wrong)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(*sys.argv[2:])
    else:
        main()
