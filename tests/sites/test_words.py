"""Words, marks and spans of sites, against links that are followed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import lanewise as lw
from lanewise.patterns.sitewise.flags import FACE, KIND_SHIFT, LINKS, make_flags, make_marks, make_spans
from tests.lbm.boxes import LID, WALL, Box, boxes
from tests.sites.follow import Walk


def words_of(box: Box) -> np.ndarray:
    walk = Walk.of(box)
    return make_flags(box.lattice, walk.kinds, walk.edges, frozenset({WALL, LID}))


@given(boxes(kinds=(0, 1, 7, WALL, LID), most=5))
def test_words_are_what_following_every_link_says(box: Box) -> None:
    walk, words = Walk.of(box), words_of(box)
    assert words.dtype == np.uint32
    assert words.shape == (walk.kinds.size,)
    for n, place in walk.coordinates():
        cut = sum(1 << (q - 1) for q in range(1, box.lattice.size) if walk.arrives(n, q).cut)
        at = any(
            here == end and not isinstance(face, int)
            for here, size, faces in zip(place, walk.kinds.shape[::-1], walk.edges.faces, strict=True)
            for end, face in zip((0, size - 1), faces, strict=True)
        )
        wanted = cut | int(walk.kinds.ravel()[n]) << 26 | at << 31
        assert int(words[n]) == wanted, (n, place, f"{int(words[n]):032b}", f"{wanted:032b}")


@given(boxes(most=5))
def test_a_word_of_zero_is_a_site_whose_links_all_lead_to_its_neighbours(box: Box) -> None:
    """Bulk sites read no word: all that a word could say has to hold for them."""
    walk, words = Walk.of(box), words_of(box)
    strides = np.cumprod([1, *walk.kinds.shape[:0:-1]])
    for n in np.flatnonzero(words == 0):
        for q in range(box.lattice.size):
            there, back = walk.leaves(int(n), q), walk.arrives(int(n), q)
            distance = int(np.dot(box.lattice.velocities[q], strides))
            assert (there.cut, back.cut, there.axes, back.axes) == (False, False, frozenset(), frozenset())
            assert (there.site, back.site) == (n + distance, n - distance)


def test_the_parts_of_a_word_do_not_overlap() -> None:
    assert int(LINKS) & int(FACE) == 0
    assert int(LINKS) | 31 << KIND_SHIFT | int(FACE) == 2**32 - 1


def test_a_small_box_by_hand() -> None:
    """Three by two sites, a wall above, slip below, periodic along x; the second site is a wall."""
    box = Box(lw.D2Q9, (2, 3), np.array([[0, WALL, 0], [0, 0, 3]]), {"y": ("slip", "wall")})
    v = lw.D2Q9.velocities

    def bits(*velocities: tuple[int, int]) -> int:
        return sum(1 << (v.index(e) - 1) for e in velocities)

    face, downwards = 1 << 31, ((0, -1), (1, -1), (-1, -1))
    wanted = [
        face | bits((-1, 0), (-1, 1)),  # the wall lies at its right, also for the link that slips along the lower face
        face | WALL << 26 | bits((0, 1)),  # what slips along the lower face comes from itself
        face | bits((1, 0), (1, 1)),
        face | bits(*downwards, (-1, 1)),
        bits(*downwards, (0, 1)),  # in the middle of x: only its links are special
        face | 3 << 26 | bits(*downwards, (1, 1)),
    ]
    assert [hex(w) for w in words_of(box)] == [hex(w) for w in wanted]


# ---------------------------------------------------------------- marks


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.integers(1, 2**32 - 1))
def test_a_mark_is_the_bit_of_a_site(chosen: list[bool], word: int) -> None:
    marks = make_marks(np.where(chosen, np.uint32(word), np.uint32(0)))
    assert marks.dtype == np.uint32
    assert len(marks) == -(-len(chosen) // 32)
    assert [bool(int(marks[n // 32]) >> n % 32 & 1) for n in range(len(chosen))] == chosen
    assert sum(int(m).bit_count() for m in marks) == sum(chosen)  # nothing behind the last site
    np.testing.assert_array_equal(make_marks(np.array(chosen)), marks)


# ---------------------------------------------------------------- spans


@given(arrays.arrays(np.bool_, st.integers(1, 60)), st.integers(1, 9))
def test_spans_cover_exactly_the_chosen(chosen: np.ndarray, longest: int) -> None:
    spans = make_spans(chosen, longest)
    assert spans.dtype == np.int64
    assert spans.shape == (len(spans), 2)
    covered = [n for first, behind in spans for n in range(first, behind)]
    assert covered == list(np.flatnonzero(chosen))  # in order, none twice
    lengths = spans[:, 1] - spans[:, 0]
    assert ((lengths >= 1) & (lengths <= longest)).all()
    for (_, behind), (first, _), length in zip(spans, spans[1:], lengths, strict=False):
        assert behind < first or length == longest  # as few as the limit allows


@pytest.mark.parametrize(("chosen", "spans"), [("....", []), ("####", [(0, 3), (3, 4)]), ("#.##.#", [(0, 1), (2, 4), (5, 6)])])  # fmt: skip
def test_spans_by_hand(chosen: str, spans: list[tuple[int, int]]) -> None:
    assert [tuple(s) for s in make_spans(np.array([c == "#" for c in chosen]), 3)] == spans
