"""`explain gravity` shows the kernel that a simulation runs: one wish for a plan, one choice of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.cli.products import compiled
from lanewise.explanation.compiled import Offline
from lanewise.launch import tuned_plans as store
from lanewise.layouts import layout_by_name
from lanewise.patterns.search.tree.shape import TreeShape
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.explain import explained, force_of
from lanewise.sims.gravity.physics import RECORDS, make_physics
from lanewise.support.errors import InputError


@pytest.fixture(autouse=True)
def nothing_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is explained is the default plan."""
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    make_physics.cache_clear()


CASES = [
    *((precision, None, softening) for precision in RECORDS for softening in (0.05, 0.0)),
    *(("f32", layout, 0.05) for layout in ("aos", "soaoas", "aosoa")),
]


@pytest.mark.parametrize(("precision", "layout", "softening"), CASES)
def test_explain_shows_the_plan_and_the_source_that_a_simulation_runs(
    precision: str, layout: str | None, softening: float
) -> None:
    explained = compiled(force_of(300, precision, layout, {"softening2": softening**2}), "cpu")
    assert_same(explained, "cpu", 300, precision, layout, softening)


@pytest.mark.cuda
@pytest.mark.parametrize("count", [1000, 16_384, 100_000])
@pytest.mark.parametrize("precision", RECORDS)
def test_explain_shows_the_plan_and_the_source_that_a_simulation_runs_on_a_gpu(precision: str, count: int) -> None:
    assert_same(compiled(force_of(count, precision), "cuda"), "cuda", count, precision, None, 0.01)


def assert_same(
    explained: Offline, device: str, count: int, precision: str, layout: str | None, softening: float
) -> None:
    kind = layout_by_name(layout) if layout else None
    particles = make_initial_conditions("plummer", count, seed=1)
    bodies = make_bodies(particles, precision=precision, layout=kind, device=device)
    simulation = Simulation(bodies, softening=softening)
    assert explained.subject.plan == simulation.plans.force
    assert explained.executable.source == simulation._law.gravity.compiled.source  # pyright: ignore[reportPrivateUsage]


def test_explain_refuses_a_square_below_zero() -> None:
    with pytest.raises(InputError) as error:
        force_of(10, values={"softening2": -1.0})
    assert str(error.value) == "--set softening2=-1.0: the square of a softening is zero or more"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_launches_of_forces_by_a_tree_are_explained(device: str) -> None:
    heading, (call,) = explained(device, 20_000, "f32", None, {}, method="tree")
    made = compiled(call, device, "sm_90" if device == "cuda" else None)
    assert heading.startswith("forces by a tree: theta 0.6, order 4, leaves of 32 (requested), of 20,000 bodies")
    assert "\n  weights: source.mass\n" in heading
    told = made.explain(measure_resources=False)
    shape = TreeShape(20_000, 32)
    names = ["tree order", "gather", "gravity_leaf_moments", *["gravity_parent_moments"] * shape.top, "gravity_walk"]
    assert [row.name for row in told.launches] == names
    assert all(row.predicted for row in told.launches[1:-1])
    *_, top, walk = told.launches
    assert top.grid == ("1 turn" if device == "cpu" else "1 block of 256 threads")
    assert walk.grid == ("625 turns" if device == "cpu" else "79 blocks of 128 threads")  # groups of 64 on a GPU
    assert told.as_dict()["analysis"]["search"].startswith("tree: theta 0.6, order 4, leaves of 32; 625 leaves")


def test_a_tree_that_is_explained_takes_the_numbers_of_a_run() -> None:
    heading, (call,) = explained("cpu", 500, "f64", None, {"softening2": 0.0}, method="auto", order=2)
    made = compiled(call, "cpu")
    assert (heading, made.subject.reference.pattern.name) == ("", "pairwise")
    heading, (call,) = explained("cpu", 500, "f64", None, {}, method="tree", accuracy=1e-2, order=2)
    made = compiled(call, "cpu")
    assert "accuracy 0.01 by estimates, order 2" in heading
    assert [r.name for r in made.explain(measure_resources=False).launches][-3:] == [
        "gravity_sizes", "gravity_sample_walk", "gravity_walk"
    ]  # fmt: skip
    with pytest.raises(InputError, match="--theta needs --method tree"):
        explained("cpu", 500, "f32", None, {}, theta=0.5)
    with pytest.raises(InputError, match="gravity has no value 'kappa' to set; it has softening2"):
        explained("cpu", 500, "f32", None, {"kappa": 1.0}, method="tree")
