"""Bound calls whose values change with the step: what they launch is made a piece of steps
ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lanewise.launch.by_step import SteppedLaunch
from lanewise.launch.compiled import Call
from lanewise.loops.flat import fillable, filling
from lanewise.loops.searches import Searching
from lanewise.runtime.prepared import Prepared
from lanewise.runtime.programs import Work

Fill = Callable[[Mapping[str, Any]], Work]


class InSteps:
    """The launches of a call for the steps to come. Calling it runs the next one."""

    __slots__ = ("_again", "_coming", "_fill", "_stepped")

    def __init__(
        self, stepped: SteppedLaunch, again: Callable[[Call], Work], searching: Searching | None
    ) -> None:
        """again: what runs a call that was bound anew. searching: where it is over a search."""
        self._stepped, self._again = stepped, again
        self._coming: deque[Work] = deque()
        self._fill = _filling(stepped, searching)

    def __call__(self) -> None:
        self._coming.popleft()()

    def clear(self) -> None:
        """Forget steps that did not come."""
        self._coming.clear()

    def add(self, step: int) -> None:
        """Make the launch of the next step. Raises what the user's function raises."""
        stepped = self._stepped
        values = stepped.arguments.at(step)
        numbers = None if self._fill is None else stepped.converted(values)
        if self._fill is None or numbers is None:
            self._coming.append(self._again(stepped.bound_again(step, values)))
        else:
            self._coming.append(self._fill(numbers))


def _filling(stepped: SteppedLaunch, searching: Searching | None) -> Fill | None:
    """What makes a launch of numbers; None where a step takes more than these."""
    leaves = frozenset(n for slot in stepped.slots.values() for n in slot.leaves)
    launch = stepped.launch
    if searching is not None:
        return partial(partial, searching) if searching.takes(leaves) else None
    if isinstance(launch, Prepared) and fillable(launch, leaves):
        return filling(launch, leaves)
    return None
