"""MP4 (H.264) through ffmpeg as a process that is fed with frames: the wheel imageio-ffmpeg, or the system's own."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError

ENCODER = "libx264"
QUALITY = 18
"""Constant rate factor: 18 is taken for visually lossless."""


def find_ffmpeg(path: Path) -> str:
    """An ffmpeg that encodes H.264. Raises InputError, for the animation `path`, when there is none."""
    remedy = "install one with: pip install 'lanewise[movie]', or choose a name that ends in .gif"
    found = _bundled() or shutil.which("ffmpeg")
    if found is None:
        raise InputError(f"{path}: MP4 needs ffmpeg, and there is none; {remedy}")
    try:
        listed = subprocess.run([found, "-hide_banner", "-encoders"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(f"{path}: MP4 needs ffmpeg, but {found} does not run: {error}; {remedy}") from error
    if ENCODER not in listed.split():
        raise InputError(f"{path}: MP4 needs the encoder {ENCODER}, which {found} lacks; {remedy}")
    return found


def _bundled() -> str | None:
    """The one of the wheel, which is known to encode H.264; None where the wheel is not installed or brings none."""
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    try:
        return import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except RuntimeError:  # installed for a machine without a bundled program
        return None


class Mp4Encoder:
    """Frames go through a pipe; H.264 wants even sizes, so a last row or column is doubled where needed."""

    def __init__(self, target: Path, size: tuple[int, int], fps: float, ffmpeg: str) -> None:
        """Start ffmpeg. `size` is (height, width)."""
        self._target = target
        self._odd = [(0, length % 2) for length in size] + [(0, 0)]
        height, width = (length + length % 2 for length in size)
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 (`discard` closes it)
        self._process = subprocess.Popen(
            _command(ffmpeg, width, height, fps, target),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._messages,
            # Ctrl-C in the terminal is for the run; the encoder is told by the end of its input.
            start_new_session=True,
        )

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """The next frame."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.pad(rgb, self._odd, mode="edge").data)
        except BrokenPipeError as error:
            raise self._failed() from error

    def finish(self) -> None:
        """Wait until the file is complete."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError as error:
            raise self._failed() from error
        if self._process.wait() != 0:
            raise self._failed()

    def discard(self) -> None:
        """End the process, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(BrokenPipeError):  # what it would have flushed has no reader any more
                self._process.stdin.close()
        self._messages.close()

    def _failed(self) -> InputError:
        self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines() or ["no message"]
        return InputError(f"ffmpeg stopped with code {self._process.returncode}: {lines[-1]}")


def _command(ffmpeg: str, width: int, height: int, fps: float, target: Path) -> list[str]:
    """Raw RGB in; out H.264 that every player and browser shows, in the colours of HD video, its index at the front."""
    raw = ["-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", f"{width}x{height}", "-framerate", f"{fps:g}"]
    colours = ["-vf", "scale=out_color_matrix=bt709:out_range=tv", "-colorspace", "bt709", "-color_primaries", "bt709"]
    encoded = ["-c:v", ENCODER, "-preset", "medium", "-crf", str(QUALITY), "-pix_fmt", "yuv420p"]
    return [
        ffmpeg, "-hide_banner", "-loglevel", "error", "-y", *raw, "-i", "-", "-an", *colours, "-color_trc", "bt709", *encoded,
        "-movflags", "+faststart", "-f", "mp4", str(target),
    ]  # fmt: skip
