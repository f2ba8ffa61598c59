"""Flows, stencils and simulations that processes share: `python flows_program.py SEEDS` in each of them."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.mesh.rank_devices import of_all_ranks
from tests.mesh.test_flows import FLOWS, seen
from tests.mesh.test_lattices import EDGES, case, coupled, follow, heated

COUPLED = (("in-place", "pull"), {"y": ("dry", "wet")})


def digest(values: Iterable[Any]) -> str:
    """Of types, shapes and bytes."""
    text = b""
    for value in values:
        array = np.asarray(value)
        kept = repr(value).encode() if array.dtype.hasobject else array.tobytes()
        text += str((array.dtype, array.shape)).encode() + kept
    return hashlib.sha256(text).hexdigest()


def simulated(name: str, device: Any, folder: Path) -> list[Any]:
    """What a simulation shows, and its file, from which others go on."""
    make, walls, _ = FLOWS[name]
    flow = make(device)
    flow.run(11)
    flow.checkpoint(folder / f"{name}.h5", overwrite=True)
    again = type(flow).resume(folder / f"{name}.h5", device=device)
    again.run(5)
    looks = [value for one in (flow, again) for value in seen(one, walls).values()]
    return [*looks, flow.interpolated_links, flow.solid]


def bits(device: Any, seeds: range, folder: Path) -> dict[str, str]:
    """What everything leaves, by what it was. The first of several processes has all of it."""
    found = {f"case {seed}": digest(follow(case(seed, "cpu"), device)) for seed in seeds}
    found["stencil"] = digest(heated(device, EDGES[3], True))
    found["coupled"] = digest(coupled(device, *COUPLED))
    for name in FLOWS:
        found[name] = digest(simulated(name, device, folder))
        found[f"file of {name}"] = hashlib.sha256((folder / f"{name}.h5").read_bytes()).hexdigest()
    return found


def main(first: str, last: str) -> None:
    mesh = of_all_ranks()
    folders = mesh.transport.agree(tempfile.mkdtemp() if mesh.rank == 0 else "")
    found = bits(mesh, range(int(first), int(last)), Path(folders[0]))
    if mesh.rank == 0:
        print(json.dumps({"mesh": str(mesh), "bits": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
