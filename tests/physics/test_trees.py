"""A star cluster by a tree for a thousand steps: its energy is as good as by all pairs, its momentum nearly kept."""

from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions


@pytest.mark.slow
@pytest.mark.parametrize(
    "tree", [lw.Tree(accuracy=1e-3), lw.Tree(method="dual", theta=0.5, order=5)], ids=["accuracy", "pairs of groups"]
)
def test_energy_and_momentum_over_a_thousand_steps(tree: lw.Tree) -> None:
    def drifts(search: lw.Tree | None) -> tuple[float, float]:
        bodies = make_bodies(make_initial_conditions("plummer", 4096, 1))
        simulation = Simulation(bodies, softening=0.02, search=search)
        start = simulation.diagnostics()
        worst = 0.0
        for _ in range(10):
            simulation.run(100, dt=0.001)
            worst = max(worst, abs(simulation.diagnostics().energy_drift(start)))
        return worst, simulation.diagnostics().momentum_drift(start)

    energy, momentum = drifts(tree)
    pairs, _ = drifts(None)
    assert energy <= max(3 * pairs, 2e-5)
    assert energy <= 1e-4
    assert momentum <= 1e-5
