"""What the host puts on the streams of several GPUs, seen by a CuPy that only writes it down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lanewise.runtime import cuda, exchange
from lanewise.runtime.exchange import Move, Moves


class Recorder:
    """As much of CuPy as the order of devices needs. log: what was put on the stream of which device."""

    def __init__(self) -> None:
        self.number, self.log = 0, list[tuple[int, str, int]]()
        self.events = 0
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(getDevice=lambda: self.number, setDevice=self._set),
            Device=lambda number: RecordedDevice(self, number),
            Event=lambda disable_timing=False: RecordedEvent(self),
            get_current_stream=lambda: RecordedStream(self, self.number),
        )

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
    def __init__(self, owner: Recorder, number: int) -> None:
        self._owner, self._number = owner, number

    def is_capturing(self) -> bool:
        return False

    def wait_event(self, event: RecordedEvent) -> None:
        assert self._owner.number == self._number  # the null stream is that of the current device
        self._owner.log.append((self._number, "wait", event.number))


class RecordedEvent:
    def __init__(self, owner: Recorder) -> None:
        self._owner, self.number, self._device = owner, owner.events, owner.number
        owner.events += 1

    def record(self, stream: RecordedStream) -> None:
        assert self._owner.number == self._device  # an event belongs to the device it was made on
        self._owner.log.append((self._device, "record", self.number))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    module = Recorder()
    monkeypatch.setattr(cuda, "cupy", lambda: module)

    def receive(to: Any, source: Any) -> None:
        module.log.append((module.number, "copy", len(to)))
        to[...] = source

    monkeypatch.setattr(cuda, "receive", receive)
    monkeypatch.setattr(exchange, "get_device", lambda name: SimpleNamespace(target=SimpleNamespace(host_memory=False)))
    return module


def work(module: Recorder, device: str) -> None:
    with cuda.use(device):
        module.log.append((module.number, "kernel", 0))


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
