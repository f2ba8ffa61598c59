"""What single points of a case are, by its own function in Python on float64 numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tests.zoo.generate import Array, Case

TOLERANCE = 8 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one point of a grid writes: the places and their values."""

    point: tuple[int, ...]
    places: tuple[Array, ...]
    values: Array


def check(
    case: Case,
    python: Callable[..., Any],
    given: dict[str, Array],
    found: Array,
    grid: tuple[int, ...],
    *,
    points: int = 12,
) -> float:
    """The largest error among some points of the grid, in parts of what rounding may make; elements that they write are
    compared.

    Raises `AssertionError` where one is wrong.
    """
    return compare(case, answers(case, python, given, grid, points=points), given, found)


def answers(
    case: Case, python: Callable[..., Any], given: dict[str, Array], grid: tuple[int, ...], *, points: int
) -> list[Answer]:
    """What some points of the grid write; the function runs once for each."""
    rng = Random(case.seed)
    exact = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in given.items()}
    exact[case.written] = given[case.written].astype(
        np.float64
    )  # in which what is not written is told from a boolean, too
    told: list[Answer] = []
    for _ in range(points):
        point = tuple(rng.choice((0, n - 1, rng.randrange(n))) for n in grid)
        exact[case.written][...] = case.unwritten
        with np.errstate(all="ignore"):
            python(*point, **exact)
        wanted = exact[case.written]
        places = np.nonzero(~np.isnan(wanted) if np.isnan(case.unwritten) else wanted != case.unwritten)
        assert len(places[0]), "the point writes nothing"
        told.append(Answer(point, places, wanted[places]))
    return told


def compare(case: Case, told: list[Answer], given: dict[str, Array], found: Array) -> float:
    """The largest error beside what points write, in parts of what rounding may make.

    Raises `AssertionError` where one is wrong.
    """
    worst = 0.0
    for answer in told:
        values, places = answer.values, answer.places
        # of the terms of a sum some cancel: what rounds is as large as they are
        scale = np.maximum(np.abs(values), 1.0) * np.sqrt(_terms(given))
        mine = found[places].astype(np.float64)
        with np.errstate(invalid="ignore"):
            errors = np.abs(mine - values) / (TOLERANCE * scale)
        if found.dtype.kind != "f":
            errors = np.full_like(errors, np.inf)
        errors = np.where((mine == values) | np.isnan(mine) & np.isnan(values), 0.0, errors)
        if case.signed:
            errors = np.where((values == 0) & (np.signbit(mine) != np.signbit(values)), np.inf, errors)
        assert np.all(errors <= 1), (
            f"seed {case.seed}, {answer.point}: {found[places][:4]} for {values[:4]}\n{case.text}"
        )
        worst = max(worst, float(errors.max()))
    return worst


def _terms(given: dict[str, Array]) -> int:
    """At most so many terms come to one element."""
    return max(max(a.shape) for a in given.values()) * 16
