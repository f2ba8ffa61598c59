"""How fast are generated lattice Boltzmann kernels on this CPU, beside lbmpy and beside what memory
gives?

`LBMPY_PYTHON=/path/to/python python -m bench.cpu_lbm.compare` writes
bench/results/cpu_lbm.{md,json}. That Python has lbmpy 2 and a C compiler in its path. Versions of
one box are interleaved in one run, with the same precision, threads and collision (BGK,
compressible, deviations from the weights); that both compute the same is checked before anything is
timed. "alone": the kernel over the inside, without walls, in both programs. "walls": a whole step
between walls at rest, lbmpy with its own boundary handling.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import lanewise as lw
from bench.cpu_lbm import bandwidth
from bench.cpu_lbm.flows import FORMS, SETTINGS, Box, version
from bench.cpu_lbm.peer import Peer, check
from bench.harness import Measurement, describe_machine, interleave, write_results

BOXES = (
    Box(lw.D3Q19, 128, "f32"),
    Box(lw.D3Q19, 128, "f64"),
    Box(lw.D2Q9, 1536, "f32"),
    Box(lw.D2Q9, 1536, "f64"),
)
THREADS = (1, 2)
STEPS = 4
ROUNDS = 9

Versions = dict[str, Callable[[], None]]


def bounds(box: Box) -> tuple[Versions, dict[str, float]]:
    """Passes over memory, and the part of a box's steps that each stands for."""
    versions: Versions = {}
    shares: dict[str, float] = {}
    nbytes = box.sites * box.bytes_per_site // 2
    for threads in THREADS:
        for name, make in (
            ("read and write in place", bandwidth.in_place),
            ("copy", bandwidth.copy),
        ):
            title = f"{box}, memory: {name}, {threads} thread(s)"
            versions[title], share = make(nbytes, threads)
            shares[title] = share / STEPS
    return versions, shares


def peers(peer: Peer | None, box: Box) -> Versions:
    """The kernels of lbmpy, checked against lanewise's."""
    if peer is None:
        return {}
    versions: Versions = {}
    for setting, form in product(SETTINGS, FORMS):
        check(peer, box, form, walls=setting == "walls")
        for threads, streaming in product(THREADS, (False, True) if form == "pull" else (False,)):
            stores = ", streaming stores" if streaming else ""
            name = f"{box}, {setting}, {form}{stores}, lbmpy, {threads} thread(s)"
            peer.make(
                name, box, form, threads, walls=setting == "walls", streaming_stores=streaming
            )
            versions[name] = lambda name=name: (peer.ask(run=name, steps=STEPS), None)[1]
    return versions


def measure(peer: Peer | None, box: Box) -> list[Measurement]:
    """All versions of one box, interleaved."""
    versions, shares = bounds(box)
    versions |= peers(peer, box)
    for setting, form, threads in product(SETTINGS, FORMS, THREADS):
        name = f"{box}, {setting}, {form}, lanewise, {threads} thread(s)"
        versions[name] = version(box, form, setting, threads, STEPS)
    times = interleave(versions, ROUNDS)
    if peer is not None:
        for name in versions:
            if ", lbmpy," in name:
                peer.ask(drop=name)
    work = box.sites * STEPS
    rows = [
        Measurement(n, seconds, work * shares.get(n, 1.0), "sites") for n, seconds in times.items()
    ]
    best = {
        t: max(r.rate for r in rows if "memory" in r.name and f"{t} thread" in r.name)
        for t in THREADS
    }
    return [
        Measurement(
            r.name,
            r.seconds,
            r.work,
            r.unit,
            next(best[t] for t in THREADS if f"{t} thread" in r.name),
        )
        for r in rows
    ]


def main() -> None:
    python = os.environ.get("LBMPY_PYTHON")
    peer = Peer(python) if python else None
    machine = describe_machine()
    if peer is None:
        print("LBMPY_PYTHON names no Python that has lbmpy: measured without it")
        machine["lbmpy"] = "not measured"
    else:
        machine["lbmpy"] = peer.make("version", Box(lw.D2Q9, 16, "f32"), "pull", 1)["version"]
    rows: list[Measurement] = []
    load = [f"{os.getloadavg()[0]:.1f}"]
    for box in BOXES:  # lbmpy lists the links at walls in Python, which takes long in large boxes
        print(f"measuring {box}", flush=True)
        rows += measure(peer, box)
        load.append(f"{os.getloadavg()[0]:.1f}")
    if peer is not None:
        peer.close()
    machine["load average before and after each box"] = ", ".join(load)
    title = (
        "Lattice Boltzmann on a CPU: BGK, kernels alone and whole steps between walls; the bound "
        "is the best pass over memory"
    )
    print(write_results(Path("bench/results/cpu_lbm.md"), title, rows, machine))


if __name__ == "__main__":
    main()
