"""One browser for all tests of the page, and a page for each that may not complain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.live import browser as browsers
from tests.live.browser import until

Opened = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with browsers.started() as browser:
        yield browser


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    """Opens a run's page and waits for its first frame; at the end no page may have written an error to its console."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(
        url: str, size: tuple[int, int] = (800, 450), *, wait: bool = True, script: str = "", **more: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        if script:
            page.add_init_script(script)
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.goto(url)
        if wait:
            until(page, "lanewise.run.frame > 0")
        return page

    open_page.complaints = complaints  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    # what swiftshader says of itself, and a connection that a test has cut
    known = ("GPU stall due to ReadPixels", "WebSocket connection to", "Automatic fallback to software")
    assert [c for c in complaints if not any(k in c for k in known)] == []
