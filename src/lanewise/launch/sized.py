"""What follows from the sizes of a call: launches that wait for arrays, and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lanewise.ir.values import value_array
from lanewise.language import types as t
from lanewise.launch.arguments import (
    shape_of_result,
)
from lanewise.launch.forms import Shape
from lanewise.launch.slots import (
    Given,
)
from lanewise.launch.task_list import REMEDY
from lanewise.runtime.memory import Need, require_together
from lanewise.runtime.prepared import Flat, Views

Holds = Callable[[Mapping[str, Any]], bool]
"""Whether what was proved of a call is so for other values."""


@dataclass(frozen=True, slots=True)
class Result:
    """An array that a call makes: its name in the kernel, its type, how many elements it has, and
    their axes if there are several.
    """

    name: str
    kind: t.ValueType
    count: int
    axes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        shape, _ = shape_of_result(self.kind, self.count, self.axes)
        return shape

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        shape, dtype = shape_of_result(self.kind, self.count, self.axes)
        return math.prod(shape) * dtype.itemsize


def require_for_call(
    name: str, device: str, made: Sequence[Result], needs: Iterable[Need] = ()
) -> None:
    """Refuse a call whose results (`made`) and own memory do not fit the device together, before
    any of that is allocated; raises `DeviceError`.
    """
    several = len(made) > 1
    results = [
        Need(device, r.nbytes, f"result {n} of {len(made)}" if several else "the result")
        for n, r in enumerate(made, 1)
    ]
    require_together(f"a call of {name}", (*results, *needs), REMEDY)


@dataclass(frozen=True, slots=True)
class Repeats:
    """What calls like one have to be like besides.

    device_of: where one would run now. apart: arrays that share no memory, pair by pair. holds:
    whether what was proved of a call of these sizes is so for other values. whole: arrays that any
    thread reads any element of: no result may lie in their memory.
    """

    device_of: Callable[[], str]
    apart: tuple[tuple[str, str], ...]
    holds: Holds | None = None
    whole: tuple[str, ...] = ()


class Launchable(Protocol):
    """Launches that wait for arrays and values: `runtime.prepared.Flat` is one."""

    def launch(self, views: Views, values: Mapping[str, Any], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Sized:
    """What follows from the sizes of a call: launches that wait for arrays, and the results.

    own: records are in the launches already. holds: whether what was proved of a call is so for
    other values. made: names, shapes and types of the results. nbytes: these take.
    """

    flat: Launchable
    results: tuple[Result, ...]
    holds: Holds | None
    made: tuple[tuple[str, tuple[int, ...], Any], ...]
    own: bool = False
    nbytes: int = 0

    @classmethod
    def of(
        cls,
        flat: Launchable,
        results: Sequence[Result],
        holds: Holds | None = None,
        *,
        own: bool = False,
    ) -> Sized:
        made = tuple([(r.name, r.shape, shape_of_result(r.kind, r.count)[1]) for r in results])
        nbytes = sum([r.nbytes for r in results])
        return cls(flat, tuple(results), holds, made, own, nbytes)

    def running(self, launches: Launchable) -> Sized:
        """The same sizes with other launches."""
        return Sized(launches, self.results, self.holds, self.made, self.own, self.nbytes)

    def closed(
        self, arrays: frozenset[str], views: Views, values: Mapping[str, Any]
    ) -> Sized | None:
        """The same with these arrays and all values filled in; None for launches that cannot."""
        if not isinstance(self.flat, Flat):
            return None
        return replace(self, flat=self.flat.closed(arrays, views, values))


Resize = Callable[[tuple[Any, ...], Mapping[str, Any], Given, bool], Sized | None]
"""What follows from the sizes of a call, given its arguments, positional and named, and whether it
makes its results; None for a call that has to go another way.

Raises what is wrong with it, as a first call does.
"""


def both(one: Holds | None, other: Holds | None) -> Holds | None:
    """Whether two things hold that may have been proved."""
    if one is None or other is None:
        return one or other
    return lambda values: one(values) and other(values)


def shapes_of(results: Iterable[Result]) -> dict[str, Shape]:
    """How results lie in memory."""
    return {r.name: (value_array("", r.kind, written=True).arrangement, r.count) for r in results}
