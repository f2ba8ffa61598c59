"""Sizes and places in a box."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from lanewise.sims.lbm.obstacles import Placement
from lanewise.support.errors import InputError


@pytest.mark.parametrize(
    ("placement", "scale"),
    [
        (Placement(), 2.5),  # the default fraction 0.5: y has 10 of 20 sites for 4
        (Placement(fraction=1.0), 5.0),
        (Placement(length=16.0), 2.0),
        (Placement(scale=0.25), 0.25),
    ],
)
def test_scale(placement: Placement, scale: float) -> None:
    assert placement.sites_per_unit((8, 4, 1), (10, 20, 100), 0.5) == scale


def test_flat_things_fit_by_their_other_edges() -> None:
    assert Placement(fraction=1.0).sites_per_unit((8, 4, 0), (1, 20, 100), 0.5) == 5.0


def test_the_middle_of_the_box_lies_between_sites_when_their_number_is_even() -> None:
    assert Placement().middle((5, 8)) == (3.5, 2.0)
    assert Placement(at=(0, 1)).middle((5, 8)) == (-0.5, 4.5)
    assert Placement(centre=(1, 2)).middle((5, 8)) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Placement(length=3, scale=1).sites_per_unit((1, 1), (5, 5), 1), "the size is given by length and scale; wanted one of them"),
        (lambda: Placement(length=-1).sites_per_unit((1, 1), (5, 5), 1), "the length is -1 sites; wanted a finite length above zero"),
        (lambda: Placement(fraction=1.5).sites_per_unit((1, 1), (5, 5), 1), "the fraction of the box is 1.5; wanted more than 0 and at most 1"),
        (lambda: Placement(at=(0, 0), centre=(1, 1)).middle((5, 5)), "the place is given by at and centre; wanted one of them"),
        (lambda: Placement(centre=(1, 1)).middle((5, 5, 5)), "the centre is (1, 1); wanted finite numbers (x, y, z)"),
        (lambda: Placement(at=(1, 1, 1)).middle((5, 5)), "the place at is (1, 1, 1); wanted finite numbers (x, y)"),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        make()
