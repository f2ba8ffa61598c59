"""What does it cost to look at one field of an array on a GPU every tenth step?

`python -m bench.two_sides` writes bench/results/two_sides.{md,json}: a time loop of 100 steps whose
positions are read on the host ten times, in four ways; and one copy of the field alone, in both
directions, with what the link between device and host gives to pinned memory as its bound. All ways
are checked against each other. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine, interleave
from lanewise.runtime import cuda
from lanewise.runtime.device import get_device

COUNTS, COPIED = (1 << 20, 1 << 22), (1 << 20, 1 << 24)
STEPS, EVERY, ROUNDS = 100, 10, 3


class Body(lw.Record):
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.elementwise
def drift(body: Body, dt: lw.f32):
    body.position += dt * body.velocity


Look = Callable[[Any], np.ndarray[Any, Any]]
WAYS: dict[str, Look] = {
    "`bodies.host.position`": lambda b: b.host.position,
    '`bodies.numpy()["position"]`, two sides': lambda b: b.numpy()["position"],
    '`bodies.numpy()["position"]`, one side': lambda b: b.numpy()["position"],
    "`bodies.position.get()`": lambda b: b.position.get(),
}


def array(count: int, layout: lw.Layout, way: str) -> Any:
    bodies = Body.zeros(count, layout=layout, device="cuda")
    bodies.velocity = cuda.cupy().arange(3 * count, dtype="f4").reshape(count, 3) % 17
    if "one side" not in way:
        _ = bodies.host
    return bodies


def loop(bodies: Any, look: Look, kept: list[np.ndarray[Any, Any]]) -> None:
    for step in range(STEPS):
        drift(bodies, 1.0)
        if step % EVERY == EVERY - 1:
            kept[:] = [look(bodies)]


def loops(count: int, layout: lw.Layout) -> dict[str, float]:
    """Seconds of a loop, by way."""
    kept: dict[str, list[np.ndarray[Any, Any]]] = {way: [] for way in WAYS}
    arrays = {way: array(count, layout, way) for way in WAYS}
    runs = {way: (lambda way=way: loop(arrays[way], WAYS[way], kept[way])) for way in WAYS}
    seconds = interleave(runs, ROUNDS)
    first = kept[next(iter(WAYS))][0]
    for (last,) in kept.values():
        np.testing.assert_array_equal(last, first)
    return {way: statistics.median(x) for way, x in seconds.items()}


def best(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """The least of some times of work that waits for its end."""
    times: list[float] = []
    for _ in range(ROUNDS):
        before()
        cuda.synchronize("cuda")
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def copies(count: int, layout: lw.Layout) -> dict[str, float]:
    """Seconds of one copy of the positions, and of making the host's side."""
    bodies = array(count, layout, "one side")
    begin = time.perf_counter()
    side = bodies.host
    made = time.perf_counter() - begin
    values = np.ones((count, 3), "f4")
    down = best(lambda: side.position, lambda: drift(bodies, 1.0))
    one = drift.bind(bodies, 1.0)
    launch = best(lambda: (one(), cuda.synchronize("cuda")))

    def assign() -> None:
        side.position = values

    up = best(lambda: (one(), cuda.synchronize("cuda")), assign)
    return {"host's side made": made, "to host": down, "to device": up - launch}


def bound(nbytes: int) -> dict[str, float]:
    """Seconds of one transfer of as many contiguous bytes, from and to pinned and ordinary
    memory.
    """
    module = cuda.cupy()
    device = module.zeros(nbytes, "u1")
    pinned, plain = get_device("cuda").pinned(nbytes, "the bound"), np.ones(nbytes, "u1")
    return {
        "to pinned": best(lambda: device.get(out=pinned)),
        "to ordinary": best(lambda: device.get(out=plain)),
        "to new ordinary": best(device.get),
        "from pinned": best(
            lambda: (device.set(pinned), cuda.synchronize("cuda"))
        ),  # CuPy waits for ordinary memory alone
        "from ordinary": best(lambda: (device.set(plain), cuda.synchronize("cuda"))),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    machine, results = describe_machine(), []
    text = ["# One field of an array on a GPU, read on the host every tenth step", ""]
    text += [
        f"{STEPS} steps, positions (12 of 28 bytes) read {STEPS // EVERY} times; milliseconds, "
        f"medians of {ROUNDS} loops in turns.",
        "",
    ]
    text += ["| bodies | layout | " + " | ".join(WAYS) + " |", "|---:|---|" + "---:|" * len(WAYS)]
    for count in COUNTS:
        for layout in (lw.SoA(), lw.AoS(), lw.SoAoAS()):
            found = loops(count, layout)
            print(count, layout, found, flush=True)
            results.append({"bodies": count, "layout": str(layout), "loops": found})
            text.append(
                f"| {count:,} | {layout} | "
                + " | ".join(f"{1e3 * found[way]:.2f}" for way in WAYS)
                + " |"
            )
    text += [
        "",
        "One copy of the positions between both sides, GB/s; the host's side is SoA and pinned.",
        "",
    ]
    text += [
        "| bodies | layout | to host | to device | host's side made, ms |",
        "|---:|---|---:|---:|---:|",
    ]
    for count in COPIED:
        for layout in (lw.SoA(), lw.AoS(), lw.SoAoAS()):
            found = copies(count, layout)
            print(count, layout, found, flush=True)
            results.append({"bodies": count, "layout": str(layout), "copies": found})
            made = found["host's side made"]
            rates = " | ".join(
                f"{12 * count / found[way] / 1e9:.1f}" for way in ("to host", "to device")
            )
            text.append(f"| {count:,} | {layout} | {rates} | {1e3 * made:.1f} |")
        limits = bound(12 * count)
        results.append({"bodies": count, "bound": limits})
        shown = ", ".join(f"{name} {12 * count / s / 1e9:.1f}" for name, s in limits.items())
        text += [f"| {count:,} | contiguous bytes | {shown} | | |"]
    text += ["", *(f"- {n}: {v}" for n, v in machine.items()), ""]
    path = Path("bench/results/two_sides.md")
    path.write_text("\n".join(text), encoding="utf-8")
    path.with_suffix(".json").write_text(
        json.dumps({"results": results, "machine": machine}, indent=1) + "\n", encoding="utf-8"
    )
    print("\n".join(text))


if __name__ == "__main__":
    main()
