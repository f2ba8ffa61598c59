"""A flock as a picture, and as frames of a movie: what is painted of a moment, and how it is looked
at.

Painted are agents with their headings in perspective, obstacles, the end of the world, and numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.source import FilePath
from lanewise.plot.clusters import clusters
from lanewise.plot.triangles import Canvas
from lanewise.sims.boids.obstacles import Obstacle, Sphere
from lanewise.sims.boids.view.camera import WITH_AGENT, Camera, around, beside, check_camera
from lanewise.sims.boids.view.colours import (
    ClusterColours,
    check_colouring,
    heading_colours,
    scaled_colours,
    speed_table,
)
from lanewise.sims.boids.view.darts import HAZE, dart_length, darts
from lanewise.sims.boids.view.scene import (
    WORLD,
    Edge,
    circle,
    draw_glass,
    draw_obstacles,
    joined,
    lines,
    world_lines,
)
from lanewise.sims.boids.view.text import write_caption
from lanewise.sims.common.films import PICTURE_SIZE, save_pixels
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted


def plot_flock(
    path: FilePath,
    moment: Moment,
    view: View,
    *,
    course: Sequence[tuple[float, float]] = (),
    overwrite: bool = False,
) -> None:
    """One PNG. course: times and polarisations before this moment.

    Raises `InputError` where it cannot be written, or for a view of what there is not.
    """
    check_view(view, moment.ids)
    painter = Painter(view)
    painter.remember(course)
    pixels = painter.paint(moment)
    save_pixels(Path(path), pixels, overwrite=overwrite)


NIGHT = np.array((5, 8, 15), np.float32)
MARKED = (255.0, 255.0, 255.0)
RING = 0.85
"""Its radius around the selected agent, in lengths of a dart."""

MOST_NEAR = 1e-3
"""Half of what the picture shows of a flock in one point."""

TRAIL = 90
"""Frames that the trail behind the selected agent lasts."""


@dataclass(slots=True)
class Painter:
    """Paints one moment after the other: remembers the colours of clusters, how far the camera has
    drawn back, and trails.
    """

    view: View
    _clusters: ClusterColours = field(default_factory=ClusterColours)
    _reach: float = 0.0
    _trail: deque[NDArray[Any]] = field(default_factory=lambda: deque(maxlen=TRAIL))
    _order: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=100_000))
    _selected: int | None = None
    _canvas: Canvas | None = None

    def remember(self, course: Sequence[tuple[float, float]]) -> None:
        """Times and polarisations before the first moment."""
        self._order.extend(course)

    def paint(self, moment: Moment) -> NDArray[np.uint8]:
        """(height, width, 3)."""
        view, size = self.view, self.view.size
        colours, key, said = self._colours(moment)
        camera = self._camera(moment)
        if self._selected is not None:
            colours[self._selected] = MARKED
        canvas = self._canvas = self._canvas or Canvas(background(size[0]), size)
        canvas.clear()
        draw_obstacles(canvas, view.obstacles, view.world, camera, size)
        length = dart_length(len(moment.speed), camera, size)
        canvas.draw(
            darts(moment.position, moment.forward, moment.up, colours, camera, size, length)
        )
        thin = size[0] / 1000
        if not any(
            isinstance(o, Sphere) and o.seen == "inside" and o.radius >= view.world
            for o in view.obstacles
        ):
            # A room as large as the world is its edge as well.
            canvas.draw(
                lines(world_lines(view.edge, view.world), WORLD, 0.55, 1.3 * thin, camera, size),
                solid=False,
            )
        draw_glass(canvas, view.obstacles, view.world, camera, size)
        self._draw_trail(canvas, moment, camera, length)
        if not (self._order and self._order[-1][0] >= moment.time):
            self._order.append((moment.time, moment.polarisation))
        return write_caption(
            canvas.pixels(), view.title, (*moment.numbers, *said), key, tuple(self._order)
        )

    def _colours(self, moment: Moment) -> tuple[NDArray[np.float32], Any, tuple[str, ...]]:
        """Of agents, what they mean, and what is to be said besides."""
        match self.view.colour:
            case "speed":
                table = speed_table()
                key = ("speed", "0", f"{self.view.max_speed:g}", table)
                return scaled_colours(moment.speed, self.view.max_speed, table), key, ()
            case "cluster":
                labels = self._labels(moment)
                sizes = np.bincount(labels)
                said = (
                    f"{(sizes > 1).sum():,} clusters, the largest of {sizes[0]:,}, "
                    f"{(sizes == 1).sum():,} alone"
                )
                return self._clusters.of(labels), None, (said,)
            case _:
                return heading_colours(moment.forward), "heading", ()

    def _labels(self, moment: Moment) -> NDArray[np.int64]:
        period = 2 * self.view.world if self.view.edge == "box" else None
        return clusters(moment.position, self.view.cluster_radius, period)

    def _camera(self, moment: Moment) -> Camera:
        view = self.view
        if view.camera in WITH_AGENT or view.select is not None:
            self._selected = self._selected_row(moment)
        if view.camera in WITH_AGENT:
            row = self._selected
            place, forward, up = (
                np.asarray(a[row], np.float64) for a in (moment.position, moment.forward, moment.up)
            )
            return beside(view.camera, place, forward, up)
        far = 1.04 * float(
            np.percentile(np.linalg.norm(moment.position.astype(np.float64), axis=1), 99.0)
        )
        most = {"sphere": view.world, "box": math.sqrt(3) * view.world, "none": math.inf}[view.edge]
        self._reach = max(self._reach, min(far, most), MOST_NEAR)
        return around(np.zeros(3), self._reach, moment.time, turning=view.camera == "orbit")

    def _selected_row(self, moment: Moment) -> int:
        """The place of the selected agent. Rows keep their agents, so it is looked for once."""
        if self._selected is not None:
            return self._selected
        if self.view.select is not None:
            return int(np.flatnonzero(moment.ids == self.view.select)[0])
        members = np.flatnonzero(self._labels(moment) == 0)
        places = moment.position[members].astype(np.float64)
        return int(members[np.linalg.norm(places - places.mean(axis=0), axis=1).argmin()])

    def _draw_trail(self, canvas: Canvas, moment: Moment, camera: Camera, length: float) -> None:
        """A ring around the selected agent, and the way that it has come."""
        view = self.view
        if self._selected is None or view.camera == "pov":
            return
        here = np.asarray(moment.position[self._selected], np.float64)
        if self._trail and np.linalg.norm(here - self._trail[-1]) > view.world / 2:
            self._trail.clear()  # it has come back at the other side of the world
        self._trail.append(here)
        width = 1.6 * view.size[0] / 1000
        if len(self._trail) > 1:
            fading = np.linspace(0, 0.8, len(self._trail) - 1)
            canvas.draw(
                lines(joined(np.array(self._trail)), MARKED, fading, width, camera, view.size),
                solid=False,
            )
        ring = circle(here, RING * length * camera.right, RING * length * camera.up)
        canvas.draw(lines(ring, MARKED, 0.8, width, camera, view.size), solid=False)


def background(height: int) -> NDArray[np.float32]:
    """Rows (height, 3) from above: night, a little lighter towards the horizon, and darker
    below.
    """
    down = np.linspace(0, 1, height)[:, None]
    glow = np.exp(-(((down - 0.62) / 0.38) ** 2))
    return (NIGHT + glow * (HAZE - NIGHT)).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Agents: vectors (n, 3), speed (n,), ids (n,). numbers: what is said about them, a line
    each.
    """

    time: float
    position: NDArray[Any]
    forward: NDArray[Any]
    up: NDArray[Any]
    speed: NDArray[Any]
    ids: NDArray[np.int64]
    numbers: tuple[str, ...] = ()
    polarisation: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    """How a flock is looked at.

    title: above the numbers. world, edge: the radius of the world, and what its end looks like.
    colour: "heading", "speed" or "cluster". cluster_radius: agents nearer than this are of one
    cluster. camera: see `flock_camera`. select: the number (id) of the agent that the camera goes
    with, and that is marked; None: no agent, or the one in the middle of the largest cluster where
    the camera needs one. max_speed: at the end of the colours of speed. size: height and width in
    pixels.
    """

    title: str
    world: float
    edge: Edge = "sphere"
    obstacles: tuple[Obstacle, ...] = ()
    colour: str = "heading"
    cluster_radius: float = 5.0
    camera: str = "fixed"
    select: int | None = None
    max_speed: float = 9.0
    size: tuple[int, int] = PICTURE_SIZE


