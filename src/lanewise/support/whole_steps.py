"""Many steps as whole ones: Ctrl-C waits for the end of a step, and a state that was left within
one is used no more.

States change in place, so an interruption within a step would leave half of one.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Protocol

from lanewise.support.errors import StateError

# What module `signal` itself calls: around it, it looks for enumerations that stand for the number
# and for both handlers, which takes fifteen times as long as the change. Single steps in a loop
# change handlers twice each.
_get_handler: Callable[[int], Any] = _signal.getsignal
_set_handler: Callable[[int, Any], Any] = _signal.signal
# steps in one graph: a graph launch costs a few microseconds, a kernel inside it half of one
LONG_GRAPH = 32
FEWEST_ALIGNED = LONG_GRAPH * 3 // 4  # steps that may become as many as a graph has
# how long steps run between two looks at Ctrl-C; on a GPU what is launched by then is finished
PIECE_SECONDS = 0.2
LEFT_SECONDS = 1.0  # of steps that follow each other on a device before the host waits for all
LONG_LOOK = 0.02  # seconds after which a device may have been without work


class StepsUnderWay:
    """Steps that a device still takes while the host looks at those before, and launches more: two
    pieces at most, so that it is never without work.

    Whatever is put on the current stream meanwhile comes behind them, and before those that are
    launched next: it finds a whole step.
    """

    __slots__ = ("_began", "_examined", "_waits", "loose")

    def __init__(self) -> None:
        self._waits = deque[Callable[[], object]]()
        self._examined: dict[Callable[[int, int], None], tuple[int, int]] = {}
        # when the last piece began, at the latest, and its steps
        self._began: tuple[float, int] | None = None
        self.loose = False  # whether any was left under way

    def leave(self, wait: Callable[[], object]) -> None:
        """Leave a piece under way, for whose end `wait` waits, when the one before is done."""
        self.loose = True
        self._waits.append(wait)
        while len(self._waits) > 1:
            self._waits.popleft()()

    def examine(self, look: Callable[[int, int], None], first: int, last: int) -> None:
        """`look`, which may raise, when these steps are done, and those before."""
        self._examined[look] = self._examined.get(look, (first, last))[0], last

    def pace(self, begin: float, count: int, before: float) -> float:
        """Seconds a step, when a piece of so many has been left that was launched at `begin`;
        `before`: what was known of them.

        Where the host was late, it sees two pieces end at once: steps take no less than half of
        what they took.
        """
        now, began = time.perf_counter(), self._began
        self._began = (begin if began is None else now), count
        return before if began is None else max((now - began[0]) / began[1], before / 2)

    def lose_pace(self) -> None:
        """The device was without work."""
        self._began = None

    def wait(self) -> None:
        """For all of them."""
        while self._waits:
            self._waits.popleft()()
        self.lose_pace()

    def finish(self) -> None:
        """Wait for all of them, and examine them."""
        self.wait()
        examined, self._examined = self._examined, {}
        for look, (first, last) in examined.items():
            look(first, last)


class _Piece(threading.local):
    """The piece of steps that runs in a thread. count: its steps; those of what takes as many
    within it are the same ones. under_way: see `claim_under_way`.
    """

    count: int | None = None
    under_way: StepsUnderWay | None = None


_PIECE = _Piece()


def claim_under_way() -> StepsUnderWay | None:
    """With what steps that are about to run may be left under way, for the first that asks in this
    thread; None where the caller waits for them.
    """
    found, _PIECE.under_way = _PIECE.under_way, None
    return found


class Watcher(Protocol):
    """Looks at a state between whole steps; it may wait there, and changes nothing.

    On a GPU the steps may be under way when it looks: what it launches comes behind them.
    """

    @property
    def seconds(self) -> float:
        """How long steps may run between two looks."""
        ...

    def due(self, step: int) -> int | None:
        """The first step after this one that must not be passed without a look; None: any may."""
        ...

    def look(self, step: int, asked: Callable[[], bool]) -> None:
        """Look at the state after this step. asked: whether Ctrl-C was pressed: waits end then."""
        ...

    def rest(self, step: int) -> None:
        """Say that all steps that were requested are done: the state may stay as it is."""
        ...


class WholeSteps:
    """Takes the steps of one state in pieces, and remembers a piece that was never finished."""

    __slots__ = ("_holder", "_pace", "_remedy", "_running", "_unfinished", "_watchers", "_what")

    def __init__(self, what: str, remedy: str) -> None:
        """`what` changes in place; `remedy`: what its user does when it is in no state any more."""
        self._what, self._remedy = what, remedy
        self._pace = 0.0  # seconds a step of the last piece
        self._unfinished: tuple[int, int] | None = None
        self._running = False  # those steps
        self._holder: int | None = None  # the thread that alone may use the state
        self._watchers: tuple[Watcher, ...] = ()

    @contextmanager
    def watched(self, watcher: Watcher) -> Generator[None]:
        """Within the block `watcher` looks at the state between pieces of steps."""
        self._watchers = (*self._watchers, watcher)
        try:
            yield
        finally:
            self._watchers = tuple(w for w in self._watchers if w is not watcher)

    @property
    def broken(self) -> bool:
        """Whether steps were left in the middle."""
        return self._unfinished is not None and not self._running

    def check(self) -> None:
        """Raise `StateError` within steps, and after steps that were left in the middle."""
        self.check_idle()
        if self._unfinished is None:
            return
        was, its = ("were", "their") if self._plural else ("was", "its")
        raise StateError(
            f"{self._what} {was} stopped within {self._where()}: {its} arrays are of no step, and "
            f"nothing computed from them holds; {self._remedy}"
        )

    def check_idle(self) -> None:
        """Raise `StateError` within steps, to code that they call or that runs meanwhile."""
        held = self._holder is not None and self._holder != threading.get_ident()
        if not (held or self._running):
            return
        are, their, they = ("are", "their", "they") if self._plural else ("is", "its", "it")
        if held:
            raise StateError(
                f"{self._what} {are} still used by a run that tuning stopped waiting for: {their} "
                f"arrays are of no step before that has ended, and then as they were"
            )
        raise StateError(
            f"{self._what} {are} running, within {self._where()}: {their} arrays are of no step "
            f"before {they} {are} done; use a callback of the run, which sees whole steps, or wait "
            "for its end"
        )

    def hold(self, thread: int | None) -> None:
        """Say that no other thread may use the state; None: any may."""
        self._holder = thread

    @property
    def _plural(self) -> bool:
        return self._what.startswith("these ")

    def _where(self) -> str:
        assert self._unfinished is not None
        first, last = self._unfinished
        return f"step {last}" if last == first + 1 else f"steps {first + 1} to {last}"

    def begin(self, step: int, steps: int) -> None:
        """Say that so many steps after step `step` run from now on, until `stop` or `mended` is
        called.
        """
        self._unfinished, self._running = (step, step + steps), True

    def stop(self) -> None:
        """Say that steps run no more; they were left in the middle unless they are `mended`."""
        self._running = False

    def mended(self) -> None:
        """Say that all of the state was replaced, or that the steps are done."""
        self._unfinished, self._running = None, False

    def take(self, step: int, steps: int, run: Callable[[int], None]) -> None:
        """`steps` steps after step `step`; `run(n)` takes n of them, waits for them, and counts
        them; while they are watched it may leave them under way (`claim_under_way`).

        After Ctrl-C the steps that were begun are finished and counted, then KeyboardInterrupt is
        raised (or the handler of a host program called). Pressed twice it raises at once, and then,
        as after any other exception within `run`, `check` refuses.
        """
        self.check()
        cut = _PIECE.count == steps or _PIECE.under_way is not None
        if cut and not self._watchers:  # by a caller, who keeps Ctrl-C back until they are done
            self._run(step, steps, run)
            return
        end = step + steps
        with deferred_interruption() as interruption:
            try:
                while step < end:
                    if self._watchers:  # also one that has come since the run began
                        self._take_watched(step, end, run, interruption)
                        break
                    _PIECE.count = count = self._piece(step, end, (), PIECE_SECONDS)
                    begin = time.perf_counter()
                    self._run(step, count, run)
                    self._pace = (time.perf_counter() - begin) / count
                    step += count
                    if interruption.asked:
                        interruption.deliver()
            finally:
                _PIECE.count = None
            for watcher in self._watchers:
                watcher.rest(end)
        if interruption.asked:  # between the last look and here
            interruption.deliver()

    def _take_watched(
        self, step: int, end: int, run: Callable[[int], None], interruption: Interruption
    ) -> None:
        """The steps up to `end`, some of which are under way while watchers look at others."""
        under_way = StepsUnderWay()
        try:
            done, since = step, time.perf_counter()
            while step < end:
                step = self._take_piece(step, end, run, under_way, interruption)
                asked, now = interruption.asked, time.perf_counter()
                if not under_way.loose:
                    done = step
                elif asked or step == end or now - since > LEFT_SECONDS:
                    self._run(done, step - done, lambda _: under_way.finish())
                    done, since = step, now
                if asked:
                    interruption.deliver()
        finally:
            under_way.wait()

    def _take_piece(
        self,
        step: int,
        end: int,
        run: Callable[[int], None],
        under_way: StepsUnderWay,
        interruption: Interruption,
    ) -> int:
        """Some of the steps, and a look at them; where they end."""
        # a run that ends has no viewers to wait for, nor to stop for at every step
        watchers = () if interruption.waits else self._watchers
        seconds = min((PIECE_SECONDS, *(watcher.seconds for watcher in watchers)))
        loose = under_way.loose
        count = self._piece(step, end, watchers, seconds / 2 if loose else seconds)
        begin = time.perf_counter()
        # a look that comes no sooner than that for Ctrl-C may leave the device without work
        _PIECE.under_way = under_way if loose or seconds < PIECE_SECONDS else None
        _PIECE.count = count
        try:
            self._run(step, count, run)
        finally:
            _PIECE.under_way = _PIECE.count = None
        now = time.perf_counter()
        if under_way.loose:
            self._pace = under_way.pace(begin, count, self._pace)
        else:
            self._pace = (now - begin) / count
        step += count
        for watcher in watchers:
            watcher.look(step, lambda: interruption.waits)
        if time.perf_counter() - now > LONG_LOOK:
            under_way.lose_pace()
        return step

    def _run(self, step: int, count: int, run: Callable[[int], object]) -> None:
        self.begin(step, count)
        try:
            run(count)
        finally:
            self.stop()
        self.mended()

    def _piece(self, step: int, end: int, watchers: tuple[Watcher, ...], seconds: float) -> int:
        """Steps for some time; many of them end where graphs and the cycles of kernels do, at the
        nearest such step: a graph of many is launched as fast as one of a single step.
        """
        for watcher in watchers:
            if (due := watcher.due(step)) is not None:
                end = min(end, due)
        count = min(end - step, round(seconds / self._pace) if self._pace else 1)
        if step + count < end and count >= FEWEST_ALIGNED:
            past = (step + count) % LONG_GRAPH
            count -= past if past < min(count, LONG_GRAPH / 2) else past - LONG_GRAPH
        return max(min(count, end - step), 1)


Handler = Callable[[int, FrameType | None], Any]


class Interruption:
    """Keeps Ctrl-C back from the handler that it is meant for: Python's own, or that of a host
    program.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._kept: list[tuple[int, FrameType | None]] = []
        self.asked = False  # whether Ctrl-C was pressed, and not handed on so far

    @property
    def waits(self) -> bool:
        """Whether Ctrl-C was pressed, and is kept here or by a block around this one."""
        around = getattr(self._handler, "__self__", None)
        return self.asked or (isinstance(around, Interruption) and around.waits)

    def note(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C is kept; with a second one both continue at once, for users who cannot
        wait for the step to end.
        """
        self._kept.append((number, frame))
        self.asked = True
        if len(self._kept) > 1:
            # also when what follows leaves by an exception
            signal.signal(signal.SIGINT, self._handler)
            self.deliver()

    def deliver(self) -> None:
        """Hand on what was kept. Python's own handler raises KeyboardInterrupt; another one may
        return, and work continues.
        """
        self.asked = False  # first: it may be pressed between any two lines
        kept, self._kept = self._kept, []
        for number, frame in kept:
            self._handler(number, frame)


class _Deferral:
    """A context manager by hand, since single steps in a loop enter one each: a generator takes
    three times as long.
    """

    __slots__ = ("_before", "_interruption")

    def __enter__(self) -> Interruption:
        before: Any = _get_handler(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            self._before: Any = None
            return Interruption(signal.default_int_handler)
        self._before, self._interruption = before, Interruption(before)
        _set_handler(signal.SIGINT, self._interruption.note)
        return self._interruption

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (before := self._before) is None:
            return
        _set_handler(signal.SIGINT, before)
        if kind is None and self._interruption.asked and before is not signal.default_int_handler:
            # a host program may count on it, though all of the work is done
            self._interruption.deliver()


def deferred_interruption() -> AbstractContextManager[Interruption, None]:
    """Within the block Ctrl-C is kept back until `deliver` is called.

    In another thread than the main one nothing changes, as Python runs handlers in the main thread;
    nor where Ctrl-C is ignored, or handled by no function of Python.
    """
    return _Deferral()
