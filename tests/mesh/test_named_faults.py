"""Columns are made where their part lies, runs go on where they began, wishes bend defaults, large messages arrive."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.mesh_launch import MeshLaunch
from lanewise.records import split_rows
from lanewise.runtime import transport
from lanewise.runtime.lease import Lease
from lanewise.runtime.transport import MpiTransport
from lanewise.sims.common import meshes
from tests.mesh.test_calls import LAYOUTS, bodies, pull, same


def _same(values: Any, device: str) -> Any:
    del device
    return values


def _numpy(device: str) -> Any:
    del device
    return np


def _named(name: str) -> str:
    return name


def test_columns_are_computed_on_the_device_of_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout may compute what it gives, and does so on the current device."""
    current, seen = ["none"], list[tuple[str, str]]()

    @contextmanager
    def on(device: str) -> Generator[None]:
        current.append(device)
        yield
        current.pop()

    def part(device: str) -> Any:
        def column(leaf: str) -> Any:
            seen.append((device, current[-1]))
            return np.arange(2.0)

        return SimpleNamespace(device=device, places=SimpleNamespace(column=column))

    monkeypatch.setattr(split_rows, "on", on)
    monkeypatch.setattr(split_rows, "bring", _same)
    monkeypatch.setattr(split_rows, "array_module", _numpy)
    rows = split_rows.SplitRows(lw.Mesh("cpu", parts=2), (part("a"), part("b")), (2, 2))
    assert rows.column("x").tolist() == [0, 1, 0, 1]
    assert seen == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [("cpu*4", "cpu"), ("cpu", "cpu"), ("python*2", "python"), ("python", "python"), (None, "cpu")],
)
def test_a_run_of_several_processes_goes_on_where_it_began(
    before: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meshes, "joined", lambda: SimpleNamespace(number_here=0))
    monkeypatch.setattr(lw.Mesh, "over_ranks", staticmethod(_named))
    assert meshes.place_of_run(None, before) == wanted


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("place", ["cpu", "cpu*3"])
def test_a_wish_bends_defaults(layout: lw.Layout, place: str) -> None:
    b = bodies(40, layout, place)
    found = pull.bind(b, b, softening2=0.1, plan=lw.Plan(across=4))
    assert (found.compiled.plan.across, found.compiled.plan.targets) == (4, 1)
    exact = pull.bind(b, b, softening2=0.1, plan=lw.Plan(accumulate="f64"))()
    np.testing.assert_allclose(np.asarray(found()), np.asarray(exact), rtol=1e-4, atol=1e-5)


def test_each_launch_of_a_profile_holds_the_memory_of_the_call() -> None:
    """Another thread that runs the same bound call waits for it."""
    b = bodies(40, lw.SoA(), "cpu*2")
    launch = pull.bind(b, b, softening2=0.1).launch
    assert isinstance(launch, MeshLaunch)
    held: list[bool] = []

    class Watched(Lease):
        __slots__ = ()

        @property
        def free(self) -> bool:
            return not self._of_process().locked()

    (lease,) = [Watched("sources")]
    brought = launch.rounds[0].brought
    assert brought is not None
    object.__setattr__(brought, "leases", (lease,))
    object.__setattr__(brought.exchange, "run", lambda: held.append(not lease.free))
    for _, work in launch.works():
        work()
    assert held == [True]
    assert lease.free


class _Communicator:
    """One rank, which remembers what it is asked to send, as MPI 3.1 takes it: counts of 32 bits."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def Isend(self, data: Any, dest: int) -> Any:
        self.sent.append(data.nbytes)
        self.queue = [*getattr(self, "queue", []), data.copy()]
        return SimpleNamespace()

    def Irecv(self, room: Any, source: int) -> Any:
        self.rooms = [*getattr(self, "rooms", []), room]
        return SimpleNamespace()


def test_messages_are_sent_in_pieces_that_every_mpi_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 100)
    known = _Communicator()

    def wait(requests: list[Any]) -> None:
        assert len(requests) == len(known.queue) + len(known.rooms)
        for room, data in zip(known.rooms, known.queue, strict=True):
            room[...] = data

    rows, into = np.arange(40.0), np.zeros(40)
    MpiTransport(known, wait).exchange([(0, rows)], [(0, into)])
    assert known.sent == [100, 100, 100, 20]
    same(into, rows)
