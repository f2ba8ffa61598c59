"""Frames as files: GIF, and MP4 (H.264) through ffmpeg.

A GIF has one palette for all frames, chosen from all of them; pixels that do not change are left
out. A palette that suits the last frame is known only after it. So frames wait, compressed, in an
unnamed temporary file, and memory holds one at a time. Format: GIF89a specification,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. ffmpeg is a process that is fed with frames: that
of the wheel imageio-ffmpeg, or the system's own.
"""

from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
import tempfile
import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.support.errors import InputError
from lanewise.support.installation import install
from lanewise.support.interrupts import imported

COLOURS = 255
"""The last of the 256 says "as in the frame before"."""

UNCHANGED = 255

SAMPLE = 4096
"""Pixels of a frame that the palette is chosen from, in the same random places of each frame."""

MOST_SAMPLES = 512
"""Frames that the palette is chosen from, spread over the whole movie."""

FOREVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
"""The extension that makes viewers start again at the end."""


class GifEncoder:
    """Collects frames, and writes the file at the end."""

    def __init__(self, target: Path, size: tuple[int, int], fps: float) -> None:
        """`size` is (height, width)."""
        self._target, self._size, self._fps = target, size, fps
        # Where the movie will need room anyway; `discard` closes it.
        self._frames = tempfile.TemporaryFile(dir=target.parent)  # noqa: SIM115
        self._lengths: list[int] = []
        self._samples: list[NDArray[np.uint8]] = []
        self._stride = 1
        self._places = np.random.default_rng(0).integers(0, size[0] * size[1], SAMPLE)

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """The next frame."""
        if len(self._lengths) % self._stride == 0:
            self._samples.append(rgb.reshape(-1, 3)[self._places])
        if len(self._samples) > MOST_SAMPLES:
            self._samples, self._stride = self._samples[::2], 2 * self._stride
        self._lengths.append(self._frames.write(zlib.compress(rgb.data, 1)))

    def finish(self) -> None:
        """Choose the palette and write all frames."""
        palette = _palette(np.concatenate(self._samples))
        height, width = self._size
        self._frames.seek(0)
        shown: NDArray[np.uint8] | None = None
        with self._target.open("wb") as stream:
            # 0xF7: there is a palette, 8 bits a colour, 256 entries. Then the background colour and
            # the pixels' aspect.
            stream.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0))
            stream.write(bytes(palette.getpalette()) + FOREVER)
            for number, length in enumerate(self._lengths):
                pixels = zlib.decompress(self._frames.read(length))
                rgb = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
                indices = _indices(rgb, palette)
                stream.write(_block(indices, shown, palette, self._delay(number)))
                shown = indices
            stream.write(b"\x3b")

    def discard(self) -> None:
        """Remove the waiting frames."""
        self._frames.close()

    def _delay(self, number: int) -> int:
        """Hundredths of a second until the next frame; rounded so that the errors do not add up."""
        return round(100 * (number + 1) / self._fps) - round(100 * number / self._fps)


