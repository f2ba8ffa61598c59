"""Units on workers, by a client and futures that do as a test says: what ends, what is refused, what stops."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lanewise.sims.units import remote
from lanewise.sims.units.attempt import UnitFailed
from lanewise.sims.units.remote import Cluster, cluster_at, run_remotely
from lanewise.sims.units.results import UnitFiles
from lanewise.support.errors import InputError
from tests.sims.units.test_scans import small

distributed: Any = pytest.importorskip("distributed")
MOST = 20  # looks, after which a loop is one without an end


@dataclass
class Future:
    """looks: how often nobody has its result yet. ended: what its last look does."""

    looks: int
    ended: Callable[[], Any]
    key: str = "unit"
    cancelled: bool = False
    asked: int = 0

    @property
    def status(self) -> str:
        return "finished" if self.done() else "pending"

    def done(self) -> bool:
        return self.asked > self.looks

    def result(self, timeout: float | None = None) -> Any:
        self.asked += 1
        assert self.asked < MOST
        if not self.done():
            raise distributed.TimeoutError
        return self.ended()

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Client:
    """workers: as a scheduler describes them. begun: the keys that a worker has."""

    future: Any = None
    workers: dict[str, Any] = field(default_factory=dict)
    begun: tuple[str, ...] = ()

    def submit(self, *_: Any, **__: Any) -> Any:
        return self.future

    def processing(self) -> dict[str, tuple[str, ...]]:
        return {"worker": self.begun}

    def wait_for_workers(self, count: int, timeout: float) -> None:
        if len(self.workers) < count:
            raise distributed.client.WorkerStartTimeoutError(0, count, timeout)

    def run(self, function: Any, *arguments: Any) -> dict[str, Any]:
        return {name: function(*arguments) for name in self.workers}

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": self.workers}


def raises(error: BaseException) -> Callable[[], Any]:
    def ended() -> Any:
        raise error

    return ended


def outcome(client: Client, folder: Path, stop: threading.Event | None = None) -> Any:
    scan, going = small("seed=1,2"), folder / "a.going"
    going.touch()
    cluster = Cluster(client, 1, going)
    return cluster.run(scan, scan.units[0], UnitFiles(folder, 0, 1), 0, stop or threading.Event())


@pytest.mark.parametrize(
    "error", [TimeoutError(errno.ETIMEDOUT, "no answer"), TimeoutError(), distributed.TimeoutError("late")]
)
@pytest.mark.parametrize("looks", [0, 3])
def test_a_unit_that_times_out_has_failed(error: BaseException, looks: int, tmp_path: Path) -> None:
    with pytest.raises(UnitFailed, match=r"^on its worker: .*(no answer|TimeoutError|late); its last checkpoint is in"):
        outcome(Client(Future(looks, raises(error))), tmp_path)


def test_a_result_is_waited_for(tmp_path: Path) -> None:
    assert outcome(Client(Future(3, lambda: "result")), tmp_path) == "result"


def test_a_unit_that_kills_workers_has_failed(tmp_path: Path) -> None:
    from distributed.scheduler import KilledWorker

    error = KilledWorker("unit", SimpleNamespace(address="tcp://a:1"), 10)
    with pytest.raises(UnitFailed, match=r"^10 workers died of it"):
        outcome(Client(Future(2, raises(error))), tmp_path)


@pytest.mark.parametrize("begun", [(), ("unit",)])
def test_to_stop_is_said_to_all(begun: tuple[str, ...], tmp_path: Path) -> None:
    """Those that have begun are waited for; those that begin later find no file."""
    stop, future = threading.Event(), Future(3, lambda: None)
    stop.set()
    assert outcome(Client(future, begun=begun), tmp_path, stop) is None
    assert future.cancelled is not bool(begun)
    assert not list(tmp_path.iterdir())


def test_a_unit_that_begins_too_late_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look at who has begun and the end of a command a worker may take a unit."""
    scan = small("seed=1,2")
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(state=SimpleNamespace(nthreads=1)))
    monkeypatch.setattr(remote, "run_unit", lambda *_: pytest.fail("it began"))
    assert run_remotely(scan, scan.units[0], UnitFiles(tmp_path, 0, 1), 0, str(tmp_path / "a.going")) is None


def test_a_unit_stops_when_the_file_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan, going = small("seed=1,2"), tmp_path / "a.going"
    going.touch()

    def run_unit(*arguments: Any) -> str:
        going.unlink()
        assert arguments[-1].wait(60)
        return "stopped"

    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(state=SimpleNamespace(nthreads=1)))
    monkeypatch.setattr(remote, "run_unit", run_unit)
    assert run_remotely(scan, scan.units[0], UnitFiles(tmp_path, 0, 1), 0, str(going)) == "stopped"


@pytest.mark.parametrize(
    ("workers", "on_gpus", "said"),
    [
        ([], False, "^--scheduler tcp://a:1: it has no worker, and none came in 10 seconds; start some: dask worker tcp://a:1$"),
        ([{}, {"CPU": 1}], True, "^--scheduler tcp://a:1: none of its 2 workers announces a GPU, .*; start them with --resources GPU=1$"),
    ],
)  # fmt: skip
def test_schedulers_without_workers_for_a_scan_are_refused(
    workers: list[Any], on_gpus: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, workers)
    (tmp_path / remote.SCAN).touch()
    with pytest.raises(InputError, match=said), cluster_at("tcp://a:1", tmp_path, None, on_gpus=on_gpus):
        pass


@pytest.mark.parametrize(("workers", "on_gpus"), [([{}], False), ([{"GPU": 1.0}, {}], True)])
def test_the_file_is_there_as_long_as_the_command(
    workers: list[Any], on_gpus: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, workers)
    (tmp_path / remote.SCAN).touch()
    with cluster_at("tcp://a:1", tmp_path, None, on_gpus=on_gpus) as cluster:
        assert cluster.going.exists()
        assert cluster.places == 2 * len(workers)
    assert [p.name for p in tmp_path.iterdir()] == [remote.SCAN]


def connect(monkeypatch: pytest.MonkeyPatch, workers: list[Any]) -> None:
    known = {f"tcp://b:{n}": {"nthreads": 2, "resources": r} for n, r in enumerate(workers)}

    @contextmanager
    def connected(_: str) -> Generator[Client]:
        yield Client(workers=known)

    monkeypatch.setattr(remote, "connected_to", connected)
