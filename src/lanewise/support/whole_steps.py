"""Many steps as whole ones: Ctrl-C waits for the end of a step, and a state that was left within
one is used no more.

States change in place, so an interruption within a step would leave half of one.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import signal
import threading
import time
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


class Watcher(Protocol):
    """Looks at a state between whole steps; it may wait there, and changes nothing."""

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

    __slots__ = ("_pace", "_remedy", "_running", "_unfinished", "_watchers", "_what")

    def __init__(self, what: str, remedy: str) -> None:
        """`what` changes in place; `remedy`: what its user does when it is in no state any more."""
        self._what, self._remedy = what, remedy
        self._pace = 0.0  # seconds a step of the last piece
        self._unfinished: tuple[int, int] | None = None
        self._running = False  # those steps
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
        if not self._running:
            return
        are, their, they = ("are", "their", "they") if self._plural else ("is", "its", "it")
        raise StateError(
            f"{self._what} {are} running, within {self._where()}: {their} arrays are of no step "
            f"before {they} {are} done; use a callback of the run, which sees whole steps, or wait "
            "for its end"
        )

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
        them.

        After Ctrl-C the steps that were begun are finished and counted, then KeyboardInterrupt is
        raised (or the handler of a host program called). Pressed twice it raises at once, and then,
        as after any other exception within `run`, `check` refuses.
        """
        self.check()
        end = step + steps
        with deferred_interruption() as interruption:
            while step < end:
                # a run that ends has no viewers to wait for, nor to stop for at every step
                watchers = () if interruption.waits else self._watchers
                count = self._piece(step, end, watchers)
                begin = time.perf_counter()
                self.begin(step, count)
                try:
                    run(count)
                finally:
                    self.stop()
                self.mended()
                self._pace = (time.perf_counter() - begin) / count
                step += count
                for watcher in watchers:
                    watcher.look(step, lambda: interruption.waits)
                if interruption.asked:
                    interruption.deliver()
            for watcher in self._watchers:
                watcher.rest(step)
        if interruption.asked:  # between the last look and here
            interruption.deliver()

    def _piece(self, step: int, end: int, watchers: tuple[Watcher, ...]) -> int:
        """Steps for some time; many of them end where graphs and the cycles of kernels do, at the
        nearest such step: a graph of many is launched as fast as one of a single step.
        """
        seconds = PIECE_SECONDS
        for watcher in watchers:
            seconds = min(seconds, watcher.seconds)
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

    @property
    def asked(self) -> bool:
        """Whether Ctrl-C was pressed, and not handed on so far."""
        return bool(self._kept)

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
        if len(self._kept) > 1:
            # also when what follows leaves by an exception
            signal.signal(signal.SIGINT, self._handler)
            self.deliver()

    def deliver(self) -> None:
        """Hand on what was kept. Python's own handler raises KeyboardInterrupt; another one may
        return, and work continues.
        """
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
