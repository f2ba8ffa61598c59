"""The axes of a scan: what a text means, and which texts mean nothing."""

from __future__ import annotations

import itertools
import math

import pytest

from lanewise.sims.units import axis_of
from lanewise.sims.units.axes import points
from lanewise.support.errors import InputError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("dt=1e-3,5e-4", ("1e-3", "5e-4")),
        ("seed=1..4", ("1", "2", "3", "4")),
        ("seed=-1..1", ("-1", "0", "1")),
        ("re=100:400:4", ("100.0", "200.0", "300.0", "400.0")),
        ("--max_speed=9", ("9",)),
    ],
)
def test_values_of_a_text(text: str, values: tuple[str, ...]) -> None:
    assert axis_of(text).values == values


def test_names_are_those_of_options() -> None:
    assert axis_of("--max_speed=9").name == axis_of("max-speed=9").name == "max-speed"


@pytest.mark.parametrize(("first", "last", "count"), [(1e-4, 1e-1, 4), (-1.0, -8.0, 7), (3.0, 2.0, 2)])
def test_factors_are_equal_and_ends_are_exact(first: float, last: float, count: int) -> None:
    values = [float(v) for v in axis_of(f"dt={first}:{last}:{count}log").values]
    assert (values[0], values[-1], len(values)) == (first, last, count)
    factor = (last / first) ** (1 / (count - 1))
    assert all(math.isclose(b / a, factor, rel_tol=1e-12) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dt", "--scan dt: wanted NAME=VALUES, as dt=1e-3,5e-4 or seed=1..4"),
        ("dt=", "--scan dt=: wanted NAME=VALUES, as dt=1e-3,5e-4 or seed=1..4"),
        ("dt=1,,2", "--scan dt=1,,2: a value is empty; wanted one between any two commas"),
        ("dt=1,2,1", "--scan dt=1,2,1: the value 1 is there twice; wanted it once"),
        ("seed=4..1", "--scan seed=4..1: wanted a first number that is no larger than the last, and at most 1,000,000 of them"),
        ("dt=1:2:1", "--scan dt=1:2:1: wanted FIRST:LAST:COUNT of two finite numbers and at least 2 values"),
        ("dt=0.1:1", "--scan dt=0.1:1: FIRST:LAST without a count; wanted FIRST:LAST:COUNT, as dt=0.1:1:5 for five values"),
        ("seed=1:5", "--scan seed=1:5: FIRST:LAST without a count; wanted FIRST:LAST:COUNT, as seed=1:5:5 for five values, or seed=1..5 for all integers"),
        ("dt=a:2:3", "--scan dt=a:2:3: wanted FIRST:LAST:COUNT of two finite numbers and at least 2 values"),
        ("dt=-1:2:3log", "--scan dt=-1:2:3log: steps by factors want two numbers of one sign, not zero"),
    ],
)  # fmt: skip
def test_texts_that_mean_nothing(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        axis_of(text)
    assert str(raised.value) == said


def test_the_last_axis_is_the_fastest() -> None:
    axes = [axis_of("a=1,2"), axis_of("b=x,y")]
    assert points(axes) == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]
    assert points([]) == [()]


def test_too_many_units_are_refused() -> None:
    with pytest.raises(InputError, match="the scan has 1,000,000,000 units; wanted at most 1,000,000"):
        points([axis_of(f"{name}=1..1000") for name in "abc"])
