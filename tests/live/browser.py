"""A browser that draws without a GPU, and what tests read out of its pages."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--no-sandbox"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def found() -> str:
    """The path of a browser; skips the test, with the reason, where there is none."""
    pytest.importorskip("playwright", reason="the page is tested by playwright: pip install playwright")
    for name in CHROMIUM:
        if (path := shutil.which(name)) is not None:
            return path
    pytest.skip("the page is tested in chromium, which is not installed: apt-get install chromium")


@contextmanager
def started() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = found()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Any, expression: str, seconds: float = 20) -> None:
    """Waits for an expression to hold; playwright's own waiting asks for `eval`, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"{expression} has not come true within {seconds} s"
        page.wait_for_timeout(20)


# a picture is drawn and read back in one task, else it is black
READ = """() => {
    const { scene, camera, settings, look } = lanewise, { width, height } = camera;
    scene.upload(settings);
    const pixels = scene.read(look(1), width, height);
    let text = "";
    for (let k = 0; k < pixels.length; k += 32768)
        text += String.fromCharCode(...pixels.subarray(k, k + 32768));
    return { width, height, pixels: btoa(text) };
}"""


def pixels(page: Any) -> NDArray[np.int64]:
    """(height, width, 3) of the scene: drawn and read back in one task."""
    read = page.evaluate(READ)
    raw = np.frombuffer(base64.b64decode(read["pixels"]), np.uint8)
    return raw.reshape(read["height"], read["width"], 4)[..., :3].astype(np.int64)


def lit(picture: NDArray[np.int64], far: int = 60) -> NDArray[np.bool_]:
    """Where a picture is not its background, which its corner has."""
    return np.abs(picture - picture[0, 0]).sum(axis=-1) > far


def on_screen(page: Any, places: Any) -> NDArray[np.float64]:
    """(n, 2) pixels of places (n, 3), as the camera says."""
    seen = page.evaluate("all => all.map(p => lanewise.camera.project(p))", np.asarray(places, float).tolist())
    return np.array(seen)[:, :2]


def palette(page: Any, name: str) -> NDArray[np.int64]:
    """(256, 3) colours of a map, as the page interpolates them."""
    return np.array(page.evaluate("name => Array.from(lanewise.palette(name))", name)).reshape(256, 4)[:, :3]
