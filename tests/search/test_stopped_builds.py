"""A build that is stopped between two of its tasks leaves nothing behind: the next one is right.

Searches on a CPU build their structures here as a GPU does, with kernels that are run as C++.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch import task_list
from lanewise.loops.searches import in_graph
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.reordering import Moved, reorder_task
from lanewise.patterns.search.searched_launch import structure_of
from lanewise.patterns.search.watched import DeviceFilling
from tests.search import emulated_builds
from tests.search.emulated_cuda import COMPILER
from tests.search.numbered import meet_vec3, numbered

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) on this machine")

BOX = lw.Periodic((1, 1, 1))
SEARCHES: dict[str, lw.Search] = {
    "cells": lw.StaticGrid(radius=0.2, cells=4, world=BOX),
    "cells by the host": lw.DynamicGrid(radius=0.2, order="3-D", world=BOX),
    "curve": lw.DynamicGrid(radius=0.2, world=BOX),
}
Way = Callable[[Any, Any], Callable[[], Any]]


class Stopped(KeyboardInterrupt):
    """Ctrl-C, after a task."""


class Stop:
    """Ends a run behind one of its tasks that are written by hand, counted from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left: int | None = None
        flat = task_list._WrittenLaunch.flat

        def counted(launch: Any, bound: Any) -> Callable[[], object]:
            work = flat(launch, bound)

            def run() -> None:
                work()
                if self._left is not None:
                    self._left -= 1
                    if self._left < 0:
                        raise Stopped

            return run

        monkeypatch.setattr(task_list._WrittenLaunch, "flat", counted)
        monkeypatch.setattr(task_list._WrittenLaunch, "__call__", lambda launch, bound: counted(launch, bound)())

    def behind(self, task: int | None) -> None:
        self._left = task


def plain(kernel: Any, points: Any) -> Callable[[], Any]:
    return lambda: kernel(points, points)


def of_other_arrays(kernel: Any, points: Any) -> Callable[[], Any]:
    """Others each time, which share the memory of their structure with one of another size."""
    kernel(*[points[:100].copy()] * 2)

    def run() -> Any:
        kernel(*[points[:200].copy()] * 2)
        return kernel(*[points.copy()] * 2)

    return run


def bound(kernel: Any, points: Any) -> Callable[[], Any]:
    return kernel.bind(points, points)


def behind_a_look(kernel: Any, points: Any) -> Callable[[], Any]:
    """As on a GPU."""
    call = kernel.bind(points, points)
    filling = DeviceFilling("cpu", (), call.launch.fill, in_graphs=True)

    def run() -> Any:
        filling()
        call.launch.kernel.run()
        return call.results

    return run


def in_a_loop(kernel: Any, points: Any, **options: Any) -> Callable[[], Any]:
    call = kernel.bind(points, points)
    loop = lw.steps([call], **options)

    def run() -> Any:
        loop.step = loop.step  # whatever a run that was stopped has left is what we want
        loop.run(1)
        return call.results

    return run


def kept(kernel: Any, points: Any) -> Callable[[], Any]:
    return in_a_loop(kernel, points, structures="keep")


def profiled(kernel: Any, points: Any) -> Callable[[], Any]:
    return in_a_loop(kernel, points, structures="keep", profile=lw.Profile())


def launch_by_launch(kernel: Any, points: Any) -> Callable[[], Any]:
    """What a graph would hold, where it is launched from the host."""
    call = kernel.bind(points, points)
    launches = in_graph(call.launch, "meet")

    def run() -> Any:
        for launch in launches:
            launch()
        return call.results

    return run


def reordered(kernel: Any, points: Any) -> Callable[[], Any]:
    """A structure that brings elements into its order, before the call that shares it."""
    call, spare = kernel.bind(points, points), numbered(np.zeros((len(points), 3), "f4"))
    task = reorder_task(structure_of(call), "cpu", (Moved.of("points", points, spare),))

    def run() -> Any:
        for launch in task.launches({}):
            launch()
        found = np.array(call())  # in the order of places
        at = np.argsort(points.number)
        return found[:, at]

    return run


WAYS: list[Way] = [plain, of_other_arrays, bound, behind_a_look, in_a_loop, kept, profiled, launch_by_launch, reordered]


@pytest.mark.parametrize(
    ("search", "way"),
    [pytest.param(s, w, marks=[] if s == "cells" else pytest.mark.slow) for s in SEARCHES for w in WAYS],
)
def test_the_next_build_is_right(way: Way, search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.random.default_rng(7).random((300, 3)).astype("f4")
    wanted = np.array(meet_vec3.using(lw.AllPairs(radius=0.2, world=BOX))(*[numbered(places)] * 2)[:3])
    emulated_builds.put_in(monkeypatch)
    stop = Stop(monkeypatch)
    points = numbered(places)
    run = way(meet_vec3.using(SEARCHES[search]), points)
    for task in range(len(SEARCHES[search].make(points_of(points, "position")).tasks())):
        for _ in range(2):  # the first call of its kind, one like an earlier one
            np.testing.assert_array_equal(np.array(run()[:3]), wanted)
        stop.behind(task)
        with pytest.raises(KeyboardInterrupt):
            run()
        stop.behind(None)
    np.testing.assert_array_equal(np.array(run()[:3]), wanted)
