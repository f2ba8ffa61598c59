"""A recording as a feed: it plays by itself, is paused, and goes to any frame."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from lanewise.live.feed import FrameSet, told, towards
from lanewise.live.scales import check_scale
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


@runtime_checkable
class RemadeReplay(Replayed, Protocol):
    """One whose frames are made when they are looked at, and so as they are requested then."""

    asked: Asked


@dataclass(frozen=True, slots=True)
class RecordedScene:
    """What the page gets about a recording."""

    about: Mapping[str, Any]
    moment: tuple[int, float] = (0, 0.0)

    def frames(self, asked: Asked) -> list[bytes]:
        """None are made."""
        return []

    def picked(self, place: int, order: int | None = None) -> dict[str, Any]:
        """A recording has no fields."""
        return {}


class RecordedFeed:
    """Has what viewers ask of a `Feed`."""

    def __init__(self, recording: Replayed, rate: float = 30.0) -> None:
        self.recording, self.rate = recording, rate
        remade = isinstance(recording, RemadeReplay)
        fields = recording.about["fields"] if remade else []  # others are as they were recorded
        self.scene = RecordedScene({**recording.about, "fields": fields, "replay": True})
        self._version = 0  # of what is requested
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
                last = len(self.recording.looks) - 1
                self._at = min(self._at + 1, last)
                self.paused |= self._at == last  # there is nothing more to play
                self.notify()

    def go_to(self, sequence: int) -> FrameSet:
        """Play from this frame on. Raises `InputError` where there is none, or it is damaged."""
        numbers = [s for s, _ in self.recording.looks]
        if sequence not in numbers:
            raise InputError(
                f"there is no frame {sequence}: there are {len(numbers):,}, from {numbers[0]} to "
                f"{numbers[-1]}"
            )
        self._at = numbers.index(sequence)
        return self.recording.frames(self._at)

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
                    made = replace(self.recording.frames(number), version=self._version)
                    self._loaded = number, made
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
            "history": [looks[0][0], looks[-1][0]], **self._asked_for,
        }  # fmt: skip

    @property
    def _asked_for(self) -> dict[str, Any]:
        return told(self.recording.asked) if isinstance(self.recording, RemadeReplay) else {}

    def ask(self, **changed: Any) -> None:
        """Frames that are made when they are looked at are made otherwise; others are as they were
        recorded.
        """
        if isinstance(self.recording, RemadeReplay):
            check_scale(asked := replace(self.recording.asked, **changed))
            with self._lock:
                self.recording.asked, self._loaded = asked, (-1, self._loaded[1])
                self._version += 1
            self.notify()

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

    def pick(
        self, place: int, answer: Callable[[dict[str, Any]], None], order: int | None = None
    ) -> None:
        """Nothing is known of elements."""
        answer({})

    def watch(self, viewers: int, *, silent: bool = False) -> None:
        """So many take frames now; those of a recording are made already."""
        self.watched = viewers
