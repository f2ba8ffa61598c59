"""Boxes in blocks that processes share: `python blocks_program.py SEEDS` in each of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import lanewise as lw
from tests.mesh.flows_program import COUPLED, digest, simulated
from tests.mesh.test_blocks import BOXES, blocked
from tests.mesh.test_lattices import EDGES, coupled, follow, heated


def bits(device: Any, seeds: list[int], folder: Path) -> dict[str, str]:
    """What everything leaves, by what it was. The first of several processes has all of it."""
    found = {f"case {seed}": digest(follow(blocked(seed), device)) for seed in seeds}
    found["stencil"] = digest(heated(device, EDGES[3], True, BOXES[0]))
    found["coupled"] = digest(coupled(device, *COUPLED, BOXES[0]))
    found["channel"] = digest(simulated("channel", device, folder))
    found["file"] = hashlib.sha256((folder / "channel.h5").read_bytes()).hexdigest()
    return found


def main(*seeds: str) -> None:
    rank = int(os.environ.get("PMI_RANK", "0"))
    mesh = lw.Mesh.over_ranks("cpu", parts=2 * (rank + 1))
    folders = mesh.transport.agree(tempfile.mkdtemp() if mesh.rank == 0 else "")
    found = bits(mesh, list(map(int, seeds)), Path(folders[0]))
    if mesh.rank == 0:
        print(json.dumps({"mesh": str(mesh), "bits": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
