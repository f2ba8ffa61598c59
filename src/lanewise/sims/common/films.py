"""What films of all products that paint as they go have in common: names, sizes, pace, and the
writer that moments are painted into.

    with PaintedFilm("run.mp4", painter.paint) as film:
        film.add(moment)

Modules that declare options read LOOK and `parse_size`; the rest is imported when a film is made.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from lanewise.io.source import FilePath
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOOK = "Pictures and movies"  # a panel of the help
SIDES = (64, 7680)  # pixels
PICTURE_SIZE = (1080, 1920)
FILM_SIZE = {".gif": (450, 800), ".mp4": (720, 1280)}
"""Height and width in pixels; a GIF of the size of a film is hardly sent around."""

FPS = {".gif": 25.0, ".mp4": 30.0}
MOST_FRAMES = {".gif": 250, ".mp4": 900}
"""Of a film without its own interval."""

M = TypeVar("M")
S = TypeVar("S")


def parse_size(text: str) -> tuple[int, int]:
    """Height and width of WIDTHxHEIGHT. Raises `InputError`."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() for p in parts):
        raise InputError(f"--size {text}: wanted WIDTHxHEIGHT in pixels, such as 1280x720")
    width, height = map(int, parts)
    low, high = SIDES
    if not (low <= width <= high and low <= height <= high):
        raise InputError(f"--size {text}: wanted {low} to {high} pixels each way")
    return height, width


def check_film(movie: Path | None, fps: float | None) -> None:
    """Refuse a name that no film has, and a rate that it cannot have, or that is said of none."""
    from lanewise.plot.movie import MOST_FPS

    if movie is not None and movie.suffix.lower() not in FPS:
        raise InputError(
            f"--movie {movie}: animations are GIF or MP4; wanted a name that ends in .gif or .mp4"
        )
    if fps is None:
        return
    if movie is None:
        raise InputError("--fps needs --movie")
    most = MOST_FPS[movie.suffix.lower()]
    if not 0 < fps <= most:
        raise InputError(
            f"--fps {fps:g}: wanted more than 0 and at most {most} frames per second for "
            f"{movie.suffix.lower()}"
        )


def film_size(movie: Path) -> tuple[int, int]:
    """Height and width in pixels, unless they are given."""
    return FILM_SIZE[movie.suffix.lower()]


def usual_fps(movie: Path) -> float:
    """Frames a second, unless they are given."""
    return FPS[movie.suffix.lower()]


def frame_interval(movie: Path, steps: int, own_pace: int = 0) -> int:
    """Steps between frames: the film's own pace, unless there would be too many frames."""
    most = MOST_FRAMES[movie.suffix.lower()]
    return max(1, min(own_pace, steps), math.ceil(steps / most))


class PaintedFilm(Generic[M]):
    """Paints moments into a GIF or MP4. To be used in a `with` block."""

    def __init__(
        self,
        path: FilePath,
        paint: Callable[[M], NDArray[np.uint8]],
        *,
        fps: float | None = None,
        overwrite: bool = False,
    ) -> None:
        """paint: (height, width, 3) of a moment. fps: None for the usual one of the format.

        Checks everything that writing will need; raises as `MovieWriter`.
        """
        from lanewise.plot.movie import MovieWriter

        rate = FPS.get(Path(path).suffix.lower(), 25.0) if fps is None else fps
        self._movie, self._paint = MovieWriter(path, rate, overwrite), paint

    def __enter__(self) -> PaintedFilm[M]:
        self._movie.__enter__()
        return self

    def add(self, moment: M) -> None:
        """The next frame. Raises as `MovieWriter.add`."""
        self._movie.add(self._paint(moment))

    @property
    def frames(self) -> int:
        """How many there are."""
        return self._movie.frames

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Complete the file, whatever ended the run; without a frame there is none."""
        self._movie.__exit__(kind, error, at)


class CallbackFilm(ABC, Generic[S]):
    """A film as a callback of runs of a simulation, in a `with` block."""

    def __init__(self, film: PaintedFilm[Any]) -> None:
        self._film = film

    def __enter__(self) -> Self:
        self._film.__enter__()
        return self

    @abstractmethod
    def __call__(self, simulation: S) -> None:
        """The state as it is now, as the next frame."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Complete the file, whatever ended the run."""
        self._film.__exit__(kind, error, at)


def save_pixels(path: Path, pixels: NDArray[Any], *, overwrite: bool) -> None:
    """A PNG of (height, width, 3): whole, or not at all."""
    from lanewise.io.atomic import atomic_path
    from lanewise.support.interrupts import imported, interrupts_wait

    image = imported("PIL.Image")
    with interrupts_wait(), atomic_path(path, overwrite) as temporary:
        image.fromarray(pixels).save(temporary, format="PNG")
