"""Time series survive interruption, and continue without gaps or repeats."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.files import TimeSeries, truncate
from lanewise.support.errors import ArgumentError, InputError

SUM = "# lanewise, CRC-32 of the lines above: "
COLUMNS = ("step", "time", "force_x", "force_y", "drag_coefficient", "lift_coefficient")


def measure(series: TimeSeries, first: int, last: int) -> None:
    """A line every 10 steps, of numbers that depend on the step alone."""
    for step in range(first, last + 1, 10):
        series.add(step, step * 0.1, np.sin(step), np.cos(step), step / 3, -step / 7)


def text(*lines: str) -> str:
    """A series that was closed."""
    above = "".join(f"{line}\n" for line in lines)
    return f"{above}{SUM}{zlib.crc32(above.encode()):08x}\n"


def table(path: Path) -> np.ndarray:
    """As anybody reads it."""
    return np.genfromtxt(path, delimiter=",", names=True)


def test_lines_are_there_as_soon_as_they_are_measured(tmp_path: Path) -> None:
    with TimeSeries(tmp_path / "f.csv", ("step", "drag")) as series:
        assert (tmp_path / "f.csv").read_text() == "step,drag\n"
        series.add(10, 1 / 3)
        assert (tmp_path / "f.csv").read_text() == "step,drag\n10,0.3333333333333333\n"
        series.add(20, np.float32(0.1))
        series.sync()
    assert (tmp_path / "f.csv").read_text().splitlines()[2] == "20,0.10000000149011612"
    series.close()  # again


def test_numpy_reads_it(tmp_path: Path) -> None:
    with TimeSeries(tmp_path / "f.csv", COLUMNS) as series:
        measure(series, 10, 50)
    read = table(tmp_path / "f.csv")
    assert read.dtype.names == COLUMNS
    assert read["step"].tolist() == [10, 20, 30, 40, 50]
    assert np.array_equal(read["force_x"], np.sin([10, 20, 30, 40, 50]))  # to the last digit


@given(checkpoint=st.integers(0, 12), reached=st.integers(0, 15), torn=st.integers(0, 40))
def test_a_resumed_run_gives_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, checkpoint: int, reached: int, torn: int) -> None:  # fmt: skip
    """Whatever the killed run had written behind its checkpoint, and in the middle of which line it was killed."""
    folder = tmp_path_factory.getbasetemp()
    with TimeSeries(folder / "whole.csv", COLUMNS, overwrite=True) as series:
        measure(series, 10, 200)
    whole = (folder / "whole.csv").read_bytes()
    lines = whole.splitlines(keepends=True)
    at = checkpoint + max(reached - checkpoint, 0)
    (folder / "killed.csv").write_bytes(b"".join(lines[: at + 1]) + lines[at + 1].rstrip()[:torn])
    with TimeSeries(folder / "killed.csv", COLUMNS, resume_step=10 * checkpoint) as series:
        assert series.last_step == (10 * checkpoint or -1)
        measure(series, 10 * checkpoint + 10, 200)
    assert (folder / "killed.csv").read_bytes() == whole


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom lanewise.sims.lbm.files import TimeSeries\n"
        "series = TimeSeries(sys.argv[1], ('step', 'drag'))\n"
        "for step in range(1, 101): series.add(step, step / 3)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f.csv")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert table(tmp_path / "f.csv")["step"].tolist() == list(range(1, 101))


def test_a_torn_last_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("step,drag\n1,0.5\n2,0.")
    assert truncate(tmp_path / "f.csv", ("step", "drag"), 10).last_step == 1
    assert (tmp_path / "f.csv").read_text() == "step,drag\n1,0.5\n"


def test_not_a_number_is_kept(tmp_path: Path) -> None:
    with TimeSeries(tmp_path / "f.csv", ("step", "drag")) as series:
        series.add(1, float("nan"))
        series.add(2, float("inf"))
    assert (tmp_path / "f.csv").read_text() == text("step,drag", "1,nan", "2,inf")
    assert np.isnan(table(tmp_path / "f.csv")["drag"][0])


def test_an_existing_file_needs_overwrite(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("old")
    with pytest.raises(InputError, match=r"f\.csv: the file exists already; give --overwrite to replace it"):
        TimeSeries(tmp_path / "f.csv", COLUMNS)
    assert (tmp_path / "f.csv").read_text() == "old"
    with TimeSeries(tmp_path / "f.csv", ("step",), overwrite=True) as series:
        series.add(3)
    assert (tmp_path / "f.csv").read_text() == text("step", "3")


def test_a_series_may_begin_when_a_run_is_resumed(tmp_path: Path) -> None:
    with TimeSeries(tmp_path / "f.csv", ("step",), resume_step=100) as series:
        series.add(110)
    assert (tmp_path / "f.csv").read_text() == text("step", "110")


DAMAGED = [
    ("step,lift\n1,0.5\n", "f.csv: its columns are step,lift; wanted step,drag, to continue it"),
    ("", "f.csv: no line of column names; wanted step,drag"),
    ("step,drag", "f.csv: no line of column names; wanted step,drag"),
    ("step,drag\n2,0.5\n1,0.5\n", "f.csv: line 3 is of step 1, behind one of step 2; wanted growing steps"),
    (
        f"step,drag\n1,0.5\n{SUM}00000000\n",
        f"f.csv: the CRC-32 of the lines above the last one is {zlib.crc32(b'step,drag' + bytes([10]) + b'1,0.5' + bytes([10])):08x}; "
        "wanted 00000000: they are not what was written. If you have changed them, delete line 3",
    ),
    ("step,drag\n1,0.5\n# mine\n", f"f.csv: line 3 is damaged; wanted '{SUM}' and eight digits"),
    ("step,drag\n1,0.5\n2,0x1\n", "f.csv: line 3 has '0x1'; wanted numbers behind its step"),
    ("step,drag\n1,0.5\noops\n", "f.csv: line 3 starts with 'oops'; wanted a step"),
]


@pytest.mark.parametrize(("text", "message"), DAMAGED)
def test_what_cannot_be_continued_is_left_alone(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        TimeSeries(tmp_path / "f.csv", ("step", "drag"), resume_step=50)
    assert (tmp_path / "f.csv").read_text() == text


def test_wrong_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="the columns are time,drag; wanted step as the first one"):
        TimeSeries(tmp_path / "f.csv", ("time", "drag"))
    with TimeSeries(tmp_path / "f.csv", ("step", "drag")) as series:
        with pytest.raises(ArgumentError, match="2 values besides the step; wanted drag"):
            series.add(1, 0.5, 0.5)
        series.add(1, 0.5)
        with pytest.raises(ArgumentError, match="step 1 after step 1; wanted growing steps"):
            series.add(1, 0.5)
    assert (tmp_path / "f.csv").read_text() == text("step,drag", "1,0.5")


@pytest.mark.slow
def test_no_changed_character_is_continued(tmp_path: Path) -> None:
    """Also one digit for another, which every parser takes."""
    path = tmp_path / "f.csv"
    with TimeSeries(path, COLUMNS) as series:
        measure(series, 10, 60)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for new in (b"3" if whole[at : at + 1] != b"3" else b"5", b"\0", b"\n"):
            changed = whole[:at] + new + whole[at + 1 :]
            path.write_bytes(changed)
            if changed == whole or changed[-1:] != b"\n":  # as of a run that was killed within its last line
                continue
            with pytest.raises(InputError, match=r"^\S*f\.csv: "):
                TimeSeries(path, COLUMNS, resume_step=60)
            assert path.read_bytes() == changed
    for lines in (whole + b"70,1,1,1,1,1\n", whole + whole.splitlines(keepends=True)[-1]):
        path.write_bytes(lines)
        with pytest.raises(InputError, match="line 9 is below the sum of the others"):
            TimeSeries(path, COLUMNS, resume_step=60)


def test_a_series_without_its_sum_is_continued_and_gets_one(tmp_path: Path) -> None:
    """As an older version left it, or a run that was killed."""
    (tmp_path / "f.csv").write_text("step,drag\n1,0.5\n2,0.25\n")
    with TimeSeries(tmp_path / "f.csv", ("step", "drag"), resume_step=2) as series:
        series.add(3, 0.125)
    assert (tmp_path / "f.csv").read_text() == text("step,drag", "1,0.5", "2,0.25", "3,0.125")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with TimeSeries(tmp_path / "f.csv", ("step",)) as series:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, series._handle)  # pyright: ignore[reportPrivateUsage]
        os.close(full)
        with pytest.raises(InputError, match=r"f\.csv: cannot be written into the folder .*: No space left on device"):
            series.add(1)  # nor is there a sum of what is not whole
