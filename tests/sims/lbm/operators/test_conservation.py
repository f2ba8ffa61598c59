"""What every collision keeps: mass, momentum (which gains the force), equilibrium, the symmetries of the lattice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.sims.lbm.operators import OPERATORS
from tests.sims.lbm.operators.arrays import Array, Vectors, equilibrium, moments, on_arrays

LATTICES = [lw.D2Q9, lw.D3Q19, lw.D3Q27]
VARIANTS = [(name, eddies) for name, o in OPERATORS.items() for eddies in ((False, True) if o.eddies else (False,))]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v[0] + ("-smagorinsky" if v[1] else ""))
each_lattice = pytest.mark.parametrize("lattice", LATTICES, ids=lambda x: x.name)


def collided(variant: tuple[str, bool], lattice: Lattice, f: Array, force: Any = None, omega: float = 1.7) -> Array:
    """A copy of f after the collision, with parameters that no operator is fond of."""
    name, eddies = variant
    operator = OPERATORS[name]
    collide = on_arrays(operator.make(lattice, "f64", forced=force is not None, eddies=eddies))
    parameters = {n: v + 0.17 for n, v in operator.parameters.items()}
    if eddies:
        parameters["smagorinsky"] = 0.2
    result = f.copy()
    given_force = {} if force is None else {"force": Vectors(force)}
    collide(result, omega, **parameters, **given_force)
    return result


def some_flow(lattice: Lattice, sites: int = 7, seed: int = 3, size: float = 0.02) -> Array:
    """Populations around the equilibrium of a moving fluid."""
    random = np.random.default_rng(seed)
    u = random.uniform(-0.1, 0.1, (lattice.dimension, sites))
    w = np.array([float(x) for x in lattice.weights])[:, None]
    return equilibrium(lattice, random.uniform(-0.05, 0.05, sites), u) + size * w * random.standard_normal(
        (lattice.size, sites)
    )


@pytest.mark.grid(every=40)
@each_lattice
@each_variant
@given(seed=st.integers(0, 10**6), omega=st.floats(0.1, 1.99), size=st.floats(0, 0.2))
@settings(max_examples=5, deadline=None)
def test_mass_and_momentum_are_kept(variant: Any, lattice: Lattice, seed: int, omega: float, size: float) -> None:
    f = some_flow(lattice, seed=seed, size=size)
    before, after = moments(lattice, f), moments(lattice, collided(variant, lattice, f, omega=omega))
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=2e-15)
    np.testing.assert_allclose(after[1], before[1], rtol=0, atol=2e-15)


@each_lattice
@each_variant
def test_momentum_gains_the_force(variant: Any, lattice: Lattice) -> None:
    f, force = some_flow(lattice), np.array([1e-2, -2e-3, 3e-3][: lattice.dimension])
    before, after = moments(lattice, f), moments(lattice, collided(variant, lattice, f, force))
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=2e-15)
    np.testing.assert_allclose(
        after[1] - before[1], np.broadcast_to(force[:, None], after[1].shape), rtol=0, atol=2e-15
    )


@each_lattice
@each_variant
def test_no_force_is_the_unforced_collision(variant: Any, lattice: Lattice) -> None:
    f = some_flow(lattice)
    np.testing.assert_allclose(
        collided(variant, lattice, f, np.zeros(lattice.dimension)), collided(variant, lattice, f), rtol=0, atol=1e-16
    )


@each_lattice
@each_variant
def test_equilibrium_is_a_fixed_point(variant: Any, lattice: Lattice) -> None:
    f = some_flow(lattice, size=0.0)
    np.testing.assert_allclose(collided(variant, lattice, f), f, rtol=0, atol=2e-16)


@each_lattice
@each_variant
def test_the_source_is_right_at_equilibrium_without_relaxation(variant: Any, lattice: Lattice) -> None:
    """At g = g_eq - S / 2 nothing is left to relax, n = 0: every operator then adds S, whatever its rates."""
    force = np.array([1e-2, -2e-3, 3e-3][: lattice.dimension])
    random = np.random.default_rng(8)
    u, deviation = random.uniform(-0.1, 0.1, (lattice.dimension, 5)), random.uniform(-0.05, 0.05, 5)
    source = guo_source(lattice, u, force)
    before = equilibrium(lattice, deviation, u) - 0.5 * source
    np.testing.assert_allclose(collided(variant, lattice, before, force), before + source, rtol=0, atol=1e-16)


def guo_source(lattice: Lattice, u: Array, force: Array) -> Array:
    w, c = np.array([float(x) for x in lattice.weights])[:, None], np.array(lattice.velocities, np.float64)
    cu, cf = np.tensordot(c, u, (1, 0)), (c @ force)[:, None]
    return w * (3 * (cf - (force[:, None] * u).sum(0)) + 9 * cu * cf)


def symmetries(lattice: Lattice) -> list[list[int]]:
    """The permutations of directions by quarter turns and reflections: f'[q] = f[p[q]]."""
    found: list[list[int]] = []
    for axes in itertools.permutations(range(lattice.dimension)):
        for signs in itertools.product((1, -1), repeat=lattice.dimension):
            moved = [tuple(s * v[a] for s, a in zip(signs, axes, strict=True)) for v in lattice.velocities]
            found.append([lattice.velocities.index(v) for v in moved])
    return found


@pytest.mark.grid(every=40)
@each_lattice
@each_variant
def test_collisions_commute_with_the_symmetries_of_the_lattice(variant: Any, lattice: Lattice) -> None:
    f = some_flow(lattice, sites=3)
    after = collided(variant, lattice, f)
    for permutation in symmetries(lattice):
        np.testing.assert_allclose(collided(variant, lattice, f[permutation]), after[permutation], rtol=0, atol=2e-15)
