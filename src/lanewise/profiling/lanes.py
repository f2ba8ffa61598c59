"""Work of several devices or parts, each of which has its own row in a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class LaneSpan(NamedTuple):
    """When a device or a part began and ended, by `perf_counter_ns`."""

    lane: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class WatchedWork:
    """A launch in whose sampled runs each device is looked at.

    run: as ever. watch: the same, until all devices are done; returns when each was.
    """

    run: Callable[[], object]
    watch: Callable[[], Sequence[LaneSpan]]

    def __call__(self) -> object:
        return self.run()


def until_done(lanes: Mapping[str, Callable[[], bool]], begin: int) -> list[LaneSpan]:
    """Ask lanes in turn whether they are busy, until none is; when each was done, which began at
    `begin`.
    """
    ended: dict[str, int] = {}
    while len(ended) < len(lanes):
        for lane, is_busy in lanes.items():
            if lane not in ended and not is_busy():
                ended[lane] = time.perf_counter_ns()
    return [LaneSpan(lane, begin, ended[lane]) for lane in lanes]