def _palette(samples: NDArray[np.uint8]) -> Any:
    """A Pillow image that carries 255 colours and an unused one."""
    image = imported("PIL.Image")
    chosen = image.fromarray(samples.reshape(1, -1, 3)).quantize(
        COLOURS, image.Quantize.MEDIANCUT, kmeans=1
    )
    colours = chosen.getpalette()[: 3 * COLOURS]
    # Missing colours repeat the first one, so that no pixel is ever matched to one that does not
    # exist.
    colours += colours[:3] * (COLOURS + 1 - len(colours) // 3)
    carrier = image.new("P", (1, 1))
    carrier.putpalette(colours)
    return carrier


def _indices(rgb: NDArray[np.uint8], palette: Any) -> NDArray[np.uint8]:
    """(height, width) places in the palette, never UNCHANGED.

    Without dithering, which would flicker and compress badly.
    """
    image = imported("PIL.Image")
    indices = np.array(image.fromarray(rgb).quantize(palette=palette, dither=image.Dither.NONE))
    indices[indices == UNCHANGED] = 0  # the entry repeats the first colour
    return indices


def _block(
    indices: NDArray[np.uint8], shown: NDArray[np.uint8] | None, palette: Any, delay: int
) -> bytes:
    """One frame: the rectangle that differs from what is shown, and in it only the pixels that
    differ.
    """
    image, plugin = imported("PIL.Image"), imported("PIL.GifImagePlugin")
    top, left, part = 0, 0, indices
    if shown is not None:
        differs = indices != shown
        rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
        top, left = (int(places[0]) if len(places) else 0 for places in (rows, columns))
        bottom, right = (int(places[-1]) + 1 if len(places) else 1 for places in (rows, columns))
        box = (slice(top, bottom), slice(left, right))
        part = np.where(differs[box], indices[box], np.uint8(UNCHANGED))
    frame = image.frombytes("P", part.shape[::-1], part.tobytes())
    frame.putpalette(palette.getpalette())
    options = {
        "duration": 10 * delay,
        "disposal": 1,
        "transparency": UNCHANGED,
        "interlace": 0,
        "optimize": False,
    }
    return b"".join(plugin.getdata(frame, (left, top), **options))


ENCODER = "libx264"
QUALITY = 18
"""Constant rate factor: 18 is taken for visually lossless."""


def find_ffmpeg(path: Path) -> str:
    """An ffmpeg that encodes H.264.

    Raises InputError, for the animation `path`, when there is none.
    """
    remedy = f"install one with: {install('movie')}, or choose a name that ends in .gif"
    program = _bundled() or shutil.which("ffmpeg")
    if program is None:
        raise InputError(f"{path}: MP4 needs ffmpeg, and there is none; {remedy}")
    try:
        listed = subprocess.run(
            [program, "-hide_banner", "-encoders"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"{path}: MP4 needs ffmpeg, but {program} does not run: {error}; {remedy}"
        ) from error
    if ENCODER not in listed.split():
        raise InputError(
            f"{path}: MP4 needs the encoder {ENCODER}, which {program} lacks; {remedy}"
        )
    return program


def _bundled() -> str | None:
    """The one of the wheel, which is known to encode H.264; None where the wheel is not installed
    or brings none.
    """
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    try:
        return import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except RuntimeError:  # installed for a machine without a bundled program
        return None


class Mp4Encoder:
    """Frames go through a pipe; H.264 wants even sizes, so a last row or column is doubled where
    needed.
    """

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
            # Ctrl-C in the terminal is for the run; the encoder sees the end of its input.
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
        lines = self._messages.read().decode(errors="replace").strip().splitlines() or [
            "no message"
        ]
        return InputError(f"ffmpeg stopped with code {self._process.returncode}: {lines[-1]}")


def _command(ffmpeg: str, width: int, height: int, fps: float, target: Path) -> list[str]:
    """Raw RGB in; out H.264 that every player and browser shows, in the colours of HD video, its
    index at the front.
    """
    raw = [
        "-f",
        "rawvideo",
        "-pixel_format",
        "rgb24",
        "-video_size",
        f"{width}x{height}",
        "-framerate",
        f"{fps:g}",
    ]
    colours = [
        "-vf",
        "scale=out_color_matrix=bt709:out_range=tv",
        "-colorspace",
        "bt709",
        "-color_primaries",
        "bt709",
    ]
    encoded = ["-c:v", ENCODER, "-preset", "medium", "-crf", str(QUALITY), "-pix_fmt", "yuv420p"]
    return [
        ffmpeg,
        "-hide_banner",
        "-loglevel",
        "error",
        "-y",
        *raw,
        "-i",
        "-",
        "-an",
        *colours,
        "-color_trc",
        "bt709",
        *encoded,
        "-movflags",
        "+faststart",
        "-f",
        "mp4",
        str(target),
    ]
