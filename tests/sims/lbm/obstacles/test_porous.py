"""Random packings: the fraction, the seed, the periodic faces."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.obstacles import disc, porous, sphere
from lanewise.support.errors import InputError


@given(st.floats(0.02, 0.95), st.floats(0.5, 5.5), st.integers(0, 99), st.sampled_from([(64, 96), (24, 20, 32)]))
def test_the_fraction_is_reached_and_exceeded_by_less_than_a_grain(
    fraction: float, radius: float, seed: int, shape: tuple[int, ...]
) -> None:
    mask = porous(shape, fraction, radius=radius, seed=seed)
    grain = int(disc((15, 15), (7, 7), radius).sum() if len(shape) == 2 else sphere((15,) * 3, (7, 7, 7), radius).sum())
    assert mask.shape == shape
    assert 0 <= np.count_nonzero(mask) - fraction * mask.size < grain


def test_the_seed_decides_every_bit() -> None:
    first, again, other = (porous((64, 64), 0.3, seed=s) for s in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_one_grain_is_whole_wherever_it_lies() -> None:
    # At a fraction of next to nothing there is one grain; over the faces it goes on at the other side.
    grain = disc((32, 32), (16, 16), 4)
    places: set[tuple[int, int]] = set()
    for seed in range(40):
        mask = porous((32, 32), 1e-6, radius=4, seed=seed)
        assert any((np.roll(grain, s, axis=(0, 1)) == mask).all() for s in np.ndindex(32, 32))
        places.add(tuple(np.argwhere(mask).min(axis=0).tolist()))
    assert len(places) > 10
    assert (0, 0) in places or any(0 in p for p in places)  # some of them do cross a face


def test_solids_do_not_prefer_a_part_of_the_box() -> None:
    quarters = porous((256, 256), 0.3, seed=3, radius=3).reshape(2, 128, 2, 128).mean(axis=(1, 3))
    assert np.abs(quarters - 0.3).max() < 0.05


@pytest.mark.parametrize(
    ("fraction", "radius", "message"),
    [
        (0.0, 2.0, "the solid fraction is 0; wanted a number between 0 and 1, for example 0.3"),
        (1.0, 2.0, "the solid fraction is 1; wanted a number between 0 and 1, for example 0.3"),
        (0.3, 0.0, "the radius is 0 sites; wanted a finite length above zero"),
        (0.3, 8.5, "grains of radius 8.5 are 17 sites wide; wanted at most 16, the shortest edge of the box"),
    ],
)
def test_refusals(fraction: float, radius: float, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        porous((16, 40), fraction, radius=radius)