def check_view(view: View, ids: NDArray[np.int64]) -> None:
    """Refuse what cannot be shown. Raises `InputError`."""
    check_camera(view.camera)
    check_colouring(view.colour)
    if not (np.isfinite(view.cluster_radius) and view.cluster_radius > 0):
        raise InputError(
            f"the radius of clusters is {view.cluster_radius:g}; wanted a finite number above zero"
        )
    if view.select is not None and view.select not in ids:
        raise InputError(
            f"agent {view.select} is to be followed, and there is none with this number"
        )


def shown_numbers(step: int, time: float, statistics: Any) -> tuple[str, ...]:
    """The lines that a frame shows. `statistics`: of `lanewise.sims.boids.statistics`."""
    s = statistics
    nearest = f"nearest flockmate {s.nearest_min:.2f} at least, {s.nearest_mean:.2f} on average"
    if math.isnan(s.nearest_mean):
        nearest = "no flockmate near"
    return (
        f"step {step:,}, t = {time:.2f}",
        f"polarisation {s.polarisation:.3f}",
        f"speed {s.speed_min:.2f} to {s.speed_max:.2f}, mean {s.speed_mean:.2f}",
        nearest,
        f"{counted(s.cells, 'cell', 'cells')} with {s.cell_min:,} to "
        f"{counted(s.cell_max, 'agent', 'agents')}",
    )
