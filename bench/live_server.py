"""How fast are frames of a million points made, and sent to one reader on the same machine?

    python -m bench.live_server [--seconds 4]

The first row makes frames of an array and sends none; its CPU time is that of all threads. The
second one sends one frame of 8 MB again and again, with a budget that is never reached. The reader is another
process, which decodes headers only. Writes bench/results/live_server_cpu.{md,json}, or into the
folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine, write_rows
from bench.live import HERE, Watching
from lanewise.live import viewers
from lanewise.live.feed import Feed
from lanewise.live.scenes import Asked, finished
from lanewise.live.server import Server, Serving

COUNT = 1_000_000
RATE = 240.0


@lw.record
class Point:
    """What is seen."""

    position: lw.vec3
    heat: lw.f32


@dataclass(slots=True)
class Still:
    """A scene whose frames are there already, and that counts its steps."""

    about: Mapping[str, Any]
    kept: Sequence[Any]
    step: int = 0

    @property
    def moment(self) -> tuple[int, float]:
        """See `Scene`."""
        return self.step, float(self.step)

    def frames(self, asked: Asked) -> Sequence[Any]:
        """The same ones each time."""
        return self.kept

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """Nothing is known of elements."""
        return {}


def made(seconds: float) -> tuple[dict[str, Any], Still]:
    """Frames that are made one after the other."""
    rng = np.random.default_rng(1)
    points = Point.array(position=rng.normal(size=(COUNT, 3)), heat=rng.random(COUNT))
    with lw.view(points, colour="heat", port=0, quiet=True) as view:
        scene, asked = view._feed.scene, view._feed.asked
        frames, busy, spent = finished(scene.frames(asked)), list[float](), list[float]()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin, before = time.perf_counter(), time.process_time()
            frames = finished(scene.frames(asked))
            busy.append(1e3 * (time.process_time() - before))
            spent.append(1e3 * (time.perf_counter() - begin))
        row = {"row": "made", "frames/s": len(spent) / sum(spent) * 1e3,
               "ms": statistics.median(spent), "CPU ms": statistics.median(busy),
               "least CPU ms": min(busy)}  # fmt: skip
        return row, Still(scene.about, frames)


def sent(still: Still, seconds: float) -> dict[str, Any]:
    """Frames that are sent while a run looks between steps of half a millisecond."""
    viewers.FIRST_POINTS = COUNT
    feed = Feed(still, rate=RATE, history=1 << 24)
    server = Server(feed, Serving(port=0, budget=1e12))
    server.start()
    reader = Watching.of(server.port, server.token, RATE)
    reader.ask("go")

    def run(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            still.step += 1
            feed.look(still.step)
            time.sleep(0.0005)

    run(1)  # until as many points go as fit
    reader.ask("go")
    begin, busy = time.perf_counter(), time.process_time()
    run(seconds)
    found, spent = reader.ask("go"), time.perf_counter() - begin
    busy = time.process_time() - busy
    reader.close()
    server.stop()
    return {"row": "sent", "frames/s": found["frames"] / spent, "MB/s": found["bytes"] / spent / 1e6,
            "CPU ms": 1e3 * busy / found["frames"]}  # fmt: skip


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a row")
    seconds = parser.parse_args().seconds
    first, still = made(seconds)
    rows = [first, sent(still, seconds)]
    table = [
        "| frames of 1e6 points | frames/s | MB/s | CPU time a frame, ms |",
        "| --- " * 4 + "|",
    ]
    for r in rows:
        rate = f"{r['MB/s']:.0f}" if "MB/s" in r else ""
        table.append(f"| {r['row']} | {r['frames/s']:.1f} | {rate} | {r['CPU ms']:.1f} |")
    print("\n".join(table))
    out = Path(os.environ.get("OUT", HERE / "results")) / "live_server_cpu"
    title = "Frames of a million points, made and sent"
    machine = describe_machine() | {"load": f"{os.getloadavg()[0]:.1f}"}
    write_rows(out, title, machine, table, rows)


if __name__ == "__main__":
    main()
