"""One viewer: its credits, how much it is sent, and what its messages do."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.live.boxes import shares, whole_shares
from lanewise.live.feed import Feed, FrameSet
from lanewise.live.frame import CLOUDS, Frame, FrameHeader, decode, encode
from lanewise.live.messages import COMMANDS, read_message, written
from lanewise.live.protocol import FLAGS
from lanewise.live.replay import RecordedFeed
from lanewise.support.errors import InputError

LEAST_POINTS = 20_000
LEAST_RATE = 2.0  # frames a second, however small the budget
FIRST_POINTS = 100_000  # of a viewer of whom nothing is known yet
# times between frames from sending one to its acknowledgement: two of them are under way
QUICK, AIMED, SLOW = 1.2, 1.5, 2.0
LEAST_SHARE = 0.05  # of its elements that are left after one frame that was too slow
CHUNK_BYTES = 1 << 20
TELLS = 0.25  # seconds between two states that differ by their steps
SILENT_SECONDS = 1.0  # with a frame under way, twice what the slowest viewer that reads needs
RESTS = 0.5  # seconds with one frame in view after which what was left out follows
MESSAGES_A_SECOND = 100  # and what acknowledges frames
_FITTED = itertools.count(1)  # numbers of automatic ranges
LOGGED = 5  # refusals that a viewer receives per second


@dataclass(slots=True, eq=False)
class Viewer:
    """What one viewer has and may have.

    send: writes a message of text or bytes. rate: frames a second. budget: bytes a second.
    credits: frames that may be under way; under_way: when they were sent, and how many elements of
    a cloud they have. points: of a cloud, at
    most, as fast as it takes them.
    """

    feed: Feed | RecordedFeed
    send: Callable[[str | Frame], Any]
    readonly: bool = False
    rate: float = 30.0
    budget: float = 200e6
    credits: int = 0
    under_way: dict[int, tuple[float, int]] = field(default_factory=dict[int, tuple[float, int]])
    points: int = FIRST_POINTS
    sought: int | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: int = 0  # frames that newer ones replaced
    _sent: int = 0  # sequence
    _version: int = 0  # of what was sent
    _at: float = 0.0
    _seen: float = 0.0  # when a cloud was acknowledged
    _free: float = 0.0  # when what was sent is within the budget
    _cloud: tuple[FrameHeader, memoryview, int] | None = None  # of which so many elements were sent
    _told: tuple[Any, Any, float] = (None, None, 0.0)  # the state, what moves in it, and when
    _second: tuple[int, int, int] = (0, 0, 0)  # which one, and its messages and refusals
    _serial: int = 0

    # ------------------------------------------------------------ what it says

    async def take(self, data: str | bytes) -> None:
        """Do what a message says; one that says nothing sensible is answered with the reason."""
        now = int(time.monotonic())
        _, count, refused = self._second if self._second[0] == now else (now, 0, 0)
        self._second = now, count + 1, refused
        if count >= MESSAGES_A_SECOND:
            return
        try:
            self._do(read_message(data))
        except InputError as error:
            self._told = (None, None, 0.0)  # the page shows what was refused
            self._second = now, count + 1, refused + 1
            if refused < LOGGED:
                await self.send(written({"is": "error", "text": str(error)}))
        self.woken.set()

    def _do(self, message: dict[str, Any]) -> None:
        feed, about = self.feed, self.feed.scene.about
        if self.readonly and message["do"] in COMMANDS:
            raise InputError("this view is for reading (--view-readonly): it cannot change the run")
        match message:
            case {"do": "ack", "sequence": sequence}:
                self._acknowledged(sequence)
            case {"do": "credit", "n": n}:
                self.credits = n
                self.under_way.clear()
            case {"do": "pause"}:
                feed.pause()
            case {"do": "run"}:
                feed.go()
            case {"do": "step", "n": n}:
                feed.step(n)
            case {"do": "colour", "field": name}:
                if name not in about["fields"]:
                    raise InputError(f"no field {name}; wanted one of {', '.join(about['fields'])}")
                feed.ask(field=name, low=None, high=None)
            case {"do": "scale", "name": name}:
                feed.ask(scale=name, low=None, high=None)
            case {"do": "range", "auto": True}:
                feed.ask(low=None, high=None, fitted=next(_FITTED))
            case {"do": "range", "low": low, "high": high}:
                feed.ask(low=min(low, high), high=max(low, high))
            case {"do": "show", "kinds": kinds}:
                feed.ask(kinds=tuple(k for k in kinds if k in about["kinds"]) or ("none",))
            case {"do": "slice", "axis": axis, "place": place}:
                feed.ask(axis=axis, place=float(place))
            case {"do": "seek", "frame": frame}:
                self.sought = None if frame < 0 else feed.towards(frame, self._sent)
            case {"do": "rate", "n": rate}:
                self.rate = max(float(rate), 0.1)
            case {"do": "pick", "row": row}:
                self._pick(row, message.get("order"))
            case {"do": "shot"}:
                self._at = 0.0
            case _:  # hello, a second time
                pass

    def _pick(self, row: int, order: int | None) -> None:
        loop = asyncio.get_running_loop()

        def answer(fields: dict[str, Any]) -> None:  # from the run's thread
            step = self.feed.scene.moment[0]
            text = written({"is": "picked", "row": row, "fields": fields, "step": step})
            loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self.send(text)))

        self.feed.pick(row, answer, order)

    def _acknowledged(self, sequence: int) -> None:
        """A credit comes back; points are as many as go there and are drawn in time."""
        if not self.under_way:
            return
        second, count, refused = self._second
        self._second = second, count - 1, refused  # there are as many as frames
        found = self.under_way.pop(sequence, None)
        if found is None:  # frames of one moment have one number
            self.under_way.pop(next(iter(self.under_way)))
            return
        sent, points = found
        if not points:
            return
        self._seen = time.monotonic()
        took, wanted = self._seen - sent, 1 / min(self.rate, self.feed.rate)
        if took > SLOW * wanted:  # in proportion to what was sent, so that one frame says enough
            fewer = int(points * max(LEAST_SHARE, AIMED * wanted / took))
            self.points = max(LEAST_POINTS, min(self.points, fewer))
        elif took < QUICK * wanted:
            self.points = min(1 << 30, int(self.points * 1.2))

    # ------------------------------------------------------------ what it is sent

    @property
    def takes_frames(self) -> bool:
        """Whether a run need make any for it."""
        return self.credits > 0

    @property
    def silent(self) -> bool:
        """Whether it has left its oldest frame unread for long."""
        oldest = next(iter(self.under_way.values()), None)
        return oldest is not None and time.monotonic() - oldest[0] > SILENT_SECONDS

    async def serve(self) -> None:
        """Send what is new, as credits allow, until the connection or the run ends."""
        while True:
            self.woken.clear()
            ended = self.feed.ended  # before the state goes: a run may end while this loop sends
            await self._tell()
            wait = await self._send_frames() if self.credits > len(self.under_way) else 0.25
            if ended and self._settled:
                return
            try:
                await asyncio.wait_for(self.woken.wait(), wait)
            except TimeoutError:
                continue

    @property
    def _settled(self) -> bool:
        newest = self.feed.newest()
        return newest is None or not self.credits or self._sent == newest.sequence

    async def _tell(self) -> None:
        """Say how the feed stands: at once what viewers have changed, else four times a second."""
        state = self.feed.state
        moving = state["step"], state["history"]
        plain = {**state, "step": 0, "history": []}
        soon = plain == self._told[0] and time.monotonic() - self._told[2] < TELLS
        if soon or (plain, moving) == self._told[:2]:
            return
        self._told = plain, moving, time.monotonic()
        await self.send(written({"is": "state", **state}))

    async def _send_frames(self) -> float:
        """Send the moment that is due, or what an earlier one left out; how long to wait then."""
        moment = self.feed.newest() if self.sought is None else self.feed.kept(self.sought)
        if moment is None:
            return 0.25
        now = time.monotonic()
        since, over = now - self._at, self._free - now
        if (moment.sequence, moment.version) != (self._sent, self._version):
            left = max(1 / min(self.rate, self.feed.rate) - since, over)
            if left > 0.001 and not self.feed.ended:
                return left
            self.dropped += max(0, moment.sequence - self._sent - 1)
            await self._send_moment(moment)
            return 0.25
        rests = now - max(self._at, self._seen) >= RESTS
        if self._cloud is not None and (rests or self.feed.paused):
            if over > 0.001:
                return over
            await self._send_suffix(*self._cloud)
            return 0.001
        return RESTS

    async def _send_moment(self, moment: FrameSet) -> None:
        self._sent, self._version = moment.sequence, moment.version
        self._at, self._cloud = time.monotonic(), None
        for frame in moment.frames:
            header, body = decode(frame)
            if header.kind == "statistics":  # which costs no credit
                await self.send(frame)
                continue
            past = FLAGS["past"] if self.sought is not None else 0
            wanted = self._count(header) if header.kind in CLOUDS else header.count
            if wanted < header.count:
                size = header.components
                self._cloud = header, body, wanted
                some = _with(header, body[: wanted * size], past, count=wanted)
                await self._pay(some, header.sequence, wanted)
            else:
                whole = _with(header, body, past) if past else frame
                points = header.count if header.kind in CLOUDS else 0
                await self._pay(whole, header.sequence, points)

    def _count(self, header: FrameHeader) -> int:
        """So many elements of a cloud go at once."""
        most = self.budget / min(self.rate, self.feed.rate) / max(1, header.components)
        least = LEAST_POINTS + header.total // shares(header.total) + 1
        wanted = max(least, min(self.points, int(most)))
        return min(header.count, whole_shares(wanted, header.total))

    async def _send_suffix(self, header: FrameHeader, body: memoryview, first: int) -> None:
        size = header.components
        count = min(header.count - first, CHUNK_BYTES // size, max(self.points, LEAST_POINTS))
        rest = first + count
        self._cloud = (header, body, rest) if rest < header.count else None
        await self._pay(
            _with(header, body[first * size : rest * size], 0, kind="suffix", first=first,
                  count=count),
            header.sequence,
        )  # fmt: skip

    async def _pay(self, frame: Frame, sequence: int, points: int = 0) -> None:
        self._serial += 1
        number = sequence if sequence not in self.under_way else -self._serial
        now = time.monotonic()
        self.under_way[number] = now, points
        free = max(self._free, now) + len(frame) / self.budget
        self._free = min(free, now + 1 / LEAST_RATE)
        await self.send(frame)


def _with(header: FrameHeader, body: memoryview, flags: int, **values: Any) -> Frame:
    return encode(replace(header, flags=header.flags | flags, **values), body)
