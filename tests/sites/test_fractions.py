"""Weights of interpolated links, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.flags import make_flags
from lanewise.patterns.sitewise.fractions import WallFractions, interpolation_weights, link_weights
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.support.errors import ArgumentError

WALL = frozenset({1})
LATTICE: Lattice = lw.D2Q9
EAST = next(q for q, e in enumerate(LATTICE.velocities) if e == (1, 0))
WEST = LATTICE.opposite[EAST]


def words_of(rows: list[str]) -> np.ndarray:
    """`#` is a wall; the box is periodic."""
    mask = np.array([[c == "#" for c in row] for row in rows]).astype(np.uint8)
    return make_flags(LATTICE, mask, read_edges({}, 2, {}), WALL)


def table(place: int, q: int, fraction: float) -> WallFractions:
    row = np.full((1, 9), np.nan)
    row[0, q] = fraction
    return WallFractions(np.array([place]), row)


@pytest.mark.parametrize(("fraction", "weight"), [(0.0, 1.0), (0.25, 1 / 3), (0.5, 0.0), (1.0, -1 / 3)])
def test_the_weight_of_a_fraction(fraction: float, weight: float) -> None:
    """What arrives eastwards at site 1 comes from the wall at site 0."""
    weights, left = interpolation_weights(LATTICE, table(1, EAST, fraction), words_of(["#..."]), WALL)
    assert weights[0, 0, EAST] == pytest.approx(weight)
    assert not np.delete(weights, EAST, axis=2).any()
    assert left == 0


def test_links_are_central_from_a_quarter_on_and_damp_below() -> None:
    """The wall lies at d, at most a third comes back with its sign turned, and nothing jumps."""
    d = np.linspace(0, 1, 1001)
    k, s = link_weights(d)
    np.testing.assert_allclose((1 + 2 * d) * k, 1 - 2 * d + 2 * d * s, atol=1e-15)
    assert (np.abs(k - s) <= 1 / 3 + 1e-15).all()
    np.testing.assert_array_equal(s[d > 0.25], 0)
    np.testing.assert_array_equal(k[d > 0.25], ((1 - 2 * d) / (1 + 2 * d))[d > 0.25])
    assert np.abs(np.diff([k, s])).max() < 3e-3
    assert s.max() == pytest.approx(2 / 3)


def test_a_gap_of_one_site_stays_half_way() -> None:
    """Beyond the site there is a wall, too: nothing to interpolate with."""
    weights, left = interpolation_weights(LATTICE, table(1, EAST, 0.25), words_of(["#.#."]), WALL)
    assert not weights.any()
    assert left == 1


def test_links_are_counted() -> None:
    assert table(1, EAST, 0.25).links == 1


REFUSED = {
    "shape": (
        WallFractions(np.array([1]), np.zeros((1, 5))),
        "fractions have the shape (places, 9) on D2Q9; found (1, 5)",
    ),
    "place": (table(99, EAST, 0.5), "places of fractions are numbers of sites, 0 to 3, ascending and different"),
    "wall": (table(0, EAST, 0.5), "site 0 has fractions and is a wall; wanted sites next to it"),
    "range": (
        table(1, EAST, 1.5),
        "a fraction of a link is 1.5; wanted 0 (at the site) to 1 (at its neighbour), or NaN",
    ),
    "uncut": (
        table(1, WEST, 0.5),
        f"1 links have a fraction and no wall cuts them, first direction {WEST} at site 1; wanted NaN there",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(ArgumentError) as caught:
        interpolation_weights(LATTICE, given, words_of(["#..."]), WALL)
    assert message in str(caught.value)


def test_fractions_are_arrays_of_numbers() -> None:
    """Lists are taken; anything else is refused where it is handed in."""
    table = lw.WallFractions([9, 11], [[0.25] * 9] * 2)  # pyright: ignore[reportArgumentType]
    assert (table.places.dtype, table.fractions.dtype, table.links) == (np.int64, np.float64, 18)
    for places, fractions, text in (
        ("a", [[0.5]], "WallFractions: places hold <U1; wanted numbers of sites"),
        ([0.5], [[0.5]], "WallFractions: places hold float64; wanted numbers of sites"),
        ([1], ["a"], "WallFractions: fractions hold <U1; wanted numbers"),
    ):
        with pytest.raises(lw.ArgumentError) as error:
            lw.WallFractions(places, fractions)  # pyright: ignore[reportArgumentType]
        assert str(error.value) == text
