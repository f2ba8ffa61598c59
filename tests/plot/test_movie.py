"""Animations are read back frame by frame: GIF with Pillow, MP4 with ffmpeg."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lanewise.plot.encoders import find_ffmpeg
from lanewise.plot.movie import MovieWriter
from lanewise.plot.raster import Scale, colour, resample
from lanewise.plot.text import ColourKey, text_strip
from lanewise.sims.lbm.view.movie import LETTERS, FlowMovie
from lanewise.sims.lbm.view.slices import ReferenceScale, middle_slice
from lanewise.support.errors import ArgumentError, InputError
from lanewise.support.installation import install
from tests.plot.flows import past_ball, street


@pytest.fixture(scope="module")
def ffmpeg() -> str:
    """An encoder, or the test is skipped."""
    try:
        return find_ffmpeg(Path("test.mp4"))
    except InputError as error:
        pytest.skip(f"needs ffmpeg (pip install imageio-ffmpeg): {error}")


def moving(count: int, height: int = 40, width: int = 61) -> list[np.ndarray]:
    """A disc on a gradient that moves to the right."""
    y, x = np.mgrid[:height, :width]
    frames = []
    for number in range(count):
        rgb = np.zeros((height, width, 3), np.uint8)
        rgb[..., 2] = 4 * y
        rgb[(x - 8 - 3 * number) ** 2 + (y - 20) ** 2 < 36] = (250, 200, 90)
        frames.append(rgb)
    return frames


def write(path: Path, frames: list[np.ndarray], fps: float = 25, overwrite: bool = False) -> None:
    with MovieWriter(path, fps, overwrite) as movie:
        for frame in frames:
            movie.add(frame)


def gif_frames(path: Path) -> tuple[list[np.ndarray], list[int]]:
    """The frames as they are shown, and their durations in milliseconds."""
    from PIL import Image, ImageSequence

    with Image.open(path) as image:
        shown = [(np.asarray(f.convert("RGB")).astype(int), f.info["duration"]) for f in ImageSequence.Iterator(image)]
    return [frame for frame, _ in shown], [duration for _, duration in shown]


def mp4_frames(path: Path, ffmpeg: str, size: tuple[int, int]) -> np.ndarray:
    """(frames, height, width, 3), decoded."""
    command = [ffmpeg, "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, *size, 3).astype(int)


def test_a_gif_of_few_colours_is_exact(tmp_path: Path) -> None:
    frames = moving(12)
    write(tmp_path / "a.gif", frames)
    shown, durations = gif_frames(tmp_path / "a.gif")
    assert len(shown) == 12
    assert durations == [40] * 12
    for found, wanted in zip(shown, frames, strict=True):
        assert np.array_equal(found, wanted)
    assert os.listdir(tmp_path) == ["a.gif"]


def test_a_gif_of_many_colours_is_close(tmp_path: Path) -> None:
    y, x = np.mgrid[:64, :64]
    frames = [np.stack([4 * x, 4 * y, (2 * x + 2 * y + 8 * n) % 256], axis=-1).astype(np.uint8) for n in range(3)]
    write(tmp_path / "a.gif", frames)
    for found, wanted in zip(gif_frames(tmp_path / "a.gif")[0], frames, strict=True):
        assert np.abs(found - wanted).mean() < 12


def image_flags(data: bytes) -> list[int]:
    """The flags of all image descriptors; bit 7 says that a colour table follows (GIF89a, sections 15 to 26)."""
    at, found = 13 + 3 * 256, []
    while data[at] != 0x3B:
        if data[at] == 0x2C:
            found.append(data[at + 9])
            at += 11  # the descriptor, and the size of the first code
        else:
            at += 2  # an extension and its kind
        while data[at]:
            at += 1 + data[at]
        at += 1
    assert at == len(data) - 1
    return found


def test_one_palette_serves_all_frames(tmp_path: Path) -> None:
    write(tmp_path / "a.gif", moving(5))
    data = (tmp_path / "a.gif").read_bytes()
    assert data[10] == 0xF7
    assert image_flags(data) == [0] * 5


def test_pixels_that_do_not_change_cost_nothing(tmp_path: Path) -> None:
    noise = np.random.default_rng(6).integers(0, 16, (100, 100, 1), np.uint8).repeat(3, axis=2) * 16
    write(tmp_path / "one.gif", [noise])
    write(tmp_path / "many.gif", [noise] * 50)
    more = (tmp_path / "many.gif").stat().st_size - (tmp_path / "one.gif").stat().st_size
    assert more < 49 * 40
    assert len(gif_frames(tmp_path / "many.gif")[0]) == 50


def test_later_colours_are_in_the_palette_and_memory_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far more frames than the palette is chosen from; the last ones have colours of their own."""
    monkeypatch.setattr("lanewise.plot.encoders.MOST_SAMPLES", 8)
    frames = [np.full((4, 5, 3), (number, 255 - number, 40), np.uint8) for number in range(0, 250, 5)]
    write(tmp_path / "a.gif", frames)
    shown, _ = gif_frames(tmp_path / "a.gif")
    assert np.abs(shown[-1] - frames[-1]).max() < 40
    assert np.abs(shown[0] - frames[0]).max() < 40


