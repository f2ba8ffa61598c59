"""What does a call cost the host, beside the launch that it is for?

`python -m bench.call_cost [--device cuda]` writes bench/results/call_cost_{cpu,cuda}.{md,json}.
Arrays are small, so that a call takes hardly longer than the host needs for it. Of every kernel the
whole call and the bound one are measured in turns, after their results were held against each
other; beside them what does the same with other packages. On a GPU only every hundredth call waits
for the device, whose queue is longer than that.

Of some kernels calls of several sizes are made in turn, so that no call is like the one before.

Of a kernel over a grid, which works for long on a CPU, differences of large numbers scatter; a row
over few elements stands beside it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.call_peers import peers, values
from bench.harness import describe_machine
from lanewise.runtime import cuda
from lanewise.runtime.memory import to_host

COUNT = 256  # elements: on a CPU one thread takes them, on a GPU one block
SITES = (16, 16)
IN_TURN = (8, 30)  # sizes, one after the other: a call is never like the one before
FEW = 16  # elements whose work is next to nothing
CALLS, ROUNDS = 100, 41
TARGETS = {"cpu": 10.0, "cuda": 15.0}  # microseconds beyond the bound launch


@lw.record
class Body:
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


@lw.elementwise
def energy(body: Body) -> lw.f32:
    return 0.5 * body.mass * lw.dot(body.velocity, body.velocity)


@lw.elementwise
def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
    return a * x + y


@lw.pairwise(search=lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))))
def crowd(target: Body, source: Body) -> lw.f32:
    return source.mass


@lw.record
class Sample:
    """A measurement."""

    time: lw.f32
    weight: lw.f32


@lw.segmentwise
def weighed(body: Body, sample: Sample, row: lw.Row[lw.f32], scale: lw.f32) -> lw.f32:
    return scale * body.mass * sample.weight * row[0]


@lw.segmentwise
def total(sample: Sample) -> lw.f32:
    return sample.weight


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32):
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * total - f[q])


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


class InTurn:
    """Calls one after the other, and from the first again."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self._calls = itertools.cycle(calls)

    def __call__(self) -> Any:
        return next(self._calls)()


@dataclass(frozen=True)
class Row:
    """A whole call, and the bound launch that it is for, or None for what other packages do."""

    name: str
    whole: Callable[[], Any]
    bound: Callable[[], Any] | None


