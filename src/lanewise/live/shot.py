"""A picture of one frame, drawn by the page in a browser without a window, started for it.

The browser is spoken to by the Chrome DevTools Protocol, over the package that serves views.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from lanewise.live.feed import Feed, FrameSet
from lanewise.live.frame import CLOUDS, decode
from lanewise.live.replay import RecordedFeed
from lanewise.live.server import Server, Serving
from lanewise.support.errors import InputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--remote-debugging-port=0", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--no-first-run",
    "--disable-background-networking",
)  # fmt: skip
SIZE = (1280, 720)  # pixels of a picture
BESIDE = (272, 44)  # pixels of the page right of the picture and below
START_SECONDS, DRAW_SECONDS = 30.0, 120.0
LOOK = 0.05  # seconds between two
READY = """(() => {
  const notice = document.getElementById("notice");
  if (notice && !notice.hidden && !notice.className) return notice.textContent;
  const { run, scene } = window.lanewise ?? {};
  return run?.frame === %d && (scene.cloud()?.count ?? %d) >= %d;
})()"""


def moment_of(feed: Feed | RecordedFeed, number: int) -> FrameSet:
    """The frames of this number, where the feed stays. Raises `InputError` where there are none,
    or they are damaged.
    """
    feed.pause()
    if isinstance(feed, RecordedFeed):
        return feed.go_to(number)
    if number != 1:
        raise InputError(f"there is no frame {number}: the file holds one state, which is frame 1")
    feed.make()
    feed.flush()
    found = feed.newest()
    assert found is not None, "it was made"
    return found


def picture_of(feed: Feed | RecordedFeed, number: int) -> bytes:
    """The PNG of a frame. Raises `InputError` where there is no such frame, or no browser."""
    browser, moment = _browser(), moment_of(feed, number)
    header = decode(moment.frames[0])[0]
    rows = header.count if header.kind in CLOUDS else 0
    server = Server(feed, Serving(port=0))
    server.start()
    try:
        with _page(browser) as ask:
            width, height = (a + b for a, b in zip(SIZE, BESIDE, strict=True))
            ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                deviceScaleFactor=1, mobile=False)  # fmt: skip
            ask("Page.navigate", url=server.url)
            end = time.monotonic() + DRAW_SECONDS
            while (seen := _value(ask, READY % (moment.sequence, rows, rows))) is not True:
                if isinstance(seen, str):
                    raise InputError(f"no picture: {seen}")
                if time.monotonic() > end:
                    raise InputError(f"no picture: the frame was not drawn in {DRAW_SECONDS:g} s")
                time.sleep(LOOK)
            drawn = _value(ask, "lanewise.picture(1).toDataURL('image/png')")
    finally:
        server.stop()
    return base64.b64decode(drawn.partition(",")[2])


def _browser() -> str:
    for name in BROWSERS:
        if (path := shutil.which(name)) is not None:
            return path
    raise InputError(
        "a picture is drawn by chromium, without a window, and there is none: apt-get install "
        "chromium, or save a picture of the page of `lanewise view`, by the key p"
    )


def _value(ask: Any, expression: str) -> Any:
    """What an expression gives in the page."""
    return ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


@contextmanager
def _page(browser: str) -> Generator[Any]:
    """A function that asks an empty page of a browser; the browser ends with the block."""
    from websockets.sync.client import connect

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []  # chromium wants it for root
        command = [browser, *FLAGS, *root, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(_address(process, Path(folder)), max_size=None) as connection:
                numbers = count(1)

                def ask(method: str, **values: Any) -> dict[str, Any]:
                    number = next(numbers)
                    request = {"id": number, "method": method, "params": values}
                    connection.send(json.dumps(request))
                    while (answer := json.loads(connection.recv(DRAW_SECONDS))).get("id") != number:
                        pass
                    if "error" in answer:
                        raise InputError(f"no picture: {browser}: {answer['error']['message']}")
                    return answer["result"]

                yield ask
        except OSError as error:
            raise InputError(f"no picture: {browser}: {error}") from error
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], folder: Path) -> str:
    """Where a browser that starts is asked about its page."""
    said = folder / "DevToolsActivePort"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if said.exists() and (lines := said.read_text().split()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=5) as got:
                pages = [p for p in json.load(got) if p["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(LOOK)
    raise InputError(f"no picture: the browser did not start within {START_SECONDS:g} s")
