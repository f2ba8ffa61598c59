"""Streaming forms: where populations are loaded and put, phase by phase, in boxes with every rule of the edges."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise.flags import make_flags
from lanewise.patterns.sitewise.streaming import EVEN, FIRST_PULL, FORMS, ODD, PULL, PUSH, Phase, form_by_name
from lanewise.support.errors import ArgumentError
from tests.lbm.boxes import LID, WALL, Box, boxes
from tests.sites.follow import WALLS, Place, Walk

BOXES = boxes(most=4)


def everywhere(walk: Walk) -> list[Place]:
    """Every population of every site that is no wall."""
    return [(n, q) for n in walk.fluid for q in range(walk.lattice.size)]


def once(places: Iterable[Place]) -> set[Place]:
    """The places, none of which may occur twice."""
    listed = list(places)
    assert len(set(listed)) == len(listed)
    return set(listed)


@given(BOXES)
def test_in_place_a_site_puts_where_it_fetched_and_nobody_else_does(box: Box) -> None:
    """What keeps sites from racing: the places of a site are its own during a step."""
    walk = Walk.of(box)
    for phase in FORMS["in-place"].phases:
        for n in walk.fluid:
            loaded = once(walk.loaded(phase, n, q) for q in range(walk.lattice.size))
            assert once(walk.put(phase, n, q) for q in range(walk.lattice.size)) == loaded
        once(walk.loaded(phase, n, q) for n, q in everywhere(walk))


@given(BOXES)
def test_every_population_that_departs_arrives_once(box: Box) -> None:
    walk = Walk.of(box)
    places = everywhere(walk)
    assert once(walk.loaded(PULL, n, q) for n, q in places) == set(places)
    assert once(walk.put(PUSH, n, q) for n, q in places) == set(places)


@given(BOXES)
def test_all_forms_bring_every_population_to_the_same_place(box: Box) -> None:
    """What arrives as population q of site n departed from where pull loads it."""
    walk = Walk.of(box)
    for n, q in everywhere(walk):
        m, r = walk.loaded(PULL, n, q)
        assert walk.put(PULL, m, r) == (m, r)
        assert walk.put(PUSH, m, r) == (n, q) == walk.loaded(PUSH, n, q)
        assert walk.put(EVEN, m, r) == walk.loaded(ODD, n, q)
        assert walk.put(ODD, m, r) == (n, q) == walk.loaded(EVEN, n, q)
        assert walk.loaded(FIRST_PULL, n, q) == (n, q)


@given(BOXES)
def test_the_words_decide_about_both_ends_of_a_link(box: Box) -> None:
    """A kernel reads one word a site: the link that leaves along q is cut where the one that arrives along its opposite
    is.
    """
    walk = Walk.of(box)
    words = make_flags(box.lattice, walk.kinds, walk.edges, frozenset(WALLS.values()))
    for n, q in everywhere(walk):
        if q:
            bits = [bool(int(words[n]) >> (p - 1) & 1) for p in (q, walk.lattice.opposite[q])]
            assert bits == [walk.arrives(n, q).cut, walk.leaves(n, q).cut]


# ---------------------------------------------------------------- the kernels


@cache
def carriers(lattice: lw.Lattice) -> Any:
    """A kernel that gives every population that departs the number of its own place."""

    size = lattice.size

    @lw.sitewise(lattice)
    def label(f: lw.dpopulations, site: lw.f64):
        for q in lattice:
            f[q] = site * size + q.index

    label.wall(WALL, "wall")
    label.wall(LID, "lid")
    return label


def places_of(kernel_array: Any, lattice: lw.Lattice) -> np.ndarray:
    """The record of populations as (site, leaf)."""
    found = kernel_array.numpy()
    return np.stack([found[f"q{q}"] for q in range(lattice.size)], axis=1)


@given(boxes(most=3), st.sampled_from(("pull", "push", "in-place")), st.sampled_from((lw.SoA(), lw.AoAS())))
def test_kernels_fetch_and_put_at_these_places(box: Box, form: str, layout: Any) -> None:
    """Each phase by itself: what is loaded is seen in what arrives, what is put in the memory that a step leaves."""
    walk, flow, size = Walk.of(box), carriers(box.lattice), box.lattice.size
    count = walk.kinds.size
    sites = flow.sites(box.shape, mask=box.mask, edges=dict(box.edges), storage="f64", streaming=form, layout=layout, device="python")  # fmt: skip
    site = np.arange(count, dtype=np.float64)
    for step in range(len(sites.form.phases) + 1):
        phase = sites.phase
        for copy in sites.copies:
            for q in range(size):
                setattr(copy, f"q{q}", site * size + q)
        arrived = flow.populations(sites).reshape(size, count)
        for n, q in everywhere(walk):
            assert divmod(int(arrived[q, n]), size) == walk.loaded(phase, n, q), (phase, n, q)
        for copy in sites.copies:
            for q in range(size):
                setattr(copy, f"q{q}", np.full(count, -1.0))
        flow(sites, site=site)
        memory = places_of(sites.current, box.lattice)
        for n, q in everywhere(walk):
            assert memory[walk.put(phase, n, q)] == n * size + q, (phase, n, q)
        assert np.count_nonzero(memory >= 0) == len(everywhere(walk))  # and nowhere else
        assert sites.step == step + 1


# ---------------------------------------------------------------- forms


def test_forms() -> None:
    assert {n: (f.buffers, f.phases) for n, f in FORMS.items()} == {
        "pull": (2, (PULL,)),
        "push": (2, (PUSH,)),
        "in-place": (1, (EVEN, ODD)),
    }


@pytest.mark.parametrize(("form", "phases"), [("pull", (FIRST_PULL, PULL, PULL)), ("push", (PUSH,) * 3), ("in-place", (EVEN, ODD, EVEN))])  # fmt: skip
def test_phases_after_populations_were_set(form: str, phases: tuple[Phase, ...]) -> None:
    assert tuple(form_by_name(form).phase(step, fresh=step == 0) for step in range(3)) == phases


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ArgumentError) as error:
        form_by_name("swap")
    assert str(error.value) == "streaming='swap': wanted one of 'pull', 'push', 'in-place'"
