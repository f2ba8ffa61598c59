"""The gravitational constant is in every number that a simulation gives, and changes of units and of names change nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.io.particles import Particles
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.options import Output
from lanewise.sims.gravity.runner import resume, start


def simulation(particles: Particles, g: float = 1.0, softening: float = 0.05, **options: Any) -> Simulation:
    return Simulation(make_bodies(particles, precision="f64"), softening=softening, gravitational_constant=g, **options)


def numbers(s: Simulation) -> dict[str, Any]:
    """All that is measured of a simulation, each with the power of G that it goes with at fixed velocities."""
    d = s.diagnostics()
    return {
        "acceleration": np.asarray(s.acceleration),
        "potential": d.potential,
        "kinetic": d.kinetic,
        "total": d.total,
    }


def by_definition(p: Particles, g: float, softening: float) -> tuple[Any, float]:
    """Accelerations and the potential energy, in float64 from the sums."""
    d = p.position[None] - p.position[:, None]
    r = np.sqrt((d**2).sum(-1) + softening**2)
    np.fill_diagonal(r, np.inf)
    acceleration = g * (p.mass[None, :, None] * d / r[..., None] ** 3).sum(1)
    return acceleration, -0.5 * g * float((p.mass[:, None] * p.mass / r).sum())


@settings(max_examples=10, deadline=None)
@given(st.sampled_from((1.0, 5.0, 6.6743e-11, 0.0043009, 39.478)), st.sampled_from((0.0, 0.05)), st.integers(2, 30))
def test_every_number_has_the_gravitational_constant(g: float, softening: float, count: int) -> None:
    p = make_initial_conditions("plummer", count, 4)
    s = simulation(p, g, softening)
    acceleration, potential = by_definition(p, g, softening)
    np.testing.assert_allclose(s.acceleration, acceleration, rtol=1e-10, atol=1e-12 * g)
    d = s.diagnostics()
    assert d.potential == pytest.approx(potential, rel=1e-12)
    assert d.total == pytest.approx(0.5 * float((p.mass[:, None] * p.velocity**2).sum()) + potential, rel=1e-12)
    before = np.asarray(s.bodies.velocity).copy()
    s.run(1, 1e-9)
    assert np.asarray(s.bodies.velocity) - before == pytest.approx(
        1e-9 * acceleration, rel=1e-4, abs=1e-15 * max(g, 1.0)
    )


@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_accelerations_keep_their_type(precision: str) -> None:
    bodies = make_bodies(make_initial_conditions("two-body", 2), precision=precision)
    found = Simulation(bodies, gravitational_constant=5.0).acceleration
    assert found.dtype == (np.float64 if precision == "f64" else np.float32)
    assert not found.flags.writeable
    assert np.abs(found).max() == pytest.approx(2.5)


@settings(max_examples=6, deadline=None)
@given(st.floats(0.01, 100.0), st.sampled_from(("leapfrog", "euler", "yoshida4")))
def test_a_unit_of_time_is_the_constant(g: float, integrator: str) -> None:
    """With G and velocities times sqrt(G), steps of dt / sqrt(G) lead to the same places."""
    p = make_initial_conditions("plummer", 12, 3)
    scaled = Particles.of(p.position, p.velocity * np.sqrt(g), p.mass)
    one, other = simulation(p, integrator=integrator), simulation(scaled, g, integrator=integrator)
    one.run(20, 0.01)
    other.run(20, 0.01 / np.sqrt(g))
    np.testing.assert_allclose(np.asarray(other.bodies.position), np.asarray(one.bodies.position), atol=1e-11)
    assert other.energy() == pytest.approx(g * one.energy(), rel=1e-11)
    np.testing.assert_allclose(other.acceleration, g * np.asarray(one.acceleration), rtol=1e-8, atol=1e-9 * g)


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(14)), st.sampled_from(("leapfrog", "euler", "yoshida4")))
def test_the_order_of_bodies_is_of_no_matter(order: list[int], integrator: str) -> None:
    p = make_initial_conditions("plummer", 14, 5)
    one, other = simulation(p, integrator=integrator), simulation(p.take(np.array(order)), integrator=integrator)
    one.run(20, 0.01)
    other.run(20, 0.01)
    np.testing.assert_allclose(np.asarray(other.bodies.position), np.asarray(one.bodies.position)[order], atol=1e-12)
    assert other.energy() == pytest.approx(one.energy(), rel=1e-12)


@settings(max_examples=6, deadline=None)
@given(st.floats(-1e3, 1e3), st.integers(0, 10**6))
def test_the_time_of_the_start_is_of_no_matter(time: float, step: int) -> None:
    p = make_initial_conditions("plummer", 12, 3)
    one, other = simulation(p), simulation(p, time=time, step=step)
    one.run(5, 0.01)
    other.run(5, 0.01)
    assert np.asarray(one.bodies.data).tobytes() == np.asarray(other.bodies.data).tobytes()
    assert other.time == pytest.approx(time + one.time)
    assert other.step == step + 5


RUN = {"ic": "plummer", "bodies": 12, "dt": 0.01, "softening": 0.05, "seed": 3}


def kept(run: Any) -> tuple[Any, ...]:
    """The bits of a run and of its history."""
    history = [(d.step, d.time, d.kinetic, d.potential, *d.momentum, *d.angular_momentum) for d in run.state.history]
    return np.asarray(run.state.simulation.bodies.data).tobytes(), history, run.state.simulation.time


@settings(max_examples=4, deadline=None)
@given(
    st.lists(st.integers(1, 14), max_size=3, unique=True), st.sampled_from((None, 1, 3, 7)),
    st.sampled_from(("leapfrog", "euler", "yoshida4")), st.sampled_from(("f32", "f64", "mixed")),
)  # fmt: skip
def test_a_run_may_be_cut_anywhere(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], every: int | None, integrator: str, precision: str
) -> None:
    """Bits, times and the whole history are those of an uninterrupted run, and so are its snapshots."""
    folder = tmp_path_factory.mktemp("cut")
    chosen = {**RUN, "integrator": integrator, "precision": precision}
    whole = start(
        **chosen, steps=15, output=Output(out=folder / "whole.h5", diagnostics_every=every or 1, snapshot_every=4)
    )
    whole.execute()
    parts = start(
        **chosen,
        steps=min([15, *cuts]),
        output=Output(out=folder / "parts.h5", diagnostics_every=every or 1, snapshot_every=4),
    )
    parts.execute()
    for cut in sorted({*cuts[1:], 15}):
        if cut > parts.step:
            parts = resume(folder / "parts.h5", steps=cut - parts.step, device=None, output=Output())
            parts.execute()
    assert kept(parts) == kept(whole)
    names = sorted(p.name.replace("whole", "parts") for p in Path(folder).glob("whole_*.h5"))
    assert sorted(p.name for p in Path(folder).glob("parts_*.h5")) == names
