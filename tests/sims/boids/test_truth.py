"""Flocks against what OpenSteer's own functions and the thesis's kernels have computed."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from lanewise.sims.boids import Flock, read_state
from tests.boids.reference import DATA, DT, read
from tests.boids.test_reference import FIELDS

SEMANTICS = ("sync", "thesis", "seq")
GRIDS = ("static-grid", "dynamic-grid")
CASES = [
    *(pytest.param(s, "auto" if s == "seq" else "all-pairs", p) for s in SEMANTICS for p in ("f32", "f64")),
    *(pytest.param(s, g, p, marks=pytest.mark.slow) for s in SEMANTICS[:2] for g in GRIDS for p in ("f32", "f64")),
]


@pytest.mark.parametrize(("semantics", "search", "precision"), CASES)
def test_steps_1_and_10(semantics: str, search: str, precision: str) -> None:
    check_steps_1_and_10(semantics, search, precision, "cpu")


def check_steps_1_and_10(semantics: str, search: str, precision: str, device: str) -> None:
    flock = Flock(
        state=read_state(DATA / "init.csv"), semantics=semantics, search=search, precision=precision, device=device
    )
    for steps in (1, 10):
        flock.advance(steps - flock.step, DT)
        found, wanted = flock.state, read(DATA / f"{semantics}_step{steps}.csv")
        for field, most in FIELDS.items():
            allowed = most if (steps, precision) == (1, "f64") else 1e-4
            assert np.abs(getattr(found, field) - getattr(wanted, field)).max() < allowed, (steps, field)


@pytest.mark.cuda
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("search", ["all-pairs", *GRIDS])
@pytest.mark.parametrize("semantics", SEMANTICS[:2])
def test_steps_1_and_10_on_a_gpu(semantics: str, search: str, precision: str) -> None:
    check_steps_1_and_10(semantics, search, precision, "cuda")


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_polarisation_while_it_can_be_foretold(semantics: str) -> None:
    flock = Flock(state=read_state(DATA / "init.csv"), semantics=semantics, search=_plain(semantics))
    for step, wanted in _polarisations(semantics)[:6]:
        flock.advance(step - flock.step, DT)
        assert flock.polarisation() == pytest.approx(wanted, abs=2e-6)


@pytest.mark.slow
def test_opensteers_rules_order_and_the_thesiss_do_not() -> None:
    state = read_state(DATA / "init.csv")
    flocks = {s: Flock(state=state, semantics=s, search=_plain(s)) for s in SEMANTICS}
    ends = {semantics: flock.run(1000, DT).polarisation() for semantics, flock in flocks.items()}
    assert _polarisations("sync")[-1][1] > 0.2
    assert ends["sync"] > 0.1
    assert ends["seq"] > 0.1
    assert ends["thesis"] < 0.08
    assert _polarisations("thesis")[-1][1] < 0.08


def _plain(semantics: str) -> str:
    """A search whose kernels the other tests compile, too."""
    return "auto" if semantics == "seq" else "all-pairs"


def _polarisations(semantics: str) -> list[tuple[int, float]]:
    with (DATA / f"{semantics}_polarisation.csv").open(encoding="utf-8") as stream:
        return [(int(row["step"]), float(row["polarisation"])) for row in csv.DictReader(stream)]
