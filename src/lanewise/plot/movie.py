"""Animations: frames of RGB pixels in, one GIF or MP4 file out.

    with MovieWriter("run.mp4", fps=30) as movie:
        movie.add(frame)      # (height, width, 3) uint8, as often as wanted, all of one size

`text.text_strip` makes a line of text to put above a frame.

Everything that could go wrong later (no encoder, a file that exists) is found when the writer is
made: before the run. The file appears whole at the end. A run that stops early, by an error or
Ctrl-C, leaves the movie of what there was.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path, writable_target, writing
from lanewise.io.source import FilePath
from lanewise.plot.encoders import GifEncoder, Mp4Encoder, find_ffmpeg
from lanewise.support.errors import ArgumentError, InputError


class Encoder(Protocol):
    """Makes a file of frames that all have one size, which the first one says."""

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """The next frame."""
        ...

    def finish(self) -> None:
        """Complete the file."""
        ...

    def discard(self) -> None:
        """Release everything without completing the file; after `finish` it does nothing."""
        ...


MOST_FPS = {".gif": 50, ".mp4": 240}
"""Frames a second. Browsers show GIF frames of less than two hundredths of a second ten times as
long.
"""


class MovieWriter:
    """Writes one animation. To be used in a `with` block."""

    def __init__(self, path: FilePath, fps: float = 30.0, overwrite: bool = False) -> None:
        """Check everything that writing will need.

        Args:
            path: ends in .gif or .mp4, which says the format.
            fps: frames per second; a GIF has at most 50.
            overwrite: whether an existing file is replaced.

        Raises:
            InputError: another suffix, no encoder for .mp4, or a file that may not be written.
            ArgumentError: fps out of range.
        """
        self.path, self.fps, self.frames = Path(path), fps, 0
        self._encoder_for = _encoder_for(self.path, fps)
        writable_target(path, overwrite)
        self._overwrite = overwrite
        self._encoder: Encoder | None = None
        self._shape: tuple[int, ...] = ()
        self._open = ExitStack()

    def __enter__(self) -> MovieWriter:
        return self

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """The next frame, (height, width, 3) uint8 as the first one. It may be changed afterwards.

        Raises:
            ArgumentError: another shape or type.
            InputError: the file cannot be written.
        """
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or rgb.size == 0:
            raise ArgumentError(
                f"a frame has shape {rgb.shape} of {rgb.dtype}; wanted (height, width, 3) of uint8"
            )
        if self._encoder is None:
            self._shape = rgb.shape
            with ExitStack() as opened:  # undone if the encoder cannot start: no empty file
                target = opened.enter_context(atomic_path(self.path, self._overwrite))
                with writing(self.path):
                    self._encoder = self._encoder_for(target, (rgb.shape[0], rgb.shape[1]))
                opened.callback(self._encoder.discard)
                self._open = opened.pop_all()
        if rgb.shape != self._shape:
            raise ArgumentError(
                f"frame {self.frames} has shape {rgb.shape}; wanted {self._shape}, as the first one"
            )
        with writing(self.path):
            self._encoder.add(np.ascontiguousarray(rgb))
        self.frames += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Complete the file, whatever ended the run; without a frame there is none."""
        if not self.frames:  # the first one failed, or there was none
            self._open.__exit__(kind, error, at)
            return
        with self._open:
            if self._encoder is not None:
                self._encoder.finish()


def _encoder_for(path: Path, fps: float) -> Callable[[Path, tuple[int, int]], Encoder]:
    """Makes the encoder when the first frame is there; what it needs is looked for now."""
    suffix = path.suffix.lower()
    if suffix in MOST_FPS and not 0 < fps <= MOST_FPS[suffix]:
        raise ArgumentError(
            f"{fps} frames per second; wanted more than 0 and at most {MOST_FPS[suffix]} for "
            f"{suffix}"
        )
    match suffix:
        case ".gif":
            return lambda target, size: GifEncoder(target, size, fps)
        case ".mp4":
            ffmpeg = find_ffmpeg(path)
            return lambda target, size: Mp4Encoder(target, size, fps, ffmpeg)
        case _:
            raise InputError(
                f"{path}: animations are GIF or MP4; wanted a name that ends in .gif or .mp4"
            )
