"""What a search is to a pairwise kernel: what is requested (Search), what was built (Structure),
how a kernel runs through it (Walk).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.launch.task_list import BoundArray, Part, Renamed, Written
from lanewise.launch.tasks import Buffer, Primitive, Role
from lanewise.layouts import Arrangement
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.sight import Sight
from lanewise.patterns.search.worlds import Bounded, Open, Periodic, World, world_dimension
from lanewise.runtime.memory import Need, PlannedPieces
from lanewise.support.checks import finite, shown
from lanewise.support.errors import ArgumentError

STRUCTURED = (2, 3)  # axes that grids, curves and trees divide
MOST_NEIGHBORS = 32  # of a list of the nearest, which is kept in registers

Visit = Callable[[ir.Local], ir.Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(ABC):
    """Determines which sources a target meets.

    Searches are frozen dataclasses, compared and hashed by value.

    radius: sources nearer than this are met (None: at any distance). k: only the k nearest of them
    (None: all). world: the space of the elements. position: the field with the position of an
    element: a vec2, vec3, dvec2 or dvec3.
    """

    radius: float | None = None
    k: int | None = None
    world: World = field(default_factory=Open)
    position: str = "position"
    any_axes: ClassVar[bool] = False  # whether positions may have any number of axes
    any_distance: ClassVar[bool] = False  # whether the farthest of all sources counts

    def __post_init__(self) -> None:
        for name in ("radius", "k"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        check_radius(type(self).__name__, self.radius)
        check_k(type(self).__name__, self.k)
        position: Any = self.position
        if not isinstance(position, str) or not position:
            raise ArgumentError(
                f"{type(self).__name__}(position={shown(position)}): wanted the name of a field, "
                "such as 'position'"
            )
        world: Any = self.world
        if not isinstance(world, Open | Periodic | Bounded):
            raise ArgumentError(
                f"{type(self).__name__}(world={shown(world)}): wanted lw.Open(), lw.Periodic(size) "
                "or lw.Bounded(low, high)"
            )
        if (
            isinstance(world, Periodic)
            and self.radius is not None
            and 2 * self.radius > min(world.size)
        ):
            raise ArgumentError(
                f"{type(self).__name__}(radius={self.radius:g}): in a periodic world a radius is "
                "at most half the smallest size, "
                f"{min(world.size) / 2:g}"
            )

    @abstractmethod
    def describe(self) -> str:
        """A short description for reports."""

    @abstractmethod
    def make(self, sources: Points) -> Walked:
        """A structure for these sources; its memory is allocated on first use,
        and filled by its launches.

        Raises `ArgumentError` for settings that do not fit together, `DeviceError` for cells that
        do not fit the memory.
        """

    def structure(self, targets: Points, sources: Points) -> Structure:
        """A structure for a call; targets: the same object as `sources` if they are the same
        elements.
        """
        del targets
        return self.make(sources)

    def plan(self, points: Points) -> Search:
        """The concrete search for these sources: automatic searches choose one, all others return
        themselves.
        """
        del points
        return self

    @property
    def sees(self) -> Sight | None:
        """What a target sees; None: everything."""
        return None

    def in_words(self) -> str:
        """Which sources a target meets, in words."""
        within = "" if self.radius is None else f" within {self.radius:g}"
        beyond = "" if isinstance(self.world, Open) else f", {self.world}"
        return (f"the {self.k} nearest{within}" if self.k is not None else f"all{within}") + beyond


class Walk(ABC):
    """How a kernel runs through a structure: plain IR. Walks are frozen dataclasses; equal ones
    make equal kernels.

    Their index type is 32 bits on a GPU and 64 on a CPU. Names of arrays and uniforms start with
    `$`; what a walk assigns in the kernel starts with `$walk.`.
    """

    __slots__ = ()

    @abstractmethod
    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        """The arrays that it reads; the structure has them by the same names."""

    @abstractmethod
    def uniforms(self) -> tuple[ir.Parameter, ...]:
        """The uniform arguments that it reads; the structure has them by the same names."""

    @abstractmethod
    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        """Loops that run the block `visit(j)` for every source j, in sorted places, that may lie
        nearer than sqrt(bound2) to `place`.

        `visit` is called once, for the block of the innermost loop. `bound2` is the squared
        distance in the precision of the positions; it may be a local that shrinks while a list of
        the nearest fills, so that a walk may leave out what lies farther than it is then (not what
        lies exactly at it).
        """


@dataclass(frozen=True, slots=True)
class Statistics:
    """How well a structure divides its sources, for people: cells or leaves, how full they are,
    threads without work; active ones of these are in warps with work, which they slow down.
    """

    cells: int
    occupied: int
    least: int
    most: int
    mean: float
    idle_threads: int = 0
    active_idle_threads: int = 0


class Structure(ABC):
    """What was built for some sources. It owns its memory on their device.

    every: of a loop's steps, those whose number is a multiple of it fill it anew.
    """

    every: ClassVar[int] = 1

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        """Its memory, which is there when its arrays are first requested or orders."""
        return ()

    @property
    def memory(self) -> tuple[Need, ...]:
        """What it allocates then."""
        return tuple(p.need for p in self.planned)

    @property
    def ordered(self) -> bool:
        """Whether it puts sources in its own order."""
        return True

    @property
    def targets_ordered(self) -> bool:
        """Whether it does so with targets that are other elements."""
        return False

    @property
    @abstractmethod
    def order(self) -> Any:
        """The sorted places: an int32 array of the caller's indices on the device; None where
        sources stay in their own order.
        """

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, BoundArray]:
        """The arrays that the walk reads, by name."""

    @property
    @abstractmethod
    def arrangements(self) -> Mapping[str, Arrangement]:
        """How these arrays lie in memory, by name; nothing is allocated for that."""

    @property
    @abstractmethod
    def uniforms(self) -> Mapping[str, Any]:
        """The uniform arguments that the walk reads, by name."""

    @property
    def target_order(self) -> Any:
        """The same of targets that are other elements; None where they stay in their own order."""
        return None

    @abstractmethod
    def tasks(self) -> Sequence[Primitive]:
        """What rebuilds it from the present positions, `POSITIONS`: no allocation and, where
        `in_graphs`, no transfer to the host.
        """

    def buffers(self) -> Mapping[str, Buffer]:
        """Its memory: what a walk reads, the order, and what its tasks use among themselves."""
        arrays = self.arrangements
        touched = dict.fromkeys(a.buffer for task in self.tasks() for a in task.accesses)
        names = [n for n in {**arrays, **touched} if n not in (POSITIONS, TARGET_POSITIONS)]
        clean = self.cleared
        return {
            n: Buffer(
                n, Role.KEPT if n in clean else Role.TEMPORARY, arrays.get(n), clean=n in clean
            )
            for n in names
        }

    def parts(self, names: Mapping[str, str], device: str) -> list[Part]:
        """Its tasks as parts of a call, which has other names for its buffers."""
        buffers = self.buffers()
        made: list[Part] = []
        for task in self.tasks():
            touched = {a.buffer: buffers[a.buffer] for a in task.accesses if a.buffer in buffers}
            made.append(Renamed(Written(task, device, touched), names))
        return made

    @property
    def cleared(self) -> frozenset[str]:
        """The names of `clean`."""
        return frozenset()

    @property
    def clean(self) -> Mapping[str, BoundArray]:
        """What of its memory is zero before and after its tasks, by name.

        A call of which they are a part takes it, to make it zero again after an exception.
        """
        return {}

    @abstractmethod
    def kind(self, index: Scalar) -> Hashable:
        """What of it decides which kernels run through it, with indices of this type."""

    @property
    def settled(self) -> bool:
        """Whether it fits wherever the sources are."""
        return False

    def fits(self, sources: Points) -> bool:
        """Whether a structure made now would be this one, but for what launches fill.

        sources: the elements that it was made for, which lie in the same memory and may have moved
        since.
        """
        del sources
        return self.settled

    @property
    def in_graphs(self) -> bool:
        """Whether a graph can hold its launches: not where the host builds what a GPU searches."""
        return not any(task.waits for task in self.tasks())

    @abstractmethod
    def statistics(self) -> Statistics:
        """Of the present contents. Waits for the device."""

    def turns(self) -> Mapping[str, float]:
        """How often the loops of its walk run for a target among the sources, on average, by their
        variables.

        Nothing where only the walk itself finds out: among boxes of a tree, and in rings.
        """
        return {}

    @abstractmethod
    def describe(self) -> str:
        """What was built, with its figures, in one line."""


class Walked(Structure):
    """A structure that the kernel of any pairwise function runs through."""

    @abstractmethod
    def walk(self, index: Scalar) -> Walk:
        """The way through it, with indices of this type."""

    def kind(self, index: Scalar) -> Hashable:
        return self.walk(index)


HOST_BUILDS = 'the host builds its structure; build="device" of the search leaves that to the GPU'
RADIUS2 = own("radius2")  # the uniform with the squared radius
TARGET_POSITIONS = own("target.positions")  # and the targets, where these are others
ORDER = own("order")  # the array with the caller's index of every sorted place
POSITIONS = own("positions")  # what tasks of a structure name the sources


def radius2(search: Search, precision: Scalar) -> Any:
    """The squared radius in the precision of the positions, rounded once; infinite without a
    radius.

    Raises `ArgumentError` where the precision does not hold the square.
    """
    if search.radius is None:
        return precision.dtype.type(math.inf)
    square, limits = float(search.radius) * float(search.radius), np.finfo(precision.dtype.name)
    if not float(limits.tiny) <= square <= float(limits.max):
        raise ArgumentError(
            f"radius={search.radius:g}: its square {square:g} is beyond the numbers of {precision}"
        )
    return precision.dtype.type(square)


def reach(search: Search, precision: Scalar, axes: int) -> float:
    """The largest coordinate that the arithmetic of a search holds.

    Where the farthest source counts, or may be one of the nearest, the squares of all distances
    have to be finite: 4 axes reach^2 is the largest number. Else an infinite square is only farther
    than the radius, but differences have to be finite.
    """
    most = _largest(precision)
    farthest = search.any_distance or (search.k is not None and search.radius is None)
    return math.sqrt(most / 4 / axes) if farthest else most / 4


@cache
def _largest(precision: Scalar) -> float:
    return float(np.finfo(precision.dtype.name).max)


def plain_number(value: Any) -> Any:
    """A number of NumPy's as Python's; anything else as it is."""
    return value.item() if isinstance(value, np.number) else value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def check_radius(name: str, radius: Any) -> None:
    """Raise `ArgumentError` for a radius that is not a positive finite number."""
    if radius is None:
        return
    number = isinstance(radius, (int, float)) and not isinstance(radius, bool)
    if not number or not finite(radius) or radius <= 0:
        raise ArgumentError(f"{name}(radius={shown(radius)}): wanted a positive number")


def check_k(name: str, k: Any) -> None:
    """Raise `ArgumentError` for a number of neighbours that no kernel is made for."""
    if k is None:
        return
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_NEIGHBORS:
        raise ArgumentError(
            f"{name}(k={shown(k)}): wanted an integer from 1 to {MOST_NEIGHBORS}, the longest "
            "list that is kept in registers"
        )


def check_sources(search: Search, sources: Points) -> None:
    """Raise `ArgumentError` where a search asks for more neighbours than there are sources, or its
    world has other axes.
    """
    if search.k is not None and search.k > sources.count:
        raise ArgumentError(f"{search.describe()}: there are only {sources.count:,} sources")
    if sources.dimension not in STRUCTURED and not search.any_axes:
        raise ArgumentError(
            f"{search.describe()}: positions of {sources.dimension} axes are met by all pairs, and "
            "structures divide two or three: choose "
            "lw.AllPairs, or no search at all"
        )
    axes = world_dimension(search.world)
    if axes is not None and axes != sources.dimension:
        raise ArgumentError(
            f"{search.describe()}: the world has {axes} axes, and the positions have "
            f"{sources.dimension}"
        )
