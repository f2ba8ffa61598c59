"""How does the time of a body grow with the number of bodies over lw.Tree?

`python -m bench.far_field_growth [--rounds 2] [--device cpu] [--counts 1e4 1e5 1e6]` writes
bench/results/far_field_growth_DEVICE.{md,json}: whole calls on Plummer spheres and unit boxes, with
their errors against all pairs in float64 for bodies chosen at random. On a CPU it is the time of
one thread (process time, which other programs hardly change), with what a body meets.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import lanewise as lw
from bench.far_field import LIMIT, Cluster, cluster, errors_of, run_once
from bench.far_field_bound import met
from bench.harness import describe_machine, interleave, write_rows
from lanewise.sims.gravity.physics import Body, make_physics

COUNTS = (1e4, 1e5, 1e6)
COUNTS_ON_A_GPU = (1e5, 1e6, 1e7)
TREES = (lw.Tree(theta=0.7, order=2), lw.Tree(theta=0.8, order=4, method="dual"))
SOFTENING = 1e-3
HEAD = (
    "| places | tree | bodies | ns a body | 99 % error | meets |",
    "|---|---|---:|---:|---:|---|",
)


def measured(bodies: Cluster, tree: lw.Tree, device: str, rounds: int) -> dict[str, Any]:
    """Seconds and errors of whole calls; raises ValueError for forces that are wrong."""
    records: Any = Body.array(position=bodies.position, mass=bodies.mass, device=device)  # type: ignore[attr-defined]
    force: Any = make_physics(Body, softened=True).acceleration
    call = force.using(search=tree).bind(records, records, softening2=bodies.softening**2)
    errors = errors_of(run_once(call, device), bodies)
    if not errors.most < LIMIT:
        raise ValueError(f"{tree.describe()}: 99 % of the errors are below {errors.most:.1e}")
    clock = time.process_time if device == "cpu" else time.perf_counter
    timed = {"call": partial(_drop, call, device)}
    found = str(met(call, tree, bodies.position)) if device == "cpu" else ""
    return {
        "tree": tree.describe(),
        "bodies": len(bodies.mass),
        "seconds": interleave(timed, rounds, clock)["call"],
        "99 % error": errors.most,
        "met": found,
    }


def _drop(call: lw.Call, device: str) -> None:
    run_once(call, device)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--device", default="cpu")
    options.add_argument("--counts", type=float, nargs="+")
    given = options.parse_args()
    on_cpu = given.device == "cpu"
    if on_cpu and os.environ.get("LANEWISE_THREADS") != "1":
        raise SystemExit("set LANEWISE_THREADS=1: the time of one thread is measured")
    path = Path(f"bench/results/far_field_growth_{'cpu' if on_cpu else 'cuda'}.md")
    title = f"Time of a body over lw.Tree, {'one CPU thread' if on_cpu else given.device}"
    machine, rows, table = describe_machine(), list[dict[str, Any]](), [*HEAD]
    for places in ("plummer", "uniform"):
        for count in given.counts or (COUNTS if on_cpu else COUNTS_ON_A_GPU):
            bodies = cluster(int(count), SOFTENING, places=places)
            for tree in TREES:
                r = {"places": places} | measured(bodies, tree, given.device, given.rounds)
                rows.append(r)
                each = min(r["seconds"]) / r["bodies"] * 1e9
                table.append(
                    f"| {places} | {r['tree']} | {r['bodies']:,} | {each:.2f} "
                    f"| {r['99 % error']:.1e} | {r['met']} |"
                )
                print(table[-1], flush=True)
                write_rows(path, title, machine, table, rows)


if __name__ == "__main__":
    main()
