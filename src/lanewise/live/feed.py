"""Between the run and the server: what is due, the frames that were made, and what viewers asked.

The run's thread looks at it between steps, makes a frame when one is due, and continues; it waits
for a viewer only where one has paused it. The server's thread takes what is there.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lanewise.live.frame import Frame, FrameHeader, encode, stamp
from lanewise.live.scales import check_scale
from lanewise.live.scenes import Asked, FrameOrLater, LaterFrames, Scene, dropped, finished
from lanewise.profiling import Profile
from lanewise.profiling.profile import span
from lanewise.runtime.aside import AT_ONCE

WATCHED_SECONDS = 0.02  # of steps between two looks while a viewer watches
LONGEST_SECONDS = 0.05  # of those until the next frame is due
EARLY = 0.2  # of the time between two frames: one is made where steps end so much before it is due
MOST_OF_RUN = 1 / 3  # of a run's time that making frames takes
MOST_APART = 0.5  # seconds between two frames for that reason: a first one compiles kernels
ALONE_SECONDS = 0.2
RESTS_SECONDS = 0.2  # between two frames that are made only because the state rests
ALONE_AFTER = 10.0  # seconds without a viewer, after which a paused run says so


@dataclass(frozen=True, slots=True)
class FrameSet:
    """The frames of one look, with one sequence number. version: another one where they were made
    anew.
    """

    sequence: int
    step: int
    frames: tuple[Frame, ...]
    version: int = 0

    @property
    def nbytes(self) -> int:
        """Of all its frames."""
        return sum(map(len, self.frames))


def towards(kept: Sequence[int], sequence: int, shown: int) -> int:
    """Of rising numbers the last one up to `sequence`; the next one where that leads nowhere from
    the one that is shown, as numbers between two that are kept do.
    """
    k = bisect_right(kept, sequence) - 1
    if k >= 0 and kept[k] <= shown < sequence and k + 1 < len(kept):
        k = bisect_right(kept, shown)
    return kept[max(k, 0)] if kept else sequence


def told(asked: Asked) -> dict[str, Any]:
    """How frames are made, as viewers get it."""
    a = asked
    return {
        "field": a.field, "scale": a.scale, "range": [a.low, a.high],
        "slice": {"axis": a.axis, "place": a.place},
    }  # fmt: skip


class Feed:
    """A watcher of the steps of a run (see `support.whole_steps.Watcher`).

    rate: frames a second at most. history: bytes of frames that are kept; where they are full the
    oldest ones go, or, with `thin`, every other one. notify: called, from a thread of the feed or
    the run's, when there is something new.
    """

    def __init__(
        self, scene: Scene, *, rate: float = 30.0, points: int = 1_000_000, scale: str = "linear",
        history: int = 512 << 20, thin: bool = False,
        record: Callable[[FrameSet], None] | None = None, profile: Profile | None = None,
    ) -> None:  # fmt: skip
        self._profile = profile
        self.scene, self.rate, self._room, self._record = scene, rate, history, record
        self.notify: Callable[[], None] = lambda: None
        fields = scene.about["fields"]
        self.asked = Asked(field=fields[0] if fields else "", points=points, scale=scale)
        check_scale(self.asked)
        self.say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)
        self.paused = self.ended = False
        self.watched = 0  # viewers who take frames
        self.silent = False  # whether none of them has read the last ones for a while
        self.calls = 0  # looks, for tests of what a run without viewers costs
        self.made = 0  # frames
        self.history: deque[FrameSet] = deque()
        self._bytes, self._thin = 0, thin
        self._under_way: deque[tuple[int, int, list[FrameOrLater]]] = deque()
        self._finisher = ThreadPoolExecutor(1, "lanewise view frames")
        self._changed = threading.Condition()
        self._left, self._last, self._fresh = 0, 0, False  # steps to take while paused
        self._next, self._stale = 0.0, True
        self._framed, self._rested = -1, 0.0  # the last step with a frame; when the state rested
        self._failure = ""  # said last
        self._picks: deque[tuple[int, int | None, Callable[[dict[str, Any]], None]]] = deque()
        self._pace: tuple[float, int] = (time.monotonic(), -1)
        self.steps_per_second = 0.0

    # ------------------------------------------------------------ the run's thread

    @property
    def seconds(self) -> float:
        """See `Watcher.seconds`: until the next frame is due."""
        if not self._wanted:
            return ALONE_SECONDS
        left = self._next - time.monotonic()
        return min(left, LONGEST_SECONDS) if left > EARLY / self.rate else WATCHED_SECONDS

    @property
    def _wanted(self) -> bool:
        """Whether frames of a run that continues are taken."""
        return self._record is not None or (self.watched > 0 and not self.silent)

    def due(self, step: int) -> int | None:
        """The step at which a run that was requested some steps is paused again."""
        return step + max(1, self._left) if self.paused else None

    def look(self, step: int, asked: Callable[[], bool] = lambda: False) -> None:
        """Make a frame if one is due, and wait while the run is paused."""
        self.calls += 1
        if not (self._wanted or self.paused or self._picks):
            self._last = step
            return
        self._count(step)
        if self.paused and not self._fresh:
            self._left = max(0, self._left - (step - self._last))
        self._last, self._fresh = step, False
        rests = self.paused and not self._left
        due = time.monotonic() >= self._next - EARLY / self.rate
        late = self._wanted and due and len(self._under_way) < AT_ONCE
        if rests or late:
            self._attempt()
        self._answer()
        since, said = time.monotonic(), False
        while self.paused and not self._left and not asked() and not self.ended:
            with self._changed:
                self._changed.wait(0.05)
            if self.watched:
                since, said = time.monotonic(), False
            elif not said and time.monotonic() - since > ALONE_AFTER:
                self.say("view: the run is paused and has no viewers; resume it at its address")
                said = True
            if self._stale:
                self._attempt()
            self._answer()
            self._pace = time.monotonic(), step  # a pause is no time of steps

    def rest(self, step: int) -> None:
        """Have a frame of a state that may stay as it is, so that what is seen is what is read."""
        now = time.monotonic()
        rested = (self.watched or self._record) and now - self._rested > RESTS_SECONDS
        if rested and step != self._framed and len(self._under_way) < AT_ONCE:
            self._rested = now
            self._attempt()

    def make(self) -> None:
        """Have the frames of the state as it is made, and keep them once they are. It waits for
        earlier ones only where as many as may be are under way.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._under_way) < AT_ONCE)
        self._stale = False
        now, between = time.monotonic(), 1 / self.rate
        self._next = max(self._next + between, now + (1 - EARLY) * between)
        self.made += 1
        step = self._framed = self.scene.moment[0]
        seen = list[FrameOrLater]()
        try:
            with span(self._profile, "view", name="frames"):
                seen.extend(self.scene.frames(self.asked))
                seen.append(self._statistics(step))
            if not self._record:
                apart = min((time.monotonic() - now) / MOST_OF_RUN, MOST_APART)
                self._next = max(self._next, now + apart)
            later = any(isinstance(f, LaterFrames) for f in seen)
            if self._under_way or later:
                with self._changed:  # what cannot be submitted is not waited for
                    self._finisher.submit(self._finish)
                    self._under_way.append((self.made, step, seen))
                return
        except BaseException:
            dropped(seen)
            raise
        self._keep(self.made, step, seen)

    def _finish(self) -> None:
        """Keep the frames that have been under way for longest; in a separate thread."""
        with self._changed:
            first = self._under_way[0]
        try:
            self._keep(*first)
        except Exception as error:
            self._say_once(f"view: no frame: {error}")
        with self._changed:
            self._under_way.popleft()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all frames that were made are kept."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way)

    def _keep(self, sequence: int, step: int, seen: list[FrameOrLater]) -> None:
        stamped = tuple(stamp(f, sequence=sequence) for f in finished(seen))
        moment = FrameSet(sequence, step, stamped)
        with self._changed:
            self.history.append(moment)
            self._bytes += moment.nbytes
            while self._bytes > self._room and len(self.history) > 1:
                self._make_room()
        if self._record is not None:
            self._record(moment)
        self.notify()

    def _make_room(self) -> None:
        """Leave out the oldest frames, or every other one; the newest one stays."""
        if self._thin and len(self.history) > 2:
            *older, newest = self.history
            self.history = deque([*older[::2], newest])
            self._bytes = sum(m.nbytes for m in self.history)
        else:
            self._bytes -= self.history.popleft().nbytes

    def _attempt(self) -> None:
        """Make frames; what goes wrong there is said, and the run continues."""
        try:
            self.make()
        except Exception as error:
            self._say_once(f"view: no frame: {error}")

    def _say_once(self, text: str) -> None:
        if text != self._failure:
            self._failure = text
            self.say(text)

    def end(self) -> None:
        """The run is over: its last state is what viewers see from now on."""
        if self.watched or self._record:
            self._attempt()
        self.flush()
        self.ended, self.paused = True, False
        self._answer()
        self.notify()

    def wait_for_viewer(self, asked: Callable[[], bool] = lambda: False) -> None:
        """Wait until a viewer watches."""
        while not self.watched and not asked():
            with self._changed:
                self._changed.wait(0.05)

    def _statistics(self, step: int) -> Frame:
        told = {
            "steps/s": round(self.steps_per_second, 3), "viewers": self.watched,
            "field": self.asked.field,
        }  # fmt: skip
        text = json.dumps(told).encode()
        return encode(FrameHeader(kind="statistics", count=len(text), step=step), text)

    def _count(self, step: int) -> None:
        then, before = self._pace
        now = time.monotonic()
        if before < 0 or step < before:
            self._pace = now, step
        elif now - then > 1:
            self.steps_per_second = (step - before) / (now - then)
            self._pace = now, step

    def _answer(self) -> None:
        while self._picks:
            place, order, answer = self._picks.popleft()
            found: dict[str, Any] = {}
            try:
                if not self.ended:
                    found = self.scene.picked(place, order)
            except Exception as error:  # a click ends no run
                self._say_once(f"view: no fields of an element: {error}")
            with suppress(RuntimeError):  # the server has ended by now
                answer(found)

    # ------------------------------------------------------------ the server's thread

    def newest(self) -> FrameSet | None:
        """The last frames that were made."""
        with self._changed:
            return self.history[-1] if self.history else None

    def kept(self, sequence: int) -> FrameSet | None:
        """Those of this sequence, or of the nearest one before that is kept; else the oldest."""
        with self._changed:
            found = [m for m in self.history if m.sequence <= sequence]
            return found[-1] if found else self.history[0] if self.history else None

    def towards(self, sequence: int, shown: int) -> int:
        """The kept sequence that is meant by this one where another one is shown."""
        with self._changed:
            return towards([m.sequence for m in self.history], sequence, shown)

    @property
    def state(self) -> dict[str, Any]:
        """What all viewers get when it changes."""
        with self._changed:
            kept = [self.history[0], self.history[-1]] if self.history else []
        return {
            "paused": self.paused, "ended": self.ended, "step": kept[1].step if kept else 0,
            "history": [m.sequence for m in kept] or [0, 0], **told(self.asked),
        }  # fmt: skip

    def ask(self, **changed: Any) -> None:
        """Frames are to be made otherwise from now on. Raises `InputError` for a scale that does
        not go with the range.
        """
        with self._changed:
            check_scale(asked := replace(self.asked, **changed))
            self.asked, self._stale, self._next = asked, True, 0.0
            self._changed.notify_all()

    def pause(self) -> None:
        """After the steps that run now."""
        with self._changed:
            self.paused, self._left = not self.ended, 0
            self._changed.notify_all()

    def go(self) -> None:
        """Take steps again."""
        with self._changed:
            self.paused = False
            self._changed.notify_all()

    def step(self, count: int) -> None:
        """Pause, if it is not, and take so many steps."""
        with self._changed:
            self._fresh = not self.paused  # what runs now are none of them
            self.paused, self._left = not self.ended, count
            self._changed.notify_all()

    def pick(
        self, place: int, answer: Callable[[dict[str, Any]], None], order: int | None = None
    ) -> None:
        """Ask for the fields of an element, see `Scene.picked`; `answer` is called from the run's
        thread.
        """
        with self._changed:
            self._picks.append((place, order, answer))
            self._changed.notify_all()

    def watch(self, viewers: int, *, silent: bool = False) -> None:
        """So many take frames now. While they are silent a run that continues makes none for them;
        its end, and a state that rests, are there when they read again.
        """
        with self._changed:
            if self.silent and not silent:
                self._next = 0.0
            if viewers > self.watched:
                self._stale, self._next = True, 0.0
            self.watched, self.silent = viewers, silent
            self._changed.notify_all()