def rows(device: str) -> list[Row]:
    """What is measured, checked."""
    random = np.random.default_rng(1)
    fields = {
        "position": random.random((COUNT, 3)),
        "velocity": random.random((COUNT, 3)),
        "mass": random.random(COUNT),
    }
    bodies, moving = (Body.array(**fields, device=device) for _ in range(2))
    force = gravity(bodies, bodies, 0.01)
    x, y = (np.ascontiguousarray(bodies.numpy()["mass"] + n) for n in range(2))
    if device == "cuda":
        x, y = cuda.cupy().asarray(x), cuda.cupy().asarray(y)
    counts = np.full((COUNT // 8, 2), 4)  # a cell is one body in one list
    items = lw.ragged(
        Sample.array(time=random.random(COUNT), weight=random.random(COUNT)), counts=counts
    ).to(device)
    lists = lw.ragged(random.random(2 * COUNT).astype("f4"), counts=np.full(COUNT, 2)).to(device)
    few, sparse = (
        Body.array(**{name: a[:n] for name, a in fields.items()}, device=device) for n in (4, FEW)
    )
    sites, others = flow.sites(SITES, device=device), flow.sites(SITES, device=device)
    for s in (sites, others):
        flow.set_populations(s, random.random((9, *SITES)))
    stepper = flow.stepper(others, omega=0.5)
    plate, other_plate = (
        heat.sites(SITES, device=device, t=random.random(SITES)) for _ in range(2)
    )
    heating = heat.stepper(other_plate, rate=0.2)
    found = [
        Row(
            "pairwise",
            lambda: gravity(bodies, bodies, softening2=0.01),
            gravity.bind(bodies, bodies, 0.01),
        ),
        Row(
            "elementwise, in place",
            lambda: kick_drift(moving, force, 1e-6),
            kick_drift.bind(moving, force, 1e-6),
        ),
        Row("elementwise, result", lambda: energy(bodies), energy.bind(bodies)),
        Row("elementwise, arrays", lambda: axpy(2.0, x, y), axpy.bind(2.0, x, y)),
        Row("pairwise over a grid", lambda: crowd(bodies, bodies), crowd.bind(bodies, bodies)),
        Row(
            f"pairwise over a grid, {FEW} elements",
            lambda: crowd(sparse, sparse),
            crowd.bind(sparse, sparse),
        ),
        Row(
            "segmentwise",
            lambda: weighed(few, items, lists, scale=0.5),
            weighed.bind(few, items, lists, 0.5),
        ),
        Row("segmentwise, one record", lambda: total(items), total.bind(items)),
        Row("sitewise", lambda: flow(sites, omega=0.5), lambda: stepper.run(1)),
        Row("stencil", lambda: heat(plate, rate=0.2), lambda: heating.run(1)),
    ]
    with lw.device(device):
        for row in (found[0], *found[2:8]):
            assert row.bound is not None
            for _ in range(2):
                if to_host(row.whole()).tobytes() != to_host(row.bound()).tobytes():
                    raise ValueError(f"{row.name}: the bound call gives something else")
    found += [row for sizes in IN_TURN for row in rows_in_turn(device, sizes)]
    found.append(arrays_that_come_and_go(device))
    return found + peer_rows(device, x, y, to_host(axpy.bind(2.0, x, y)()))


def rows_in_turn(device: str, sizes: int) -> list[Row]:
    """Calls of so many sizes, one after the other."""
    random = np.random.default_rng(2)
    counts = [16 + 8 * n for n in range(sizes)]
    bodies = [
        Body.array(position=random.random((n, 3)), mass=random.random(n), device=device)
        for n in counts
    ]
    forces = [gravity(b, b, 0.01) for b in bodies]
    values = [np.ascontiguousarray(b.numpy()["mass"]) for b in bodies]
    if device == "cuda":
        values = [cuda.cupy().asarray(v) for v in values]
    kinds: dict[str, tuple[list[Callable[[], Any]], list[Callable[[], Any]]]] = {
        "pairwise": (
            [partial(gravity, b, b, 0.01) for b in bodies],
            [gravity.bind(b, b, 0.01) for b in bodies],
        ),
        "elementwise, in place": (
            [partial(kick_drift, b, f, 1e-6) for b, f in zip(bodies, forces, strict=True)],
            [kick_drift.bind(b, f, 1e-6) for b, f in zip(bodies, forces, strict=True)],
        ),
        "elementwise, result": (
            [partial(energy, b) for b in bodies],
            [energy.bind(b) for b in bodies],
        ),
        "elementwise, arrays": (
            [partial(axpy, 2.0, v, v) for v in values],
            [axpy.bind(2.0, v, v) for v in values],
        ),
        "pairwise over a grid": (  # wanted: at most 60 on a CPU, 80 on a GPU
            [partial(crowd, b, b) for b in bodies],
            [crowd.bind(b, b) for b in bodies],
        ),
    }
    return [
        Row(f"{name}, {sizes} sizes in turn", InTurn(a), InTurn(b))
        for name, (a, b) in kinds.items()
    ]


def arrays_that_come_and_go(device: str) -> Row:
    """Calls over a grid on more arrays than calls are kept of: most of them are bound by none, as
    those on an array that grows or shrinks in each step.
    """
    random = np.random.default_rng(3)
    several = [
        Body.array(position=random.random((n, 3)), mass=random.random(n), device=device)
        for n in [16 + 8 * n for n in range(IN_TURN[-1])] * 10
    ]
    calls = [partial(crowd, b, b) for b in several]
    bound = [crowd.bind(b, b) for b in several]
    name = f"pairwise over a grid, {len(several)} arrays of {IN_TURN[-1]} sizes in turn"
    return Row(name, InTurn(calls), InTurn(bound))


def peer_rows(device: str, x: Any, y: Any, expected: Any) -> list[Row]:
    """`2 x + y` with other packages, results as ours."""
    calls = peers(device, x, y)
    for name, call in calls.items():
        if not np.allclose(values(call()), expected):
            raise ValueError(f"{name} computes something else")
    return [Row(name, call, None) for name, call in calls.items()]


def seconds(call: Callable[[], Any], device: str) -> float:
    """Of one of `CALLS` calls."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    taken = time.perf_counter() - begin
    if device == "cuda":
        cuda.synchronize(device)
    return taken / CALLS


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = options.parse_args().device
    with lw.device(device):
        measured = rows(device)
        times: dict[str, tuple[list[float], list[float]]] = {row.name: ([], []) for row in measured}
        gc.disable()
        for turn in range(ROUNDS):
            for row in measured[:: -1 if turn % 2 else 1]:
                times[row.name][0].append(seconds(row.whole, device))
                if row.bound is not None:
                    times[row.name][1].append(seconds(row.bound, device))
    table = [
        (name, *(1e6 * statistics.median(t) if t else None for t in both))
        for name, both in times.items()
    ]
    machine = describe_machine()
    target = TARGETS[device]
    text = [
        f"# What a call costs the host ({device})",
        "",
        f"{COUNT} elements, {SITES[0]} x {SITES[1]} sites; microseconds, medians of {ROUNDS} "
        f"rounds of {CALLS} calls, in turns.",
        "",
        f"| call | whole | bound | beyond (wanted: at most {target:g}) |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | {whole:.1f} | {f'{bound:.1f}' if bound else ''} | "
            f"{f'{whole - bound:.1f}' if bound else ''} |"
            for name, whole, bound in table
        ),
        "",
        *(f"- {n}: {v}" for n, v in machine.items()),
        "",
    ]
    path = Path(f"bench/results/call_cost_{device}.md")
    path.write_text("\n".join(text), encoding="utf-8")
    data = {"microseconds": {n: {"whole": w, "bound": b} for n, w, b in table}, "machine": machine}
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
