"""A viewer for tests: it says hello, grants credits, and acknowledges what comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lanewise.live.frame import FrameHeader, decode
from lanewise.live.protocol import PATH
from lanewise.live.server import Server


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON: a browser rejects it")


class Talk:
    """A connection that is in. Threads of the test's own read it, without a loop."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.texts: list[dict[str, Any]] = []

    def say(self, do: str, **values: Any) -> None:
        self.connection.send(json.dumps({"do": do, **values}))

    def message(self, timeout: float = 20) -> dict[str, Any] | tuple[FrameHeader, memoryview]:
        data = self.connection.recv(timeout)
        if isinstance(data, str):
            self.texts.append(json.loads(data, parse_constant=refuse))
            return self.texts[-1]
        return decode(data)

    def frame(self, *, ack: bool = True) -> tuple[FrameHeader, memoryview]:
        """The next frame."""
        while True:
            match self.message():
                case (FrameHeader() as header, body) if header.kind != "statistics":
                    if ack:
                        self.ack(header)
                    return header, body
                case _:
                    pass

    def ack(self, header: FrameHeader) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):  # what was sent before the end can still be read
            self.say("ack", sequence=header.sequence, decode=1, draw=1, queue=0)

    def text(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The next text of a kind with these values; frames on the way are acknowledged."""
        while True:
            match self.message():
                case dict() as text if text["is"] == kind and wanted.items() <= text.items():
                    return text
                case (FrameHeader() as header, _) if header.kind != "statistics":
                    self.ack(header)
                case _:
                    pass


def address(server: Server) -> str:
    return f"ws://127.0.0.1:{server.port}{PATH}"


@contextmanager
def talking(server: Server, *, credits: int = 2, **options: Any) -> Iterator[Talk]:
    from websockets.sync.client import connect

    with connect(address(server), max_size=None, close_timeout=0.1, **options) as connection:
        talk = Talk(connection)
        talk.say("hello", token=server.token)
        assert talk.text("welcome")
        if credits:
            talk.say("credit", n=credits)
        yield talk
