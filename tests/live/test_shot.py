"""`lanewise view FILE --shot N`: a picture of a frame, from a browser without a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lanewise as lw
from lanewise.live.shot import SIZE
from tests.cli.command import Command
from tests.cli.conftest import lanewise  # noqa: F401  (a fixture)
from tests.live import browser
from tests.live.sparks import Spark

pytest.importorskip("websockets")


def recorded(frames: int, path: str = "run.lwv") -> None:
    """Two clouds that part, of red and blue sparks."""
    rng = np.random.default_rng(3)
    places = 0.1 * rng.normal(size=(400, 3))
    away = np.repeat([[-1.0, 0, 0], [1.0, 0, 0]], 200, axis=0)
    array = Spark.array(position=places, heat=away[:, 0], velocity=away)
    with lw.view(array, colour="heat", port=0, quiet=True, record=path, rate=1e6) as view:
        for step in range(1, frames):
            array.position = places + step * away
            view.update(step)
            view._feed.flush()


@pytest.mark.slow
@pytest.mark.browser
def test_a_frame_is_a_picture(lanewise: Command) -> None:  # noqa: F811
    browser.found()
    recorded(6)
    seen = []
    for frame in (1, 5):
        done = lanewise("view", "run.lwv", "--shot", str(frame))
        assert done.code == 0, done.err
        assert f"wrote run-{frame}.png" in done.out
        picture = Image.open(f"run-{frame}.png").convert("RGB")
        assert picture.size == SIZE
        pixels = np.asarray(picture).astype(int)
        middle = pixels[200:500, 420:860]
        seen.append(np.abs(pixels - pixels[0, 0]).sum(axis=-1) > 60)
        assert seen[-1].any()
        assert len(np.unique(middle.reshape(-1, 3), axis=0)) > 2
    assert (seen[0] != seen[1]).sum() > 500, "they are pictures of different frames"
    refused = lanewise("view", "run.lwv", "--shot", "5")
    assert refused.code == 2
    assert "run-5.png" in refused.err
    assert lanewise("view", "run.lwv", "--shot", "5", "--overwrite").code == 0


def test_what_is_no_picture_is_refused(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    recorded(3)
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false")
    for options, message in {
        ("--shot", "9"): "there is no frame 9: there are 4, from 1 to 4",
        ("--shot", "1", "--out", "a.jpg"): "a.jpg: wanted a picture's name to end in .png",
        ("--out", "a.png"): "--out and --overwrite are of a picture: they need --shot N",
        ("--shot", "1"): "no picture: the browser did not start",
    }.items():
        refused = lanewise("view", "run.lwv", *options)
        assert refused.code == 2
        assert message in refused.err
    monkeypatch.setattr("shutil.which", lambda name: None)
    refused = lanewise("view", "run.lwv", "--shot", "1")
    assert "a picture is drawn by chromium, without a window, and there is none: apt-get install" in refused.err
    assert lanewise("boids", "run", "--agents", "9", "--steps", "2", "--final", "end.csv", "--quiet").code == 0
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false")
    refused = lanewise("view", "end.csv", "--shot", "2")
    assert "there is no frame 2: the file holds one state, which is frame 1" in refused.err
    assert not list(Path().glob("*.png"))
