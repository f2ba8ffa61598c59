"""Steps are whole: pieces of many steps, what a GPU was given is finished, and a state that was left within a step says
so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest

from lanewise.runtime import cuda, cuda_graphs
from lanewise.support import whole_steps
from lanewise.support.errors import StateError
from lanewise.support.whole_steps import LONG_GRAPH, WholeSteps, claim_under_way, deferred_interruption
from tests.runtime.stepper import make_stepper


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


class Clock:
    """Steps take as long as it says, whatever the machine does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds
        monkeypatch.setattr(whole_steps.time, "perf_counter", lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds


def pieces(monkeypatch: pytest.MonkeyPatch, seconds: float, step: int, steps: int) -> list[int]:
    clock, found = Clock(monkeypatch, seconds), list[int]()

    def run(count: int) -> None:
        clock.now += count * seconds
        found.append(count)

    WholeSteps("it", "go").take(step, steps, run)
    return found


@pytest.mark.parametrize(
    ("seconds", "step", "steps", "expected"),
    [
        (0.3, 0, 3, [1, 1, 1]),
        (0.011, 0, 40, [1, 18, 18, 3]),
        (0.001, 0, 500, [1, 191, 192, 116]),  # ending at multiples of a graph
        (0.001, 7, 100, [1, 99]),
        (0.15, 0, 5, [1, 1, 1, 1, 1]),  # the nearest number of steps
        (0.13, 0, 6, [1, 2, 2, 1]),
        (0.0075, 0, 120, [1, 31, 32, 32, 24]),  # and of graphs
        (0.0045, 0, 200, [1, 31, 32, 32, 32, 32, 40]),
        (0.0040, 0, 200, [1, 63, 64, 64, 8]),
        (0.009, 0, 60, [1, 22, 22, 15]),
        (0.0063, 0, 40, [1, 31, 8]),
        (0.001, 0, 0, []),
    ],
)
def test_pieces_take_a_fifth_of_a_second(
    monkeypatch: pytest.MonkeyPatch, seconds: float, step: int, steps: int, expected: list[int]
) -> None:
    assert pieces(monkeypatch, seconds, step, steps) == expected


class Viewer:
    """It wants to see every step."""

    seconds = 1.0

    def __init__(self) -> None:
        self.seen, self.rested = list[int](), list[int]()

    def due(self, step: int) -> int:
        return step + 1

    def look(self, step: int, asked: Callable[[], bool]) -> None:
        del asked
        self.seen.append(step)

    def rest(self, step: int) -> None:
        self.rested.append(step)


@pytest.mark.parametrize("leaves", [None, 25, 40], ids=lambda n: f"until {n}")
@pytest.mark.parametrize("comes", [0, 1, 2, 20, 24], ids=lambda n: f"from {n}")
def test_watchers_come_and_go_while_steps_run(monkeypatch: pytest.MonkeyPatch, comes: int, leaves: int | None) -> None:
    """As a view does that is opened in another thread: it looks at all steps behind the piece in which it comes, up to
    the end of the piece in which it leaves.
    """
    clock, whole, viewer, steps = Clock(monkeypatch, 0.02), WholeSteps("it", "go"), Viewer(), 40
    ends = [0]
    with ExitStack() as stack:

        def run(count: int) -> None:
            begin, end = ends[-1], ends[-1] + count
            if begin < comes <= end:
                stack.enter_context(whole.watched(viewer))
                came.append(end)
            if leaves is not None and begin < leaves <= end:
                stack.close()
                left.append(end)
            clock.now += clock.seconds * count
            ends.append(end)

        came, left = list[int](), list[int]()
        if comes == 0:
            stack.enter_context(whole.watched(viewer))
            came.append(0)
        whole.take(0, steps, run)
        assert viewer.seen == [*range(came[0] + 1, (left or [steps])[0] + 1)]
        assert viewer.rested == ([] if left else [steps])


@pytest.mark.parametrize(("count", "where"), [(1, "step 1"), (5, "steps 2 to 6")])
def test_what_was_left_within_a_piece_is_used_no_more(monkeypatch: pytest.MonkeyPatch, count: int, where: str) -> None:
    clock, whole = Clock(monkeypatch, 1e-3), WholeSteps("the simulation", "start again")

    def run(steps: int) -> None:
        if steps == count:
            raise MemoryError
        clock.now += 1e-3 * steps

    with pytest.raises(MemoryError):
        whole.take(0, 6, run)
    for use in (whole.check, lambda: whole.take(6, 1, run)):
        with pytest.raises(StateError) as error:
            use()
        assert str(error.value) == (
            f"the simulation was stopped within {where}: its arrays are of no step, and nothing computed from them holds; start again"
        )
    whole.mended()
    whole.check()


class Queue:
    """A GPU that does what it was given when somebody waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        queue = self
        self.given: list[Callable[[], None]] = []
        self.launched = 0
        self.then: dict[int, Callable[[], None]] = {}

        class Graph:
            def __init__(self, device: str, work: Callable[[], None]) -> None:
                self.work = work

            def launch(self) -> None:
                queue.given.append(self.work)
                queue.launched += 1
                queue.then.get(queue.launched, lambda: None)()

        monkeypatch.setattr(cuda_graphs, "Graph", Graph)
        monkeypatch.setattr(cuda, "synchronize", lambda device: None)
        monkeypatch.setattr(cuda_graphs, "wait_for_graphs", self.wait)
        monkeypatch.setattr(cuda_graphs, "put_graphs_behind", lambda device: None)  # as all is in one queue
        monkeypatch.setattr(cuda_graphs, "put_behind_graphs", self.passed)

    def wait(self, device: str) -> None:
        for work in self.given:
            work()
        self.given.clear()

    def passed(self, device: str) -> Event:
        return Event(self)


class Event:
    """Behind what a GPU had been given."""

    def __init__(self, queue: Queue) -> None:
        self._queue, self._done = queue, False
        queue.given.append(self._passed)

    def _passed(self) -> None:
        self._done = True

    def synchronize(self) -> None:
        while not self._done:
            self._queue.given.pop(0)()


class Seen:
    """A watcher that launches a look at what is there then."""

    seconds = 0.06

    def __init__(self, queue: Queue, count: Callable[[], int], pause: int = 10**9) -> None:
        self.queue, self.count, self.pause = queue, count, pause
        self.found, self.idle, self.pauses, self.then = list[tuple[int, int]](), 0, 0, lambda step: None

    def due(self, step: int) -> int | None:
        return None

    def look(self, step: int, asked: Callable[[], bool]) -> None:
        self.idle += not self.queue.given
        self.queue.given.append(lambda: self.found.append((step, self.count())))
        if step > self.pause:
            whole_steps.time.sleep(1)
            self.pauses, self.pause = self.pauses + 1, self.pause + 1000
        self.then(step)

    def rest(self, step: int) -> None:
        assert self.count() == step


class Device:
    """Steps of a GPU that are watched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pause: int = 10**9, seconds: float = 1e-3) -> None:
        self.seconds = seconds
        self.queue, self.clock, self.counted, self.done = Queue(monkeypatch), Clock(monkeypatch, 1e-3), 0, 0
        self.stepper: Any = make_stepper("cuda", [self.step])
        self.seen, self.whole = Seen(self.queue, lambda: self.done, pause), WholeSteps("it", "go")
        self.pieces, self.examine = list[int](), lambda first, last: None
        monkeypatch.setattr(whole_steps.time, "sleep", self.clock.wait)

    def step(self) -> None:
        self.done += 1
        self.clock.now += self.seconds

    def run(self, count: int) -> None:
        under_way = claim_under_way()
        assert under_way is not None
        assert claim_under_way() is None, "one has it"
        self.stepper.program.run([(None, count)], under_way)
        under_way.examine(self.examine, self.counted, self.counted + count)
        self.counted += count
        self.pieces.append(count)

    def take(self, steps: int) -> None:
        with self.whole.watched(self.seen):
            self.whole.take(self.counted, steps, self.run)


