"""Runs, classes and places, against links that are followed one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise.flags import make_flags
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.patterns.sitewise.runs import Classes, make_classes, make_places, make_runs
from lanewise.patterns.sitewise.streaming import ODD, PULL, Phase
from tests.lbm.boxes import LID, WALL, Box, boxes
from tests.sites.follow import WALLS, Walk


def classes_of(box: Box, moving: frozenset[int] = frozenset()) -> Classes:
    walk = Walk.of(box)
    words = make_flags(box.lattice, walk.kinds, walk.edges, frozenset({WALL, LID}))
    return make_classes(words, box.shape, walk.edges, moving, bool(moving & set(walk.kinds.ravel().tolist())))


@given(boxes(kinds=(0, 1, WALL, LID), most=4), st.sampled_from((PULL, ODD)))
def test_places_are_where_following_every_link_leads(box: Box, phase: Phase) -> None:
    walk, classes, count = Walk.of(box), classes_of(box), int(np.prod(box.shape))
    starts = [(count + 3) * leaf for leaf in range(box.lattice.size)]
    places = make_places(classes, box.lattice, box.shape, walk.edges, phase, starts)
    assert np.array_equal(classes.of_site >= 0, walk.kinds.ravel() == 0)
    for n in np.flatnonzero(classes.of_site >= 0):
        found = places[classes.of_site[n]] + n
        wanted = [walk.loaded(phase, int(n), q) for q in range(box.lattice.size)]
        assert found.tolist() == [starts[leaf] + site for site, leaf in wanted]


@given(boxes(kinds=(0, 1, WALL, LID), most=4))
def test_links_that_moving_walls_may_cut_belong_to_no_class(box: Box) -> None:
    walk, classes = Walk.of(box), classes_of(box, frozenset({LID}))
    solid = LID in walk.kinds
    for n in np.flatnonzero(classes.of_site > 0):
        for q in range(1, box.lattice.size):
            if walk.arrives(int(n), q).cut:
                assert not solid
                place = np.unravel_index(n, box.shape)[::-1]
                beyond = [
                    walk.edges.face(a, -c)
                    for a, c in enumerate(box.lattice.velocities[q])
                    if c and not 0 <= place[a] - c < box.shape[-1 - a]
                ]
                assert LID not in beyond


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=80), st.integers(1, 40))
def test_runs_cover_every_known_site_once(given_classes: list[int], longest: int) -> None:
    of_site = np.array(given_classes, np.int32)
    runs = make_runs(of_site, longest)
    found = np.full(len(of_site), -1)
    for first, last, number in runs:
        assert 0 < last - first <= longest
        assert (found[first:last] == -1).all()
        found[first:last] = number
    assert np.array_equal(found, of_site)


def test_short_runs_come_last_in_their_group() -> None:
    of_site = np.array([0] * 40 + [1] + [-1] * 3 + [2] * 20 + [0] * 10, np.int32)
    assert make_runs(of_site, 32).tolist() == [
        [0, 32, 0], [44, 64, 2], [32, 40, 0], [40, 41, 1], [64, 74, 0],
    ]  # fmt: skip


def test_a_face_is_one_class() -> None:
    box = Box(lw.D2Q9, (4, 6), np.zeros((4, 6), int), {"x": "periodic", "y": ("wall", "slip")})
    classes = classes_of(box)
    found = classes.of_site.reshape(4, 6)
    assert found[0, 1:5].tolist() == [found[0, 1]] * 4
    assert (found[1:3, 1:5] == 0).all()
    assert len(np.unique(found)) == len(classes.flags) == 9
    assert read_edges(box.edges, 2, WALLS).walls == {WALL}
