"""The axes of a scan: an option of a product, and the values that it takes.

dt=1e-3,5e-4    these
seed=1..4       integers, both ends included
re=100:400:4    so many, equally far apart, both ends included
dt=1e-4:1e-2:3log    so many, each by the same factor larger
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

MOST_UNITS = 1_000_000
_WHOLE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_PAIR = re.compile(r"([-+\d.eE]+):([-+\d.eE]+)")
_SPACED = re.compile(r"([^:]+):([^:]+):(\d+)(log)?")


@frozen
@dataclass(frozen=True, slots=True)
class Axis:
    """An option by its name without dashes, and its values as a command line has them."""

    name: str
    values: tuple[str, ...]


def axis_of(text: str) -> Axis:
    """The axis that a text as `dt=1e-3,5e-4` means; raises InputError for one that means none."""
    name, equals, listed = text.partition("=")
    name = name.strip().lstrip("-").replace("_", "-")
    if not (name and equals and listed.strip()):
        raise InputError(f"--scan {text}: wanted NAME=VALUES, as dt=1e-3,5e-4 or seed=1..4")
    values = _values(text, listed.strip())
    seen = set[float | str]()
    for value in values:
        if (meant := _meant(value)) in seen:
            raise InputError(f"--scan {text}: the value {value} is there twice; wanted it once")
        seen.add(meant)
    return Axis(name, values)


def _meant(value: str) -> float | str:
    """The number that a value is, however it is written; a word itself."""
    try:
        return float(value)
    except ValueError:
        return value


def _values(text: str, listed: str) -> tuple[str, ...]:
    if whole := _WHOLE.fullmatch(listed):
        first, last = int(whole[1]), int(whole[2])
        if not 0 <= last - first < MOST_UNITS:
            raise InputError(
                f"--scan {text}: wanted a first number that is no larger than the last, and at "
                f"most {MOST_UNITS:,} of them"
            )
        return tuple(map(str, range(first, last + 1)))
    if spaced := _SPACED.fullmatch(listed):
        try:
            ends = float(spaced[1]), float(spaced[2])
        except ValueError:
            ends = math.nan, math.nan
        return _between(text, *ends, int(spaced[3]), by_factors=spaced[4] is not None)
    if pair := _PAIR.fullmatch(listed):
        ways = [f"{text}:5 for five values"]
        if all(re.fullmatch(r"-?\d+", end) for end in pair.groups()):
            ways.append(f"{text.replace(':', '..')} for all integers")
        raise InputError(
            f"--scan {text}: FIRST:LAST without a count; wanted FIRST:LAST:COUNT, as "
            + ", or ".join(ways)
        )
    values = tuple(v.strip() for v in listed.split(","))
    if not all(values):
        raise InputError(f"--scan {text}: a value is empty; wanted one between any two commas")
    return values


def _between(
    text: str, first: float, last: float, count: int, *, by_factors: bool
) -> tuple[str, ...]:
    if not (math.isfinite(first) and math.isfinite(last) and 2 <= count <= MOST_UNITS):
        raise InputError(
            f"--scan {text}: wanted FIRST:LAST:COUNT of two finite numbers and at least 2 values"
        )
    if by_factors and not first * last > 0:
        raise InputError(f"--scan {text}: steps by factors want two numbers of one sign, not zero")
    shares = [n / (count - 1) for n in range(1, count - 1)]
    if by_factors:
        inner = [first * (last / first) ** share for share in shares]
    else:
        inner = [first + (last - first) * share for share in shares]
    return tuple(map(repr, (first, *inner, last)))


def points(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    """All combinations of values, those of the last axis fastest; one empty one of no axes."""
    count = math.prod(len(a.values) for a in axes)
    if count > MOST_UNITS:
        raise InputError(
            f"the scan has {count:,} units; wanted at most {MOST_UNITS:,}: fewer values"
        )
    return list(itertools.product(*(a.values for a in axes)))
