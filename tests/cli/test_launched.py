"""Commands that mpirun, mpiexec or srun starts several times: refused with one message, as the copies would write one
file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lanewise.support.command import leave
from lanewise.support.launchers import Started, started
from tests.cli.command import Command

LAUNCHERS = {
    "mpirun": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    "mpiexec": ("PMI_SIZE", "PMI_RANK"),
    "srun": ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
}
UNCOUNTED = {"PMIX_NAMESPACE": "prterun-vm-1@1", "PMIX_RANK": "1"}  # all that `prterun -n 2` says
COMMANDS = {
    "units": "units run --no-such-option",
    "waves": "waves run",
    "ladder": "ladder lbm",
    "tune": "tune gravity",
}


def variables(by: str, rank: int, size: int) -> dict[str, str]:
    sizes, ranks = LAUNCHERS[by]
    return {sizes: str(size), ranks: str(rank)}


@pytest.mark.parametrize("by", LAUNCHERS)
def test_processes_that_were_started_together_know_it(by: str) -> None:
    family = {"mpirun": "Open MPI", "mpiexec": "MPICH", "srun": ""}[by]
    assert started(variables(by, 2, 3)) == Started(by, 2, 3, family)
    assert started(variables(by, 0, 1)) is None
    assert started(variables(by, 2, 3) | {"LANEWISE_RANKS": "alone"}) is None


@pytest.mark.parametrize(
    "environment",
    [{}, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, {"PMI_SIZE": "4"}, {"PMI_SIZE": "x", "PMI_RANK": "0"}],
)
def test_a_process_alone_knows_it(environment: dict[str, str]) -> None:
    assert started(environment) is None


@pytest.fixture(params=LAUNCHERS)
def copy_of_two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], str]:
    """Makes this process one of two, by its number; what started them."""

    def become(rank: int) -> str:
        for name, value in variables(request.param, rank, 2).items():
            monkeypatch.setenv(name, value)
        return request.param

    return become


@pytest.mark.parametrize("name", COMMANDS)
def test_copies_of_a_command_are_refused_once(
    lanewise: Command, tmp_path: Path, copy_of_two: Callable[[int], str], name: str
) -> None:
    by = copy_of_two(0)
    first = lanewise(*COMMANDS[name].split())
    copy_of_two(1)
    second = lanewise(*COMMANDS[name].split())
    assert (first.code, second.code) == (2, 2)
    assert second.out + second.err + first.out == ""
    assert first.err == (
        f"error: 2 copies of `lanewise {name}` were started by {by}, and would write the same files; start one, or "
        "set LANEWISE_RANKS=alone if each has its own files\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_processes_of_a_run_want_mpi4py(
    lanewise: Command, tmp_path: Path, copy_of_two: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    by = copy_of_two(0)
    first = lanewise("gravity", "run", "--no-such-option")
    copy_of_two(1)
    second = lanewise("gravity", "run", "--no-such-option")
    assert (first.code, second.code) == (2, 2)
    assert second.out + second.err + first.out == ""
    assert first.err.startswith(
        f"error: 2 copies of this program were started by {by}, which would write the same files"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*COMMANDS, "gravity"])
def test_copies_that_no_launcher_counts_are_refused_once(
    lanewise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The second of them knows of the first, and speaks; that one may stand alone."""
    said: list[str] = []
    for rank in ("1", "2"):
        for variable, value in (UNCOUNTED | {"PMIX_RANK": rank}).items():
            monkeypatch.setenv(variable, value)
        ended = lanewise(*COMMANDS.get(name, "gravity run --out run.h5").split())
        assert (ended.code, ended.out) == (2, "")
        said.append(ended.err)
    assert said[0].startswith("error: several copies of ")
    assert " were started by prterun, " in said[0]
    assert said[0].count("LANEWISE_RANKS=alone if each has its own files\n") == 1
    assert said[1] == ""
    assert started(UNCOUNTED | {"PMIX_RANK": "0"}) is None
    assert started(UNCOUNTED | {"LANEWISE_RANKS": "alone"}) is None
    assert started(UNCOUNTED | variables("mpirun", 1, 2)) == Started("mpirun", 1, 2, "Open MPI")
    assert started(UNCOUNTED | variables("mpirun", 0, 1)) is None
    assert list(tmp_path.iterdir()) == []


SAID_ONCE = {
    "info --bodies": (2, "No such option"),
    "explain gravity --device foo": (2, "unknown device 'foo'"),
    "explain gravity --source cpu": (0, "gravity"),
    "gravity run --help": (0, "--bodies"),
}


@pytest.mark.parametrize("asked", SAID_ONCE)
def test_what_writes_nothing_is_said_once(lanewise: Command, copy_of_two: Callable[[int], str], asked: str) -> None:
    copy_of_two(0)
    first = lanewise(*asked.split())
    copy_of_two(1)
    second = lanewise(*asked.split())
    code, text = SAID_ONCE[asked]
    assert first.code == code
    assert text in first.out + first.err
    assert (second.code, second.out, second.err) == (0, "", "")


def test_copies_may_stand_alone(
    lanewise: Command, tmp_path: Path, copy_of_two: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of_two(1)
    monkeypatch.setenv("LANEWISE_RANKS", "alone")
    assert lanewise("gravity", "run", "--bodies", 64, "--steps", 1, "--out", "run.h5", "--quiet").code == 0
    assert (tmp_path / "run.h5").exists()


def test_an_unknown_way_to_stand_is_refused_once(
    lanewise: Command, tmp_path: Path, copy_of_two: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes it wants the processes apart, and would get one run."""
    monkeypatch.setenv("LANEWISE_RANKS", "Alone")
    copy_of_two(0)
    first = lanewise("gravity", "run", "--out", "run.h5")
    copy_of_two(1)
    second = lanewise("gravity", "run", "--out", "run.h5")
    assert (first.code, second.code) == (2, 2)
    assert second.out + second.err + first.out == ""
    assert first.err == "error: LANEWISE_RANKS='Alone': wanted alone, for processes that stand alone\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_at_the_start_is_said_once(
    copy_of_two: Callable[[int], str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os._exit", sys.exit)
    for rank, said in ((0, "interrupted\n"), (1, "")):
        copy_of_two(rank)
        with pytest.raises(SystemExit) as end:
            leave()
        assert (end.value.code, capfd.readouterr().err) == (130, said)
