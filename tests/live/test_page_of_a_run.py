"""A run of the command, watched in a real browser from its address to its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.live.browser import lit, pixels, until
from tests.live.conftest import Opened
from tests.live.pictures import address

pytestmark = pytest.mark.browser

MOST_BYTES = 40_000  # of the page, as a browser fetches it
RUNS = {
    "gravity": "gravity run --ic plummer --bodies 400 --steps 10000000 --dt 0.001 --softening 0.05 --device cpu",
    "boids": "boids run --agents 300 --steps 10000000 --device cpu",
    "lbm": "lbm run cavity --size 32 --steps 10000000 --device cpu",
}


# a shell that starts a program in the background lets it ignore Ctrl-C, and so its children
HEARING = (
    "import os, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@contextmanager
def watched(product: str, folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-c", HEARING, "-m", "lanewise", *RUNS[product].split(), "--out", str(folder / "run.h5")]
    process = subprocess.Popen(
        [*command, "--view", "--view-port", "0", "--view-wait"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield address(process), process
    finally:
        process.kill()
        process.communicate()


def step(page: Any) -> int:
    return int("".join(c for c in page.locator("#moment").inner_text().split("·")[0] if c.isdigit()))


@pytest.mark.parametrize("product", ["gravity", *(pytest.param(p, marks=pytest.mark.slow) for p in ("boids", "lbm"))])
def test_a_run_is_watched_paused_stepped_and_ended(product: str, opened: Opened, tmp_path: Path) -> None:
    with watched(product, tmp_path) as (url, process):
        page = opened(url)
        until(page, "lanewise.run.frame > 3", 60)
        page.get_by_role("button", name="Pause").click()
        until(page, "lanewise.run.paused")
        page.wait_for_timeout(300)
        held = step(page)
        assert lit(pixels(page)).any()
        page.locator("#scene").focus()
        page.keyboard.press("ArrowRight")
        until(page, f"lanewise.run.step === {held + 1}")
        page.wait_for_timeout(200)
        assert step(page) == held + 1
        page.keyboard.press("c")
        until(page, "lanewise.settings.field === lanewise.about.fields[1]")
        page.keyboard.press("ArrowLeft")
        until(page, "lanewise.run.past")
        page.keyboard.press("End")
        until(page, "!lanewise.run.past")
        page.keyboard.press(" ")
        until(page, f"lanewise.run.step > {held + 1}")
        process.send_signal(signal.SIGINT)
        page.get_by_text("the run has ended").wait_for()
        assert lit(pixels(page)).any(), "the last frame stays"
        process.wait(20)


@pytest.mark.slow_cases("feed", "style.css")
@pytest.mark.parametrize("missing", ["style.css", "main.js", "feed"])
def test_a_run_that_ends_while_its_page_loads_is_said_to_have_ended(missing: str, opened: Opened, browser: Any) -> None:
    """Whichever file, or the feed, was still to come."""
    view = lw.view(np.zeros((4, 4)), port=0, quiet=True)
    context = browser.new_context()
    page = context.new_page()
    try:
        if missing == "feed":
            page.on("response", lambda r: view.close() if r.url.endswith("main.js") else None)
            page.add_init_script(
                "WebSocket = class { constructor() { setTimeout(() => this.onclose({ code: 1006 })); } }"
            )
        else:

            def gone(route: Any) -> None:
                view.close()
                route.continue_()

            page.route(f"**/{missing}", gone)
        page.goto(view.url, wait_until="commit")
        page.get_by_text("No answer from the run: it has ended").wait_for(timeout=20_000)
    finally:
        context.close()
        view.close()


def test_a_browser_fetches_little_for_the_page(opened: Opened) -> None:
    """In few files: each has a connection of its own. Bytes are counted by the browser, heads too."""
    with lw.view(np.zeros((4, 4)), port=0, quiet=True) as view:
        page = opened(view.url)
        until(page, "performance.getEntriesByName(location.origin + '/icon.svg').length")
        fetched = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".map(({ name, transferSize }) => [name.split('#')[0].split('/').pop(), transferSize])"
        )
    assert sorted(name for name, _ in fetched) == ["", "icon.svg", "main.js", "style.css"]
    assert all(size for _, size in fetched)
    assert sum(size for _, size in fetched) <= MOST_BYTES
