"""Calling the command line, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Outcome:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def last_json(self) -> dict[str, Any]:
        """The last line of output: JSON that any parser reads (Python's own NaN and Infinity are refused)."""

        def refuse(name: str) -> None:
            pytest.fail(f"{name} is not JSON")

        return json.loads(self.out.splitlines()[-1], parse_constant=refuse)


Command = Callable[..., Outcome]


def start_process(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """`lanewise ARGUMENTS` in a process of its own, to be killed or interrupted."""
    return subprocess.Popen(
        [sys.executable, "-m", "lanewise.cli.main", *(str(a) for a in arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def state(path: Path) -> dict[str, Any]:
    """The bits of a checkpoint that decide how a run goes on."""
    with h5py.File(path) as file:
        arrays = {n: np.asarray(file[f"PartType1/{n}"]) for n in ("Coordinates", "Velocities", "Masses", "ParticleIDs")}
        return {
            **{name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()},
            "time": float(file["Header"].attrs["Time"]),
            "step": int(file["lanewise"].attrs["step"]),
        }
