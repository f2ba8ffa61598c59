"""Steps on two GPUs beside one: `python -m bench.mesh [SECTION ...]`, within 300 s.

Versions take turns in one process. Gravity: direct sums of 2^18 and 2^20 bodies. Tree: the same by
lw.Tree of order 3 and theta 0.6, of 2^20 and 2^22 bodies. Lattice: D3Q19 in
float32, pull, a box for each GPU (weak) and one box for both (strong). Tree-weak: 1.6e7 bodies for
each GPU, 32 steps at a time, in which the order is made once. Flock: the thesis's rules,
as many agents for each GPU (weak). What is left after the same steps has the same bits wherever the
documentation says so, or the run ends. Writes bench/results/mesh_cuda.md, or into the folder that
the variable OUT names. `--device cpu` tries all of it on virtual parts with small sizes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import describe_machine
from lanewise.sims.boids import Flock
from lanewise.sims.lbm.operators import find_operator

ROUNDS, SECONDS = 5, 0.6  # of a version; a round of it
WALL, LID = 2, 3


class Body(lw.Record):
    """A body, and how it moves."""

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


BY_TREE = gravity.using(search=lw.Tree(theta=0.6, order=3))
ORDER = 32  # steps from one order of a tree to the next

# how a version is named, and where its arrays lie
GPUS = {
    "one GPU": "cuda",
    "mesh of one part": "cuda:0*1",
    "two parts on one GPU": "cuda:0*2",
    "two GPUs": "cuda:0,1",
}
CPUS = {
    "one GPU": "cpu",
    "mesh of one part": "cpu*1",
    "two parts on one GPU": "cpu*2",
    "two GPUs": "cpu*2",
}
Advance = Callable[[int], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", nargs="*", default=[], help=", ".join(SECTIONS))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    given = parser.parse_args()
    small = given.device == "cpu"
    places = CPUS if small else GPUS
    machine = (f"- {name}: {text}" for name, text in describe_machine().items())
    lines = ["# Steps on two GPUs and on one", "", *machine, ""]
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "results")
    began = time.perf_counter()
    for name in given.sections or SECTIONS:
        lines.append("")
        for line in SECTIONS[name](places, small):
            print(
                line,
                f"[{time.perf_counter() - began:.0f} s]" if line.startswith("| ") else "",
                flush=True,
            )
            lines.append(line)
            if not small:  # what is there is kept, if the time ends
                (out / "mesh_cuda.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


# ------------------------------------------------------------ gravity


def gravities(places: dict[str, str], small: bool) -> Iterable[str]:
    """Milliseconds a step of direct sums."""
    yield f"| gravity, bodies | {' | '.join(places)} | two GPUs: of twice a part | of twice one GPU |"
    yield f"|---:|{'---:|' * (len(places) + 2)}"
    for count in (1 << 10, 1 << 11) if small else (1 << 18, 1 << 20):
        yield gravity_row(places, count)


def trees(places: dict[str, str], small: bool) -> Iterable[str]:
    """Milliseconds a step over a tree, whose order is made in every 32nd step."""
    yield f"| tree, bodies | {' | '.join(places)} | two GPUs: of twice a part | of twice one GPU |"
    yield f"|---:|{'---:|' * (len(places) + 2)}"
    for count in (1 << 11, 1 << 12) if small else (1 << 20, 1 << 22):
        yield gravity_row(places, count, BY_TREE)


def weak_trees(places: dict[str, str], small: bool) -> Iterable[str]:
    """Milliseconds a step over a tree, of as many bodies for each GPU."""
    yield "| tree, bodies on each GPU | one GPU | two GPUs, twice as many | weak | two GPUs, as many | strong |"
    yield "|---:|---:|---:|---:|---:|---:|"
    count = 1 << 11 if small else 16_000_000
    ms: list[float] = []
    left: list[Any] = []
    for bodies, name in ((count, "one GPU"), (2 * count, "two GPUs"), (count, "two GPUs")):
        loop, there = gravity_steps(places[name], bodies, BY_TREE)
        loop.run(ORDER)
        if bodies == count:
            left.append(there.numpy()["position"])
        ms.append(min(seconds(loop.run, ORDER) for _ in range(2)) / ORDER * 1e3)
        print(f"{bodies:,} bodies, {name}: {ms[-1]:.2f} ms", flush=True)
        del loop, there
    check(f"tree of {count:,} bodies", np.allclose(*left, atol=1e-5))
    alone, both, strong = ms
    yield (
        f"| {count:,} | {alone:.2f} | {both:.2f} | {alone / both:.1%} | {strong:.2f} | {alone / strong / 2:.1%} |"
    )


def gravity_steps(place: str, count: int, kernel: lw.Pairwise) -> tuple[lw.Steps, Any]:
    """A loop of steps, and the bodies that it moves."""
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3), np.float32)
    mass = np.full(count, 1 / count, np.float32)
    bodies = Body.array(position=position, mass=mass, device=place)
    force = kernel.bind(bodies, bodies, softening2=1e-4)
    return lw.steps([force, kick_drift.bind(bodies, force.results[0], dt=1e-3)]), bodies


def gravity_row(places: dict[str, str], count: int, kernel: lw.Pairwise = gravity) -> str:
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3)).astype(np.float32)
    mass = np.full(count, 1 / count, np.float32)
    loops: dict[str, Advance] = {}
    left: dict[str, Any] = {}
    for name, place in places.items():
        bodies = Body.array(position=position, mass=mass, device=place)
        force = kernel.bind(bodies, bodies, softening2=1e-4)
        loop = lw.steps([force, kick_drift.bind(bodies, force.results[0], dt=1e-3)])
        loop.run(2)
        loops[name], left[name] = loop.run, bodies.numpy()["position"].copy()
    one, *meshes = places
    for name in meshes:
        check(f"{count:,} bodies, {name}", np.array_equal(left[name], left[meshes[0]]))
    check(f"{count:,} bodies, one", np.allclose(left[one], left[meshes[0]], atol=1e-5))
    ms = milliseconds(loops)
    shares = (ms[meshes[0]] / ms["two GPUs"] / 2, ms[one] / ms["two GPUs"] / 2)
    return f"| {count:,} | {' | '.join(f'{ms[n]:.2f}' for n in places)} | {' | '.join(f'{s:.1%}' for s in shares)} |"


# ------------------------------------------------------------ lattices


def lattices(places: dict[str, str], small: bool) -> Iterable[str]:
    """Millions of sites a second: a box on one GPU, twice that box on two, and the same box on two."""
    yield "| D3Q19, stored in | box (z, y, x) | one GPU | twice the box on two | weak | the box on two | strong |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for storage in ("f32",) if small else ("f32", "f16"):
        yield lattice_row(places, (32, 16, 16) if small else (512, 512, 512), storage)


def lattice_row(places: dict[str, str], shape: tuple[int, int, int], storage: str) -> str:
    flow = lw.sitewise(lw.D3Q19)(find_operator("bgk").make(lw.D3Q19, "f32"))
    flow.wall(WALL, "wall")
    flow.wall(LID, "lid", velocity="lid_velocity")
    values: dict[str, Any] = {"omega": 1.7, "lid_velocity": (0.05, 0.0, 0.0)}
    edges: dict[str, Any] = {"x": "wall", "y": ("wall", "lid"), "z": "wall"}

    def sites(box: tuple[int, ...], place: str) -> Any:
        return flow.sites(box, edges=edges, storage=storage, streaming="pull", device=place)

    one, two = places["one GPU"], places["two GPUs"]
    tiny = [sites((33, 16, 32), place) for place in (one, two)]
    for s in tiny:
        flow.run(s, 20, **values)
    check(
        f"D3Q19 in {storage}",
        np.array_equal(*(flow.populations(s, lid_velocity=values["lid_velocity"]) for s in tiny)),
    )
    half = (shape[0] // 2, *shape[1:])
    rates: list[float] = []
    for box, place in ((half, one), (shape, two), (shape, one)):  # one after the other: memory
        stepped = sites(box, place)
        flow.run(stepped, 4, **values)
        seconds = milliseconds({"": partial(flow.run, stepped, **values)})[""] / 1e3
        rates.append(np.prod(box) / seconds / 1e6)
        del stepped
    alone, both, whole = rates
    text = "x".join(map(str, shape))
    return (
        f"| {storage} | half of {text}, {text} | {alone:,.0f} and {whole:,.0f} | {both:,.0f} | {both / alone / 2:.1%} | "
        f"{both:,.0f} | {both / whole / 2:.1%} |"
    )


# ------------------------------------------------------------ flocks


def flocks(places: dict[str, str], small: bool) -> Iterable[str]:
    """Millions of agents a second of the thesis's rules."""
    yield "| flock, agents on each GPU | one GPU | two GPUs, twice as many | weak | two GPUs, as many | strong |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for count in (1 << 10,) if small else (1 << 20, 1 << 22):
        rates: list[float] = []
        for agents, place in ((count, "one GPU"), (2 * count, "two GPUs"), (count, "two GPUs")):
            world = 200.0 * (agents / 2**17) ** (1 / 3)
            flock = Flock(
                agents=agents,
                world=world,
                start="world",
                semantics="thesis",
                seed=1,
                device=places[place],
            )
            flock.advance(4)
            rates.append(agents / milliseconds({"": flock.advance})[""] / 1e3)
            del flock
        alone, both, strong = rates
        yield (
            f"| {count:,} | {alone:.0f} | {both:.0f} | {both / alone / 2:.1%} | {strong:.0f} | {strong / alone / 2:.1%} |"
        )


