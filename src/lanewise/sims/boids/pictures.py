"""The files of a flock that people look at: a picture of the end, and a movie of the way there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.io.source import FilePath
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.options import Pictures
from lanewise.sims.boids.rules import BOX, OPEN
from lanewise.sims.boids.statistics import observer_of
from lanewise.sims.boids.trajectory import Frame, frame_of
from lanewise.sims.boids.view.flock import (
    Moment,
    Painter,
    View,
    check_view,
    plot_flock,
    shown_numbers,
)
from lanewise.sims.boids.view.scene import Edge
from lanewise.sims.common.films import (
    PICTURE_SIZE,
    CallbackFilm,
    PaintedFilm,
    check_film,
    film_size,
    frame_interval,
    usual_fps,
)
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock


def check_pictures(p: Pictures) -> None:
    """Refuse names that no picture or movie has, and what is said about pictures when there is
    none.
    """
    if p.plot is not None and p.plot.suffix.lower() != ".png":
        raise InputError(f"--plot {p.plot}: pictures are PNG; wanted a name that ends in .png")
    check_film(p.movie, p.fps)
    if p.cluster_radius is not None and p.colour != "cluster":
        raise InputError("--cluster-radius needs --colour cluster: nothing else looks at clusters")


def check_shown(p: Pictures, flock: Flock) -> None:
    """Refuse a view of what this flock does not have."""
    if p.plot is not None or p.movie is not None:
        check_view(view_of(p, flock, PICTURE_SIZE), flock.ids)


def view_of(p: Pictures, flock: Flock, size: tuple[int, int]) -> View:
    """How this flock is looked at."""
    s = flock.settings
    nearest = "" if s.k is None else f", {s.k} nearest"
    title = (
        f"{len(flock):,} agent{'' if len(flock) == 1 else 's'}, {s.semantics}{nearest}, radius "
        f"{s.parameters.radius:.4g}, {s.boundary}"
    )
    usual = s.parameters.separation_radius or s.parameters.radius
    radius = usual if p.cluster_radius is None else p.cluster_radius
    return View(
        title,
        s.world,
        _edge(s.boundary),
        s.seen,
        p.colour,
        radius,
        p.camera,
        p.select,
        s.parameters.max_speed,
        p.size or size,
    )


def _edge(boundary: str) -> Edge:
    match find_boundary(boundary).end:
        case end if end == BOX:
            return "box"
        case end if end == OPEN:
            return "none"
        case _:
            return "sphere"


def moment_of(frame: Frame) -> Moment:
    """What is painted of a frame."""
    numbers = shown_numbers(frame.step, frame.time, frame.statistics)
    order = frame.statistics.polarisation
    return Moment(
        frame.time, frame.position, frame.forward, frame.up, frame.speed, frame.ids, numbers, order
    )


def write_picture(
    p: Pictures,
    flock: Flock,
    frame: Frame,
    course: Sequence[tuple[float, float]],
    *,
    overwrite: bool,
) -> None:
    """The flock as it is in `frame`. course: times and polarisations on the way."""
    assert p.plot is not None
    plot_flock(
        p.plot,
        moment_of(frame),
        view_of(p, flock, PICTURE_SIZE),
        course=course,
        overwrite=overwrite,
    )


def open_movie(p: Pictures, flock: Flock, *, overwrite: bool) -> PaintedFilm[Moment]:
    """What moments are added to."""
    assert p.movie is not None
    painter = Painter(view_of(p, flock, film_size(p.movie)))
    return PaintedFilm(p.movie, painter.paint, fps=p.fps, overwrite=overwrite)


def movie_interval(p: Pictures, steps: int, dt: float) -> int:
    """Steps between frames: the flock's own pace, unless there would be too many frames."""
    assert p.movie is not None
    own_pace = round(1 / ((p.fps or usual_fps(p.movie)) * dt)) if dt > 1e-9 else 0
    return frame_interval(p.movie, steps, own_pace)


def course_interval(steps: int) -> int:
    """Steps between two looks at the polarisation for the picture."""
    return max(1, steps // 100)


# ------------------------------------------------------------ from Python


def picture(flock: Flock, path: FilePath, *, overwrite: bool = False, **look: Any) -> None:
    """One PNG of a flock as it is. look: `colour`, `cluster_radius`, `camera`, `select`, `size`
    (height, width), as in `Pictures`.

    Raises `InputError` as the command line does.
    """
    pictures = Pictures(plot=Path(path), **look)
    check_pictures(pictures)
    check_shown(pictures, flock)
    write_picture(pictures, flock, frame_of(flock, observer_of(flock)), (), overwrite=overwrite)


class Film(CallbackFilm["Flock"]):
    """A movie as a callback of `Flock.run`.

    with Film(flock, "flock.mp4", camera="orbit") as film:
        flock.run(600, callback=film, every=2)
    """

    def __init__(
        self, flock: Flock, path: FilePath, *, overwrite: bool = False, **look: Any
    ) -> None:
        """look: as for `picture`, and `fps`. Raises `InputError` as the command line does."""
        pictures = Pictures(movie=Path(path), **look)
        check_pictures(pictures)
        check_shown(pictures, flock)
        super().__init__(open_movie(pictures, flock, overwrite=overwrite))
        self._observer = observer_of(flock)

    def __call__(self, simulation: Flock) -> None:
        """The flock as it is now, as the next frame."""
        self._film.add(moment_of(frame_of(simulation, self._observer)))
