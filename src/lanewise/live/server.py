"""The server of a view: the page, and the feed behind a token, in one daemon thread.

A machine's loopback is shared by its users: nothing that a run says goes to anyone without the
token, and no page of another site gets past Host and Origin.
"""

from __future__ import annotations

import asyncio
import errno
import getpass
import ipaddress
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lanewise.live.feed import Feed
from lanewise.live.frame import Frame
from lanewise.live.messages import FASTEST, LONGEST, SLOWEST, read_message, written
from lanewise.live.page import page_files
from lanewise.live.protocol import GONE, PATH
from lanewise.live.replay import RecordedFeed
from lanewise.live.viewers import Viewer
from lanewise.support.errors import InputError
from lanewise.support.installation import install

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERYWHERE = ("0.0.0.0", "::")  # all addresses of this machine
DEFAULT_PORT, PORTS = 8700, 10  # the first one, and how many are tried
VIEWERS = 8
WRONG, CLOSED_SECONDS = 3, 10.0  # tokens of a peer, and how long it is not heard then
HELLO_SECONDS = 5.0
END_SECONDS = 0.5
ACCEPTED_SECONDS = 0.01  # until what was accepted is a connection
WATCH_SECONDS = 0.25  # between two looks at whether viewers still read
PIECE = 1 << 19  # bytes of a message that are sent at once
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)  # no matter of the address
WRONG_TOKEN, TOO_MANY = 4401, 4429
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; style-src 'self'; "
    "object-src 'none'; base-uri 'none'"
)
LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where and how a view is served.

    port: the first of ten that are tried; 0: any. host: other than loopback only where `unsafe`.
    path: of a Unix socket instead; the port is then that of a tunnel to it. budget: bytes a second
    of a viewer.
    """

    port: int = DEFAULT_PORT
    host: str = "127.0.0.1"
    unsafe: bool = False
    path: Path | None = None
    readonly: bool = False
    budget: float = 200e6

    def __post_init__(self) -> None:
        if not 0 <= self.port <= LAST_PORT:
            raise InputError(f"the port of a view is {self.port}; wanted one from 0 to {LAST_PORT}")
        if self.host not in ("127.0.0.1", "localhost", "::1") and not self.unsafe:
            raise InputError(
                f"--view-host {self.host} would show the run to the network, unencrypted; wanted "
                "127.0.0.1 and an SSH tunnel, or --view-unsafe-host as well"
            )


class Server:
    """Serves one feed from `start` to `stop`."""

    def __init__(self, feed: Feed | RecordedFeed, serving: Serving | None = None) -> None:
        self.feed, self.serving = feed, serving or Serving()
        self.token = secrets.token_urlsafe(16)
        self.port, self.note = 0, ""
        self._viewers: set[Viewer] = set()
        self._serving: asyncio.Task[None] | None = None  # a reference keeps it alive
        self._wrong: dict[str, tuple[int, float]] = {}
        self._ready, self._failed = threading.Event(), ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="lanewise view", daemon=True)

    # ------------------------------------------------------------ the run's thread

    def start(self) -> None:
        """Listen. Raises `InputError` where no port is free, or the extra is not installed."""
        if find_spec("websockets") is None:
            raise InputError(f"a view needs the package websockets: {install('view')}") from None
        page_files()  # so that the first viewer does not wait for it
        self._thread.start()
        self._ready.wait()
        if self._failed:
            raise InputError(self._failed)
        self.feed.notify = self._notify

    def stop(self) -> None:
        """Tell viewers that it is over, and close; takes half a second at most."""
        if self._loop is None or not self._thread.is_alive():
            return
        self.feed.notify = lambda: None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(END_SECONDS + 0.3)
        if self.serving.path is not None:
            self.serving.path.unlink(missing_ok=True)

    def _notify(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake)

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://{self._named}:{self._port_there}/#t={self.token}"

    @property
    def _port_there(self) -> int:
        """Where the viewer is: behind a socket that of a tunnel."""
        return self.port or self.serving.port or DEFAULT_PORT

    @property
    def _named(self) -> str:
        host = self.serving.host
        return f"[{host}]" if ":" in host else host

    def welcome(self, viewer: Viewer) -> str:
        """What a viewer gets at first."""
        rate = max(SLOWEST, min(viewer.rate, FASTEST))
        about = {**self.feed.scene.about, "readonly": self.serving.readonly, "rate": rate}
        return written({"is": "welcome", **about, **self.feed.state})

    @property
    def lines(self) -> str:
        """What is printed: the address, and how it is reached from another machine."""
        there = f"{getpass.getuser()}@{socket.gethostname()}"
        path = self.serving.path
        to = path.resolve() if path else f"127.0.0.1:{self.port}"
        tunnel = f"ssh -L {self._port_there}:{to} {there}"
        said = f"view: {self.url}   (from your machine: {tunnel})"
        return f"{said}\n{self.note}" if self.note else said

    # ------------------------------------------------------------ its own thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # a name of a host that is none raises ValueError
            if self._ready.is_set() and not isinstance(error, OSError):
                raise
            path, host = self.serving.path, self.serving.host
            where, wanted = host, "an address of this machine, or a name of it"
            if path is not None:
                where, wanted = path, "a new path of at most 100 bytes, in a folder that exists"
            said = f"a view cannot be served at {where}: {error or type(error).__name__}"
            of_the_place = (
                isinstance(error, OSError | ValueError)
                and getattr(error, "errno", 0) not in EXHAUSTED
            )
            said += f"; wanted {wanted}" * of_the_place
            self._failed = self._failed or said
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve, unix_serve

        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        options: dict[str, Any] = {
            "process_request": self._request, "max_size": LONGEST, "compression": None,
            "ping_interval": 20, "ping_timeout": 20, "open_timeout": HELLO_SECONDS,
            "close_timeout": 0.2, "server_header": None, "write_limit": 1 << 16,
        }  # fmt: skip
        if (path := self.serving.path) is not None:
            _free(path)
            before = os.umask(0o177)
            try:
                server = await unix_serve(self._viewer, str(path), **options)
            finally:
                os.umask(before)
        else:
            server = await self._listen(serve, options)
        self._ready.set()
        async with server:
            while not self._over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), WATCH_SECONDS)
                if self._viewers:
                    self._watch()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._farewell(), END_SECONDS)
            await accept_no_more(server)

    async def _listen(self, serve: Any, options: dict[str, Any]) -> Any:
        """On the first free one of ten ports."""
        first = self.serving.port
        tried = range(first, min(first + PORTS, LAST_PORT + 1)) if first else range(1)
        for port in tried:
            try:
                server = await serve(self._viewer, self.serving.host, port, **options)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise  # no port of this host would do
                if port == tried[-1]:
                    self._failed = (
                        f"no port from {first} to {tried[-1]} is free for a view ({error}); wanted "
                        "another --view-port, or 0 for any"
                    )
                    raise
                continue
            self.port = server.sockets[0].getsockname()[1]
            if first and port != first:
                self.note = f"note: port {first} is taken, so this view has {port}"
            return server
        raise AssertionError

    async def _farewell(self) -> None:
        """Let viewers have the last frame and the end."""
        self._wake()
        while self._viewers:
            await asyncio.sleep(0.01)

    def _wake(self) -> None:
        for viewer in self._viewers:
            viewer.woken.set()

    def join(self, viewer: Viewer) -> None:
        """Count a viewer that another part than the server talks to, and wake it with the others.
        It serves in this server's loop.
        """
        assert self._loop is not None, "it listens"
        loop = self._loop

        def begin() -> None:
            self._viewers.add(viewer)
            self._serving = loop.create_task(viewer.serve())
            self._watch()

        loop.call_soon_threadsafe(begin)

    def hand(self, viewer: Viewer, text: str) -> None:
        """A message of such a viewer."""
        assert self._loop is not None, "it listens"

        async def take() -> None:
            await viewer.take(text)
            self._watch()

        asyncio.run_coroutine_threadsafe(take(), self._loop)

    def _watch(self) -> None:
        taking = [v for v in self._viewers if v.takes_frames]
        self.feed.watch(len(taking), silent=all(v.silent for v in taking))

    def _request(self, _: Any, request: Any) -> Any:
        """Answer for files of the page; None lets the feed's connection be opened."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._ours(hosts[0]) or len(origins) > 1:
            return _answer(HTTPStatus.FORBIDDEN, b"this Host is not the view's\n")
        for origin in origins:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or not self._ours(parts.netloc):
                return _answer(HTTPStatus.FORBIDDEN, b"this Origin is not the view's\n")
        path = request.path.split("?")[0]
        if path == PATH:
            return None
        if (file := page_files().get(path)) is None:
            return _answer(HTTPStatus.NOT_FOUND, b"no such file\n")
        packed = "gzip" in ",".join(request.headers.get_all("Accept-Encoding"))
        body = file.packed if packed else file.body
        return _answer(HTTPStatus.OK, body, file.kind, packed=packed)

    def _ours(self, netloc: str) -> bool:
        """Whether a page under this name is the view's own. Behind a socket the port is the
        tunnel's.
        """
        host, _, port = netloc.rpartition(":")
        if not self._answers_to(host):
            return self.serving.path is not None and netloc in LOOPBACK
        return port == str(self.port) or (self.serving.path is not None and port.isdecimal())

    def _answers_to(self, host: str) -> bool:
        """Whether it is one of this server's own names.

        A page of another site cannot send an address, nor the name of this machine (DNS rebinding).
        """
        if host in (*LOOPBACK, self._named):
            return True
        if self.serving.host not in EVERYWHERE:
            return False
        return host in (socket.gethostname(), socket.getfqdn()) or _is_address(host.strip("[]"))

    async def _viewer(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            if not await self._let_in(connection):
                return
            s = self.serving
            send = partial(_send, connection)
            viewer = Viewer(self.feed, send, s.readonly, self.feed.rate, s.budget)
            with self._counted(viewer):
                await connection.send(self.welcome(viewer))
                await self._follow(connection, viewer)

    async def _follow(self, connection: Any, viewer: Viewer) -> None:
        sending = asyncio.create_task(viewer.serve())
        listening = asyncio.create_task(self._listen_to(connection, viewer))
        try:
            done, _ = await asyncio.wait({sending, listening}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (sending, listening):
                task.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)
        await connection.close(GONE)

    async def _listen_to(self, connection: Any, viewer: Viewer) -> None:
        async for data in connection:
            await viewer.take(data)
            self._watch()

    @contextmanager
    def _counted(self, viewer: Viewer) -> Generator[None]:
        self._viewers.add(viewer)
        try:
            yield
        finally:
            self._viewers.discard(viewer)
            self._watch()

    async def _let_in(self, connection: Any) -> bool:
        """Whether the first message has the token, and there is room."""
        peer = str((connection.remote_address or ("socket",))[0])
        wrong, until = self._wrong.get(peer, (0, 0.0))
        if wrong >= WRONG and time.monotonic() < until:
            await connection.close(TOO_MANY, "too many wrong tokens; wait ten seconds")
            return False
        try:
            first = read_message(await asyncio.wait_for(connection.recv(), HELLO_SECONDS))
        except (InputError, TimeoutError):
            first = {}
        token = str(first.get("token", ""))
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            count = 1 if wrong >= WRONG else wrong + 1
            self._wrong[peer] = count, time.monotonic() + CLOSED_SECONDS
            await connection.close(WRONG_TOKEN, "wrong token")
            return False
        self._wrong.pop(peer, None)
        if len(self._viewers) >= VIEWERS:
            await connection.close(TOO_MANY, f"{VIEWERS} viewers already")
            return False
        return True


async def accept_no_more(server: Any) -> None:
    """Before a server closes, which waits for the connections that it knows: one that was accepted
    at this moment is none of them yet, and its socket would stay open.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening)
    await asyncio.sleep(ACCEPTED_SECONDS)


async def _send(connection: Any, message: str | Frame) -> None:
    """A long message goes in pieces, which a browser puts together: each is copied while no other
    thread of Python can run, the run's among them.
    """
    if isinstance(message, str) or len(message) <= PIECE:
        await connection.send(message)
        return
    view = memoryview(message)
    await connection.send([view[k : k + PIECE] for k in range(0, len(view), PIECE)])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _answer(
    status: HTTPStatus, body: bytes, kind: str = "text/plain", *, packed: bool = False
) -> Any:
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    headers = Headers(
        [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
            *([("Content-Encoding", "gzip")] if packed else []),
        ]
    )
    return Response(status.value, status.phrase, headers, body)


def _free(path: Path) -> None:
    """Remove a socket that a killed run has left. Raises `InputError` for anything else there."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(f"{path} exists and is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(path)) == 0:
            raise OSError(f"another process serves at {path}")
    path.unlink()
