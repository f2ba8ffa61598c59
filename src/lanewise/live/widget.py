"""A view in a notebook: the page in a frame, and the kernel's comm instead of the connection.

No port is needed for it, so it works behind JupyterHub. While a cell runs the kernel hears nothing,
so what is sent has its own rate and waits for no credit.
"""

from __future__ import annotations

import asyncio
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lanewise.live.frame import Frame
from lanewise.live.page import STATIC, joined
from lanewise.live.server import Server
from lanewise.live.viewers import Viewer
from lanewise.support.errors import InputError
from lanewise.support.installation import install

HERE = Path(__file__).parent
RATE, POINTS = 10.0, 100_000  # frames a second, and elements in one: under 1.3 MB
MESSAGE_BYTES = 4_000_000  # what proxies of notebooks let through


@cache
def page_in_one() -> str:
    """The page as one document."""
    html = (STATIC / "index.html").read_text()
    html = re.sub(r"<link rel=\"icon\"[^>]*>\n?", "", html)
    style = f"<style>{(STATIC / 'style.css').read_text()}</style>"
    html = re.sub(r"<link rel=\"stylesheet\"[^>]*>", lambda _: style, html)
    scripts = (
        f"<script>{(HERE / 'widget_socket.js').read_text()}</script>"
        f'<script type="module">{joined()[0]}</script>'
    )
    return re.sub(r"<script type=\"module\"[^>]*></script>", lambda _: scripts, html)


def make_widget(server: Server, height: int) -> Any:
    """A widget that shows what a server serves. Raises `InputError` where anywidget is not
    installed.
    """
    if find_spec("anywidget") is None:
        raise InputError(f"a widget needs the package anywidget: {install('notebook')}")
    import anywidget  # pyright: ignore[reportMissingImports]
    import traitlets  # pyright: ignore[reportMissingImports]

    kind: Any = type(
        "LiveWidget",
        (anywidget.AnyWidget,),
        {
            "_esm": (HERE / "widget.js").read_text(),
            "page": traitlets.Unicode(page_in_one()).tag(sync=True),
            "height": traitlets.Int(height).tag(sync=True),
        },
    )
    widget = kind()
    widget.on_msg(WidgetLink(server, widget).heard)
    return widget


class WidgetLink:
    """Between a feed and the comm of a widget."""

    def __init__(self, server: Server, widget: Any) -> None:
        self._server, self._widget = server, widget
        feed = server.feed
        budget = RATE * POINTS * 12.0
        self.viewer = Viewer(
            feed, self._send, server.serving.readonly, rate=RATE, budget=budget, points=POINTS
        )
        self._open = False

    async def _send(self, data: str | Frame) -> None:
        if isinstance(data, str):
            self._widget.send({"text": data})
        elif len(data) <= MESSAGE_BYTES:
            self._widget.send({}, buffers=[data])
        # no message says that it has come while a cell runs
        asyncio.get_running_loop().call_soon(self.viewer.under_way.clear)

    def heard(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the page, between cells."""
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return
        if '"hello"' not in text:
            self._server.hand(self.viewer, text)
            return
        self._widget.send({"text": self._server.welcome(self.viewer)})
        self.viewer.credits = 2
        if not self._open:
            self._server.join(self.viewer)
        self._open = True