# ------------------------------------------------------------ time


def milliseconds(versions: dict[str, Advance]) -> dict[str, float]:
    """Of a step of each, which take turns: the middle of the rounds."""
    steps: dict[str, int] = {}
    for name, advance in versions.items():
        once = min(seconds(advance, 2) / 2 for _ in range(2))
        steps[name] = max(2, min(2000, int(SECONDS / once)))
    times: dict[str, list[float]] = {name: [] for name in versions}
    for _ in range(ROUNDS):
        for name, advance in versions.items():
            times[name].append(seconds(advance, steps[name]) / steps[name])
    return {name: statistics.median(taken) * 1e3 for name, taken in times.items()}


def seconds(advance: Advance, steps: int) -> float:
    settle()
    begin = time.perf_counter()
    advance(steps)
    settle()
    return time.perf_counter() - begin


def settle() -> None:
    """Wait for all GPUs."""
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception:  # there is none
        return
    for number in range(count):
        with cupy.cuda.Device(number):
            cupy.cuda.get_current_stream().synchronize()
            cupy.cuda.Device(number).synchronize()


def check(what: str, holds: bool) -> None:
    if not holds:
        raise SystemExit(f"{what}: what is left differs")


SECTIONS: dict[str, Callable[[dict[str, str], bool], Iterable[str]]] = {
    "gravity": gravities, "tree": trees, "tree-weak": weak_trees, "lattice": lattices,
    "flock": flocks,
}  # fmt: skip

if __name__ == "__main__":
    main()
