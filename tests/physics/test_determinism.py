"""The same call gives the same bits: again, with other step counts a call, with another number of threads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lanewise.runtime.devices import cpu_threads
from tests.physics.problems import bits, simulate

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("integrator", ["euler", "leapfrog", "yoshida4"])
@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_same_call_same_bits(precision: str, integrator: str) -> None:
    first, again, stepwise = (
        simulate("plummer", 129, precision=precision, softening=0.05, integrator=integrator) for _ in range(3)
    )
    first.run(7, 0.01)
    again.run(7, 0.01)
    for _ in range(7):
        stepwise.run(1, 0.01)
    assert bits(first) == bits(again) == bits(stepwise)
    assert first.energy() == again.energy() == stepwise.energy()
    assert first.time == stepwise.time


OTHER = 1 if cpu_threads() > 1 else 3
"""Threads of another process: one where this one has several."""


def digest() -> str:
    """Bits and energies of every precision; enough bodies for several threads to have work."""
    found = hashlib.sha256()
    for precision in ("f32", "mixed", "f64"):
        simulation = simulate("plummer", 1500, precision=precision, softening=0.05)
        simulation.run(3, 0.01)
        found.update(bits(simulation) + simulation.energy().hex().encode())
    return found.hexdigest()


def test_the_number_of_threads_changes_no_bits() -> None:
    code = "from tests.physics.test_determinism import digest; print(digest())"
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "LANEWISE_THREADS": str(OTHER)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert there.stdout == digest() + "\n"