@pytest.mark.parametrize("fps", [0.5, 7, 24, 30, 50])
def test_delays_do_not_drift(tmp_path: Path, fps: float) -> None:
    write(tmp_path / "a.gif", moving(16), fps)
    _, durations = gif_frames(tmp_path / "a.gif")
    assert abs(sum(durations) - 16_000 / fps) <= 10
    assert min(durations) >= 20  # browsers show shorter ones ten times as long


def test_a_frame_may_be_changed_after_it_was_added(tmp_path: Path) -> None:
    frame = np.zeros((4, 4, 3), np.uint8)
    with MovieWriter(tmp_path / "a.gif", 10) as movie:
        movie.add(frame)
        frame[:] = 200
        movie.add(frame[::-1])  # and need not be contiguous
    shown, _ = gif_frames(tmp_path / "a.gif")
    assert [int(found.max()) for found in shown] == [0, 200]


@pytest.mark.parametrize("size", [(40, 60), (41, 61), (2, 2), (1, 1)], ids=str)
def test_mp4_of_any_size(tmp_path: Path, ffmpeg: str, size: tuple[int, int]) -> None:
    frames = moving(6, *size)
    write(tmp_path / "a.mp4", frames)
    even = (size[0] + size[0] % 2, size[1] + size[1] % 2)
    shown = mp4_frames(tmp_path / "a.mp4", ffmpeg, even)
    assert len(shown) == 6
    for found, wanted in zip(shown, frames, strict=True):
        assert np.abs(found[: size[0], : size[1]] - wanted).mean() < 12
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_colours_of_an_mp4_are_right(tmp_path: Path, ffmpeg: str) -> None:
    """Flat colours come back within what 8-bit luma and chroma can hold."""
    for rgb in ((10, 13, 20), (214, 222, 230), (196, 92, 20), (30, 90, 200)):
        write(tmp_path / "a.mp4", [np.full((32, 32, 3), rgb, np.uint8)] * 3, overwrite=True)
        shown = mp4_frames(tmp_path / "a.mp4", ffmpeg, (32, 32))
        assert np.abs(shown - np.array(rgb)).max() <= 6


