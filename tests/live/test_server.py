"""The server: who is let in, what it serves, and that no viewer holds up the run."""

from __future__ import annotations

import asyncio
import errno
import gc
import gzip
import http.client
import json
import random
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.live import feed as feeds
from lanewise.live import viewers
from lanewise.live.feed import Feed, towards
from lanewise.live.frame import FrameHeader, decode, encode
from lanewise.live.messages import FASTEST, SCHEMA, SLOWEST, read_message
from lanewise.live.scenes import Asked
from lanewise.live.server import Server, Serving
from lanewise.live.viewers import Viewer
from lanewise.support.errors import InputError
from tests.live.talk import Talk, address, talking

pytest.importorskip("websockets")
COUNT = 100_000


class Counting:
    """A scene of points that are nothing but a number of their step."""

    def __init__(self, count: int = 100) -> None:
        self.step, self.count = 0, count
        self.about = {"kinds": ["points"], "fields": ["a", "b"], "title": "counting", "product": "test"}

    @property
    def moment(self) -> tuple[int, float]:
        return self.step, self.step / 10

    def frames(self, asked: Asked) -> list[bytes]:
        body = np.full((self.count, 4), self.step % 65536, np.uint16).tobytes()
        return [
            encode(
                FrameHeader(
                    kind="points", components=8, count=self.count, total=self.count, step=self.step, extent=(1, 1, 1)
                ),
                body,
            )
        ]

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        return {"row": place, "step": self.step}

    def state(self) -> tuple[int, int]:
        return self.step, self.count


class Running:
    """A run of steps in a thread, with a look after each; at most `most` of them."""

    def __init__(self, feed: Feed, scene: Counting) -> None:
        self.feed, self.scene, self.over = feed, scene, False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.over:
            self.feed.look(self.scene.step, lambda: self.over)
            if not self.over:
                self.scene.step += 1
                time.sleep(0.0005)

    def __enter__(self) -> Running:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join(10)


