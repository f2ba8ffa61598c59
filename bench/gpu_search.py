"""What do the size of the world and crowds do to a neighbour search on this GPU, and how much of it
is the structure?

`python -m bench.gpu_search` writes bench/results/gpu_search.{md,json}, or into the folder that the
variable OUT names. Targets are steered by the 7 nearest within sqrt(18), as in the thesis, by a
static grid and by a dynamic grid along a curve, and both have to find the same, to the bit, before
they are timed. Times are those of events around graphs: the structure, the sorted copy of what is
read, the search, and all of them. Agents lie in memory as a flock keeps them, in the order of the
curve, or anywhere.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from bench.harness import describe_machine
from lanewise.launch.compiled import Call
from lanewise.patterns.search import Search
from lanewise.patterns.search.searched_launch import SearchedLaunch, structure_of
from lanewise.runtime import cuda, cuda_graphs
from lanewise.runtime.memory import to_host
from lanewise.sims.boids.parameters import make_parameters, pair_values
from lanewise.sims.boids.rules import OPEN, Boid, make_rules

K, RADIUS = 7, 18**0.5
SEARCHES: dict[str, Search] = {
    "static grid": lw.StaticGrid(radius=RADIUS, k=K),
    "along a curve": lw.DynamicGrid(radius=RADIUS, k=K),
}
REPEATED = 1 << 23  # agents in one graph
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """Microseconds of one search over one cloud. even: how many times those of the even cloud the
    whole takes.
    """

    cloud: str
    agents: int
    memory: str
    search: str
    whole: float
    build: float
    copy: float
    walk: float
    idle: float
    even: float


def ball(count: int, rng: np.random.Generator, radius: float) -> NDArray[np.float32]:
    """Points evenly in a ball."""
    x = rng.standard_normal((count, 3))
    return (
        x * (radius * rng.random(count) ** (1 / 3) / np.linalg.norm(x, axis=1))[:, None]
    ).astype(np.float32)


def clouds(count: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The thesis's density; the same with 8 agents far away; four times the radius; all in a
    hundredth of the volume.
    """
    rng, radius = np.random.default_rng(1), 200.0 * (count / 2**17) ** (1 / 3)
    even = ball(count, rng, radius)
    yield "evenly", even
    far = even.copy()
    far[:: count // 8] *= (
        np.float32(4 * radius) / np.linalg.norm(far[:: count // 8], axis=1)[:, None]
    )
    yield "8 agents 4 times as far", far
    yield "in 4 times the radius", even * np.float32(4)
    yield "in 1 % of the volume", even * np.float32(0.01 ** (1 / 3))
    places = ball(64, rng, 0.95 * radius)[rng.integers(0, 64, count)]
    yield (
        "64 crowds in 1 % of the volume",
        places + ball(count, rng, radius * (0.01 / 64) ** (1 / 3)),
    )


def microseconds(work: Callable[[], Any], count: int) -> float:
    """Of one repetition, by events around a graph of many."""
    repeated = max(4, min(32, REPEATED // count))
    graph, module, found = (
        cuda_graphs.Graph("cuda", lambda: run_all([work] * repeated)),
        cuda.cupy(),
        [],
    )
    graph.launch()
    cuda_graphs.wait_for_graphs("cuda")
    for _ in range(ROUNDS):
        with cuda_graphs.graph_stream("cuda") as stream:
            begin, end = module.cuda.Event(), module.cuda.Event()
            begin.record(stream)
            graph.launch()
            end.record(stream)
            end.synchronize()
        found.append(1e3 * module.cuda.get_elapsed_time(begin, end) / repeated)
    return statistics.median(found)


def run_all(parts: Sequence[Callable[[], object]]) -> None:
    for part in parts:
        part()


def bound_call(x: NDArray[np.float32], search: Search) -> Call:
    rng = np.random.default_rng(2)
    forward = rng.standard_normal(x.shape)
    forward /= np.linalg.norm(forward, axis=1)[:, None]
    boids = Boid.array(position=x, forward=forward, speed=1.0, device="cuda")  # type: ignore[attr-defined]
    steer = make_rules("f32", OPEN, unit_side=False).steer.using(search)
    return steer.bind(boids, boids, **pair_values(make_parameters("thesis", {})))


def measure(
    cloud: str, memory: str, x: NDArray[np.float32], even: dict[str, float]
) -> Iterator[Row]:
    """Both searches, checked against each other."""
    calls = {name: bound_call(x, search) for name, search in SEARCHES.items()}
    results = [[to_host(r).copy() for r in call()] for call in calls.values()]
    if not all(np.array_equal(a, b) for a, b in zip(*results, strict=True)):
        raise SystemExit(f"{cloud}: the searches find different neighbours")
    for name, call in calls.items():
        launch: Any = call.launch
        assert isinstance(launch, SearchedLaunch)
        part, builds = launch.launches.part, launch.builds  # the last of these copies
        works = (launch, part(0, builds - 1), part(builds - 1, builds), part(builds))
        whole, built, copied, walked = (microseconds(w, len(x)) for w in works)
        found = structure_of(call).statistics()
        idle = 100 * found.idle_threads / (found.idle_threads + len(x))
        first = even.setdefault(f"{name} {memory}", whole)
        yield Row(cloud, len(x), memory, name, whole, built, copied, walked, idle, whole / first)


def in_order(x: NDArray[np.float32]) -> NDArray[np.float32]:
    call = bound_call(x, SEARCHES["along a curve"])
    call()
    return x[to_host(structure_of(call).order)]


def write(rows: list[Row], path: Path) -> None:
    machine = describe_machine()
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        "# The 7 nearest within sqrt(18) on one GPU: worlds and crowds",
        "",
        "Microseconds; *of even*: times what the even cloud takes, wanted of the curve: at most 2.",
        "",
        "| agents | cloud | in memory | search | whole | build | copy | walk | idle threads, % | "
        "of even |",
        "|" + "---|" * 4 + "---:|" * 6,
        *(
            f"| {r.agents:,} | {r.cloud} | {r.memory} | {r.search} | {r.whole:.1f} | {r.build:.1f} "
            f"| {r.copy:.1f} | {r.walk:.1f} | "
            f"{r.idle:.3f} | {r.even:.2f} |"
            for r in rows
        ),
        "",
        "Machine:",
        "",
        *(f"- {n}: {v}" for n, v in machine.items()),
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    data = {"machine": machine, "rows": [asdict(r) for r in rows]}
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def main(power: int = 20) -> None:
    path = Path(os.environ.get("OUT", "bench/results")) / "gpu_search.md"
    rows: list[Row] = []
    even: dict[str, float] = {}
    for name, x in clouds(1 << power):
        for memory, positions in (("in order", in_order(x)), ("anywhere", x)):
            rows += measure(name, memory, positions, even)
            write(rows, path)
            print(
                *(f"{r.search}: {r.whole:.1f} us ({r.even:.2f})" for r in rows[-2:]),
                name,
                memory,
                flush=True,
            )
            cuda.cupy().get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
