"""The remembered bandwidth of a copy: used for a week, doubted by faster flows, never believed when it is damaged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lanewise.primitives import remembered_bandwidth as subject
from lanewise.primitives.remembered_bandwidth import LASTS, MOST_LOOKS, remembered_bandwidth
from lanewise.runtime.cache import cache_directory, write_entry


class Machine:
    """Copies so many bytes a second, and has a clock."""

    def __init__(self) -> None:
        self.speeds, self.looks, self.now = [10.0], 0, 1000.0

    def copy(self, device: str) -> float:
        self.looks += 1
        return self.speeds[min(self.looks, len(self.speeds)) - 1]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subject, "copy_bandwidth", made.copy)
    monkeypatch.setattr(subject.time, "time", lambda: made.now)
    return made


def entry() -> Path:
    (path,) = (cache_directory() / "measured").iterdir()
    return path


def test_it_is_measured_once_in_a_week(machine: Machine) -> None:
    for _ in range(3):
        assert remembered_bandwidth("cpu", 5.0) == 10
    assert machine.looks == 1
    machine.now += LASTS - 1
    assert remembered_bandwidth("cpu", 5.0) == 10
    assert machine.looks == 1
    machine.speeds = [10.0, 8.0]  # an old figure does not count, even if it is the larger one
    machine.now += 2
    assert remembered_bandwidth("cpu", 5.0) == 8
    assert machine.looks == 2
    machine.now -= 1e6  # a clock that was put back
    remembered_bandwidth("cpu", 5.0)
    assert machine.looks == 3


def test_a_faster_flow_has_it_measured_again_and_the_larger_figure_stays(machine: Machine) -> None:
    machine.speeds = [10.0, 30.0, 20.0]
    assert remembered_bandwidth("cpu", 5.0) == 10
    assert remembered_bandwidth("cpu", 25.0) == 30  # the first look was beside other work
    assert remembered_bandwidth("cpu", 25.0) == 30
    assert machine.looks == 2
    for _ in range(5):  # a flow in the caches
        assert remembered_bandwidth("cpu", 100.0) == 30
    assert machine.looks == MOST_LOOKS


def test_threads_and_machines_have_figures_of_their_own(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered_bandwidth("cpu", 5.0)
    monkeypatch.setattr(subject.platform, "node", lambda: "another machine")
    remembered_bandwidth("cpu", 5.0)
    monkeypatch.setenv("LANEWISE_THREADS", "77")
    remembered_bandwidth("cpu", 5.0)
    assert machine.looks == 3


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no JSON", b"[]", b"null", b"\xff", b"[" * 100_000, json.dumps({"format": 1}).encode(),
        *(
            json.dumps({"format": 1, "bytes_per_second": 10.0, "looks": 1, "begun": 1000.0} | wrong).encode()
            for wrong in (
                {"format": 2}, {"bytes_per_second": 0.0}, {"bytes_per_second": -1.0}, {"bytes_per_second": math.inf},
                {"bytes_per_second": math.nan}, {"bytes_per_second": None}, {"looks": "many"}, {"begun": []}, {"begun": math.nan},
                {"looks": math.inf},
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_figure_is_measured_again(machine: Machine, content: bytes) -> None:
    remembered_bandwidth("cpu", 5.0)
    good = entry().read_bytes()
    write_entry(f"measured/{entry().name}", content)
    assert remembered_bandwidth("cpu", 5.0) == 10
    assert machine.looks == 2
    assert entry().read_bytes() == good
    entry().write_bytes(good[:-1])  # damage
    assert remembered_bandwidth("cpu", 5.0) == 10
    assert machine.looks == 3


def test_an_interpreter_has_none(machine: Machine) -> None:
    assert remembered_bandwidth("python", 1.0) is None
    assert machine.looks == 0


def test_a_gpu_without_room_has_none_and_is_asked_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(device: str) -> Any:
        machine.looks += 1

    monkeypatch.setattr(subject, "copy_bandwidth", none)
    assert [remembered_bandwidth("cpu", 1.0) for _ in range(2)] == [None, None]
    assert machine.looks == 2
