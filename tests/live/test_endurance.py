"""A server for longer: a narrow connection, and a hundred thousand messages that say anything."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from lanewise.live.feed import Feed
from lanewise.live.server import Server, Serving
from tests.live.narrow import Narrow
from tests.live.talk import Talk, address, talking
from tests.live.test_server import Counting, Running, message

pytest.importorskip("websockets")


def through(narrow: Narrow, server: Server) -> Any:
    from websockets.sync.client import connect

    sock = socket.create_connection(("127.0.0.1", narrow.port))
    return connect(address(server), sock=sock, max_size=None, compression=None, close_timeout=0.1)


@pytest.mark.slow
def test_a_narrow_connection_has_many_frames_of_fewer_elements() -> None:
    """100 Mbit/s: a million points at first, and most of the frames soon; all of them in a pause."""
    scene = Counting(1_000_000)
    server = Server(Feed(scene, rate=30), Serving(port=0))
    server.start()
    with Narrow(server.port, 12.5e6) as narrow, through(narrow, server) as connection:
        talk = Talk(connection)
        talk.say("hello", token=server.token)
        talk.text("welcome")
        talk.say("credit", n=2)
        with Running(server.feed, scene):
            began = time.monotonic()
            while (header := talk.frame()[0]).count > 100_000:
                assert time.monotonic() - began < 20
            begin, counts = time.monotonic(), list[int]()
            while time.monotonic() - begin < 3:
                counts.append(talk.frame()[0].count)
            print(f"{begin - began:.2f} s until then, {len(counts) / 3:.1f} frames/s of {np.mean(counts):.0f} points")
            assert min(counts) >= 20_000
            assert len(counts) > 20
            talk.say("pause")
            begin, have = time.monotonic(), 0
            while have < header.total:
                header, _ = talk.frame()
                have = header.first + header.count
            print(f"all of them {time.monotonic() - begin:.2f} s after a pause")
    server.stop()


@pytest.mark.slow
def test_a_server_outlives_random_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.live import viewers

    scene = Counting()
    monkeypatch.setattr(viewers, "MESSAGES_A_SECOND", 1 << 40)
    server = Server(Feed(scene, rate=200), Serving(port=0))
    server.start()
    assert server._loop is not None
    failed: list[Any] = []
    server._loop.set_exception_handler(lambda _, context: failed.append(context))
    about, rng = dict(scene.about), random.Random(48)
    with talking(server) as talk, Running(server.feed, scene):

        def hear() -> None:
            with suppress(Exception):
                while True:
                    talk.connection.recv(20)

        listening = threading.Thread(target=hear, daemon=True)
        listening.start()
        for _ in range(100_000):
            talk.connection.send(message(rng))
        talk.say("run")
        with talking(server) as other:
            seen = other.frame()[0].step
            while other.frame()[0].step <= seen:
                pass
            assert other.text("state")["field"] in about["fields"]
    assert not failed
    assert dict(scene.about) == about
    assert server._thread.is_alive()
    server.stop()
