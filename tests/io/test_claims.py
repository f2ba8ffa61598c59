"""One run a file: claims are held, given back, taken over from the dead, and never from the living."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lanewise.io import claims
from lanewise.io.claims import Owner, claimed, lock_of
from lanewise.support.errors import InputError

ME = Owner(socket.gethostname(), os.getpid(), claims._start_of(os.getpid()) or 0.0, "2026-01-01 00:00:00")  # pyright: ignore[reportPrivateUsage]
HOLD = """
import sys, time
from pathlib import Path
from lanewise.io.claims import claimed
with claimed([Path(sys.argv[1])]):
    print("held", flush=True)
    time.sleep(60)
"""


def held_by_another(path: Path) -> subprocess.Popen[str]:
    """A process that holds the claim by now."""
    environment = {**os.environ, "PYTHONPATH": str(Path(claims.__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def leave(lock: Path, owner: Owner) -> None:
    lock.write_text(json.dumps(asdict(owner)))


def test_a_claim_is_there_within_the_block_only(tmp_path: Path) -> None:
    a, b = tmp_path / "a.h5", tmp_path / "b.csv"
    with claimed([a, None, b, a]) as notes:
        assert sorted(os.listdir(tmp_path)) == [".a.h5.lock", ".b.csv.lock"]
        assert notes == []
    assert os.listdir(tmp_path) == []


def test_a_second_one_is_refused_and_the_first_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with claimed([path]):
        message = rf"{re.escape(str(path))}: another run writes this file \(process {os.getpid()} on .*, since 2.*\); wait for its end, or choose"
        with pytest.raises(InputError, match=message), claimed([tmp_path / "other", path]):
            raise AssertionError("not reached")
        assert os.listdir(tmp_path) == [".a.h5.lock"]


def test_a_link_is_the_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    with claimed([tmp_path / "link"]), pytest.raises(InputError, match="another run"), claimed([tmp_path / "real"]):
        raise AssertionError("not reached")


def test_another_process_holds_it_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    process = held_by_another(path)
    with pytest.raises(InputError, match=rf"process {process.pid} on"), claimed([path]):
        raise AssertionError("not reached")
    process.kill()
    process.communicate()
    assert lock_of(path).exists()
    with claimed([path]) as notes:
        assert len(notes) == 1
        assert f"the run that wrote it is gone (process {process.pid} on " in notes[0]
    assert os.listdir(tmp_path) == []


def test_sigterm_gives_it_back_and_kills_as_ever(tmp_path: Path) -> None:
    process = held_by_another(tmp_path / "a.h5")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "owner", [replace(ME, started=ME.started - 100), replace(ME, process=2**22 + 1)], ids=["number reused", "no process"]
)  # fmt: skip
def test_the_dead_are_succeeded(tmp_path: Path, owner: Owner) -> None:
    path = tmp_path / "a.h5"
    leave(lock_of(path), owner)
    with claimed([path]) as notes:
        assert notes == [f"{path}: the run that wrote it is gone ({owner}); this one takes over"]
        assert json.loads(lock_of(path).read_text())["process"] == os.getpid()
    assert os.listdir(tmp_path) == []


def test_of_another_machine_nobody_knows(tmp_path: Path) -> None:
    path, owner = tmp_path / "a.h5", replace(ME, host="elsewhere", process=2**22 + 1)
    leave(lock_of(path), owner)
    message = f"{path}: another run writes this file ({owner}); wait for its end, or choose another file; if it is gone, delete {lock_of(path)}"
    with pytest.raises(InputError) as error, claimed([path]):
        raise AssertionError("not reached")
    assert str(error.value) == message
    assert lock_of(path).exists()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"host": 1, "process": "x"'])
def test_a_claim_that_says_nothing_is_taken_over(tmp_path: Path, content: str) -> None:
    lock_of(tmp_path / "a").write_text(content)
    with claimed([tmp_path / "a"]) as notes:
        assert notes == [f"{tmp_path / 'a'}: the run that wrote it is gone (an empty claim); this one takes over"]


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with claimed([tmp_path / "a"]), pytest.raises(InputError, match="another run"), claimed([tmp_path / "a"]):
        raise AssertionError("not reached")
    assert os.listdir(tmp_path) == []


def test_what_was_taken_away_is_not_removed_from_its_new_owner(tmp_path: Path) -> None:
    other = replace(ME, host="elsewhere")
    with claimed([tmp_path / "a"]):
        leave(lock_of(tmp_path / "a"), other)
    assert json.loads(lock_of(tmp_path / "a").read_text())["host"] == "elsewhere"


def test_a_living_claim_that_came_in_between_is_put_back(tmp_path: Path) -> None:
    """Two processes find a claim of the dead; what the slower one takes away is the claim of the faster one."""
    lock, dead, living = lock_of(tmp_path / "a"), replace(ME, process=2**22 + 1), ME
    leave(lock, living)
    assert not claims._take_away(lock, dead)  # pyright: ignore[reportPrivateUsage]
    assert json.loads(lock.read_text())["process"] == living.process
    assert claims._take_away(lock, living)  # pyright: ignore[reportPrivateUsage]
    assert os.listdir(tmp_path) == []


def test_a_forked_process_gives_nothing_back(tmp_path: Path) -> None:
    with claimed([tmp_path / "a"]):
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGTERM
        assert lock_of(tmp_path / "a").exists()


def test_left_over_temporary_files_of_this_name_are_cleared(tmp_path: Path) -> None:
    gone = [".a.h5.0123abcd.tmp", ".a_00000100.h5.0123abcd.tmp", ".a.h5.lock.0123abcd.tmp"]
    stay = [".b.h5.0123abcd.tmp", ".a.h5.tmp", "a.h5.0123abcd.tmp", ".a.h5.0123abcdef.tmp", ".a_1.h5.0123abcd.tmp"]
    for name in gone + stay:
        (tmp_path / name).touch()
    with claimed([tmp_path / "a.h5"]):
        assert sorted(os.listdir(tmp_path)) == sorted([*stay, ".a.h5.lock"])


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(claims, "_write_new", full)
    message = f"{tmp_path / 'a'}: cannot be written into the folder {tmp_path}: No space left on device"
    with pytest.raises(InputError) as error, claimed([tmp_path / "a"]):
        raise AssertionError("not reached")
    assert str(error.value) == message
