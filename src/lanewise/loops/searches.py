"""Bound calls over a search in a loop: the look at positions, the structure, the walk.

`follow`: where the choice of a structure, or its cells, follow the positions, every step looks at
them as a plain call does. `keep`: the structure of `bind` stays, and launches fill it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from lanewise.launch.steps.task import Clock
from lanewise.loops.flat import fillable, filling
from lanewise.patterns.search.base import HOST_BUILDS
from lanewise.patterns.search.searched_launch import SearchedLaunch
from lanewise.patterns.search.watched import Guard
from lanewise.primitives.survey import NONE, survey_launch
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import to_host
from lanewise.runtime.prepared import at_a_stretch
from lanewise.runtime.programs import NamedLaunch, Work
from lanewise.support.errors import ArgumentError

Structures = Literal["follow", "keep"]
BUILD = "build"  # the stage of what is done before a search
FOLLOWS = (
    "the host checks in every step where the elements are, as a plain call does, and may choose "
    "another structure or other cells; lw.StaticGrid in lw.Periodic(...) or lw.Bounded(...) needs "
    "no look, and "
    'structures="keep" continues with those of bind'
)
TESTS = "checks=True waits for its tests in every step"


def why_alone(launch: SearchedLaunch, structures: Structures) -> str:
    """Why no graph can hold the call; "" where one can."""
    if structures == "follow" and launch.follow is not None:
        return FOLLOWS
    if launch.kernel.waits:
        return TESTS
    return "" if launch.structure.in_graphs else HOST_BUILDS


class Searching:
    """A call over a search as one function. numbers: instead of those that it was bound with."""

    __slots__ = ("_clock", "_fill", "_follows", "_kernel", "_launch")

    def __init__(self, launch: SearchedLaunch, structures: Structures, clock: Clock) -> None:
        self._clock = clock
        self._take(launch)
        self._follows = structures == "follow" and launch.follow is not None

    def _take(self, launch: SearchedLaunch) -> None:
        """Its parts are made once, and not in every step."""
        self._launch, self._kernel = launch, launch.kernel
        self._fill: Work = launch.fill if launch.looked is None else launch.looked

    def __call__(self, numbers: Mapping[str, Any] | None = None) -> None:
        self.look()
        kernel: Work = self._kernel.run
        if numbers is not None:
            kernel = filling(self._kernel, frozenset(numbers))(numbers)
        with self._launch.lease:
            try:
                self._fill()
            except ArgumentError as error:
                raise self._found(error) from error
            kernel()

    def takes(self, names: Iterable[str]) -> bool:
        """Whether numbers of these names are no more than arguments."""
        return fillable(self._kernel, names)

    def look(self) -> None:
        """Refuse positions that no search can use, and follow where they lead."""
        launch = self._launch
        try:
            if self._follows and launch.follow is not None:
                if (following := launch.follow()) is not None:
                    self._take(following)
                return
            for guard in launch.guards:
                guard()
        except ArgumentError as error:
            raise self._found(error) from error

    def _found(self, error: ArgumentError) -> ArgumentError:
        return _found_in(self._clock, error)


def _found_in(clock: Clock, error: ArgumentError) -> ArgumentError:
    return ArgumentError(f"{error}; found in step {clock.step} of the loop")


@dataclass(frozen=True, slots=True)
class NamingStep:
    """Work that refuses positions, and says in which step."""

    work: Work
    clock: Clock

    def __call__(self) -> None:
        try:
            self.work()
        except ArgumentError as error:
            raise _found_in(self.clock, error) from error


def named(
    launch: SearchedLaunch, name: str, structures: Structures, clock: Clock, *, apart: bool
) -> list[NamedLaunch]:
    """The launches of a call on the host. apart: each for itself, for a profile."""
    searching = Searching(launch, structures, clock)
    if not apart or (structures == "follow" and launch.follow is not None):
        return [NamedLaunch("search", name, searching)]
    calls = [
        NamedLaunch(stage, part, at_a_stretch([launch.launches.part(*ends)], launch.lease))
        for stage, part, ends in _stages(launch, name)
    ]
    if launch.guards:
        calls.insert(0, NamedLaunch(BUILD, "look at positions", searching.look))
    return calls


def _stages(launch: SearchedLaunch, name: str) -> list[tuple[str, str, tuple[int, int]]]:
    """The launches of a call: stage, name, and the first and the end of them. What fills a
    structure (counts, prefix sums, the fill itself, a gather) and what runs between it and the walk
    go by their own names.
    """
    pieces, begin = launch.launches.pieces, launch.builds
    last = begin if launch.kernel.waits else len(pieces) - 1
    made: list[tuple[str, str, tuple[int, int]]] = []
    at = 0
    for stage, end in ((BUILD, begin), ("search", last)):
        for own, some in groupby(pieces[at:end], key=lambda p: p.name):
            made.append((stage, own, (at, at := at + len(list(some)))))
    return [*made, ("search", name, (at, len(pieces)))]


class DeviceLooks:
    """A look at the positions of a call before each of its steps on a GPU, within graphs.

    What it finds stays in the memory of the device until a piece of steps is over.
    """

    __slots__ = ("_device", "_first", "_guards", "_name")

    def __init__(self, name: str, device: str, guards: tuple[Guard, ...]) -> None:
        self._name, self._device, self._guards = name, device, guards
        self._first = get_device(device).arrays.full(2, NONE, np.uint32)
        self.launch()  # which loads its kernel, before a graph is captured
        with get_device(device).use():
            self._first.fill(NONE)

    def launch(self) -> None:
        """Look at all positions; this goes into the graph."""
        first = int(self._first.data.ptr)
        for guard in self._guards:
            points, bounds = guard.look
            survey_launch(
                self._device, points.survey_text(), points.addresses(), points.count,
                points.precision.dtype, bounds, first,
            )  # fmt: skip

    def examine(self, first: int, last: int) -> None:
        """Raise `ArgumentError` where positions between these steps were of no use."""
        with get_device(self._device).use():
            unsound, outside = (int(x) for x in to_host(self._first))
            if unsound == outside == NONE:
                return
            self._first.fill(NONE)
        where = f"found between step {first} and step {last} of the loop"
        for guard in self._guards:  # says which one it is, where it is still so
            try:
                guard.check()
            except ArgumentError as error:
                raise ArgumentError(f"{error}; {where}") from error
        element = unsound if unsound != NONE else outside
        raise ArgumentError(
            f"{self._name}: the position of element {element} was one that no search can use; "
            f"{where}"
        )


def in_graph(
    launch: SearchedLaunch, name: str, looks: DeviceLooks | None = None, walk: Work | None = None
) -> list[NamedLaunch]:
    """The launches of a call on a GPU that a graph can hold: none waits for the host.

    looks: checks positions before them, on the device. walk: runs after the structure is built,
    instead of the launches of the call.
    """
    calls = [
        NamedLaunch(stage, part, launch.launches.part(*ends))
        for stage, part, ends in _stages(launch, name)
    ]
    if looks is not None:
        calls.insert(0, NamedLaunch(BUILD, "look at positions", looks.launch))
    if walk is not None:
        calls = [*[c for c in calls if c.stage == BUILD], NamedLaunch("search", name, walk)]
    return calls
