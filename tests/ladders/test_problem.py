from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ladders.problem import CHUNK, SAMPLE, SOFTENING, Problem, attraction, direct_sum, sample
from lanewise.sims.gravity.physics import Body
from tests.ladders.problems import problem


@examples(st.integers(1, 5000), st.integers(0, 9))
def test_samples(bodies, seed):
    chosen = sample(bodies, seed)
    assert len(chosen) == bodies if bodies <= 2 * SAMPLE else len(chosen) == SAMPLE
    assert (np.diff(chosen) > 0).all()
    assert (chosen[0], chosen[-1]) == (0, bodies - 1)


def test_the_reference_is_the_function_in_float64():
    p = problem(40)
    one = Body.array(position=p.position, mass=p.mass, velocity=p.velocity)
    wanted = np.zeros((40, 3))
    for i in range(40):
        for j in range(40):
            d = (p.position[j].astype(float) - p.position[i].astype(float)).tolist()
            r2 = sum(x * x for x in d) + float(np.float32(SOFTENING**2))
            wanted[i] += [float(p.mass[j]) * x / r2**1.5 for x in d]
    np.testing.assert_allclose(p.answer()[1], wanted, rtol=1e-12, atol=1e-14)
    with lw.device("python"):
        bodies = one.to("python")
    assert p.error(attraction(bodies, bodies, softening2=SOFTENING**2)) < p.tolerance


def test_sources_beyond_one_chunk_count():
    p = problem(CHUNK + 5)
    place = p.position[:3]
    whole = direct_sum(place, p.position, p.mass)
    parts = direct_sum(place, p.position[:CHUNK], p.mass[:CHUNK]) + direct_sum(
        place, p.position[CHUNK:], p.mass[CHUNK:]
    )
    np.testing.assert_allclose(whole, parts, rtol=1e-12)


@pytest.mark.parametrize("bodies", [1, 2, 40, 700, 2000])
def test_rounding_passes_and_faults_do_not(bodies):
    p = problem(bodies)
    right = direct_sum(p.position, p.position, p.mass).astype(np.float32)
    assert p.error(right) <= p.tolerance
    if bodies == 1:
        return
    chosen, _ = p.answer()
    for fault in (right * np.float32(1.001), -right, np.zeros_like(right), right[:, ::-1]):
        assert p.error(fault) > p.tolerance
    without_one = direct_sum(p.position, p.position[1:], p.mass[1:]).astype(np.float32)
    assert p.error(without_one) > p.tolerance
    assert p.error(right[:-1]) == np.inf
    never_written = right.copy()
    never_written[next((i for i in range(bodies) if i not in chosen), 0)] = np.nan  # also outside the sample
    assert p.error(never_written) == np.inf


def test_a_seed_gives_the_same_bodies():
    assert (Problem(50, 3).position == Problem(50, 3).position).all()
    assert (Problem(50, 3).position != Problem(50, 4).position).any()


def test_forces_are_masses_times_accelerations():
    force, acceleration = problem(40, "force"), problem(40)
    np.testing.assert_allclose(
        force.answer()[1], acceleration.answer()[1] * acceleration.mass[:, None].astype(float), rtol=1e-12
    )
