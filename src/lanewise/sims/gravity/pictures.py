"""Films and pictures of bodies, of a run and from Python.

with Film(simulation, "cluster.mp4", colour="speed") as film:
    simulation.run(600, dt=0.01, callback=film, every=2)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.io.source import FilePath
from lanewise.sims.common.films import (
    PICTURE_SIZE,
    CallbackFilm,
    PaintedFilm,
    check_film,
    film_size,
    frame_interval,
    save_pixels,
)
from lanewise.sims.gravity.checkpoint import Labels, current_particles
from lanewise.sims.gravity.options import Pictures
from lanewise.sims.gravity.painting import (
    BodiesThen,
    BodyPainter,
    FilmPlan,
    Look,
    Shot,
    check_look,
    chosen,
    shot_of,
)
from lanewise.sims.gravity.simulation import Simulation
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted


def check_pictures(p: Pictures) -> None:
    """Refuse names that no film has, and what is said of one that there is not."""
    check_film(p.movie, p.fps)
    if p.movie is None:
        for name in (*p.look.said, *(n for n in ("movie_every", "size") if getattr(p, n))):
            raise InputError(f"--{name.replace('_', '-')} needs --movie")
    check_look(p.look)


def check_resumed(p: Pictures, before: FilmPlan | None, step: int, *, overwrite: bool) -> None:
    """Refuse to continue a film in its file, and another look than that of its first part."""
    if p.movie is not None and p.movie.exists() and not overwrite:
        raise InputError(
            f"--movie {p.movie} exists, and no film is continued in its file; name another file "
            f"for the film from step {step:,} on, which keeps the frame and the scale of the first "
            "part, or give --overwrite to replace it"
        )
    if before is not None and p.look.said:
        raise InputError(
            f"--{p.look.said[0]} cannot be given with --resume: the animation keeps the look of "
            "its first part"
        )


def bodies_then(simulation: Simulation, labels: Labels) -> BodiesThen:
    """What is painted of the present state."""
    now = current_particles(simulation, labels)
    return BodiesThen(
        simulation.time, simulation.step, now.position, now.velocity, now.mass, now.component
    )


def film_plan(p: Pictures, first: BodiesThen, before: FilmPlan | None, steps: int) -> FilmPlan:
    """That of the film so far, else that of one that begins with these bodies."""
    assert p.movie is not None
    every = p.movie_every or (before.every if before else frame_interval(p.movie, steps, 1))
    shot = before.shot if before else shot_of(p.look, first, p.size or film_size(p.movie))
    return FilmPlan(shot, every)


def open_film(p: Pictures, shot: Shot, title: str, *, overwrite: bool) -> PaintedFilm[BodiesThen]:
    """What moments are added to."""
    assert p.movie is not None
    painter = BodyPainter(shot, p.size or film_size(p.movie), title)
    return PaintedFilm(p.movie, painter.paint, fps=p.fps, overwrite=overwrite)


def film_title(component: NDArray[np.uint8], shot: Shot) -> str:
    """How many bodies are seen, of which kinds, and what their colours mean."""
    seen = int(chosen(shot.show, component).sum())
    count = counted(len(component), "body", "bodies")
    if seen != len(component):
        count = f"{seen:,} of {count}"
    kinds = f" ({shot.show.replace(',', ', ')})" if shot.show else ""
    colours = ", slow amber, fast blue" if shot.colour == "speed" else ""
    return f"{count}{kinds}, {shot.projection} plane{colours}"


# ------------------------------------------------------------ from Python


def _labels(simulation: Simulation, component: ArrayLike | None) -> Labels:
    count = len(simulation.bodies)
    kinds = np.ones(count, np.uint8) if component is None else np.asarray(component)
    if kinds.shape != (count,) or kinds.dtype.kind not in "iu":
        raise InputError(
            f"component is {kinds.dtype} of shape {kinds.shape}; wanted integers of shape "
            f"({count},)"
        )
    return Labels(np.arange(count, dtype=np.int64), kinds.astype(np.uint8))


def picture(
    simulation: Simulation,
    path: FilePath,
    *,
    component: ArrayLike | None = None,
    size: tuple[int, int] = PICTURE_SIZE,
    overwrite: bool = False,
    **look: Any,
) -> None:
    """One PNG of the bodies as they are. component: (n,), for `show`. size: height and width in
    pixels. look: `colour`, `projection`, `show`, `width`, as in `Look`.

    Raises `InputError` as the command line does.
    """
    file = Path(path)
    if file.suffix.lower() != ".png":
        raise InputError(f"{file}: pictures are PNG; wanted a name that ends in .png")
    wanted = Look(**look)
    check_look(wanted)
    then = bodies_then(simulation, _labels(simulation, component))
    shot = shot_of(wanted, then, size)
    painter = BodyPainter(shot, size, film_title(then.component, shot))
    save_pixels(file, painter.paint(then), overwrite=overwrite)


class Film(CallbackFilm["Simulation"]):
    """A film as a callback of `Simulation.run`, whose first frame fixes how all of them look."""

    def __init__(
        self,
        simulation: Simulation,
        path: FilePath,
        *,
        component: ArrayLike | None = None,
        overwrite: bool = False,
        fps: float | None = None,
        size: tuple[int, int] | None = None,
        **look: Any,
    ) -> None:
        """component, look: as for `picture`. Raises `InputError` as the command line does."""
        p = Pictures(movie=Path(path), fps=fps, size=size, **look)
        check_pictures(p)
        self._labels = _labels(simulation, component)
        then = bodies_then(simulation, self._labels)
        plan = film_plan(p, then, None, 1)
        title = film_title(then.component, plan.shot)
        super().__init__(open_film(p, plan.shot, title, overwrite=overwrite))

    def __call__(self, simulation: Simulation) -> None:
        """The bodies as they are now, as the next frame."""
        self._film.add(bodies_then(simulation, self._labels))
