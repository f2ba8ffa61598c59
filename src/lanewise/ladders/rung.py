"""What a ladder consists of: rungs that were measured or skipped, and the ladder that makes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One version of a kernel at one size: measured, or skipped with the reason.

    Attributes:
        name: what this version is, unique within a ladder at one size.
        bodies: elements of the run.
        seconds: median time of one run of the kernel; None when skipped.
        over: the name of the rung that `speedup` and `predicted` compare with; None for a first one.
        speedup: seconds of `over` / seconds of this rung.
        predicted: the same factor by the model, None where it says nothing.
        predicted_seconds: the model's time of this rung.
        paper: the same factor in the paper, for each of its machines.
        relative_error: max |x - x64| / max |x64| over the checked elements, x64 computed in float64 by NumPy.
        skipped: why there is no time: the reason of the pass that refused, the check that failed, or the time that it
            would take.
        device: where it ran.
        layout: how the records lie in memory.
        plan: what differs from the neutral plan.
        extra: further numbers and words of this ladder, keys of their own in the JSON.
    """

    name: str
    bodies: int
    seconds: float | None = None
    over: str | None = None
    speedup: float | None = None
    predicted: float | None = None
    predicted_seconds: float | None = None
    paper: Mapping[str, float] | None = None
    relative_error: float | None = None
    skipped: str | None = None
    device: str = "cpu"
    layout: str | None = None
    plan: str | None = None
    extra: Mapping[str, float | int | str | None] = field(default_factory=dict[str, float | int | str | None])

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.skipped is None):
            raise ValueError(f"rung {self.name!r}: wanted either a time or the reason why there is none")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `extra` is merged in; numbers that JSON does not have (NaN, infinity) are None."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        own["paper"] = None if self.paper is None else dict(self.paper)
        if taken := own.keys() & self.extra.keys():
            raise ValueError(f"rung {self.name!r}: {', '.join(sorted(taken))} cannot be an extra key")
        return {name: _finite(value) for name, value in {**own, **self.extra}.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Options:
    """What a user chooses. `bodies` are the sizes, in order; `quick` asks for few repeats and the cheap rungs.

    worlds: radii for flocks; empty: those of the ladder.
    """

    device: str
    bodies: tuple[int, ...]
    quick: bool = False
    seed: int = 0
    worlds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table that only this ladder has: its heading, and the text of a rung."""

    heading: str
    text: Callable[[Rung], str]


@dataclass(frozen=True, slots=True)
class Rate:
    """What a picture shows as the rate of a rung: the key of an extra number, and the name and size of the axis's unit."""

    key: str = "pairs_per_second"
    text: str = "billions of pairs a second"
    unit: float = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """A series of rungs.

    Attributes:
        name: as on the command line.
        title: one line for the table and the plot.
        source: the paper that the figures come from.
        sizes: the numbers of bodies when the user gives none, for (device, quick).
        climb: makes the rungs, one after the other, each as soon as it is known.
        columns: what the table has beside the columns of all ladders.
        summary: lines below the table: totals, shares of a bound, the paper's totals.
        elements: what the numbers of bodies count.
        rate: what a picture shows beside the factors, where rungs have it.
        draw: writes the picture of (path, ladder, rungs, machine); None: bars of factors.
    """

    name: str
    title: str
    source: str
    sizes: Callable[[str, bool], tuple[int, ...]]
    climb: Callable[[Options], Iterator[Rung]]
    columns: tuple[Column, ...] = ()
    summary: Callable[[list[Rung]], list[str]] = lambda rungs: []
    elements: str = "bodies"
    rate: Rate = Rate()
    draw: Callable[[Path, Ladder, list[Rung], str], None] | None = None
