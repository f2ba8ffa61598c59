"""What calibration chooses for an accuracy: method, order, leaves, and how wide groups open.

walk(order=2, leaf=32, opening=0.0043)     the accuracy that estimates aim at
dual(order=4, leaf=32, opening=0.72)       the angle of two groups
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from lanewise.launch.trial import duration
from lanewise.launch.tuned_plans import Entry, Key, read_entry
from lanewise.patterns.search.tree.search import MOST_LEAF, MOST_ORDER, MOST_THETA, Tree
from lanewise.support.numerals import counted

_TEXT = re.compile(r"(walk|dual)\(order=(\d+), leaf=(\d+), opening=([0-9.e+-]+)\)")


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """A tree that may keep an accuracy. opening: of a walk the accuracy that estimates aim at, of
    pairs of groups the angle.
    """

    method: Literal["walk", "dual"]
    order: int
    leaf: int
    opening: float

    def __str__(self) -> str:
        return f"{self.method}(order={self.order}, leaf={self.leaf}, opening={self.opening:.3g})"

    def search(self, asked: Tree) -> Tree:
        """The tree that a call gets instead of the one that was requested."""
        own: dict[str, Any] = {"method": self.method, "order": self.order, "leaf": self.leaf}
        if self.method == "dual":
            return replace(asked, accuracy=None, theta=self.opening, **own)
        return replace(asked, accuracy=self.opening, **own)


def choice_of(search: Tree) -> TreeChoice:
    """The choice whose `search` is this one."""
    opening = search.angle if search.method == "dual" else search.accuracy
    assert opening is not None
    return TreeChoice(search.method or "walk", search.terms, search.leaf, opening)


def choice_from(text: str) -> TreeChoice:
    """The choice that `str` describes; raises `ValueError` for any other text."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no tree; wanted walk(...) or dual(...)")
    method: Any = match[1]
    choice = TreeChoice(method, int(match[2]), int(match[3]), float(match[4]))
    most = MOST_THETA if method == "dual" else 1.0
    sizes = choice.order <= MOST_ORDER and 1 <= choice.leaf <= MOST_LEAF
    if not sizes or not 0 < choice.opening <= most:
        raise ValueError(f"{text!r} is no tree: its numbers are out of range")
    return choice


@dataclass(frozen=True, slots=True)
class Sampled:
    """Errors of a call relative to all pairs: the median, that which 99 % are below, the largest,
    and of how many targets.
    """

    median: float
    most: float
    largest: float
    targets: int

    def as_dict(self) -> dict[str, Any]:
        """For the store."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"median {self.median:.1e}, 99 % {self.most:.1e}, largest {self.largest:.1e} of "
            f"{counted(self.targets, 'target', 'targets')}"
        )


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The fastest tree that kept an accuracy, and why it is that one."""

    choice: TreeChoice
    why: str


def calibrated_of(entry: Entry) -> Calibrated:
    """What an entry of the store says; raises `ValueError` with what is wrong."""
    try:
        choice, errors = choice_from(entry.log["structure"]), Sampled(**entry.log["errors"])
        accuracy = float(entry.log["accuracy"])
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is missing") from error
    except TypeError as error:
        raise ValueError(f"it does not hold what an entry holds: {error}") from error
    return Calibrated(
        choice,
        f"calibrated for an accuracy of {accuracy:g}: 99 % within it predicted, measured {errors}; "
        f"{duration(entry.seconds)} for a call like this one, "
        f"{entry.default_seconds / entry.seconds:.2f} times as fast as uncalibrated",
    )


class CalibratedTrees:
    """What the store says, remembered; see `launch.tuned_plans.Recalled`."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Calibrated | None] = {}

    def find(self, specialisation: Hashable, key: Callable[[], Key]) -> Calibrated | None:
        """What was calibrated for calls of this specialisation, or None."""
        if specialisation not in self._found:
            entry = read_entry(key(), calibrated_of)
            self._found[specialisation] = None if entry is None else calibrated_of(entry)
        return self._found[specialisation]

    def adopt(self, specialisation: Hashable, calibrated: Calibrated) -> None:
        """What was calibrated just now."""
        self._found[specialisation] = calibrated


def sizes_of(value: Any) -> list[tuple[int, bool]]:
    """The power of two next to each number of a value, and whether that is positive."""
    parts = [math.frexp(x) for x in np.asarray(value, np.float64).reshape(-1).tolist()]
    return [(exponent, mantissa > 0) for mantissa, exponent in parts]


def kind_of_tree(asked: Tree, axes: int, values: Mapping[str, Any], places: Sequence[str]) -> str:
    """What decides which tree is best, besides numbers of elements and layouts. values: of a call,
    each to a power of two; places: how crowded the sources are, and targets that are others.
    """
    numbers = ", ".join(f"{n} {size}" for n, size in values.items())
    fixed = ", ".join(
        f"{n}={v}"
        for n in ("theta", "order", "leaf", "method")
        if (v := getattr(asked, n)) is not None
    )
    where = " by ".join(places)
    return f"tree in {axes} axes, accuracy {asked.accuracy:g}; {fixed}; {numbers}; {where}"
