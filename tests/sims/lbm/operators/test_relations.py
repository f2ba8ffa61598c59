"""Operators against each other and against their equations, written here a second time with matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.sims.lbm.operators import OPERATORS, find_operator, make_macroscopic, make_shear_rate
from lanewise.sims.lbm.operators.trt import odd_rate
from lanewise.support.errors import InputError
from tests.sims.lbm.operators.arrays import Array, Vectors, equilibrium, moments, on_arrays
from tests.sims.lbm.operators.test_conservation import each_lattice, guo_source, some_flow

FORCE = np.array([1e-2, -2e-3, 3e-3])


def run(name: str, lattice: Lattice, f: Array, forced: bool = False, eddies: bool = False, **values: Any) -> Array:
    """A copy of f after a collision."""
    result = f.copy()
    force = {"force": Vectors(FORCE[: lattice.dimension])} if forced else {}
    on_arrays(OPERATORS[name].make(lattice, "f64", forced=forced, eddies=eddies))(result, **values, **force)
    return result


def away(lattice: Lattice, f: Array, forced: bool) -> tuple[Array, Array, Array, Array]:
    """Density, velocity, source S and n = g + S / 2 - g_eq."""
    deviation, momentum = moments(lattice, f)
    force = FORCE[: lattice.dimension] * forced
    u = (momentum + 0.5 * force[:, None]) / (1 + deviation)
    source = guo_source(lattice, u, force)
    return 1 + deviation, u, source, f + 0.5 * source - equilibrium(lattice, deviation, u)


def second_moment(lattice: Lattice, n: Array) -> Array:
    c = np.array(lattice.velocities, np.float64)
    return np.einsum("qa,qb,qs->abs", c, c, n)


def hermite(lattice: Lattice, tensor: Array) -> Array:
    """(9/2) w (c c - I / 3) : T."""
    c, w = np.array(lattice.velocities, np.float64), np.array([float(x) for x in lattice.weights])
    polynomial = np.einsum("qa,qb->qab", c, c) - np.eye(lattice.dimension) / 3
    return 4.5 * w[:, None] * np.einsum("qab,abs->qs", polynomial, tensor)


def same(a: Array, b: Array) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=5e-16)


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_bgk_is_its_equation(lattice: Lattice, forced: bool) -> None:
    f = some_flow(lattice)
    _, _, source, n = away(lattice, f, forced)
    same(run("bgk", lattice, f, forced, omega=1.3), f + source - 1.3 * n)


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("eddies", [False, True])
def test_trt_with_equal_rates_is_bgk(lattice: Lattice, forced: bool, eddies: bool) -> None:
    f, omega = some_flow(lattice), 1.3
    more: dict[str, Any] = {"smagorinsky": 0.0} if eddies else {}
    trt = run("trt", lattice, f, forced, eddies, omega=omega, magic=(1 / omega - 0.5) ** 2, **more)
    same(trt, run("bgk", lattice, f, forced, eddies, omega=omega, **more))


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_trt_relaxes_the_odd_part_at_its_own_rate(lattice: Lattice, forced: bool) -> None:
    f, omega, magic = some_flow(lattice), 1.6, 3 / 16
    _, _, source, n = away(lattice, f, forced)
    flipped = n[list(lattice.opposite)]
    odd_omega = 1 / (0.5 + magic / (1 / omega - 0.5))
    wanted = f + source - omega * (n + flipped) / 2 - odd_omega * (n - flipped) / 2
    same(run("trt", lattice, f, forced, omega=omega, magic=magic), wanted)
    assert odd_rate(omega, magic) == pytest.approx(odd_omega, rel=1e-15)


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_mrt_with_equal_rates_is_bgk(lattice: Lattice, forced: bool) -> None:
    f = some_flow(lattice)
    mrt = run("mrt", lattice, f, forced, omega=1.3, bulk_omega=1.3, even_omega=1.3, odd_omega=1.3)
    same(mrt, run("bgk", lattice, f, forced, omega=1.3))


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_mrt_relaxes_every_space_at_its_rate(lattice: Lattice, forced: bool) -> None:
    f, dimension = some_flow(lattice), lattice.dimension
    _, _, source, n = away(lattice, f, forced)
    stress = second_moment(lattice, n)
    bulk = np.einsum("aas->s", stress) / dimension * np.eye(dimension)[:, :, None]
    shear_part, bulk_part = hermite(lattice, stress - bulk), hermite(lattice, bulk)
    ghosts = n - shear_part - bulk_part
    odd = (ghosts - ghosts[list(lattice.opposite)]) / 2
    wanted = f + source - 1.7 * shear_part - 1.1 * bulk_part - 0.9 * (ghosts - odd) - 1.2 * odd
    same(run("mrt", lattice, f, forced, omega=1.7, bulk_omega=1.1, even_omega=0.9, odd_omega=1.2), wanted)


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_regularised_keeps_the_stress_alone(lattice: Lattice, forced: bool) -> None:
    f, omega = some_flow(lattice), 1.7
    _, _, source, n = away(lattice, f, forced)
    wanted = f - n + source + (1 - omega) * hermite(lattice, second_moment(lattice, n))
    result = run("regularised", lattice, f, forced, omega=omega)
    same(result, wanted)
    same(result, run("mrt", lattice, f, forced, omega=omega, bulk_omega=omega, even_omega=1.0, odd_omega=1.0))


@each_lattice
def test_regularised_is_bgk_where_only_stress_is_left(lattice: Lattice) -> None:
    f = run("regularised", lattice, some_flow(lattice), omega=0.0)  # projects, relaxes nothing
    same(run("regularised", lattice, f, omega=1.7), run("bgk", lattice, f, omega=1.7))
    same(run("regularised", lattice, f, omega=0.0), f)


def kbc_parts(lattice: Lattice, n: Array) -> tuple[Any, Array]:
    """Shear and higher parts, from a basis of natural moments: the matrix of monomials, inverted."""
    stress, dimension = second_moment(lattice, n), lattice.dimension
    powers = [tuple(x % 3 for x in v) for v in lattice.velocities]  # -1 stands for 2
    monomials = np.array([[np.prod(np.power(v, p, dtype=float)) for v in lattice.velocities] for p in powers])
    mean = np.einsum("aas->s", stress) / dimension
    values = np.zeros_like(n)
    for row, p in enumerate(powers):
        axes = [a for a in range(dimension) if p[a]]
        if sum(p) == 2:
            values[row] = stress[axes[0], axes[0]] - mean if len(axes) == 1 else stress[axes[0], axes[1]]
    shear = np.linalg.solve(monomials, values)
    return shear, n - shear


@each_lattice
@pytest.mark.parametrize("forced", [False, True])
def test_kbc_is_its_equation(lattice: Lattice, forced: bool) -> None:
    f, omega = some_flow(lattice), 1.7
    density, u, source, n = away(lattice, f, forced)
    w = np.array([float(x) for x in lattice.weights])[:, None]
    whole = equilibrium(lattice, density - 1, u) + w
    shear, high = kbc_parts(lattice, n)
    beta = omega / 2
    gamma = 1 / beta - (2 - 1 / beta) * (shear * high / whole).sum(0) / (high * high / whole).sum(0)
    gamma = np.clip(gamma, 0, 2 / beta)  # the ghosts do not grow
    wanted = f + source - beta * (2 * shear + gamma * high)
    np.testing.assert_allclose(run("kbc", lattice, f, forced, omega=omega), wanted, rtol=0, atol=2e-15)
    assert np.abs(gamma - 2).max() > 0.1  # it is not BGK


@each_lattice
def test_kbc_never_lets_ghosts_grow(lattice: Lattice) -> None:
    """However small they are beside the shear: there the entropy's estimate has no bound."""
    f, omega = some_flow(lattice), 1.9
    density, u, _, n = away(lattice, f, False)
    shear, high = kbc_parts(lattice, n)
    w = np.array([float(x) for x in lattice.weights])[:, None]
    whole = equilibrium(lattice, density - 1, u) + w

    def size(part: Array) -> Array:
        return np.sqrt((part * part / whole).sum(0))

    limits = set()
    for share in (1e-6, -1e-6, 1e-2, -1e-2, 1.0):
        given = f - high + share * high
        after = kbc_parts(lattice, away(lattice, run("kbc", lattice, given, omega=omega), False)[3])[1]
        assert (size(after) <= size(share * high) * (1 + 1e-9) + 1e-15).all(), share
        rate = omega - 1
        overlap = (shear * share * high / whole).sum(0) / size(share * high) ** 2
        limits |= set(np.sign(np.round(rate * np.abs(overlap), 9) - 1).astype(int))
    assert limits == {-1, 1}  # the estimate is within the limits for some, and out of them for others


