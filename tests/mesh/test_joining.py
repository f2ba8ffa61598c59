"""What keeps processes that were started together from working together; no process is started for it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

import lanewise as lw
from lanewise.runtime import devices, ranks
from lanewise.runtime.ranks import Member, join
from lanewise.runtime.transport import Alone, lead
from lanewise.support.errors import DeviceError

LIBRARY = "cannot load MPI library\nlibmpi.so.12: cannot open shared object file"


def _fake(library: str, size: int) -> ModuleType:
    """mpi4py with this library, in which there are so many processes."""
    module = ModuleType("mpi4py")
    world = SimpleNamespace(Get_size=lambda: size)
    begun = {"Is_initialized": lambda: True, "COMM_WORLD": world}
    names = {
        "rc": SimpleNamespace(initialize=True),
        "MPI": SimpleNamespace(Get_library_version=lambda: library, **begun),
    }
    vars(module).update(names)
    return module


@pytest.fixture(params=[0, 1])
def rank(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(request.param))
    return request.param


def refusal(rank: int) -> str:
    """What rank 0 raises; the others end without a word."""
    if rank:
        with pytest.raises(SystemExit) as end:
            join()
        assert end.value.code == 2
        return ""
    with pytest.raises(DeviceError) as error:
        join()
    return str(error.value)


def test_without_mpi4py(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    if said := refusal(rank):
        assert said.startswith("4 copies of this program were started by mpirun, which would write the same files")
        assert "mpi" in said.partition("need mpi4py and a library of MPI, ")[2]


def test_without_a_library(rank: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").write_text("class rc:\n    initialize = True\n")
    (tmp_path / "mpi4py/MPI.py").write_text(f"raise RuntimeError({LIBRARY!r})")
    for name in [n for n in sys.modules if n.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    if said := refusal(rank):
        assert "mpi4py finds no library of MPI (cannot load MPI library): " in said
        assert said.endswith(", or the MPI of mpirun")
    sys.modules.pop("mpi4py", None)


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("MPICH Version:      5.0.2\nMPICH Release", "MPICH Version: 5.0.2"),
        ("Open MPI v5.0.11, package: Open MPI", "Open MPI v5.0.11"),
    ],
)
def test_with_another_mpi(rank: int, monkeypatch: pytest.MonkeyPatch, library: str, name: str) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", _fake(library, 1))
    if said := refusal(rank):
        assert said == (
            f"4 copies of this program were started by mpirun, and mpi4py uses another MPI ({name}), in which each of "
            "them stands alone: start them by the mpiexec of that one, or install mpi4py for the MPI of mpirun"
        )


def test_a_process_alone_has_its_own_devices() -> None:
    assert join() is None
    mesh = lw.Mesh.over_ranks("cpu", parts=3)
    assert (mesh, str(mesh), mesh.own, mesh.counts) == (lw.Mesh("cpu", parts=3), "3 x cpu", range(3), (3,))


def test_the_transport_of_one_process() -> None:
    alone = Alone()
    rows, into = np.arange(3), np.zeros(3, int)
    alone.exchange([(0, rows)], [(0, into)])
    alone.barrier()
    assert into.tolist() == alone.gather(rows, [3]).tolist() == [0, 1, 2]
    assert (alone.agree("x"), lead(alone, lambda: 5)) == (["x"], 5)


def test_processes_share_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANEWISE_THREADS", raising=False)
    monkeypatch.setattr(devices, "cores", lambda: 7)
    monkeypatch.setattr(devices, "_SHARING", [1])
    for processes, threads in ((1, 7), (2, 3), (7, 1), (9, 1)):
        devices.share_cores(processes)
        assert devices.cpu_threads() == threads


def test_a_process_that_is_gone_is_known() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        member = replace(Member.this(), process=process.pid, started=psutil.Process(process.pid).create_time())
        assert not member.is_gone
        assert replace(member, started=member.started - 100).is_gone  # another process of its number
        process.kill()
        psutil.wait_procs([psutil.Process(process.pid)], timeout=10)
        assert member.is_gone
    assert member.is_gone


NCCL_REFUSED = [
    (["NCCL is not found: it is the package nvidia-nccl-cu13", b"a"], "rank 0 (here, cuda): NCCL is not found: it is the package nvidia-nccl-cu13"),
    ([b"a", "this process has 2 parts of the mesh, and NCCL wants one"], "rank 1 (here, cuda): this process has 2 parts"),
    ([b"a", b"b", b"a"], "rank 2 (here, cuda) has the GPU of rank 0, and NCCL wants another one for each process"),
    ([b"a", None, b"b"], "rank 1 (here, cuda) is without it; set it for all processes, or for none"),
    ([None, "NCCL is not found: it is the package nvidia-nccl-cu13"], "rank 0 (here, cuda) is without it"),
]  # fmt: skip


@pytest.mark.parametrize(("cards", "said"), NCCL_REFUSED)
def test_what_nccl_cannot_serve_is_refused(cards: list[Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all processes, whichever of them it is about."""
    monkeypatch.setattr(ranks, "card_of", lambda devices: None)
    here = replace(Member.this(), host="here")
    for rank in range(len(cards)):
        joined = object.__new__(ranks.Ranks)
        joined.rank, joined.members, joined._between = rank, [here] * len(cards), {}
        joined.transport = SimpleNamespace(agree=lambda own: cards)  # type: ignore[assignment]
        with pytest.raises(DeviceError, match=re.escape(f"LANEWISE_NCCL=1: {said}")):
            joined.connect([("cuda",)] * len(cards))


def test_nccl_is_requested_and_only_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import nccl

    monkeypatch.delenv("LANEWISE_NCCL", raising=False)
    assert nccl.card_of(["cuda"]) is None
    for off in ("", "0"):
        monkeypatch.setenv("LANEWISE_NCCL", off)
        assert nccl.card_of(["cuda"]) is None
    for unknown in ("yes", "on", "2", " 1"):
        monkeypatch.setenv("LANEWISE_NCCL", unknown)
        for devices_here in (["cuda"], ["cpu"]):
            with pytest.raises(DeviceError, match=f"^LANEWISE_NCCL='{unknown}': wanted 1, "):
                nccl.card_of(devices_here)
    monkeypatch.setenv("LANEWISE_NCCL", "1")
    assert nccl.card_of(["cpu", "cpu"]) is None
    assert nccl.card_of(["cuda", "cuda:1"]) == "this process has 2 parts of the mesh, and NCCL wants one"
    monkeypatch.setattr(nccl, "library", lambda: None)
    assert nccl.card_of(["cuda"]) == "NCCL is not found: it is the package nvidia-nccl-cu13"
