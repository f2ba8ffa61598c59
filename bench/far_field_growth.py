"""How does the time of a body grow with the number of bodies over lw.Tree?

`python -m bench.far_field_growth [--rounds 2]` writes bench/results/far_field_growth_cpu.{md,json}:
seconds of one CPU thread (process time, which other programs hardly change) for whole calls on
Plummer spheres and uniform boxes of 1e4, 1e5 and 1e6 bodies, with what a body meets.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.far_field_bound import met
from bench.harness import describe_machine
from lanewise.sims.gravity.initial.plummer import plummer_sphere
from lanewise.sims.gravity.physics import Body, make_physics

COUNTS = (10_000, 100_000, 1_000_000)
TREES = (lw.Tree(theta=0.7, order=2), lw.Tree(theta=0.8, order=4, method="dual"))
PATH = Path("bench/results/far_field_growth_cpu.md")


def cloud(kind: str, count: int) -> Any:
    """Positions (count, 3): 0.985 of the mass of a Plummer sphere, or a unit box."""
    rng = np.random.default_rng(1)
    return rng.random((count, 3)) if kind == "uniform" else plummer_sphere(count, rng, 0.985)[0]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2)
    rounds = options.parse_args().rounds
    if os.environ.get("LANEWISE_THREADS") != "1":
        raise SystemExit("set LANEWISE_THREADS=1: the time of one thread is measured")
    force: Any = make_physics(Body, softened=True).acceleration
    rows: list[dict[str, Any]] = []
    for kind in ("plummer", "uniform"):
        for tree in TREES:
            for count in COUNTS:
                bodies: Any = Body.array(  # type: ignore[attr-defined]
                    position=cloud(kind, count), mass=np.full(count, 1 / count)
                )
                call = force.using(search=tree).bind(bodies, bodies, softening2=1e-6)
                call()
                seconds: list[float] = []
                for _ in range(rounds):
                    start = time.process_time()
                    call()
                    seconds.append(time.process_time() - start)
                found = met(call, tree, np.asarray(bodies.position))
                row = {"places": kind, "tree": tree.describe(), "bodies": count}
                rows.append({**row, "seconds": seconds, "met": str(found)})
                print(rows[-1], flush=True)
    machine = describe_machine()
    lines = ["# Time of a body over lw.Tree, one CPU thread", ""]
    lines += ["| places | tree | bodies | us a body | meets |", "|---|---|---:|---:|---|"]
    for r in rows:
        each = min(r["seconds"]) / r["bodies"] * 1e6
        lines.append(f"| {r['places']} | {r['tree']} | {r['bodies']:,} | {each:.2f} | {r['met']} |")
    lines += ["", "Machine:", "", *(f"- {name}: {value}" for name, value in machine.items())]
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"machine": machine, "rows": rows}
    PATH.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
