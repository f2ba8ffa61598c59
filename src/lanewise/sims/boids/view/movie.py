"""The animation of a flock: each moment is painted when it is added, so nothing but the encoder's frames waits."""

from __future__ import annotations

from types import TracebackType

from lanewise.io.source import FilePath
from lanewise.plot.movie import MovieWriter
from lanewise.sims.boids.view.painter import Painter
from lanewise.sims.boids.view.view import Moment, View


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
