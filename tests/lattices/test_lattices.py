"""Lattices: what they hold, what they guarantee, and what is refused with which words."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language.lattices import Direction
from lanewise.language.vectors import LiteralVector

LATTICES = (lw.D2Q9, lw.D3Q19, lw.D3Q27)
SCALARS = (lw.D2Q5, lw.D3Q7)
every_lattice = pytest.mark.parametrize("lattice", LATTICES, ids=lambda x: x.name)
D2Q9 = (lw.D2Q9.velocities, lw.D2Q9.weights)


@pytest.mark.parametrize(
    ("lattice", "size", "by_links"),
    [
        (lw.D2Q9, 9, {0: Fraction(4, 9), 1: Fraction(1, 9), 2: Fraction(1, 36)}),
        (lw.D3Q19, 19, {0: Fraction(1, 3), 1: Fraction(1, 18), 2: Fraction(1, 36)}),
        (lw.D3Q27, 27, {0: Fraction(8, 27), 1: Fraction(2, 27), 2: Fraction(1, 54), 3: Fraction(1, 216)}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_weights_by_the_number_of_axes_that_a_velocity_moves_along(lattice, size, by_links):
    assert len(lattice) == lattice.size == size == len(set(lattice.velocities))
    assert lattice.dimension == len(lattice.velocities[0]) == int(lattice.name[1])
    for q in lattice:
        assert lattice.weights[q.index] == by_links[sum(map(abs, lattice.velocities[q.index]))]
        assert q.weight == float(lattice.weights[q.index])


def test_every_velocity_of_the_largest_lattice_is_there():
    assert set(lw.D3Q27.velocities) == set(itertools.product((-1, 0, 1), repeat=3))
    assert lw.D3Q27.velocities[:19] == lw.D3Q19.velocities


@every_lattice
def test_moments_are_those_of_maxwell_up_to_fifth_order(lattice):
    axes = range(lattice.dimension)
    for order in range(6):
        for chosen in itertools.product(axes, repeat=order):
            found = sum(
                w * prod(v[a] for a in chosen) for v, w in zip(lattice.velocities, lattice.weights, strict=True)
            )
            pairs = sum(
                all(chosen[i] == chosen[j] for i, j in zip(p[::2], p[1::2], strict=True))
                for p in itertools.permutations(range(order))
                if order % 2 == 0
                and all(i < j for i, j in zip(p[::2], p[1::2], strict=True))
                and [*p[::2]] == sorted(p[::2])
            )
            assert found == (Fraction(pairs, 3 ** (order // 2)) if order % 2 == 0 else 0)


@every_lattice
def test_opposites_and_mirrors_are_reflections(lattice):
    every_axis = frozenset(range(lattice.dimension))
    for q in lattice:
        assert tuple(q.opposite.velocity) == tuple(-q.velocity)
        assert q.opposite.opposite == q
        assert lattice.opposite[q.index] == lattice.mirror(q.index, every_axis) == q.opposite.index
        assert lattice.mirror(q.index, frozenset()) == q.index
        for axes in (frozenset(c) for n in range(3) for c in itertools.combinations(every_axis, n)):
            other = lattice.mirror(q.index, axes)
            assert lattice.mirror(other, axes) == q.index
            signs = [-1 if a in axes else 1 for a in range(lattice.dimension)]
            assert lattice.velocities[other] == tuple(np.multiply(signs, lattice.velocities[q.index]))


@every_lattice
def test_a_direction_is_an_index(lattice):
    f = np.arange(3 * lattice.size).reshape(lattice.size, 3)
    assert [f[q].tolist() for q in lattice] == f.tolist()
    assert lattice.weights[lattice[1]] == lattice.weights[1]
    assert lattice[-1].index == lattice.size - 1
    assert [q.index for q in lattice[1:4]] == [1, 2, 3]
    assert repr(lattice[2]) == f"{lattice.name}[2]"
    assert lattice[2] == Direction(lattice, 2) != lattice[3]
    with pytest.raises(IndexError):
        lattice[lattice.size]
    with pytest.raises(FrozenInstanceError):
        lattice.name = "other"


@every_lattice
@given(data=st.data())
def test_along_is_the_scalar_product(lattice, data):
    numbers = st.lists(st.floats(-9, 9, width=32), min_size=lattice.dimension, max_size=lattice.dimension)
    vector = {2: lw.vec2, 3: lw.vec3}[lattice.dimension](data.draw(numbers))
    for q in lattice:
        found = q.along(vector)
        assert found == lw.dot(q.velocity, vector) == sum(int(e) * v for e, v in zip(q.velocity, vector, strict=True))
        assert type(found) is np.float32
        assert [q.x, q.y, q.z][: lattice.dimension] == list(q.velocity)
        assert q.z == (0 if lattice.dimension == 2 else q.velocity.z)


def test_along_takes_vectors_of_the_dimension():
    with pytest.raises(lw.ArgumentError, match=r"^D2Q9\[3\] has 2 components, found a vector of 3$"):
        lw.D2Q9[3].along(lw.vec3(0))
    with pytest.raises(lw.ArgumentError, match=r"^D2Q9 has the axes 0 to 1, found 2$"):
        lw.D2Q9.mirror(3, frozenset({2}))


def test_a_user_defines_another():
    corners = tuple(itertools.product((-1, 1), repeat=3))
    axes = tuple(v for v in lw.D3Q27.velocities if sum(map(abs, v)) == 1)
    weights = (Fraction(2, 9), *[Fraction(1, 9)] * 6, *[Fraction(1, 72)] * 8)
    d3q15 = lw.Lattice("D3Q15", ((0, 0, 0), *axes, *corners), weights)
    assert (d3q15.size, d3q15.dimension) == (15, 3)
    assert all(d3q15[q.opposite.index].velocity == -q.velocity for q in d3q15)


def changed(velocities=None, weights=None):
    """D2Q9 with other entries by index."""
    e, w = list(D2Q9[0]), list(D2Q9[1])
    for i, v in (velocities or {}).items():
        e[i] = v
    for i, v in (weights or {}).items():
        w[i] = v
    return tuple(e), tuple(w)


STAR = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
FOR_SCALARS = " (isotropy=2 makes a lattice for scalars, which needs no more than second order; a flow needs fourth)"
REFUSED = {
    "lattice L: velocities have 1 to 3 components, found no velocities": ((), ()),
    "lattice L: velocities have 1 to 3 components, found 4 components": (((0, 0, 0, 0),), (Fraction(1),)),
    "lattice L: the sum of w e_x e_x is 1/3, found 0": (((0,),), (Fraction(1),)),
    "lattice L: nothing moves along x": (((0,),), (Fraction(1),), 2),
    "lattice L: the sum of w e_y e_y is 1/3, found 1/2": (
        STAR,
        (Fraction(1, 6), *[Fraction(1, 6)] * 2, *[Fraction(1, 4)] * 2),
        2,
    ),
    "lattice L: isotropy is 4 for flow or 2 for scalars, found 3": (*D2Q9, 3),
    "lattice L: direction 0 is at rest, found (1, 0)": (D2Q9[0][1:], D2Q9[1][1:]),
    "lattice L: velocities differ in length, found (0, 0) and (1, 0, 0)": changed({1: (1, 0, 0)}),
    "lattice L: the components of a velocity are -1, 0 or 1, found (2, 0)": changed({1: (2, 0)}),
    "lattice L: the components of a velocity are -1, 0 or 1, found (1.0, 0)": changed({1: (1.0, 0)}),
    "lattice L: the velocity (1, 0) is there twice": ((*D2Q9[0], (1, 0)), D2Q9[1]),
    "lattice L: the velocity (1, 0) has no opposite": (D2Q9[0][:2], D2Q9[1][:2]),
    "lattice L: found 8 weights for 9 velocities": (D2Q9[0], D2Q9[1][:8]),
    "lattice L: a weight is a positive Fraction, found 0.1 for (1, 0)": changed(weights={1: 0.1}),
    "lattice L: a weight is a positive Fraction, found Fraction(-1, 9) for (1, 0)": changed(
        weights={1: Fraction(-1, 9)}
    ),
    "lattice L: opposite velocities weigh the same, found 1/8 and 1/9 for (1, 0)": changed(weights={1: Fraction(1, 8)}),
    "lattice L: the sum of w is 1, found 19/18": changed(weights={0: Fraction(1, 2)}),
    f"lattice L: the sum of w e_x e_x is 1/3, found 2/5{FOR_SCALARS}": (STAR, (Fraction(1, 5),) * 5),
    f"lattice L: the sum of w e_x e_x e_y e_y is 1/9, found 0{FOR_SCALARS}": (
        STAR,
        (Fraction(1, 3), *[Fraction(1, 6)] * 4),
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_lattice_is_refused(text):
    with pytest.raises(lw.ArgumentError) as error:
        lw.Lattice("L", *REFUSED[text])
    assert str(error.value) == text


@pytest.mark.parametrize("lattice", [*LATTICES, *SCALARS, lw.D1Q3], ids=lambda x: x.name)
def test_second_moments_are_isotropic(lattice):
    third = Fraction(1, 4) if lattice is lw.D3Q7 else Fraction(1, 3)
    assert lattice.sound_squared == third
    assert lattice.isotropy == (2 if lattice in SCALARS else 4)
    assert sum(lattice.weights) == 1
    assert lattice.dimension == int(lattice.name[1])
    assert lattice.size == int(lattice.name[3:])
    for a, b in itertools.product(range(lattice.dimension), repeat=2):
        total = sum(w * v[a] * v[b] for v, w in zip(lattice.velocities, lattice.weights, strict=True))
        assert total == (third if a == b else 0)


def test_flow_is_refused_on_lattices_for_scalars_and_lines():
    def still(f: lw.populations):
        f[0] = f[0]

    scalars = lw.sitewise(lw.D2Q5)(still)
    scalars.wall(1, "wall")
    with pytest.raises(lw.ArgumentError) as error:
        scalars.wall(2, "lid", velocity="u")
    assert str(error.value) == (
        "kind 2 ('lid'): a wall that moves gives momentum to populations, which needs weights that are isotropic up to fourth order; "
        "D2Q5 is for scalars (second order): wanted a lattice for flow, such as lw.D2Q9 or lw.D3Q19"
    )
    with pytest.raises(
        lw.ArgumentError, match=r"^still.force is the momentum that walls take, which needs weights that are isotropic"
    ):
        scalars.force(scalars.sites((4, 4), edges={"x": "wall"}), ["wall"])
    with pytest.raises(lw.ArgumentError, match=r"which needs two dimensions or three; D1Q3 has one$"):
        lw.sitewise(lw.D1Q3)(still).wall(1, "lid", velocity="u")
    for lattice, axes in ((lw.D2Q5, 2), (lw.D3Q7, 3)):
        with pytest.raises(
            lw.InputError,
            match=rf"{lattice.name} is for scalars: its weights are isotropic up to second order, a flow needs fourth",
        ):
            lw.sims.lbm.Simulation(shape=(4,) * axes, viscosity=0.1, lattice=lattice.name)


def test_a_scalar_diffuses_alike_in_every_direction():
    """The variance of a spot grows by 2 c^2 (1 / omega - 1 / 2) a step, on lattices of either speed of sound."""

    def diffuse(lattice: lw.Lattice, omega: float, steps: int) -> list[float]:
        @lw.sitewise(lattice)
        def spread(g: lw.dpopulations, omega: lw.f64):
            total = lw.f64(0)
            for q in lattice:
                total += g[q]
            for q in lattice:
                g[q] += omega * (q.weight * total - g[q])

        side = 25
        sites = spread.sites((side,) * lattice.dimension, device="cpu")
        spot = np.zeros((lattice.size, *sites.shape))
        centre = (slice(None), *(side // 2,) * lattice.dimension)
        spot[centre] = [q.weight for q in lattice]
        spread.set_populations(sites, spot)
        spread.run(sites, steps, omega=omega)
        density = spread.populations(sites).sum(0)
        place = np.arange(side) - side // 2
        return [float((np.moveaxis(density, a, -1) * place**2).sum()) for a in range(lattice.dimension)]

    for lattice in (lw.D1Q3, lw.D2Q5, lw.D3Q7):
        before, after = diffuse(lattice, 1.25, 4), diffuse(lattice, 1.25, 9)
        rate = float(2 * lattice.sound_squared * (Fraction(4, 5) - Fraction(1, 2)))
        np.testing.assert_allclose((np.array(after) - before) / 5, rate, rtol=2e-2)
        np.testing.assert_allclose(after, after[0], rtol=1e-12)


def test_velocities_take_the_precision_of_what_they_meet():
    v = lw.D2Q9[6].velocity
    assert isinstance(v, LiteralVector)
    assert repr(v) == "(-1, -1)"
    assert (v * 2, 2 - v, v / 2, -v, abs(v), v**2) == (
        LiteralVector(-2, -2), LiteralVector(3, 3), LiteralVector(-0.5, -0.5), LiteralVector(1, 1), LiteralVector(1, 1),
        LiteralVector(1, 1),
    )  # fmt: skip
    for scalar, kind in ((np.float32(0.1), "vec2"), (np.float64(0.1), "dvec2"), (np.int32(3), "ivec2")):
        for product in (scalar * v, v * scalar):
            assert str(product.type) == kind
            assert list(product) == [-scalar, -scalar]
    assert list(0.1 * v * np.float64(1)) == [-0.1, -0.1]  # not rounded to float32 on its way
    assert str((lw.dvec2(1, 2) + v).type) == "dvec2"
    assert list(v - lw.vec2(1, 2)) == [-2, -3]
    assert list(lw.vec2(v)) == [-1, -1]
    with pytest.raises(TypeError):
        v + lw.D3Q19[1].velocity


@every_lattice
def test_functions_of_velocities_are_python_numbers(lattice):
    for q in lattice:
        squared = sum(c * c for c in q.velocity)
        assert lw.dot(q.velocity, q.velocity) == squared
        assert lw.length(q.velocity) == squared**0.5
        assert lw.abs(q.velocity) == LiteralVector(*map(abs, q.velocity))