def test_a_gpu_that_is_watched_always_has_steps_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    device.take(5000)
    assert device.done == device.counted == 5000
    assert all(step == done for step, done in device.seen.found), "looks find whole steps"
    assert device.seen.idle == 0
    middle = device.pieces[8:-1]
    assert set(middle) == {32}, "half of the time between two looks, in graphs: two of them are under way"
    assert len(device.seen.found) == len(device.pieces) - 1, "the last look is under way"
    assert device.clock.now == pytest.approx(5), "nothing was waited for besides"


def test_long_steps_are_looked_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them are under way, though they take as long as a look is wanted after."""
    device = Device(monkeypatch, seconds=0.04)
    device.take(100)
    assert set(device.pieces) == {1}
    assert device.seen.idle == 0
    assert device.clock.now == pytest.approx(4), "nothing was waited for besides"


def test_a_gpu_that_nobody_watches_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    device, found = Device(monkeypatch), list[object]()
    device.seen.seconds = whole_steps.PIECE_SECONDS

    def run(count: int) -> None:
        found.append(claim_under_way())
        device.stepper.run(count)

    with device.whole.watched(device.seen):
        device.whole.take(0, 1000, run)
    assert set(found) == {None}, "it does what it does without a watcher"


def test_steps_within_steps_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    device, outer, found = Device(monkeypatch), WholeSteps("all", "go"), list[tuple[int, int]]()
    seen = Seen(device.queue, lambda: device.done)
    seen.then = lambda step: found.append((step, device.done))
    with outer.watched(seen):
        outer.take(0, 1000, device.take)
    assert device.done == 1000
    assert len(device.seen.found) > 1000 / 100
    assert len(found) > 1000 / 100
    assert all(step == done for step, done in found), "who cuts steps that are cut once more waits for them"


def test_a_pause_is_no_time_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, pause=1000)
    device.take(5000)
    assert device.seen.pauses == 4
    assert set(device.pieces[8:-1]) == {32}


@pytest.mark.parametrize("by", ["a step that no search can use", "ctrl-c", "the look"])
def test_what_is_under_way_is_waited_for_whatever_ends_it(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    device = Device(monkeypatch)
    asked = list[tuple[int, int]]()

    def examine(first: int, last: int) -> None:
        asked.append((first, last))
        if by == "a step that no search can use" and first <= 2000 < last:
            raise ValueError

    def then(step: int) -> None:
        if step > 2000 and by == "ctrl-c":
            press()
        if step > 2000 and by == "the look":
            raise ValueError

    device.examine, device.seen.then = examine, then
    with pytest.raises(KeyboardInterrupt if by == "ctrl-c" else ValueError):
        device.take(10_000)
    assert device.done == device.counted == sum(device.pieces)
    assert device.done < 2000 + 1100, "a second and a piece"
    ends = [0, *(last for _, last in asked)]
    assert asked == list(pairwise(ends)), "every step is examined once"
    assert device.whole.broken == (by == "a step that no search can use")


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_what_a_gpu_was_given_is_finished_and_counted(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Pressed between the launches of graphs of many steps."""
    queue, clock = Queue(monkeypatch), Clock(monkeypatch, 1e-3)
    done = counted = 0

    def step() -> None:
        nonlocal done
        done += 1
        clock.now += 1e-3

    stepper: Any = make_stepper("cuda", [step])
    whole = WholeSteps("it", "go")

    def run(count: int) -> None:
        nonlocal counted
        stepper.run(count)
        counted += count

    queue.then[at] = press
    with pytest.raises(KeyboardInterrupt):
        whole.take(0, 10_000, run)
    assert done == counted == (1 if at == 1 else 192)
    whole.take(counted, 10_000 - counted, run)
    assert done == counted == 10_000
    assert queue.launched < 10_000 / LONG_GRAPH + 4 * LONG_GRAPH  # most of them in long graphs


