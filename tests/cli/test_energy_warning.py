"""A run whose energy error is too large says so, on standard error and in its JSON; it is complete all the same, so it
exits with 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lanewise.sims.gravity.diagnostics import Diagnostics, energy_warning
from tests.cli.command import Command

PYTHAGOREAN = (
    "gravity",
    "run",
    "--ic",
    "pythagorean",
    "--softening",
    0,
    "--dt",
    0.004,
    "--integrator",
    "leapfrog",
    "--precision",
    "f64",
    "--device",
    "cpu",
    "--json",
)


def measured(kinetic: float, potential: float, step: int = 0) -> Diagnostics:
    return Diagnostics(step, step * 0.1, kinetic, potential, np.zeros(3), np.zeros(3), 0.0)


def test_close_encounters_that_are_not_resolved_are_said(lanewise: Command) -> None:
    outcome = lanewise(*PYTHAGOREAN, "--steps", 5000)
    summary = outcome.last_json
    assert outcome.code == 0
    assert outcome.err == f"warning: {summary['warning']}\n"
    assert summary["warning"].startswith("the energy error at step ")
    assert summary["warning"].endswith(
        " of |E0|, above 0.001; these orbits are not to be trusted: a smaller dt (now 0.004) or more softening (now 0) resolves close "
        "encounters, or integrator yoshida4 for smooth orbits"
    )
    assert summary["energy_error"] >= abs(summary["energy_drift"]) > 1e-3


def test_the_warning_is_about_the_whole_history_of_a_resumed_run(lanewise: Command) -> None:
    first = lanewise(*PYTHAGOREAN, "--steps", 5000, "--out", "a.h5")
    second = lanewise("gravity", "run", "--resume", "a.h5", "--steps", 1, "--json")
    assert second.last_json["energy_error"] >= first.last_json["energy_error"]
    assert "warning: the energy error at step " in second.err
    assert Path("a.h5").exists()


def test_a_run_that_keeps_its_energy_says_nothing(lanewise: Command) -> None:
    outcome = lanewise(
        "gravity", "run", "--ic", "figure-eight", "--steps", 20, "--precision", "f64", "--device", "cpu", "--json"
    )
    assert (outcome.code, outcome.err, outcome.last_json["warning"]) == (0, "", None)
    assert outcome.last_json["energy_error"] < 1e-3


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([(1.0, -2.0), (1.0, -2.0009)], ""),
        ([(1.0, -2.0), (1.0, -2.0011)], "is 0.0011 of |E0|, above 0.001;"),
        ([(1.0, -2.0), (1.5, -2.0), (1.0, -2.0)], "at step 1 (t = 0.1) is 0.5 of |E0|"),  # it came back, the orbits did not
        ([(1.0, -1.0), (1.0, -1.00019)], ""),  # parabolic: E0 is 0, and K + |W| is 2
        ([(1.0, -1.0), (1.0, -1.0003)], "is 0.0015 of (K0 + |W0|) / 10, as |E0| is small, above 0.001;"),
        ([(0.0, 0.0), (0.0, 0.0)], ""),  # a single body at rest
        ([(0.0, 0.0), (1.0, 0.0)], "is 1, after 0 at the start:"),
        ([(1.0, -2.0), (np.nan, -2.0)], "the energy at step 1 (t = 0.1) is nan, after -1 at the start:"),
        ([(1.0, -2.0), (np.inf, -2.0)], "the energy at step 1 (t = 0.1) is inf, after -1 at the start:"),
        ([(1.0, -2.0), (1.0, -np.inf), (1.0, -2.0)], "is -inf, after -1 at the start:"),
    ],
)  # fmt: skip
def test_what_energies_are_measured_against(history: list[tuple[float, float]], said: str) -> None:
    found = energy_warning(
        [measured(k, w, step) for step, (k, w) in enumerate(history)], dt=0.1, softening=0.0, integrator="yoshida4"
    )
    assert said in found
    assert bool(found) == bool(said)
    assert "yoshida4" not in found
