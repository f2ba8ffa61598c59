"""The reference itself: against what OpenSteer's own functions, the thesis's kernels and scipy's tree have found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.boids.reference import DATA, RUNS, THESIS, neighbours, read

FIELDS = {"position": 2e-6, "forward": 1.3e-7, "up": 3e-7, "side": 3e-7, "speed": 4e-7, "acceleration": 2e-6}
"""What truth files hold: float32, with nine digits."""


@pytest.mark.parametrize("name", RUNS)
def test_one_step_to_the_precision_of_the_data(name: str) -> None:
    run, rules = RUNS[name]
    found, wanted = run(read(DATA / "init.csv"), rules), read(DATA / f"{name}_step1.csv")
    for field, most in FIELDS.items():
        assert np.abs(getattr(found, field) - getattr(wanted, field)).max() < most, field


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_ten_steps(name: str) -> None:
    run, rules = RUNS[name]
    found, wanted = run(read(DATA / "init.csv"), rules, steps=10), read(DATA / f"{name}_step10.csv")
    for field in FIELDS:
        assert np.abs(getattr(found, field) - getattr(wanted, field)).max() < 1e-4, field


def test_neighbours_are_those_of_a_tree() -> None:
    state = read(DATA / "init.csv")
    with np.load(DATA / "knn7_r2_18.npz") as file:
        indices, count = file["idx"], len(file["idx"])  # the count stands where there is no neighbour
    for i, row in enumerate(indices):
        assert neighbours(state, THESIS, i).tolist() == [j for j in row.tolist() if j < count]
