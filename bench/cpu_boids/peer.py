"""Warp as a version to time: `warp_step.py` in a Python of its own, asked through a pipe."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.sims.boids import Flock
from lanewise.sims.boids.options import DT

SERVER = Path(__file__).with_name("warp_step.py")


class Warp:
    """A running `warp_step.py`.

    Raises:
        RuntimeError: it ended, and what it wrote to its error stream stands above.
    """

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Send an order and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Warp's process ended at {order}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def take(self, flock: Flock) -> None:
        """Go on with copies of these agents."""
        state = flock.state
        fields = {
            n: getattr(state, n) for n in ("position", "forward", "up", "speed", "acceleration")
        }
        with tempfile.TemporaryDirectory(prefix="cpu-boids-") as folder:
            file = str(Path(folder) / "agents.npz")
            np.savez(file, allow_pickle=False, **fields)
            self.ask(
                load=file,
                radius=flock.settings.parameters.radius,
                world=flock.settings.world,
                dt=DT,
            )

    def agents(self) -> dict[str, Any]:
        """Where its agents are now."""
        with tempfile.TemporaryDirectory(prefix="cpu-boids-") as folder:
            file = str(Path(folder) / "agents.npz")
            self.ask(save=file)
            with np.load(file) as archive:
                return dict(archive)

    def run(self, steps: int) -> None:
        self.ask(run=steps)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