def test_pressed_twice_between_graphs_it_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(monkeypatch)
    stepper, whole = make_stepper("cuda", [lambda: None]), WholeSteps("it", "go")
    queue.then[1] = lambda: [press(), press()] and None
    with pytest.raises(KeyboardInterrupt):
        whole.take(0, 100, stepper.run)
    assert whole.broken


def test_what_was_kept_back_reaches_the_outer_one() -> None:
    """A command defers around its whole run, and `advance` within it."""
    with deferred_interruption() as outer:
        with deferred_interruption() as inner:
            press()
            assert (inner.asked, outer.asked) == (True, False)
            inner.deliver()
            assert (inner.asked, outer.asked) == (False, True)
        with pytest.raises(KeyboardInterrupt):
            outer.deliver()


class Paused:
    """A watcher that looks at every step, and waits from the third one on until somebody asks it to end."""

    seconds = 1.0

    def __init__(self) -> None:
        self.stuck, self.last = False, 0

    def due(self, step: int) -> int:
        return step + 1

    def look(self, step: int, asked: Callable[[], bool]) -> None:
        if step == 3:
            press()
        self.stuck |= step >= 3 and not asked()
        self.last = step

    def rest(self, step: int) -> None: ...


@pytest.mark.parametrize("around", [0, 1, 2])
def test_ctrl_c_ends_a_pause_whoever_waits_around(around: int) -> None:
    """A run keeps it back around the steps that it takes in pieces: the rest of the piece is no pause any more."""
    paused, whole, taken = Paused(), WholeSteps("it", "go"), list[int]()

    def run() -> None:
        with ExitStack() as stack:
            outer = [stack.enter_context(deferred_interruption()) for _ in range(around)]
            with whole.watched(paused):
                whole.take(0, 20, taken.append)
            for one in reversed(outer):
                one.deliver()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not paused.stuck
    assert paused.last == 3, "the rest of a piece is not looked at, step by step"
    assert not whole.broken


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_where_it_is_ignored_it_stays_so(ignored: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, ignored)
    with deferred_interruption() as interruption:
        assert signal.getsignal(signal.SIGINT) is ignored
        assert not interruption.asked
    signal.signal(signal.SIGINT, signal.default_int_handler)
