"""What the host puts on the streams of several GPUs, seen by a CuPy that only writes it down."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lanewise.patterns.sitewise import split_ghosts
from lanewise.patterns.sitewise.split_ghosts import Ghosts, touched_by_halves
from lanewise.patterns.sitewise.streaming import FORMS, TWO_COPIES
from lanewise.runtime import cuda, exchange, memory
from lanewise.runtime.exchange import Move, Moves, PeerWrite, Puts


class Recorder:
    """As much of CuPy as the order of devices needs. log: what was put on the stream of which device, which is its
    number, or 100 more for its other stream.
    """

    def __init__(self) -> None:
        self.number, self.log = 0, list[tuple[int, str, int]]()
        self.events, self.current = 0, dict[int, RecordedStream]()
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(getDevice=lambda: self.number, setDevice=self._set),
            Device=lambda number: RecordedDevice(self, number),
            Event=lambda disable_timing=False: RecordedEvent(self),
            get_current_stream=self.stream,
            Stream=lambda non_blocking, priority: RecordedStream(self, self.number, 100),
        )

    def stream(self) -> RecordedStream:
        return self.current.get(self.number) or RecordedStream(self, self.number)

    def put(self, what: str, number: int) -> None:
        """Something on the current stream of the current device."""
        self.log.append((self.stream().name, what, number))

    def _set(self, number: int) -> None:
        self.number = number

    @staticmethod
    def ascontiguousarray(array: Any) -> Any:
        return np.ascontiguousarray(array)


class RecordedDevice:
    def __init__(self, owner: Recorder, number: int) -> None:
        self._owner, self._number, self._before = owner, number, list[int]()

    def __enter__(self) -> None:
        self._before.append(self._owner.number)
        self._owner.number = self._number

    def __exit__(self, *exception: object) -> None:
        self._owner.number = self._before.pop()


class RecordedStream:
    def __init__(self, owner: Recorder, number: int, more: int = 0) -> None:
        self._owner, self._number, self.name = owner, number, number + more
        self._before: list[RecordedStream] = []

    def __enter__(self) -> None:
        assert self._owner.number == self._number
        self._before.append(self._owner.stream())
        self._owner.current[self._number] = self

    def __exit__(self, *exception: object) -> None:
        assert self._owner.number == self._number  # CuPy sets the stream of the current device
        self._owner.current[self._number] = self._before.pop()

    def is_capturing(self) -> bool:
        return False

    def wait_event(self, event: RecordedEvent) -> None:
        assert self._owner.number == self._number  # the null stream is that of the current device
        self._owner.log.append((self.name, "wait", event.number))


class RecordedEvent:
    def __init__(self, owner: Recorder) -> None:
        self._owner, self.number, self._device = owner, owner.events, owner.number
        owner.events += 1

    def record(self, stream: RecordedStream) -> None:
        assert self._owner.number == self._device  # an event belongs to the device it was made on
        self._owner.log.append((stream.name, "record", self.number))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    module = Recorder()
    monkeypatch.setattr(cuda, "cupy", lambda: module)
    cuda.copy_stream.cache_clear()

    def receive(to: Any, source: Any) -> None:
        module.put("copy", len(to))
        to[...] = source

    monkeypatch.setattr(cuda, "receive", receive)
    there = SimpleNamespace(target=SimpleNamespace(host_memory=False), synchronize=lambda: None)
    for each in (exchange, memory, split_ghosts):
        monkeypatch.setattr(each, "get_device", lambda name: there)
    yield module
    cuda.copy_stream.cache_clear()


def work(module: Recorder, device: str, what: str = "kernel", number: int = 0) -> None:
    with cuda.use(device):
        module.put(what, number)


def test_devices_that_work_together_wait_at_both_ends_alone(gpus: Recorder) -> None:
    with cuda.together(["cuda:0", "cuda:1", "cuda:2"]):
        for device in ("cuda:0", "cuda:1", "cuda:2", "cuda:1"):
            work(gpus, device)
        with cuda.together(["cuda:2", "cuda:0"]):  # they do so already
            work(gpus, "cuda:2")
    kernels = [(n, "kernel", 0) for n in (0, 1, 2, 1, 2)]
    begin = [(0, "record", 0), (1, "wait", 0), (2, "wait", 0)]
    end = [(1, "record", 1), (0, "wait", 1), (2, "record", 2), (0, "wait", 2)]
    assert gpus.log == [*begin, *kernels, *end]
    assert gpus.number == 0


def test_devices_wait_for_each_other_otherwise(gpus: Recorder) -> None:
    with cuda.together(["cuda:0"]):
        work(gpus, "cuda:1")
    assert gpus.log == [(0, "record", 0), (1, "wait", 0), (1, "kernel", 0), (1, "record", 1), (0, "wait", 1)]


@pytest.mark.parametrize("current", [0, 1, 5])
def test_copies_between_devices(gpus: Recorder, current: int) -> None:
    gpus.number = current
    parts = {"cuda:0": np.arange(5.0), "cuda:1": np.arange(10.0, 20.0)[::2]}
    rooms = {device: np.zeros(10) for device in parts}
    moves: list[Move] = []
    for n, (source, column) in enumerate(parts.items()):
        take = lambda column=column: column  # noqa: E731
        moves += [Move(source, take, to, room[5 * n : 5 * n + 5]) for to, room in rooms.items()]
    Moves(tuple(moves))()
    for room in rooms.values():
        np.testing.assert_array_equal(room, np.concatenate(list(parts.values())))
    assert [n for n, what, _ in gpus.log if what == "copy"] == [0, 0, 1, 1]
    assert gpus.number == current


@pytest.mark.parametrize(
    ("mem", "peers", "wanted"),
    [("PooledMemory", True, True), ("PooledMemory", False, False), ("MemoryAsync", True, False)],
)
def test_gpus_reach_memory_that_peers_may_use(gpus: Recorder, mem: str, peers: bool, wanted: bool) -> None:
    enabled: list[tuple[int, int]] = []

    class Already(Exception):
        status = cuda.PEER_ALREADY

    def enable(peer: int) -> None:
        enabled.append((gpus.number, peer))
        raise Already

    runtime = gpus.cuda.runtime
    runtime.deviceCanAccessPeer, runtime.deviceEnablePeerAccess = (lambda one, other: peers), enable
    runtime.CUDARuntimeError = Already
    cuda._has_peer.cache_clear()  # pyright: ignore[reportPrivateUsage]
    memory_of = type(mem, (), {})
    array = SimpleNamespace(data=SimpleNamespace(device_id=1, mem=memory_of()))
    with cuda.together(["cuda:0", "cuda:1"]):
        assert cuda.reaches("cuda:1", array)  # its own
        assert cuda.reaches("cuda:0", array) is wanted
    assert enabled == [(0, 1)] * wanted
    cuda._has_peer.cache_clear()  # pyright: ignore[reportPrivateUsage]


# ------------------------------------------------------------ copies while kernels run

Done = frozenset[tuple[int, str, int]]
DEVICES = ("cuda:0", "cuda:1")


def pasts(log: list[tuple[int, str, int]]) -> dict[tuple[int, str, int], Done]:
    """What is surely done when something begins, by the waits of streams for events: of all that was put once."""
    stream, event = dict[int, Done](), dict[int, Done]()
    found: dict[tuple[int, str, int], Done] = {}
    for act in log:
        name, what, number = act
        here = stream.get(name, frozenset())
        if what == "record":
            event[number] = here
        elif what == "wait":
            stream[name] = here | event[number]
        else:
            assert act not in found
            found[act] = here
            stream[name] = here | {act}
    return found


def test_a_profile_sees_copies_that_are_under_way(gpus: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    ghosts, passed = Ghosts(DEVICES), set[int]()
    monkeypatch.setattr(cuda, "has_passed", lambda event: event.number in passed)
    _, sent, rest = touched_by_halves(TWO_COPIES, TWO_COPIES.phases[0], 0)
    nothing: Any = lambda: None  # noqa: E731
    with ghosts.running(True):
        assert ghosts.lanes() == {}
        ghosts.send(nothing, sent)
        ghosts.wait_for(rest)
        lanes = ghosts.lanes()
        assert list(lanes) == ["cuda:0, copies", "cuda:1, copies"]
        assert [busy() for busy in lanes.values()] == [True, True]
        passed |= set(range(gpus.events))
        assert [busy() for busy in lanes.values()] == [False, False]
        ghosts.wait_for(None)
        assert ghosts.lanes() == {}


@pytest.mark.parametrize("failing", DEVICES)
def test_copies_that_fail_are_waited_for(gpus: Recorder, failing: str) -> None:
    """What was put on a stream for copies before an exception still writes ghosts when the next call begins."""

    def put(device: str) -> None:
        if device == failing:
            raise MemoryError
        gpus.put("put", 0)

    ghosts, here = Ghosts(DEVICES), DEVICES.index(failing)
    pairs = zip(DEVICES, reversed(DEVICES), strict=True)
    puts: Any = Puts(tuple(PeerWrite(s, t, lambda s=s: put(s), 1) for s, t in pairs))
    sent = touched_by_halves(TWO_COPIES, TWO_COPIES.phases[0], 0)[1]
    gpus.put("kernel", 0)
    with pytest.raises(MemoryError), ghosts.running(True):
        ghosts.send(puts, sent)
    assert ghosts.there is None
    assert gpus.stream().name == 0
    for device in DEVICES:
        work(gpus, device, "kernel", 1)
    wanted = {(100, "put", 0)} if here else set[Any]()
    past = pasts(gpus.log)
    for n in range(2):
        assert {(0, "kernel", 0), *wanted} <= past[n, "kernel", 1]


@pytest.mark.parametrize("alone", [True, False])
def test_the_host_waits_for_the_last_copies(gpus: Recorder, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """Whatever else ran in the loop: the next steps may be on other streams."""
    there = SimpleNamespace(
        target=SimpleNamespace(host_memory=False), synchronize=lambda: work(gpus, DEVICES[0], "the host waits")
    )
    monkeypatch.setattr(split_ghosts, "get_device", lambda name: there)
    ghosts = Ghosts(DEVICES)
    puts: Any = Puts((PeerWrite(*reversed(DEVICES), lambda: gpus.put("put", 0), 1),))
    with ghosts.running(alone):
        ghosts.send(puts, touched_by_halves(TWO_COPIES, TWO_COPIES.phases[0], 0)[1])
    assert (101, "put", 0) in pasts(gpus.log)[0, "the host waits", 0]


@pytest.mark.parametrize("form", [*FORMS.values(), TWO_COPIES], ids=lambda form: form.name)
@pytest.mark.parametrize("written", [True, False])
def test_the_rest_of_a_step_does_not_wait_for_copies(gpus: Recorder, form: Any, written: bool) -> None:
    """And whatever reads or overwrites what they do waits."""
    ghosts, steps = Ghosts(DEVICES), range(0, 8, len(form.phases))
    rooms = {device: np.zeros(3) for device in DEVICES}

    def exchange_of(n: int) -> Any:
        pairs = [(s, t) for s in DEVICES for t in DEVICES if s != t]
        if written:
            return Puts(tuple(PeerWrite(s, t, lambda n=n: gpus.put("put", n), 1) for s, t in pairs))
        moves = Moves(tuple(Move(s, lambda n=n: taken(n), t, rooms[t]) for s, t in pairs))

        def columns() -> None:
            moves()
            for device in DEVICES:
                work(gpus, device, "put", n)

        return columns

    def taken(n: int) -> Any:
        gpus.put("gather", n)
        return np.ones(3)

    def kernels(what: str, n: int, touched: Any) -> None:
        ghosts.wait_for(touched)
        for device in DEVICES:
            work(gpus, device, what, n)

    with ghosts.running(True):
        for n in steps:
            faces, sent, rest = touched_by_halves(form, form.phase(n, fresh=False), n)
            kernels("faces", n, faces)
            ghosts.send(exchange_of(n), sent)
            kernels("rest", n, rest)
            if len(form.phases) > 1:
                kernels("whole", n + 1, None)
    if not written:  # a copy a step and direction
        log, counted = gpus.log, dict[int, int]()
        gpus.log = []
        for name, what, number in log:
            if what == "copy":
                counted[name] = counted.get(name, -1) + 1
                number = steps[counted[name]]
            gpus.log.append((name, what, number))
    past = pasts(gpus.log)
    last = "whole" if len(form.phases) > 1 else "rest"
    for n in steps:
        for here, other in ((0, 1), (1, 0)):
            copied = {(100 + other, "put", n)} if written else {(100 + here, "put", n), (100 + here, "copy", n)}
            assert not {a for a in past[here, "rest", n] if a[0] >= 100 and a[2] == n}
            following = "whole" if len(form.phases) > 1 else "faces"
            if n + 1 < steps.stop and (here, following, n + 1) in past:
                assert copied <= past[here, following, n + 1]
            for act in copied:  # is written when all have updated their faces, and read what was there
                assert {(0, "faces", n), (1, "faces", n)} <= past[act]
                assert (here, "rest", n) not in past[act]
            if not written:
                assert (other, "faces", n) in past[100 + other, "gather", n]
                assert (100 + other, "gather", n) in past[100 + here, "copy", n]
                if n:  # memory between is used again
                    before = steps[steps.index(n) - 1]
                    assert (100 + other, "put", before) in past[100 + other, "copy", n]
                    assert (100 + here, "copy", before) in past[100 + other, "gather", n]
            if n:
                before = n - len(form.phases)
                assert (here, last, before if last == "rest" else before + 1) in past[here, "faces", n]
    end = [act for act in gpus.log if act[0] == 0 and act[1] == "wait"]
    assert end  # the caller's stream is after all of them
    assert gpus.number == 0
    assert gpus.stream().name == 0