def run_apart(doing: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns, in a thread of its own: a browser's tests leave a loop running in this one."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(asyncio.run, doing).result(60)


@pytest.fixture
def scene() -> Counting:
    return Counting()


@pytest.fixture
def server(scene: Counting) -> Iterator[Server]:
    server = Server(Feed(scene, rate=500), Serving(port=0))
    server.start()
    yield server
    server.stop()


def asked(server: Server, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def test_the_page_needs_no_token_and_holds_no_data(server: Server) -> None:
    status, headers, body = asked(server, "/")
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert server.token.encode() not in body
    assert asked(server, "/main.js")[1]["content-type"] == "text/javascript"
    assert asked(server, "/favicon.ico")[0] == 200
    plain, packed = asked(server, "/main.js")[2], asked(server, "/main.js", **{"Accept-Encoding": "gzip"})
    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain


@pytest.mark.parametrize(
    "path", ["/../server.py", "/..%2fserver.py", "/static", "/etc/passwd", "//main.js", "/protocol.py", "/protocol.js"]
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert asked(server, path)[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", "", "localhost:{port}.evil"]
)
def test_foreign_hosts_get_nothing(server: Server, host: str) -> None:
    assert asked(server, "/", Host=host.format(port=server.port))[0] in (400, 403)


def test_own_names_are_let_in(server: Server) -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert asked(server, "/", Host=f"{host}:{server.port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:1", "null", "http://localhost.evil:{port}", "file://"]
)
def test_foreign_origins_get_nothing(server: Server, origin: str) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    with pytest.raises(InvalidStatus) as refused:
        connect(address(server), additional_headers={"Origin": origin.format(port=server.port)})
    assert refused.value.response.status_code == 403


def refused(server: Server, first: str) -> int:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with connect(address(server)) as connection:
        with suppress(ConnectionClosed):  # it may be closed before it has said anything
            connection.send(first)
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(20)
    received = closed.value.rcvd
    return 0 if received is None else received.code


def test_wrong_tokens_are_refused_and_then_not_heard(server: Server) -> None:
    good = json.dumps({"do": "hello", "token": server.token})
    wrong = [json.dumps({"do": "hello", "token": "x"}), "no json", json.dumps({"do": "pause"})]
    assert [refused(server, w) for w in wrong] == [4401] * 3
    assert refused(server, good) == 4429
    server._wrong = {peer: (n, 0.0) for peer, (n, _) in server._wrong.items()}  # ten seconds later
    with talking(server):
        pass


def test_a_message_that_is_too_long_closes(server: Server) -> None:
    with talking(server, credits=0) as talk:
        from websockets.exceptions import ConnectionClosed

        talk.connection.send("x" * 70_000)
        with pytest.raises(ConnectionClosed) as closed:
            talk.text("nothing that it says")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_nine_are_too_many(server: Server) -> None:
    from contextlib import ExitStack

    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(talking(server, credits=0))
        assert refused(server, json.dumps({"do": "hello", "token": server.token})) == 4429


def test_frames_come_and_pause_and_steps_hold(server: Server, scene: Counting) -> None:
    with talking(server) as talk, Running(server.feed, scene):
        steps = [talk.frame()[0].step for _ in range(5)]
        assert steps == sorted(set(steps))
        talk.say("pause")
        talk.text("state", paused=True)
        talk.say("pick", row=5)
        now = talk.text("picked")["fields"]
        talk.say("pick", row=5)
        assert talk.text("picked")["fields"] == now
        talk.say("step", n=3)
        talk.text("state", step=now["step"] + 3)
        talk.say("pick", row=5)
        picked = talk.text("picked")
        assert picked["fields"]["step"] == picked["step"] == now["step"] + 3
        talk.say("run")
        talk.text("state", paused=False)


def test_states_are_told_while_frames_come(server: Server, scene: Counting) -> None:
    with talking(server) as talk, Running(server.feed, scene):
        first = talk.text("state")["step"]
        while talk.text("state")["step"] <= first:
            pass


def test_seeking_shows_older_frames(server: Server, scene: Counting) -> None:
    with talking(server) as talk, Running(server.feed, scene):
        seen = [talk.frame()[0] for _ in range(4)]
        talk.say("pause")
        talk.say("seek", frame=seen[1].sequence)
        while True:
            header, body = talk.frame()
            if header.flags & 2:
                break
        assert (header.sequence, header.step) == (seen[1].sequence, seen[1].step)
        assert np.frombuffer(body, np.uint16)[0] == seen[1].step
        talk.say("seek", frame=-1)
        while talk.frame()[0].flags & 2:
            pass


def test_two_viewers_have_their_own_pace(server: Server, scene: Counting) -> None:
    with talking(server) as quick, talking(server) as slow, Running(server.feed, scene):
        first = slow.frame(ack=False)[0]
        slow.frame(ack=False)  # no credit is left to it
        last = [quick.frame()[0] for _ in range(20)][-1]
        assert last.sequence > first.sequence + 2
        slow.ack(first)
        assert slow.frame()[0].sequence > first.sequence + 2, "the newest one, not the next"


def test_who_reads_nothing_costs_nothing(scene: Counting) -> None:
    scene.count = COUNT
    feed = Feed(scene, rate=1000, history=1 << 20)
    server = Server(feed, Serving(port=0))
    server.start()
    with talking(server, credits=4), Running(feed, scene):
        while feed.made < 2:
            time.sleep(0.01)
        before = scene.step
        while scene.step < before + 100:  # the run goes on, whatever is not read
            time.sleep(0.01)
        (viewer,) = server._viewers
        assert len(viewer.under_way) <= 4
        assert len(feed.history) <= 2
    server.stop()


def test_for_viewers_that_read_nothing_no_frames_are_made(scene: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the newest one when they read again, and the last one of the run."""
    monkeypatch.setattr(viewers, "SILENT_SECONDS", 0.1)
    feed = Feed(scene, rate=1000)
    server = Server(feed, Serving(port=0))
    server.start()
    with talking(server) as talk:
        with Running(feed, scene):
            while not feed.silent:
                time.sleep(0.01)
            time.sleep(0.05)  # one that was under way
            made, step = feed.made, scene.step
            while scene.step < step + 100:
                time.sleep(0.01)
            assert feed.made == made
            assert feed.watched == 1
            while talk.frame()[0].step <= step:
                pass
            while not feed.silent:
                time.sleep(0.01)
        feed.end()
        while talk.frame()[0].step < scene.step:
            pass
    server.stop()


def test_a_cloud_is_completed_while_the_run_rests(scene: Counting) -> None:
    scene.count = COUNT
    feed = Feed(scene, rate=100)
    server = Server(feed, Serving(port=0, budget=1.0))
    server.start()
    with talking(server) as talk:
        feed.pause()
        with Running(feed, scene):
            header, _ = talk.frame()
            assert header.total == COUNT
            assert 20_000 <= header.count < 22_000
            have = header.count
            while have < COUNT:
                rest, _ = talk.frame()
                if rest.kind == "points":  # made for the viewer that has just come
                    have = 0
                assert rest.first == have
                have += rest.count
            assert have == COUNT
    server.stop()


@pytest.mark.parametrize("budget", [1.0, 4e5, 1.6e6, 4.8e6, 2e7, 1e9])
def test_a_budget_takes_elements_first_and_then_frames(
    scene: Counting, monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    """And leaves 20,000 elements twice a second, as frames and as what follows them in a pause."""
    scene.count, now = COUNT, 1000.0
    monkeypatch.setattr(viewers, "time", SimpleNamespace(monotonic=lambda: now))
    feed, sent = Feed(scene, rate=30), list[tuple[float, FrameHeader]]()

    async def send(message: Any) -> None:
        header = decode(message)[0]
        sent.extend([(now, header)] if header.kind != "statistics" else [])

    viewer = Viewer(feed, send, budget=budget)

    def send_next() -> None:
        nonlocal now
        before = len(sent)
        while True:
            wait = run_apart(viewer._send_frames())
            if len(sent) > before:
                return
            now += wait

    for _ in range(5):
        feed.make()
        feed.flush()
        send_next()
    feed.paused = True
    while sent[-1][1].first + sent[-1][1].count < COUNT:
        send_next()
    for (begun, header), (end, _) in pairwise(sent):
        size, seconds = header.count * 8, end - begun
        wanted = min(max(size / budget, 1 / 30 if header.kind == "points" else 0), 0.5)
        assert seconds == pytest.approx(wanted, rel=1e-2, abs=2e-3)
        if header.kind == "points":
            assert header.count >= 20_000
            assert header.count < 21_000 or size * 30 <= budget * 1.01, "elements go first"


def test_a_pause_is_no_time_of_steps(scene: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = 0.0, 0
    monkeypatch.setattr(feeds, "time", SimpleNamespace(monotonic=lambda: now))
    feed = Feed(scene)
    feed.watch(1)

    def waited() -> bool:
        nonlocal now, looks
        now, looks = now + 100 * (looks == 0), looks + 1
        return looks > 1

    for step, paused in ((0, False), (100, False), (100, True), (200, False)):
        scene.step, now, feed.paused = step, now + 2, paused
        feed.look(step, waited)
    assert feed.steps_per_second == 100 / 2


def test_acknowledgements_are_heard_however_many_frames_come(scene: Counting) -> None:
    viewer = Viewer(Feed(scene), print)
    viewer.credits = 2

    async def acknowledge() -> None:
        for sequence in range(3 * viewers.MESSAGES_A_SECOND):
            viewer.under_way[sequence] = time.monotonic(), 0
            await viewer.take(json.dumps({"do": "ack", "sequence": sequence, "decode": 1, "draw": 1, "queue": 0}))
            assert not viewer.under_way

    run_apart(acknowledge())


def test_who_leaves_is_forgotten(server: Server, scene: Counting) -> None:
    with Running(server.feed, scene):
        for _ in range(30):
            with talking(server) as talk:
                talk.frame(ack=False)
                talk.connection.socket.close() if _ % 2 else None
        while server._viewers or server.feed.watched:
            time.sleep(0.01)
    assert scene.step > 0


@pytest.mark.slow
def test_many_connections(server: Server) -> None:
    for _ in range(1000):
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n")
    with talking(server):
        pass


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_at_the_end_leaves_no_socket_open(
    server: Server, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Accepted so many turns of the loop before the server closes, as a page that loads when its run ends."""

    clients = list[socket.socket]()

    async def late() -> None:
        client = socket.create_connection(("127.0.0.1", server.port))
        clients.append(client)
        asyncio.get_running_loop().call_later(0.05, client.close)
        for _ in range(turns):
            await asyncio.sleep(0)

    monkeypatch.setattr(server, "_farewell", late)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        server.stop()
        server._thread.join(10)
        clients.pop().close()
        gc.collect()
    assert not [w.message for w in said]


def test_a_taken_port_is_said(server: Server, scene: Counting) -> None:
    other = Server(Feed(scene), Serving(port=server.port))
    other.start()
    assert server.port < other.port < server.port + 10
    assert other.note == f"note: port {server.port} is taken, so this view has {other.port}"
    assert f":{other.port}/#t={other.token}" in other.lines
    assert f"ssh -L {other.port}:127.0.0.1:{other.port} " in other.lines
    other.stop()


def test_a_socket_is_its_users_alone(scene: Counting, tmp_path: Path) -> None:
    from websockets.sync.client import unix_connect

    path = tmp_path / "view.sock"
    server = Server(Feed(scene), Serving(path=path))
    server.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with unix_connect(str(path), uri="ws://localhost:9000/v1/feed") as connection:
        talk = Talk(connection)
        talk.say("hello", token=server.token)
        talk.text("welcome")
    server.stop()
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(InputError, match=r"view\.sock exists and is no socket; wanted a new path"):
        Server(Feed(scene), Serving(path=path)).start()
    assert path.read_text() == "mine"


@pytest.mark.parametrize(("given", "port"), [({}, 8700), ({"port": 9000}, 9000), ({"port": 0}, 8700)], ids=str)
def test_behind_a_socket_the_port_is_that_of_a_tunnel(scene: Counting, tmp_path: Path, given: Any, port: int) -> None:
    server = Server(Feed(scene), Serving(path=tmp_path / "view.sock", **given))
    assert server.url == f"http://127.0.0.1:{port}/#t={server.token}"
    assert f"ssh -L {port}:{tmp_path}/view.sock " in server.lines


@pytest.mark.parametrize(
    ("given", "where", "wanted"),
    [
        ({"host": "300.1.1.1"}, "300.1.1.1", "an address of this machine, or a name of it"),
        ({"host": "192.0.2.1"}, "192.0.2.1", "an address of this machine, or a name of it"),
        ({"host": "a" * 80}, "a" * 80, "an address of this machine, or a name of it"),
        (
            {"path": Path("none/view.sock")},
            "none/view.sock",
            "a new path of at most 100 bytes, in a folder that exists",
        ),
        ({"path": Path("a" * 200)}, "a" * 200, "a new path of at most 100 bytes, in a folder that exists"),
    ],
    ids=["no address", "another machine's", "no name", "no folder", "long"],
)
def test_where_nothing_can_be_served_is_said(scene: Counting, given: dict[str, Any], where: str, wanted: str) -> None:
    """It is not a matter of ports."""
    with pytest.raises(InputError) as refused:
        Server(Feed(scene), Serving(unsafe=True, **given)).start()
    said = str(refused.value)
    assert said.startswith(f"a view cannot be served at {where}: ")
    assert said.endswith(f"; wanted {wanted}")


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("something else")], ids=str
)
def test_what_is_no_matter_of_the_place_is_said_as_it_is(
    scene: Counting, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Server) -> None:
        raise error

    monkeypatch.setattr(Server, "_serve", fails)
    with pytest.raises(InputError) as refused:
        Server(Feed(scene), Serving(port=0)).start()
    assert str(refused.value) == f"a view cannot be served at 127.0.0.1: {error}"


def test_other_hosts_need_a_word_more() -> None:
    with pytest.raises(
        InputError,
        match=r"--view-host 0.0.0.0 would show the run to the network, unencrypted; wanted 127.0.0.1 and an SSH tunnel, or --view-unsafe-host as well",
    ):
        Serving(host="0.0.0.0")


@pytest.mark.parametrize(
    ("host", "netloc", "ours"),
    [
        ("0.0.0.0", "127.0.0.1:8700", True),
        ("0.0.0.0", "192.168.1.7:8700", True),
        ("::", "[fe80::1]:8700", True),
        ("0.0.0.0", f"{socket.gethostname()}:8700", True),
        ("node17", "node17:8700", True),
        ("0.0.0.0", "192.168.1.7:80", False),
        ("0.0.0.0", "evil.example:8700", False),
        ("0.0.0.0", f"{socket.gethostname()}.evil.example:8700", False),
        ("node17", "node18:8700", False),
        ("node17", "192.168.1.7:8700", False),
        ("127.0.0.1", "192.168.1.7:8700", False),
        ("127.0.0.1", f"{socket.gethostname()}:8700", False),
    ],
)
def test_a_host_that_others_reach_has_its_own_names_alone(scene: Counting, host: str, netloc: str, ours: bool) -> None:
    server = Server(Feed(scene), Serving(host=host, unsafe=True))
    server.port = 8700
    assert server._ours(netloc) == ours


def test_readers_command_nothing(scene: Counting) -> None:
    feed = Feed(scene, rate=100)
    server = Server(feed, Serving(port=0, readonly=True))
    server.start()
    with talking(server) as talk:
        talk.say("pause")
        assert "--view-readonly" in talk.text("error")["text"]
        assert not feed.paused
        talk.say("colour", field="b")
        talk.text("state", field="b")
    server.stop()


@pytest.mark.parametrize(("rate", "told"), [(60.0, 60.0), (5.0, 5.0), (0.01, SLOWEST), (1e6, FASTEST)])
def test_viewers_are_told_their_rate(scene: Counting, rate: float, told: float) -> None:
    """One that they may ask for, so that a control shows what holds."""
    server = Server(Feed(scene, rate=rate), Serving(port=0))
    assert json.loads(server.welcome(Viewer(server.feed, print, rate=rate)))["rate"] == told
    assert read_message(json.dumps({"do": "rate", "n": told}))


def test_a_paused_run_that_nobody_watches_says_so(scene: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.live.feed.ALONE_AFTER", 0.0)
    feed, said = Feed(scene), list[str]()
    feed.say = lambda text: (said.append(text), feed.go())[0]
    feed.pause()
    feed.look(0)
    assert said == ["view: the run is paused and has no viewers; resume it at its address"]


def test_a_frame_that_fails_is_said_once_and_ends_nothing() -> None:
    class Failing(Counting):
        def frames(self, asked: Asked) -> list[bytes]:
            raise InputError("nothing to see")

    feed, said = Feed(Failing(), rate=1e6), list[str]()
    feed.say = said.append
    feed.watch(1)
    for step in range(5):
        feed.look(step)
    feed.end()
    assert said == ["view: no frame: nothing to see"]
    assert feed.newest() is None


@given(st.sets(st.integers(1, 60), min_size=1), st.integers(-5, 70), st.integers(0, 65))
def test_whoever_goes_on_or_back_gets_on(kept: set[int], wanted: int, shown: int) -> None:
    """Between two that are kept, too."""
    found = towards(sorted(kept), wanted, shown)
    assert found in kept
    if wanted > shown and max(kept) > shown:
        assert shown < found <= max(wanted, min(k for k in kept if k > shown))
    elif wanted < shown and min(kept) <= wanted:
        assert found == max(k for k in kept if k <= wanted)


@pytest.mark.parametrize("thin", [False, True])
def test_a_full_history_leaves_out_the_oldest_frames_or_every_other_one(thin: bool) -> None:
    scene = Counting(1000)
    feed = Feed(scene, history=20 * 8200, thin=thin)
    for scene.step in range(1, 501):
        feed.make()
        kept = [m.sequence for m in feed.history]
        assert kept[-1] == scene.step
        assert sum(m.nbytes for m in feed.history) == feed._bytes <= 20 * 8200
        assert kept == sorted(set(kept))
        if thin:
            assert kept[0] == 1
            assert len(kept) >= min(scene.step, 9)
        else:
            assert kept == list(range(kept[0], scene.step + 1))


def test_refusals_are_said_among_many_messages(server: Server, scene: Counting) -> None:
    with talking(server) as talk:
        for n in range(12):
            talk.say("rate", n=20 + n)
        talk.say("colour", field="none of them")
        assert "no field none of them" in talk.text("error")["text"]


def test_the_end_is_said(server: Server, scene: Counting) -> None:
    with talking(server) as talk:
        with Running(server.feed, scene):
            talk.frame()
        server.feed.end()
        threading.Thread(target=server.stop).start()
        assert talk.text("state", ended=True)["step"] == scene.step


@pytest.mark.parametrize("ends_at", [1, 2, 3])
def test_the_end_is_said_whenever_it_comes(scene: Counting, ends_at: int) -> None:
    from lanewise.live.viewers import Viewer

    said: list[Any] = []

    async def send(data: Any) -> None:
        said.append(data)
        if len(said) == ends_at:
            feed.end()

    feed = Feed(scene, rate=500)
    viewer = Viewer(feed, send, credits=10, rate=500)
    feed.watch(1)
    feed.look(0)
    run_apart(viewer.serve())
    assert json.loads([text for text in said if isinstance(text, str)][-1])["ended"]
    assert decode([frame for frame in said if not isinstance(frame, str)][-1])[0].step == scene.step


def test_frames_that_take_long_leave_the_run_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow(Counting):
        def frames(self, asked: Asked) -> list[bytes]:
            nonlocal now
            now += 0.01
            return super().frames(asked)

    slow = Slow()
    monkeypatch.setattr(feeds, "time", SimpleNamespace(monotonic=lambda: now))
    feed = Feed(slow, rate=500)
    feed.watch(1)
    while now < 0.6:
        feed.look(slow.step)
        slow.step += 1
        now += 1e-4
    assert 1 < feed.made < 0.6 / 0.025 + 2


def anything(rng: random.Random) -> Any:
    return rng.choice(
        [
            None,
            True,
            -1,
            0,
            1,
            2.5,
            1e400,
            -(10**30),
            "",
            "a",
            "b",
            "speed",
            "x" * 300,
            [],
            ["points"],
            [[]],
            {},
            {"n": 1},
            float("nan"),
            10**400,
        ]
    )


def message(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return "".join(chr(rng.randrange(1, 0x2FFF)) for _ in range(rng.randrange(40)))
    do = rng.choice([*SCHEMA, "exec", "load", 3, None])
    names = [
        "n",
        "sequence",
        "decode",
        "draw",
        "queue",
        "field",
        "low",
        "high",
        "auto",
        "kinds",
        "axis",
        "place",
        "frame",
        "row",
        "token",
        "path",
    ]
    form = rng.choice(SCHEMA.get(do, ({},))) if isinstance(do, str) else {}
    said = {name: anything(rng) for name in (form if rng.random() < 0.6 else rng.sample(names, rng.randrange(4)))}
    return json.dumps({"do": do, **said})


def test_random_messages_are_read_or_refused() -> None:
    rng = random.Random(46)
    good, reasons = 0, set[str]()
    for _ in range(20_000):
        try:
            read = read_message(message(rng))
        except InputError as error:
            reasons.add(str(error).split("wanted")[-1])
        else:
            good += 1
            assert any(read.keys() - {"do"} == form.keys() for form in SCHEMA[read["do"]])
    assert good > 100
    assert len(reasons) > 5


def test_random_messages_change_nothing_of_the_run(scene: Counting) -> None:
    from lanewise.live.viewers import Viewer

    said: list[Any] = []

    async def send(data: Any) -> None:
        said.append(data)

    async def talk() -> None:
        rng = random.Random(47)
        for _ in range(20_000):
            viewer._second = (0, 0)
            await viewer.take(message(rng))

    viewer = Viewer(Feed(scene), send)
    before = dict(scene.about), scene.state()
    run_apart(talk())
    assert (dict(scene.about), scene.state()) == before
    assert viewer.feed.asked.field in ("a", "b")
    assert all(json.loads(text)["is"] in ("error", "picked") for text in said)


# a shell that starts a program in the background lets it ignore Ctrl-C, and so its children
SCRIPT = """
import json, signal, sys, threading
from lanewise.live.feed import Feed
from lanewise.live.server import Server, Serving
from tests.live.test_server import Counting
signal.signal(signal.SIGINT, signal.default_int_handler)
server = Server(Feed(Counting()), Serving(port=0))
server.start()
if sys.argv[1] == "paused":
    server.feed.pause()
print(server.port, server.token, flush=True)
try:
    while True:
        server.feed.look(0)
except KeyboardInterrupt:
    join, waits = threading.Thread.join, []
    threading.Thread.join = lambda self, timeout=None: waits.append(timeout) or join(self, timeout)
    server.stop()
    threads = [t.name for t in threading.enumerate() if not t.daemon]
    print(json.dumps({"waits": waits, "threads": threads}), flush=True)
"""


@pytest.mark.parametrize("state", ["paused", pytest.param("running", marks=pytest.mark.slow)])
def test_ctrl_c_ends_a_view_within_a_second(state: str) -> None:
    """With a viewer. What it waits for at most is counted, as a busy machine makes all of it later, and no thread is left
    that Python would wait for.
    """
    import signal

    root = Path(__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, state], stdout=subprocess.PIPE, text=True, cwd=root)
    assert child.stdout is not None
    port, token = child.stdout.readline().split()
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{port}/v1/feed") as connection:
        Talk(connection).say("hello", token=token)
        Talk(connection).text("welcome")
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    found = json.loads(out)
    assert sum(found["waits"]) < 1
    assert found["threads"] == ["MainThread"]
    assert child.returncode == 0
