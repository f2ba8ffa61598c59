"""What the disk and damaged files do to commands: one line, code 2, and what was there before is as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.sims.lbm.obstacles.mesh import read_mesh
from tests.cli.command import SOURCE, Command, state
from tests.io.samples import renew_sums

GRAVITY = ("gravity", "run", "--bodies", 96, "--softening", 0.05, "--dt", 0.003)
FLOCK = ("boids", "run", "--agents", 20, "--search", "all-pairs")
FLOW = ("lbm", "run", "cavity", "--size", 6, "--no-until-steady")

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = ["lanewise", *sys.argv[2:]]
from lanewise.cli.main import main
main()
"""


def limited(limit: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process whose files may have that many bytes. What it compiled is there already."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *(str(a) for a in arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


@pytest.mark.quick("gravity")
@pytest.mark.parametrize("command", [GRAVITY, FLOCK, FLOW], ids=["gravity", "boids", "lbm"])
def test_a_limit_of_file_sizes_is_one_line_and_no_crash(lanewise: Command, command: tuple[object, ...]) -> None:
    assert lanewise(*command, "--steps", 2, "--out", "a.h5").code == 0
    before = Path("a.h5").read_bytes()
    ended = limited(4000, command[0], "run", "--resume", "a.h5", "--steps", 1)
    message = f"error: a.h5: cannot be written into the folder {Path.cwd()}: File too large\n"
    said = ended.stderr.splitlines(keepends=True)
    assert (ended.returncode, ended.stdout, said[-1]) == (2, "", message)
    assert "Traceback" not in ended.stderr  # what comes before is about the cache of kernels
    assert Path("a.h5").read_bytes() == before
    assert os.listdir() == ["a.h5"]


def test_measurements_that_cannot_be_written_leave_no_empty_file(
    lanewise: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    outcome = lanewise("lbm", "run", "karman", "--size", 4, "--steps", 1, "--forces", "f.csv")
    message = f"error: f.csv: cannot be written into the folder {Path.cwd()}: No space left on device\n"
    assert (outcome.code, outcome.err) == (2, message)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "command", [(*FLOW, "--steps", 4), (*FLOCK, "--steps", 2, "--every", 1, "--size", "64x64")], ids=["lbm", "boids"]
)
def test_frames_of_a_movie_that_cannot_wait_name_the_folder(
    lanewise: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...]
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    outcome = lanewise(*command, "--movie", "a.gif")
    message = f"error: a.gif: cannot be written into the folder {Path.cwd()}: No space left on device\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", message)
    assert list(Path().iterdir()) == []


# ------------------------------------------------------------ checkpoints


def drop(*names: str) -> Callable[[Any], None]:
    def harm(file: Any) -> None:
        for name in names:
            del file[name]

    return harm


def put(name: str, value: Any) -> Callable[[Any], None]:
    def harm(file: Any) -> None:
        del file[name]
        file[name] = value

    return harm


def say(group: str, name: str, value: Any) -> Callable[[Any], None]:
    return lambda file: file[group].attrs.__setitem__(name, value)


def spoil(text: str, old: str, new: str) -> Callable[[Any], None]:
    def harm(file: Any) -> None:
        found = file["lanewise"].attrs[text]
        assert old.encode() in found
        file["lanewise"].attrs[text] = np.bytes_(found.replace(old.encode(), new.encode()))

    return harm


HARMS: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "frames in one piece": ("boids", put("trajectory/position", np.zeros((3, 20, 3), "f4")), "trajectory/position cannot grow; wanted chunks"),
    "statistics in one piece": ("boids", put("history/cells", np.zeros(3, "i8")), "history/cells cannot grow; wanted chunks"),
    "no frames": ("boids", put("trajectory/step", h5py.Empty("i8")), "trajectory/step is () of int64; wanted (frames,) of int64"),
    "a group": ("boids", lambda f: (drop("trajectory/time")(f), f.create_group("trajectory/time")), "trajectory/time is no array; wanted"),
    "another type": ("boids", put("state/position", np.zeros((20, 3), "i4")), "state/position is (20, 3) of int32; wanted (n, 3) of float32"),
    "other agents": ("boids", put("lanewise/rows", np.zeros(20, "i4")), "lanewise/rows do not name every agent once"),
    "its clock": ("boids", spoil("clock", '"step": 4', '"step": "x"'), "its clock cannot be read: its step is 'x'"),
    "its run": ("boids", spoil("run", '"every": 2', '"every": -1'), "its run is to step 4, at step 4: "),
    "its flock": ("boids", spoil("settings", '"world": 50.0', '"world": []'), "its settings cannot be read: its world is []"),
    "no phase": ("lbm", lambda f: f["lanewise/state"].attrs.__delitem__("fresh"), "there is no state@fresh"),
    "an endless phase": ("lbm", say("lanewise/state", "step", 1e308), "state@step is np.float64(1e+308); wanted an integer"),
    "no populations": ("lbm", drop("lanewise/state/populations"), "there is no state/populations"),
    "populations as text": ("lbm", put("lanewise/state/populations", np.bytes_(b"x" * 9)), "state/populations is () of |S9; wanted (bytes,) of uint8"),
    "populations as numbers": ("lbm", put("lanewise/state/populations", np.full(9, 1e300)), "state/populations is (9,) of float64; wanted (bytes,) of uint8"),
    "an endless flow": ("lbm", say("lanewise", "step", 1e308), "@step is np.float64(1e+308); wanted an integer"),
    "its rate": ("lbm", spoil("settings", '"shape": [6, 6]', '"shape": [6, 0]'), "wanted"),
    "an endless run": ("gravity", say("lanewise", "step", 1e308), "lanewise@step is np.float64(1e+308); wanted an integer"),
    "a seed": ("gravity", say("lanewise", "seed", 1e308), "lanewise@seed is np.float64(1e+308); wanted an integer"),
    "no number": ("gravity", say("lanewise", "dt", np.nan), "lanewise@dt is nan; wanted -1.79769e+308 to 1.79769e+308"),
    "a complex step": ("gravity", say("lanewise", "step", 1j), "lanewise@step is np.complex128(1j); wanted an integer"),
}  # fmt: skip


