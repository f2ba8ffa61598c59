"""A connection as slow as one is told: bytes of a server come at most that fast."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType


class Narrow:
    """Listens at `port`, and passes on what comes; from the server with so many bytes a second."""

    def __init__(self, port: int, rate: float) -> None:
        self._to, self._rate = port, rate
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection(("127.0.0.1", self._to))
                # what lies in buffers would hide how slow it is
                there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                for a, b, rate in ((here, there, 0.0), (there, here, self._rate)):
                    threading.Thread(target=self._pass, args=(a, b, rate), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, rate: float) -> None:
        due = time.monotonic()
        with suppress(OSError):
            while data := source.recv(1 << 15):
                if rate:
                    due = max(due, time.monotonic() - 0.01) + len(data) / rate
                    time.sleep(max(0.0, due - time.monotonic()))
                to.sendall(data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Narrow:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listening.close()
