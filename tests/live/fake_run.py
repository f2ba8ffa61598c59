"""A small run that the page can watch: it speaks the protocol of `lanewise.live.protocol`, and keeps what the page
said.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import numpy as np

from lanewise.live.page import page_files
from lanewise.live.protocol import CLOSED, FLAGS, GONE, HEADER, HEADER_BYTES, KINDS, MAGIC, PATH
from lanewise.live.server import accept_no_more

TOKEN = "correct-horse"

Frames = Callable[[int, dict[str, Any]], list[bytes]]
"""From a step and what viewers asked for to the frames of it."""


def frame(kind: str, body: bytes, **values: Any) -> bytes:
    """Bytes of a frame: its header out of `values`, zeros for what is not given."""
    made = bytearray(HEADER_BYTES)
    made[:4] = MAGIC.encode()
    values["kind"] = KINDS[kind]
    values["flags"] = sum(FLAGS[name] for name in values.pop("marks", ()))
    for name, code, place, count in HEADER:
        value = values.get(name, 0)
        struct.pack_into(
            f"<{count}{code}",
            made,
            place,
            *(value if count > 1 and value else (value,) * count if count == 1 else (0,) * count),
        )
    return bytes(made) + body


def quantised(places: Any, origin: Any, extent: Any) -> Any:
    return np.round((np.asarray(places) - origin) / np.asarray(extent) * 65535).clip(0, 65535).astype("<u2")


def octahedral(headings: Any) -> Any:
    """(n, 2) u16 for unit vectors (n, 3)."""
    v = headings / np.abs(headings).sum(axis=1, keepdims=True)
    folded = (1 - np.abs(v[:, 1::-1])) * np.where(v[:, :2] < 0, -1, 1)
    return np.round((np.where(v[:, 2:] < 0, folded, v[:, :2]) * 0.5 + 0.5) * 65535).astype("<u2")


def cloud(places: Any, values: Any, origin: Any, extent: Any, headings: Any = None, **more: Any) -> bytes:
    """A frame of points, or of arrows; values between 0 and 1."""
    rows = [quantised(places, origin, extent), np.round(np.asarray(values)[:, None] * 65535).astype("<u2")]
    if headings is not None:
        rows.append(octahedral(headings))
    body = np.concatenate(rows, axis=1).tobytes()
    kind = "points" if headings is None else "arrows"
    given = {"count": len(places), "total": len(places), "origin": origin, "extent": extent, "high": 1.0, **more}
    return frame(kind, body, **given)


class FakeRun:
    """Serves the page and the feed on a free port of loopback, in a thread of its own."""

    def __init__(self, frames: Frames, welcome: dict[str, Any], *, rate: float = 20.0) -> None:
        self.frames, self.welcome, self.rate = frames, welcome, rate
        self.said: list[dict[str, Any]] = []
        self.step, self.sequence, self.connections = 0, 0, 0
        self.paused = bool(welcome.get("paused"))
        self.kept: dict[int, list[bytes]] = {}
        self.asked: dict[str, Any] = {}
        self.refusing = False

    def __enter__(self) -> FakeRun:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#t={TOKEN}"

    def drop(self) -> None:
        """Cuts every connection, as a network does."""
        self._loop.call_soon_threadsafe(lambda: [c.transport.abort() for c in self._server.connections])

    def leave(self) -> None:
        """Closes every connection, as a run that ends does."""

        async def close() -> None:
            for c in self._server.connections:
                await c.close(GONE)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(5)

    def tell(self, message: dict[str, Any]) -> None:
        async def send() -> None:
            for c in self._server.connections:
                await c.send(json.dumps(message))

        asyncio.run_coroutine_threadsafe(send(), self._loop).result(5)

    async def _serve(self, ready: threading.Event) -> None:
        from websockets.asyncio.server import serve

        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serve(self._viewer, "127.0.0.1", 0, process_request=self._page, compression=None) as server:
            self._server = server
            self.port = server.sockets[0].getsockname()[1]
            clock = asyncio.create_task(self._advance())
            ready.set()
            await self._stop.wait()
            clock.cancel()
            await accept_no_more(server)

    async def _advance(self) -> None:
        while True:
            await asyncio.sleep(1 / self.rate)
            if not self.paused:
                self._make()

    def _make(self) -> None:
        self.step += 1
        self.sequence += 1
        self.kept[self.sequence] = self._renewed()

    def _renewed(self) -> list[bytes]:
        made = []
        for data in self.frames(self.step, self.asked):
            raw = bytearray(data)
            struct.pack_into("<I", raw, 8, self.sequence)
            struct.pack_into("<Qd", raw, 24, self.step, self.step / 100)
            made.append(bytes(raw))
        return made

    def _page(self, connection: Any, request: Any) -> Any:
        if request.path == PATH:
            return None
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        file = page_files().get(request.path.split("?")[0])
        if file is None:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such file\n")
        headers = Headers(
            [
                ("Content-Type", file.kind),
                ("Content-Length", str(len(file.body))),
                ("Content-Security-Policy", "default-src 'self'"),
                ("X-Content-Type-Options", "nosniff"),
                ("Connection", "close"),
            ]
        )
        return Response(200, "OK", headers, file.body)

    async def _viewer(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        self.connections += 1
        hello = json.loads(await connection.recv())
        if hello != {"do": "hello", "token": TOKEN} or self.refusing:
            await connection.close(next(iter(CLOSED)))
            return
        viewer = {"credits": 0, "sent": 0, "seek": None}
        await connection.send(json.dumps({"is": "welcome", **self.welcome, **self._state()}))
        sender = asyncio.create_task(self._send(connection, viewer))
        with contextlib.suppress(ConnectionClosed):
            async for text in connection:
                await self._take(connection, viewer, json.loads(text))
        sender.cancel()

    def _state(self) -> dict[str, Any]:
        kept = sorted(self.kept) or [0]
        return {"paused": self.paused, "step": self.step, "history": [kept[0], kept[-1]]}

    async def _send(self, connection: Any, viewer: dict[str, Any]) -> None:
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(0.005)
                newest = self.sequence if viewer["seek"] is None else viewer["seek"]
                if viewer["credits"] > 0 and newest != viewer["sent"] and newest in self.kept:
                    viewer["sent"] = newest
                    await connection.send(json.dumps({"is": "state", **self._state()}))
                    for data in self.kept[newest]:
                        viewer["credits"] -= data[4] != KINDS["statistics"]
                        raw = bytearray(data)
                        raw[5] |= FLAGS["past"] * (viewer["seek"] is not None)
                        await connection.send(bytes(raw))

    async def _take(self, connection: Any, viewer: dict[str, Any], message: dict[str, Any]) -> None:
        self.said.append(message)
        match message:
            case {"do": "credit", "n": n}:
                viewer["credits"] = n
            case {"do": "ack"}:
                viewer["credits"] += 1
            case {"do": "pause" | "run" as what}:
                self.paused = what == "pause"
                await connection.send(json.dumps({"is": "state", **self._state()}))
            case {"do": "step", "n": n}:
                for _ in range(n):
                    self._make()
            case {"do": "seek", "frame": place}:
                viewer["seek"] = None if place < 0 else place
            case {"do": "pick", "row": row}:
                await connection.send(
                    json.dumps({"is": "picked", "row": row, "step": self.step, "fields": {"mass": 0.25, "id": row}})
                )
            case {"do": "colour", "field": field}:
                self.asked["field"] = field
                await connection.send(json.dumps({"is": "state", "field": field, **self._state()}))
            case {"do": "slice", "axis": axis, "place": place}:
                self.asked |= {"axis": axis, "place": place}
                self.kept[self.sequence] = self._renewed()
                viewer["sent"] = 0
            case _:
                pass
