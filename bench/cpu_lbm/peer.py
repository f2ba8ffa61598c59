"""lbmpy as a version to time: its kernels run in a Python of its own (it is no dependency of
lanewise), asked through a pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.cpu_lbm.flows import Box, random_populations, steps

SERVER = Path(__file__).with_name("lbmpy_server.py")
TOLERANCE = {"f32": 1e-8, "f64": 2e-17}  # of populations of some 1e-3


class Peer:
    """A running `lbmpy_server.py`.

    Raises:
        RuntimeError: it ended, and what it wrote to its error stream stands above.
    """

    def __init__(self, python: str) -> None:
        # its idle threads shall not slow others down
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [python, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Send an order and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"lbmpy's process ended at {order}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def make(
        self, name: str, box: Box, form: str, threads: int, edge: int | None = None, **more: bool
    ) -> dict[str, Any]:
        """Compile a kernel for the inside of a box and one layer of ghosts around it; `more`:
        walls, streaming_stores.
        """
        return self.ask(
            make=name,
            lattice=box.lattice.name,
            edge=edge or box.edge,
            precision=box.precision,
            form=form,
            threads=threads,
            **more,
        )

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def check(peer: Peer, box: Box, form: str, *, walls: bool) -> float:
    """The largest difference of a population between lanewise and lbmpy after two steps.

    Between walls everywhere; without them away from the faces.

    Raises:
        ValueError: it is more than rounding.
    """
    small = Box(box.lattice, 20, box.precision)
    given = random_populations(small)
    made = peer.make("check", small, form, 1, edge=small.edge - (0 if walls else 2), walls=walls)
    order = [small.lattice.velocities.index(tuple(v)) for v in made["velocities"]]
    with tempfile.TemporaryDirectory(prefix="cpu-lbm-") as folder:
        file = str(Path(folder) / "populations.npy")
        np.save(file, given[order])
        peer.ask(check="check", file=file, steps=2)
        found = np.load(file)
    peer.ask(drop="check")
    inside = (slice(None), *(slice(None) if walls else slice(5, -5),) * small.lattice.dimension)
    wanted = steps(small, form, given, 2, walls=walls)[order]
    difference = float(np.abs(found[inside] - wanted[inside]).max())
    if not difference < TOLERANCE[box.precision]:
        raise ValueError(
            f"lbmpy and lanewise differ by {difference:.2e} for {box}, {form}, {walls=}"
        )
    return difference
