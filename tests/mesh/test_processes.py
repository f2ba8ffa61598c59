"""One array on several processes: the bits of one, and one message where something fails."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from tests.mesh.processes import PROGRAM, WITH_MPI, end_of, last_json, run, start
from tests.mesh.ranks_program import bits

pytestmark = WITH_MPI


@pytest.fixture(scope="module")
def of_one_process() -> dict[str, str]:
    return bits(lw.Mesh("cpu", parts=1))


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_processes_have_the_bits_of_one(count: int, of_one_process: dict[str, str], tmp_path: Path) -> None:
    """They exchange rows and values, save arrays, and refuse alike, too."""
    done = run(count, PROGRAM, "bits", tmp_path / "bodies.h5")
    assert [p.name for p in tmp_path.iterdir()] == ["bodies.h5"]
    assert (done.returncode, done.stderr) == (0, "")
    found: Any = last_json(done.stdout)
    assert found["mesh"] == f"{count + 1} x cpu on {count} processes"
    assert found["bits"] == of_one_process


def test_an_exception_on_one_rank_ends_all_and_is_said_once() -> None:
    done = run(2, PROGRAM, "exception")
    assert done.returncode == 1
    said = done.stderr.strip()
    assert re.match(r"rank 1 \([^,()]+, cpu\): ", said)
    assert said.endswith("ValueError: on one rank")
    assert said.count("Traceback") == 1


@pytest.mark.slow
def test_an_exception_on_all_ranks_is_said_once_and_of_none() -> None:
    done = run(2, PROGRAM, "everywhere")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.count("Body has no field 'no_such_field'") == 1


@pytest.mark.slow
def test_a_call_that_one_process_makes_alone_ends() -> None:
    done = run(2, PROGRAM, "alone")
    assert done.returncode == 1
    assert "rank 1 (" in done.stderr
    assert "has ended, and this process waits for its rows" in done.stderr
    assert "split_rows.py" not in done.stderr


@pytest.mark.parametrize("options", [(), pytest.param(("-disable-auto-cleanup",), marks=pytest.mark.slow)])
def test_all_end_soon_after_one_was_killed(options: tuple[str, ...]) -> None:
    begin = time.monotonic()
    done = run(2, PROGRAM, "killed", options=options)
    assert done.returncode != 0
    assert time.monotonic() - begin < 30
    # MPICH's launcher ends the others itself, and does not always pass on what they say
    assert (done.stdout + done.stderr).count(" is gone; the other processes end") <= 1


def test_who_waits_at_its_end_for_one_that_is_gone_ends() -> None:
    begin = time.monotonic()
    done = run(2, PROGRAM.with_name("waiting_program.py"))
    assert time.monotonic() - begin < 20
    # the launcher ends the other with a signal, and returns whichever code it has learnt of first
    assert done.returncode in (2, signal.SIGKILL)
    assert " is gone; the other processes end" in done.stdout + done.stderr


def test_ctrl_c_ends_all_with_one_line() -> None:
    with start(2, PROGRAM, "endless") as process:
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        done = end_of(process)
    assert sorted(begun) == ["rank 0 begins\n", "rank 1 begins\n"]
    assert done.returncode == 130
    assert done.stderr.count("interrupted") == 1