def test_a_failing_encoder_says_why_and_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mp4").write_bytes(b"old")
    script = tmp_path / "ffmpeg"
    script.write_text("#!/bin/sh\nhead -c 100 > /dev/null\necho 'no space left on device' >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr("lanewise.plot.movie.find_ffmpeg", lambda path: str(script))
    with pytest.raises(InputError, match=r"ffmpeg stopped with code 3: no space left on device"):
        write(tmp_path / "a.mp4", moving(200), overwrite=True)
    assert (tmp_path / "a.mp4").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "ffmpeg"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_an_interrupted_run_leaves_its_movie(tmp_path: Path, failure: type[BaseException]) -> None:
    def run() -> None:
        with MovieWriter(tmp_path / "a.gif", 10) as movie:
            for frame in moving(3):
                movie.add(frame)
            raise failure

    with pytest.raises(failure):
        run()
    assert len(gif_frames(tmp_path / "a.gif")[0]) == 3


def test_without_a_frame_there_is_no_file(tmp_path: Path) -> None:
    write(tmp_path / "a.gif", [])
    assert os.listdir(tmp_path) == []
    with FlowMovie(tmp_path / "b.gif", "title"):
        pass
    assert os.listdir(tmp_path) == []


def test_what_could_fail_later_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gif").write_bytes(b"old")
    for make in (lambda: MovieWriter(tmp_path / "a.gif", 10), lambda: FlowMovie(tmp_path / "a.gif", "title")):
        with pytest.raises(InputError, match=r"a\.gif: the file exists already; give --overwrite to replace it"):
            make()
    message = f"{tmp_path / 'a.avi'}: animations are GIF or MP4; wanted a name that ends in .gif or .mp4"
    with pytest.raises(InputError, match=re.escape(message)):
        MovieWriter(tmp_path / "a.avi", 10)
    for fps, most, suffix in ((0, 50, ".gif"), (60, 50, ".gif"), (300, 240, ".mp4")):
        message = f"{fps} frames per second; wanted more than 0 and at most {most} for {suffix}"
        with pytest.raises(ArgumentError, match=re.escape(message)):
            MovieWriter(tmp_path / f"b{suffix}", fps)
    monkeypatch.setattr("lanewise.plot.encoders._bundled", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    remedy = f"install one with: {install('movie')}, or choose a name that ends in .gif"
    with pytest.raises(InputError, match=re.escape(f"b.mp4: MP4 needs ffmpeg, and there is none; {remedy}")):
        MovieWriter(tmp_path / "b.mp4", 10)
    script = tmp_path / "ffmpeg"
    script.write_text("#!/bin/sh\necho ' V....D mpeg4  MPEG-4 part 2'\n")
    script.chmod(0o755)
    message = f"b.mp4: MP4 needs the encoder libx264, which {script} lacks; {remedy}"
    with pytest.raises(InputError, match=re.escape(message)):
        MovieWriter(tmp_path / "b.mp4", 10)
    script.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(InputError, match=re.escape(f"b.mp4: MP4 needs ffmpeg, but {script} does not run: ")):
        MovieWriter(tmp_path / "b.mp4", 10)
    assert (tmp_path / "a.gif").read_bytes() == b"old"


FRAME = np.zeros((4, 6, 3), np.uint8)
WRONG = [
    (FRAME[..., 0], "a frame has shape (4, 6) of uint8; wanted (height, width, 3) of uint8"),
    (FRAME.astype(float), "a frame has shape (4, 6, 3) of float64; wanted (height, width, 3) of uint8"),
    (FRAME[:0], "a frame has shape (0, 6, 3) of uint8; wanted (height, width, 3) of uint8"),
    (FRAME[:3], "frame 1 has shape (3, 6, 3); wanted (4, 6, 3), as the first one"),
]


@pytest.mark.parametrize(("frame", "message"), WRONG, ids=[row[1][:32] for row in WRONG])
def test_frames_that_do_not_fit(tmp_path: Path, frame: np.ndarray, message: str) -> None:
    with MovieWriter(tmp_path / "a.gif", 10) as movie:
        movie.add(FRAME)
        with pytest.raises(ArgumentError, match=re.escape(message)):
            movie.add(frame)


def test_text_fits_into_its_strip() -> None:
    strip = text_strip("karman, Re 150, step 1,000", 400, 15)
    assert strip.shape == (30, 400, 3)
    assert strip.max() > 180
    assert (text_strip("W" * 50, 400, 15)[:, -4:] == strip[0, 0]).all()  # made smaller
    colours = np.full((256, 3), (0, 255, 0), np.uint8)
    with_key = text_strip("karman", 600, 15, ColourKey("speed", "0", "1", colours))
    assert (with_key == (0, 255, 0)).all(axis=-1).sum() == 7 * 15 * 13
    assert not (text_strip("karman", 100, 15, ColourKey("speed", "0", "1", colours)) == (0, 255, 0)).all(axis=-1).any()


def test_a_flow_movie_shows_the_flow(tmp_path: Path) -> None:
    """Frames under their captions are the pictures of the flow, in one range for all."""
    with FlowMovie(tmp_path / "a.gif", "karman, Re 150", solid=street()[1], reference=ReferenceScale(0.1, 8)) as movie:
        for number in range(4):
            movie.add(street(phase=number / 4)[0], 100 * number)
    shown, durations = gif_frames(tmp_path / "a.gif")
    assert durations == [40] * 4
    pictures, highs = [], []
    for number in range(4):
        velocity, solid = street(phase=number / 4)
        plane = middle_slice(velocity, solid, "vorticity")
        pictures.append(resample(plane.values, solid, (240, 720)))
        highs.append(np.percentile(np.abs(plane.values[~solid]), 99))
    high = float(np.percentile(highs, 95))
    for found, (field, fluid) in zip(shown, pictures, strict=True):
        assert found.shape == (240 + 2 * LETTERS, 720, 3)
        wanted = colour(field, fluid, Scale(-high, high, "vorticity"), 6)
        assert np.abs(found[2 * LETTERS :] - wanted).mean() < 3


def test_more_sites_than_pixels_three_dimensions_and_given_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanewise.sims.lbm.view.movie.LONGEST", 30)
    velocity, solid = past_ball()
    with FlowMovie(tmp_path / "a.gif", "sphere", quantity="speed", solid=solid, limits=(0, 0.2)) as movie:
        movie.add(velocity, 0)
        movie.add(0 * velocity, 10)
    (first, second), _ = gif_frames(tmp_path / "a.gif")
    assert first.shape == (12 + 2 * LETTERS, 20, 3)
    field, fluid = resample(middle_slice(velocity, solid, "speed").values, solid[10], (12, 20))
    assert np.abs(first[2 * LETTERS :] - colour(field, fluid, Scale(0, 0.2, "speed"), 0.5)).mean() < 4
    assert second[2 * LETTERS :, 0].max() < 25  # at rest: dark


def test_a_movie_of_a_blow_up_ends_before_it(tmp_path: Path) -> None:
    velocity, solid = street()
    bad = velocity.copy()
    bad[3, 4, 0] = np.nan

    def run() -> None:
        with FlowMovie(tmp_path / "a.gif", "karman", quantity="speed", solid=solid) as movie:
            movie.add(velocity, 0)
            movie.add(bad, 1)

    with pytest.raises(ArgumentError, match="the flow at x = 4, y = 3 is nan: only finite values can be drawn"):
        run()
    assert len(gif_frames(tmp_path / "a.gif")[0]) == 1


def test_flow_movies_refuse_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="quantity is 'heat'; wanted one of speed, vorticity"):
        FlowMovie(tmp_path / "a.gif", "title", quantity="heat")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=re.escape("ends of the colours are (1, 0); wanted growing ones")):
        FlowMovie(tmp_path / "a.gif", "title", limits=(1, 0))
    with FlowMovie(tmp_path / "a.gif", "title") as movie:
        movie.add(np.ones((4, 4, 2)), 0)
        with pytest.raises(ArgumentError, match=re.escape("frame 1 has (4, 5) sites; wanted (4, 4)")):
            movie.add(np.ones((4, 5, 2)), 1)


def test_gif_needs_no_ffmpeg(tmp_path: Path) -> None:
    code = "import sys, numpy, lanewise.plot.movie as m\nwith m.MovieWriter(sys.argv[1], 10) as w: w.add(numpy.zeros((2, 2, 3), 'u1'))\n"
    code += "sys.exit('imageio_ffmpeg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.gif")], check=False).returncode == 0