@each_lattice
def test_kbc_is_bgk_at_rate_1(lattice: Lattice) -> None:
    """At omega = 1 everything relaxes to equilibrium: beta = 1/2 makes gamma 2, whatever the parts are."""
    f = some_flow(lattice)
    same(run("kbc", lattice, f, omega=1.0), run("bgk", lattice, f, omega=1.0))


@each_lattice
@pytest.mark.parametrize("name", [o.name for o in OPERATORS.values() if o.eddies])
@pytest.mark.parametrize("forced", [False, True])
def test_eddies_change_the_rate_of_the_site(lattice: Lattice, name: str, forced: bool) -> None:
    """nu_t = C^2 |S| with the strain of the site at the new rate."""
    f, omega, constant = some_flow(lattice, sites=1), 1.9, 0.17
    density, _, _, n = away(lattice, f, forced)
    stress = second_moment(lattice, n)
    rate, strain = omega, stress
    for _ in range(200):  # the quadratic equation, iterated
        strain = -1.5 * rate / density * stress
        viscosity = (1 / omega - 0.5) / 3 + constant**2 * np.sqrt(2 * (strain**2).sum())
        rate = float(1 / (3 * viscosity + 0.5))
    assert rate < omega - 1e-3
    more: dict[str, Any] = {"magic": 0.1} if name == "trt" else {}
    wanted = run(name, lattice, f, forced, omega=rate, **more)
    np.testing.assert_allclose(
        run(name, lattice, f, forced, True, omega=omega, smagorinsky=constant, **more), wanted, rtol=0, atol=1e-14
    )
    force = {"force": Vectors(FORCE[: lattice.dimension])} if forced else {}
    found = on_arrays(make_shear_rate(lattice, "f64", forced, True))(f, omega, smagorinsky=constant, **force)
    assert float(found[0]) == pytest.approx(float(np.sqrt(2 * (strain**2).sum())), rel=1e-12)


@each_lattice
def test_macroscopic_is_density_and_shifted_velocity(lattice: Lattice) -> None:
    f = some_flow(lattice)
    density, u, _, _ = away(lattice, f, True)
    deviation, found = on_arrays(make_macroscopic(lattice, "f64", True))(f, Vectors(FORCE[: lattice.dimension]))
    same(1 + deviation, density)
    same(np.stack(list(found)), u)


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(
        InputError,
        match="unknown collision operator 'srt'; did you mean 'trt'\\? wanted one of bgk, trt, regularised, mrt, kbc",
    ):
        find_operator("srt")
    with pytest.raises(
        InputError, match="'kbc' is not combined with Smagorinsky's model; wanted one of bgk, trt, regul"
    ):
        find_operator("kbc").make(lw.D2Q9, eddies=True)
    d2q5 = Lattice.__new__(Lattice)
    object.__setattr__(d2q5, "name", "D2Q5")
    with pytest.raises(InputError, match="'bgk' is made for D2Q9, D3Q19, D3Q27; found D2Q5"):
        find_operator("bgk").make(d2q5)
