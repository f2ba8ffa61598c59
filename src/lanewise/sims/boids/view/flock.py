"""A flock as a picture, and as frames of a movie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath
from lanewise.plot.movie import MovieWriter
from lanewise.sims.boids.view.painter import Painter
from lanewise.sims.boids.view.view import Moment, View, check_view


def plot_flock(
    path: FilePath, moment: Moment, view: View, *, course: Sequence[tuple[float, float]] = (), overwrite: bool = False
) -> None:
    """One PNG. course: times and polarisations before this moment.

    Raises `InputError` where it cannot be written, or for a view of what there is not.
    """
    check_view(view, moment.ids)
    painter = Painter(view)
    painter.remember(course)
    pixels = painter.paint(moment)
    save_pixels(Path(path), pixels, overwrite=overwrite)


def save_pixels(path: Path, pixels: NDArray[np.uint8], *, overwrite: bool) -> None:
    """A PNG of (height, width, 3): whole, or not at all."""
    from PIL import Image

    with atomic_path(path, overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="PNG")


class FlockMovie:
    """Paints a flock's moments into a GIF or MP4. To be used in a `with` block."""

    def __init__(self, path: FilePath, view: View, *, fps: float = 25.0, overwrite: bool = False) -> None:
        """Check everything that writing will need; raises as `MovieWriter`."""
        self._movie, self._painter = MovieWriter(path, fps, overwrite), Painter(view)

    def __enter__(self) -> FlockMovie:
        self._movie.__enter__()
        return self

    def add(self, moment: Moment) -> None:
        """The next frame. Raises as `MovieWriter.add`."""
        self._movie.add(self._painter.paint(moment))

    @property
    def frames(self) -> int:
        """How many there are."""
        return self._movie.frames

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Complete the file, whatever ended the run; without a frame there is none."""
        self._movie.__exit__(kind, error, at)
