"""Colours of agents: what is alike looks alike, and clusters keep theirs."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.sims.boids.view.colours import (
    HUES,
    PALE,
    ClusterColours,
    check_colouring,
    cluster_table,
    heading_colours,
    scaled_colours,
    speed_table,
)
from lanewise.support.errors import InputError


def test_headings() -> None:
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    found = heading_colours(axes)
    assert ((found >= 0) & (found <= 255)).all()
    apart = np.linalg.norm(found[:, None] - found[None], axis=-1)
    assert apart[np.triu_indices(6, 1)].min() > 35
    near = heading_colours(np.array([[1.0, 0.02, 0.0]]))
    assert np.linalg.norm(near - found[0]) < 8
    assert found[1].sum() > found[0].sum() > found[4].sum()  # upwards is lighter


def test_speeds_from_zero_to_the_largest() -> None:
    table = speed_table()
    found = scaled_colours(np.array([0, 4.5, 9.0, 90.0]), 9.0, table)
    assert np.array_equal(found[[0, 2, 3]], table[[0, 255, 255]])
    assert np.array_equal(found[1], table[127])


def test_colours_of_clusters_are_unlike() -> None:
    table = np.concatenate([cluster_table(), PALE[None]])
    apart = np.linalg.norm(table[:, None] - table[None], axis=-1)
    assert apart[np.triu_indices(HUES + 1, 1)].min() > 30


def colour_of(found: np.ndarray, agent: int) -> tuple[float, ...]:
    return tuple(found[agent])


def test_small_clusters_are_pale_and_others_have_their_own() -> None:
    labels = np.repeat([0, 1, 2, 3], [9, 5, 2, 1])
    found = ClusterColours().of(labels)
    assert colour_of(found, 0) != colour_of(found, 9)
    assert (found[14:] == PALE).all()
    assert len(np.unique(found, axis=0)) == 3


def test_a_cluster_keeps_its_colour_when_it_is_no_longer_the_largest() -> None:
    colours = ClusterColours()
    first = colours.of(np.repeat([0, 1, 2], [10, 8, 6]))
    grown = np.repeat([2, 0, 1], [4, 14, 6])  # six agents have gone from the first cluster to the second one
    second = colours.of(grown)
    assert colour_of(second, 0) == colour_of(first, 0)
    assert colour_of(second, 12) == colour_of(first, 12)
    assert colour_of(second, 20) == colour_of(first, 20)


def test_of_two_halves_the_larger_keeps_the_colour() -> None:
    colours = ClusterColours()
    before = colours.of(np.zeros(20, np.int64))
    after = colours.of(np.repeat([0, 1], [12, 8]))
    assert colour_of(after, 0) == colour_of(before, 0)
    assert colour_of(after, 19) != colour_of(before, 0)


def test_many_clusters() -> None:
    labels = np.repeat(np.arange(3000), 3)
    colours = ClusterColours()
    first = colours.of(labels)
    assert len(np.unique(first, axis=0)) == HUES
    assert np.array_equal(colours.of(labels)[: 3 * HUES], first[: 3 * HUES])
    assert len(colours.of(np.zeros(5, np.int64))) == 5  # other agents than before


def test_names() -> None:
    with pytest.raises(InputError) as error:
        check_colouring("red")
    assert str(error.value) == "unknown colour 'red'; wanted one of heading, speed, cluster"
