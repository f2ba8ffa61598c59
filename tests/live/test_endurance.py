"""A server for longer: a narrow connection, and a hundred thousand messages that say anything."""

from __future__ import annotations

import random
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.live.feed import Feed
from lanewise.live.server import Server, Serving
from lanewise.live.viewers import FIRST_POINTS, LEAST_POINTS, LEAST_RATE
from tests.live.narrow import Narrow
from tests.live.talk import Talk, address, talking
from tests.live.test_server import COUNT, Counting, Running, message

pytest.importorskip("websockets")


def through(narrow: Narrow, server: Server) -> Any:
    from websockets.sync.client import connect

    sock = socket.create_connection(("127.0.0.1", narrow.port))
    return connect(address(server), sock=sock, max_size=None, compression=None, close_timeout=0.1)


def points(talk: Talk) -> Iterator[int]:
    """How many elements the next frames have, without what earlier ones left out."""
    while True:
        header = talk.frame()[0]
        if header.kind == "points":
            yield header.count


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "most"), [(12.5e6, 1.25 * FIRST_POINTS), (2.5e6, 1.25 * LEAST_POINTS)])
def test_a_narrow_connection_has_many_frames_of_fewer_elements(rate: float, most: float) -> None:
    """With 100 Mbit/s as many elements as a viewer gets at first are too many to get more of them, and with 20 Mbit/s
    so many that the least are left; all of a million come in a pause. A busy machine makes frames later, never earlier.
    """
    scene = Counting(1_000_000)
    server = Server(Feed(scene, rate=30), Serving(port=0))
    server.start()
    with Narrow(server.port, rate) as narrow, through(narrow, server) as connection:
        talk = Talk(connection)
        talk.say("hello", token=server.token)
        talk.text("welcome")
        talk.say("credit", n=2)
        with Running(server.feed, scene):
            counts = [next(points(talk)) for _ in range(40)]
            print(f"{rate / 1e6:g} MB/s: frames of {counts} points")
            assert min(counts) >= LEAST_POINTS
            assert max(counts[4:]) <= most, "two are under way when the first one is acknowledged"
            talk.say("pause")
            header = talk.frame()[0]
            while header.first + header.count < header.total:
                header = talk.frame()[0]
    server.stop()


@pytest.mark.slow
def test_a_connection_of_five_megabits_has_two_frames_a_second() -> None:
    """After elements, frames are what it has fewer of: as many as go there, of the least elements."""
    scene = Counting(1_000_000)
    server = Server(Feed(scene, rate=30), Serving(port=0))
    server.start()
    with Narrow(server.port, 5e6 / 8) as narrow, through(narrow, server) as connection:
        talk = Talk(connection)
        talk.say("hello", token=server.token)
        talk.text("welcome")
        talk.say("credit", n=2)
        with Running(server.feed, scene):
            for _ in range(4):
                next(points(talk))
            begun = time.monotonic()
            counts = [next(points(talk)) for _ in range(20)]
            pace = len(counts) / (time.monotonic() - begun)
            print(f"{pace:.2f} frames/s of {set(counts)} points")
    server.stop()
    assert min(counts) >= LEAST_POINTS
    assert pace >= LEAST_RATE


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


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def share_of_steps(feed: Feed, scene: Counting, seconds: float) -> float:
    """Of the time that the run's thread computes, with a look after each step. What waits for a processor is none."""
    matrix, steps = np.full((128, 128), 0.5, np.float32), 0.0
    begun, end = time.thread_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.thread_time()
        for _ in range(20):
            matrix = np.tanh(matrix)
        steps += time.thread_time() - before
        scene.step += 1
        feed.look(scene.step)
    return steps / (time.thread_time() - begun)


@pytest.mark.slow
def test_a_viewer_that_reads_nothing_costs_a_hundredth_at_most() -> None:
    """For five seconds, almost from its first frame on: the run takes at least 99 % of the steps that it takes alone
    in as much time of its own, and less than two frames stay in memory.
    """
    scene = Counting(COUNT)
    feed = Feed(scene, rate=30, history=1 << 20)
    server = Server(feed, Serving(port=0))
    server.start()
    alone = share_of_steps(feed, scene, 2)
    with talking(server):
        while not feed.watched:
            time.sleep(0.01)
        share_of_steps(feed, scene, 0.2)  # what is there once: buffers, compiled code
        before, made = resident(), feed.made
        share = share_of_steps(feed, scene, 5) / alone
        grown = resident() - before
        (viewer,) = server._viewers
        assert viewer.silent
    server.stop()
    print(f"{share:.4f} of the pace alone; {grown} bytes and {feed.made - made} frames more")
    assert share >= 0.99
    assert grown < 2 * 8 * COUNT
