"""A recording as a feed: it plays by itself, is paused, and goes to any frame."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from lanewise.live.feed import FrameSet, towards
from lanewise.live.scenes import Asked
from lanewise.support.errors import InputError


@runtime_checkable
class Replayed(Protocol):
    """What plays: a `Recording`, or the moments of another file. `looks` begin with their sequence
    numbers, which rise.
    """

    @property
    def about(self) -> Mapping[str, Any]: ...
    @property
    def looks(self) -> Sequence[tuple[int, Any]]: ...
    @property
    def whole(self) -> bool: ...
    def frames(self, number: int, /) -> FrameSet: ...


@dataclass(frozen=True, slots=True)
class RecordedScene:
    """What the page gets about a recording. Its frames are as they were made."""

    about: Mapping[str, Any]
    moment: tuple[int, float] = (0, 0.0)

    def frames(self, asked: Asked) -> list[bytes]:
        """None are made."""
        return []

    def picked(self, place: int) -> dict[str, Any]:
        """A recording has no fields."""
        return {}


class RecordedFeed:
    """Has what viewers ask of a `Feed`."""

    def __init__(self, recording: Replayed, rate: float = 30.0) -> None:
        self.recording, self.rate = recording, rate
        self.scene = RecordedScene({**recording.about, "fields": [], "replay": True})
        self.paused, self.ended, self.watched = False, False, 0
        self.notify: Callable[[], None] = lambda: None
        self.note = "" if recording.whole else "the recording was cut off; it has what was whole"
        self._at, self._left, self._lock = 0, 0, threading.Lock()
        self._loaded: tuple[int, FrameSet | None] = (-1, None)

    def play(self, over: Callable[[], bool] = lambda: False) -> None:
        """Continue while a viewer watches, until `over`."""
        while not over():
            time.sleep(1 / self.rate)
            if self.watched and (not self.paused or self._left):
                self._left = max(0, self._left - 1)
                self._at = min(self._at + 1, len(self.recording.looks) - 1)
                self.notify()

    def newest(self) -> FrameSet | None:
        """The frames where it plays."""
        return self._load(self._at)

    def kept(self, sequence: int) -> FrameSet | None:
        """Those of this sequence, or of the nearest one before."""
        looks = self.recording.looks
        found = [n for n, (s, _) in enumerate(looks) if s <= sequence]
        return self._load(found[-1] if found else 0)

    def towards(self, sequence: int, shown: int) -> int:
        """See `Feed.towards`."""
        return towards([s for s, _ in self.recording.looks], sequence, shown)

    def _load(self, number: int) -> FrameSet | None:
        with self._lock:
            if self._loaded[0] != number:
                try:
                    self._loaded = number, self.recording.frames(number)
                except InputError as error:  # a damaged frame is left out, and said once
                    self.note = str(error)
                    self._loaded = number, self._loaded[1]
            return self._loaded[1]

    @property
    def state(self) -> dict[str, Any]:
        """See `Feed.state`."""
        looks, now = self.recording.looks, self.newest()
        return {
            "paused": self.paused, "ended": self.ended, "step": 0 if now is None else now.step,
            "history": [looks[0][0], looks[-1][0]],
        }  # fmt: skip

    def ask(self, **changed: Any) -> None:
        """Frames are as they were recorded."""

    def pause(self) -> None:
        """Stay here."""
        self.paused, self._left = True, 0

    def go(self) -> None:
        """Play, at the end from the beginning."""
        if self._at == len(self.recording.looks) - 1:
            self._at = 0
        self.paused = False

    def step(self, count: int) -> None:
        """So many frames on."""
        self.paused, self._left = True, count

    def pick(self, place: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Nothing is known of elements."""
        answer({})

    def watch(self, viewers: int) -> None:
        """So many take frames now."""
        self.watched = viewers
