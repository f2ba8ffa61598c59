"""Calls over a structure that fits wherever the elements are: a quick look at their positions, and
the launches that follow it.

On a CPU compiled code says whether all positions can be used. On a GPU a graph looks at them, says
so to the host, and fills the structure; the kernel is launched behind it while the host waits for
the answer. Where the look finds something, the results are dropped: the call goes the way that
looks at each position, and says which one it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from lanewise.language.target import is_gpu
from lanewise.language.types import component
from lanewise.launch.sized import Result, Sized
from lanewise.patterns.search.points import Bounds, Points
from lanewise.patterns.search.worlds import World
from lanewise.primitives.survey import ANSWER, ANSWER_THREADS, survey_launch
from lanewise.runtime.cpu import own_kernel
from lanewise.runtime.device import get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.memory import address
from lanewise.runtime.prepared import Flat, Views
from lanewise.runtime.programs import Work
from lanewise.support.errors import DeviceError

Look = tuple[Points, Bounds]
"""Positions, and the bounds that they have to lie in, one an axis."""

NONE = 0xFFFFFFFF
ANSWERS = 0x7FFFFFFF  # looks are counted up to here, and from 0 again
SPINS = 300  # questions before other threads are let through, about 15 microseconds


class Unsound(Exception):
    """Some position cannot be used; what was launched meanwhile is of no use."""


# ------------------------------------------------------------ on the host

_WITHIN = '''"""Whether all coordinates lie within their bounds; what is no number does not."""


def positions_within_kernel({arguments}, ends):
    {bounds} = {ends}
    outside = 0
    for i in range(len(x)):
        if not ({inside}):
            outside += 1
    return outside == 0
'''


@cache
def _within_text(axes: int) -> str:
    names = [component(axis) for axis in range(axes)]
    bounds = [f"{end}_{c}" for c in names for end in ("low", "high")]
    inside = " and ".join(f"{c}[i] >= low_{c} and {c}[i] <= high_{c}" for c in names)
    ends = ", ".join(f"ends[{n}]" for n in range(len(bounds)))
    return _WITHIN.format(
        arguments=", ".join(names), bounds=", ".join(bounds), ends=ends, inside=inside
    )


def _host_look(
    points: Points, bounds: Bounds
) -> tuple[Callable[..., bool], tuple[Any, ...]] | None:
    """None for positions in blocks, whose columns are copies, and for memory that nothing may
    write.
    """
    columns = points.columns()
    if not all(np.may_share_memory(c, points.data) and c.flags.writeable for c in columns):
        return None
    kind: Any = points.precision.dtype.type
    most: Any = np.finfo(points.precision.dtype.name).max  # infinities are not let through either
    with np.errstate(over="ignore"):
        ends = [kind(min(max(kind(x), -most), most)) for pair in bounds for x in pair]
    look = own_kernel(_within_text(points.dimension), "positions_within")
    given = (*columns, np.array(ends))
    return look.function_for(given), given


class Guard:
    """What a bound call asks of positions each time before it builds its structure, on a GPU by
    `DeviceFilling`.

    On the host nothing is compiled for it the first time, when the positions were checked by
    `bind`. name: of the array, for errors.
    """

    __slots__ = ("_look", "_looked", "_name", "_points", "_reach", "_world")

    def __init__(self, name: str, points: Points, world: World, reach: float) -> None:
        self._name, self._points, self._world, self._reach = name, points, world, reach
        self._look: tuple[Callable[..., bool], tuple[Any, ...]] | None = None
        self._looked = 0

    def __call__(self) -> None:
        """Raise `ArgumentError` for the first position that no search can use, as a plain call
        does.
        """
        look = self._look
        if look is not None and look[0](*look[1]):
            return
        self.check()
        if self._looked == 1:  # a second call means that there will be many
            self._look = _host_look(*self.look)
        self._looked += 1

    @property
    def look(self) -> Look:
        return self._points, self._points.bounds(self._world, self._reach)

    def check(self) -> None:
        """Look at each position, and say which one it is."""
        self._points.again().check(self._name, self._world, self._reach)


# ------------------------------------------------------------ on a GPU


class DeviceLook:
    """A look at positions and the launches that fill a structure, as one graph; its answer comes
    through memory of the host.

    Looks are counted on both sides, so that no answer is taken for that of another look. One at a
    time: its owner has its lease.
    """

    __slots__ = ("_answer", "_begun", "_device", "_lost", "_replay", "_state")

    def __init__(self, device: str, looks: Sequence[Look], filling: Sequence[Work]) -> None:
        self._device, self._begun, self._lost = device, 0, False
        there = get_device(device)
        host: Any = there.pinned(8, "the answer of a look at positions").view(np.uint32)
        host[:] = 0
        self._answer = memoryview(host)
        self._state = there.arrays.asarray(np.array([NONE, NONE, 0], np.uint32))
        first, told = address(self._state), address(host)
        answer = there.load(ANSWER, "look_answer", ANSWER_THREADS)

        def work() -> None:
            for points, bounds in looks:
                survey_launch(
                    device,
                    points.survey_text(),
                    points.addresses(),
                    points.count,
                    points.precision.dtype,
                    bounds,
                    first,
                )
            answer.launch((1, 1), (first, first + 8, told))
            for fill in filling:
                fill()

        self._replay = there.replay(work)

    def begin(self) -> None:
        """Put the look and what follows it on the current stream."""
        if self._lost:  # an exception came between a look and its answer
            get_device(self._device).synchronize()
            self._begun = self._answer[0] >> 1
        self._lost, self._begun = True, (self._begun + 1) & ANSWERS
        self._replay()

    def sound(self) -> bool:
        """Wait for the answer: whether all positions can be used."""
        answer, begun = self._answer, self._begun
        for _ in range(SPINS):
            if answer[0] >> 1 == begun:
                break
        else:
            self._wait()
        self._lost = False
        return not answer[0] & 1

    def _wait(self) -> None:
        """Let other threads run, and see whether the device still works at it."""
        device = get_device(self._device)
        with device.use():
            while self._answer[0] >> 1 != self._begun:
                os.sched_yield()  # a sleep, even of no time, takes up to 50 microseconds
                if device.is_busy():
                    continue
                device.synchronize()  # which raises what went wrong
                if self._answer[0] >> 1 != self._begun:
                    raise DeviceError(f"checking positions on {self._device!r} returned no result")


class WatchedTemplate:
    """The launches of a call that waits for its results and its values, behind a look at
    positions.
    """

    __slots__ = ("_device", "_filling", "_kernel", "_lease", "_look", "_looks")

    def __init__(
        self,
        device: str,
        looks: tuple[Look, ...],
        filling: Sequence[Work],
        kernel: Flat,
        lease: Lease,
    ) -> None:
        self._device, self._looks, self._filling, self._kernel, self._lease = (
            device,
            looks,
            filling,
            kernel,
            lease,
        )
        self._look: DeviceLook | None = None

    def launch(self, views: Views, values: Mapping[str, Any]) -> None:
        with self._lease:
            look = self._look
            if look is None:
                self._look = look = DeviceLook(self._device, self._looks, self._filling)
            look.begin()
            self._kernel.launch(views, values)
            if not look.sound():
                raise Unsound


class DeviceFilling:
    """What a bound call on a GPU does before its kernel: it looks at positions, fills its
    structure, and waits for the answer.

    in_graphs: whether the filling may be captured. The owner of the call has its lease. While a
    graph is captured there is no answer to wait for: the structure is filled without a look.
    """

    __slots__ = ("_device", "_fill", "_guards", "_in_graphs", "_look")

    def __init__(self, device: str, guards: tuple[Guard, ...], fill: Work, in_graphs: bool) -> None:
        self._device, self._guards, self._fill, self._in_graphs = device, guards, fill, in_graphs
        self._look: DeviceLook | None = None

    def __call__(self) -> None:
        """Raise `ArgumentError` for the first position that no search can use, as a plain call
        does.
        """
        if self._guards and not get_device(self._device).is_capturing():
            look = self._look
            if look is None:
                looks = [guard.look for guard in self._guards]
                filling = (self._fill,) if self._in_graphs else ()
                self._look = look = DeviceLook(self._device, looks, filling)
            look.begin()
            if not look.sound():
                for guard in self._guards:  # where they say nothing, nothing is wrong any more
                    guard.check()
            elif self._in_graphs:
                return
        self._fill()


def watched(looks: tuple[Look, ...], launches: Flat, results: Sequence[Result]) -> Sized | None:
    """The launches of a call behind a look at positions, or None; they raise `Unsound`."""
    device, lease = looks[0][0].device, launches.lease
    assert lease is not None
    if is_gpu(device):
        kernel = replace(launches, first=(), lease=None)
        behind = WatchedTemplate(device, looks, launches.first, kernel, lease)
        return Sized.of(behind, results, own=True)
    checks = [_host_look(*look) for look in looks]
    quick = tuple(partial(_require, *c) for c in checks if c is not None)
    if len(quick) < len(checks):
        return None
    return Sized.of(replace(launches, first=(*quick, *launches.first)), results, own=True)


def _require(within: Callable[..., bool], given: tuple[Any, ...]) -> None:
    """Raise `Unsound` for a position that cannot be used."""
    if not within(*given):
        raise Unsound