@pytest.mark.slow_cases(
    "its flock",
    "its rate",
    "its clock",
    "its run",
    "statistics in one piece",
    "other agents",
    "no phase",
    "an endless flow",
    "populations as text",
    "a seed",
    "another type",
    "a group",
)
@pytest.mark.parametrize("name", HARMS)
def test_what_no_run_has_written_is_refused_before_it_starts(lanewise: Command, name: str) -> None:
    product, harm, message = HARMS[name]
    options = {"gravity": GRAVITY, "boids": (*FLOCK, "--every", 2), "lbm": FLOW}[product]
    assert lanewise(*options, "--steps", 4, "--out", "a.h5").code == 0
    with h5py.File("a.h5", "r+") as file:
        harm(file)
        renew_sums(file)
    before = Path("a.h5").read_bytes()
    outcome = lanewise(product, "run", "--resume", "a.h5", "--steps", 1)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: a.h5: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert Path("a.h5").read_bytes() == before


def test_a_flipped_bit_of_the_state_is_noticed(lanewise: Command) -> None:
    for product, options, place in (
        ("boids", (*FLOCK, "--every", 1), "trajectory/position"), ("gravity", GRAVITY, "PartType1/Coordinates"), ("boids", FLOCK, "state/position"), ("lbm", FLOW, "lanewise/state/populations"),
    ):  # fmt: skip
        assert lanewise(*options, "--steps", 2, "--out", "a.h5", "--overwrite").code == 0
        with h5py.File("a.h5") as file:
            offset = file[place].id.get_chunk_info(0).byte_offset
        data = bytearray(Path("a.h5").read_bytes())
        data[offset + 5] ^= 16
        Path("a.h5").write_bytes(data)
        outcome = lanewise(product, "run", "--resume", "a.h5", "--steps", 1)
        assert outcome.code == 2
        assert outcome.err.startswith("error: a.h5: damaged HDF5 file: ")


def test_left_over_files_of_killed_writers_are_removed(lanewise: Command) -> None:
    Path(".a.h5.0123abcd.tmp").write_text("half")
    assert lanewise(*GRAVITY, "--steps", 1, "--out", "a.h5").code == 0
    assert os.listdir() == ["a.h5"]
    assert state(Path("a.h5"))["step"] == 1


# ------------------------------------------------------------ other files


def test_an_archive_with_a_broken_header(lanewise: Command) -> None:
    np.savez("a.npz", position=np.zeros((2, 3)), velocity=np.zeros((2, 3)), mass=np.ones(2))
    with zipfile.ZipFile("a.npz") as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members["mass.npy"] = members["mass.npy"].replace(b"(2,)", b'"""(')
    with zipfile.ZipFile("a.npz", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    outcome = lanewise("gravity", "run", "--ic", "a.npz", "--steps", 1)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: a.npz: damaged NPZ file: ")


def broken(text: str, kind: str) -> str:
    """With a broken number in the last line of a kind."""
    lines = text.splitlines()
    place = max(k for k, line in enumerate(lines) if line.strip().startswith(kind))
    lines[place] = f"{lines[place].rpartition(' ')[0]} 1.0x0"
    return "\n".join(lines)


def test_a_mesh_as_text_with_a_broken_number(
    lanewise: Command, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    trimesh = pytest.importorskip("trimesh")
    text: str = trimesh.exchange.stl.export_stl_ascii(trimesh.creation.box((2, 1, 1)))
    Path("a.stl").write_text(broken(text, "vertex"))
    outcome = lanewise("lbm", "run", "sphere", "--size", 4, "--steps", 1, "--stl", "a.stl")
    assert outcome.code == 2
    assert outcome.err.startswith("error: a.stl: damaged mesh file: ")
    Path("a.stl").write_text(broken(text, "facet normal"))  # which nobody uses
    assert len(read_mesh("a.stl").faces) == 12
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []
