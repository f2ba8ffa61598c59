"""What a ragged array says of itself: counts that cannot be, offsets, and parts of it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw

COUNTS = st.lists(st.one_of(st.integers(0, 4), st.integers(2**61, 2**64 - 1)), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(COUNTS, st.integers(0, 12), st.booleans())
def test_counts_are_taken_for_exactly_as_many_values(counts, values, as_level):
    """Sums that wrap in 64 bits are refused like any other sum."""
    given_counts: Any = np.array(counts, np.uint64)
    if as_level:  # those of an outer level count lists
        given_counts = (given_counts, np.ones(values, np.int64))
    if sum(counts) == values:
        assert lw.ragged(np.ones(values), counts=given_counts).lengths.sum() == values
    else:
        with pytest.raises(lw.ArgumentError, match="counts"):
            lw.ragged(np.ones(values), counts=given_counts)


def levels_of(lists: Any) -> tuple[list[list[int]], list[int]]:
    """The counts of each level, outermost first, and all values."""
    counts: list[list[int]] = []
    while lists and any(isinstance(y, list) for y in lists):
        counts.append([len(y) for y in lists])
        lists = [z for y in lists for z in y]
    return counts, lists


def nested(depth: int, rng: np.random.Generator) -> Any:
    """Random lists of one depth."""
    if depth == 0:
        return rng.integers(0, 100, rng.integers(0, 4)).tolist()
    return [nested(depth - 1, rng) for _ in range(rng.integers(1, 4))]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_part_says_what_the_same_lists_alone_say(depth, seed):
    lists = nested(depth, np.random.default_rng(seed))
    counts, values = levels_of(lists)
    whole = lw.ragged(np.array(values, np.int64), counts=tuple(map(np.array, counts)))
    if whole.levels != depth:  # nothing but empty lists below: the level is not there
        return
    part, expected = whole, lists
    while part.levels > 1:
        k = seed % len(expected)
        part, expected = part[k], expected[k]
        own = part.copy()
        assert part.tolist() == own.tolist() == expected
        assert part.lengths.tolist() == own.lengths.tolist()
        assert part.outer_shape == own.outer_shape
        assert len(part) == len(own) == len(expected)
        assert repr(part) == repr(own)
        assert pickle.loads(pickle.dumps(part)).tolist() == expected
        assert [len(o) for o in part.offsets] == [len(o) for o in own.offsets]


def test_offsets_are_read_only_in_every_way_to_an_array():
    made = lw.ragged(np.arange(6.0), counts=([1, 1], [2, 4]))
    for array in (made, made[0], made.copy(), made.to("cpu"), copy.deepcopy(made)):
        for offsets in array.offsets:
            with pytest.raises(ValueError, match="read-only"):
                offsets[0] = 1
