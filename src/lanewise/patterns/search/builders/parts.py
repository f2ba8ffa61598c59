"""The thesis's dynamic grids in memory: built on the host, and brought to a GPU where the sources
are there.

Builders on the host read positions contiguously, and within a periodic world.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.record import Leaf
from lanewise.language.target import target_of
from lanewise.language.types import I32, Scalar
from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.layouts import AoS, Arrangement
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.builders.around import list_leaves
from lanewise.patterns.search.builders.ordering import (
    LIST,
    Recursive,
    draw_boxes,
    make_parts,
    world_box,
)
from lanewise.patterns.search.builders.tree import margin, node_arrangement
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Bounded, Periodic, World
from lanewise.runtime.memory import PlannedPieces, to_host

INFO = 2  # the number of leaves; the first division, or -1 where there is none


def division_leaves(precision: Scalar) -> tuple[Leaf, ...]:
    """The record of a division: its plane's place and axis, and what lies below and above, a
    division or -1 - a leaf.
    """
    return (Leaf("place", precision), Leaf("axis", I32), Leaf("below", I32), Leaf("above", I32))


def division_arrangement(precision: Scalar) -> Arrangement:
    """A division is one record in memory: a walk needs all of it."""
    return AoS().arrange(division_leaves(precision))


@dataclass(frozen=True, slots=True)
class Mirror:
    """Memory that the host fills, and its copy on the sources' device; on the host the same
    memory. name: of both pieces.
    """

    name: str
    hosts: PlannedPieces
    devices: PlannedPieces

    @property
    def host(self) -> NDArray[np.uint8]:
        return self.hosts[self.name]

    @property
    def device(self) -> Any:
        return self.devices[self.name]

    def send(self, nbytes: int) -> None:
        """Bring what the host wrote to the device, from the beginning on."""
        if self.devices is not self.hosts and nbytes:
            self.device[:nbytes].set(self.host[:nbytes])


class HostParts:
    """Order, leaves and boxes; with a radius also planes and the lists of leaves around each
    cell.
    """

    def __init__(
        self, points: Points, world: World, order: Recursive, leaf: int, radius: float | None
    ) -> None:
        self._points, self._world, self._leaf, self._radius = points, world, leaf, radius
        self._order: Recursive = order
        n, device, precision = points.count, points.device, points.precision
        self.arrangement = node_arrangement(points.dimension, precision)
        self.lists_length = min(n, 4 * n // leaf + LIST)
        sizes = {  # leaves are at most as many as elements
            "boxes": self.arrangement.nbytes(n),
            "starts": 4 * (n + 1),
            "places": 4 * n,
            "info": 4 * INFO,
            "divisions": division_arrangement(precision).nbytes(n) if radius else 0,
            "lists": 4 * (LIST + 1) * self.lists_length if radius else 0,
        }
        host = there = PlannedPieces("cpu", sizes, "a dynamic grid")
        if not target_of(device).host_memory:
            there = PlannedPieces(device, sizes, "a dynamic grid")
        self.planned = tuple(dict.fromkeys((host, there)))
        self.boxes, self.starts, self.places, self.info, self.divisions, self.lists = (
            Mirror(name, host, there) for name in sizes
        )

    @property
    def order(self) -> Any:
        return self.places.device.view("int32")

    def tasks(self, arrays: Iterable[str]) -> tuple[Primitive, ...]:
        """Its only one, which writes these arrays of a call, and the order."""
        touched = (*reading(POSITIONS), *writing(ORDER, *arrays))
        read = ((POSITIONS, self._points.lying_in),)
        return (Primitive("leaves", self.build, touched, waits=True, read=read),)

    def build(self, points: Points | None = None) -> None:
        """Divide the present positions, of these elements or of those that it was made for."""
        places, margins = places_of(points or self._points, self._world)
        parts = make_parts(places, self._order, self._leaf, self._box(places))
        self.places.host.view(np.int32)[:] = parts.order
        self.starts.host.view(np.int32)[: parts.leaves + 1] = parts.starts
        self.info.host.view(np.int32)[:] = parts.leaves, 0 if len(parts.links) else -1
        nodes = self.boxes.host.view(places.dtype).reshape(len(places), -1)
        draw_boxes(parts, self._order, places, margins, nodes, self._points.precision)
        row = nodes.shape[1] * places.itemsize
        self.places.send(4 * len(places))
        self.starts.send(4 * (parts.leaves + 1))
        self.info.send(4 * INFO)
        self.boxes.send(row * parts.leaves)
        if self._radius is not None:
            self._write_divisions(parts.planes, parts.links)
            self._list(parts.planes, parts.links, parts.leaves, nodes)

    def _box(self, places: NDArray[Any]) -> NDArray[np.float64]:
        """The borders of the world, or of the elements in a world without borders."""
        match self._world:
            case Bounded(low=low, high=high):
                return np.array([low, high], np.float64).T.copy()
            case Periodic(size=size, origin=origin):
                return np.array([origin, np.add(origin, size)], np.float64).T.copy()
            case _:
                return world_box(places)

    def _write_divisions(self, planes: NDArray[np.float64], links: NDArray[np.int64]) -> None:
        arrangement = division_arrangement(self._points.precision)
        columns = {
            "place": planes[:, 1],
            "axis": planes[:, 0],
            "below": links[:, 0],
            "above": links[:, 1],
        }
        for slot in arrangement.slots:
            (buffer,) = arrangement.buffers
            view = np.ndarray(
                (len(planes),),
                slot.type.dtype,
                self.divisions.host.data,
                slot.offset,
                (buffer.block,),
            )
            view[:] = columns[slot.leaf]
        self.divisions.send(arrangement.nbytes(len(planes)))

    def _list(
        self, planes: NDArray[Any], links: NDArray[Any], leaves: int, nodes: NDArray[Any]
    ) -> None:
        assert self._radius is not None
        lists = self.lists.host.view(np.int32).reshape(self.lists_length, LIST + 1)
        radius2 = self._radius**2 * (1 + 8 * margin(self._points.precision))
        list_leaves(planes, links, leaves, nodes, self._points.dimension, radius2, lists)
        self.lists.send(4 * (LIST + 1) * min(leaves, self.lists_length))

    def members(self) -> NDArray[np.int64]:
        """Elements of each leaf, at present."""
        leaves = int(to_host(self.info.device).view(np.int32)[0])
        return np.diff(to_host(self.starts.device).view(np.int32)[: leaves + 1].astype(np.int64))


def places_of(points: Points, world: World) -> tuple[NDArray[Any], NDArray[Any]]:
    """Positions, shape (count, axes), and how far wrapping may have moved each by rounding (empty
    where nothing is wrapped).
    """
    dtype = points.precision.dtype
    places: NDArray[Any] = np.empty((points.count, points.dimension), dtype)
    for axis, column in enumerate(points.columns()):
        places[:, axis] = to_host(column)
    if not isinstance(world, Periodic):
        return places, np.empty((0, points.dimension), dtype)
    size: NDArray[Any] = np.array(world.size, dtype)
    origin: NDArray[Any] = np.array(world.origin, dtype)
    largest = dtype.type(max(*world.size, *(abs(o) for o in world.origin)))
    margins = (np.abs(places) + largest) * dtype.type(margin(points.precision))
    places -= size * np.floor((places - origin) * (1 / size))
    return places, margins
