"""Every format: round trips, recognition by content, and files that are wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from lanewise.io import Particles, read_particles, write_particles
from lanewise.io.formats import formats
from lanewise.support.errors import InputError
from tests.io.samples import assert_same, assert_same_bodies, mixed, particles

SUFFIXES = [".h5", ".hdf5", ".tipsy", ".std", ".bin", ".npz", ".csv"]
ONE_EACH = [".h5", ".tipsy", ".npz", ".csv"]
WANTED = "wanted CSV (.csv), Gadget HDF5 (.h5 .hdf5), NPZ (.npz), Tipsy (.tipsy .std .bin)"

pytestmark = pytest.mark.filterwarnings("ignore::lanewise.FileWarning")  # of what a format cannot hold


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".csv"])
@settings(deadline=None)
@given(bodies=particles())
def test_round_trip_is_exact(folder: Path, suffix: str, bodies: Particles) -> None:
    path = folder / f"round{suffix}"
    write_particles(path, bodies, overwrite=True)
    found = read_particles(path)
    if suffix == ".csv":  # has no place for time and softening
        assert (found.time, found.softening) == (0.0, None)
        bodies = Particles.of(bodies.position, bodies.velocity, bodies.mass, ids=bodies.ids, component=bodies.component)
    assert_same(found, bodies)


@settings(deadline=None)
@given(bodies=particles())
def test_tipsy_round_trip_sorts_by_family(folder: Path, bodies: Particles) -> None:
    path = folder / "round.tipsy"
    write_particles(path, bodies, overwrite=True)
    found = read_particles(path)
    families = np.array([0, 1, 4, 4, 4, 4])[bodies.component]
    order = np.argsort(families, kind="stable")
    assert_same_bodies(found, bodies.take(order))
    assert found.component.tolist() == families[order].tolist()
    assert found.ids.tolist() == list(range(len(bodies)))
    assert (found.time, found.softening) == (bodies.time, bodies.softening)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_content_decides_not_the_name(folder: Path, suffix: str) -> None:
    path = folder / f"named{suffix}"
    write_particles(path, mixed())
    assert len(read_particles(path.rename(folder / "anything.dat"))) == 40


@pytest.mark.parametrize("suffix", ONE_EACH)
def test_at_most_one_format_says_yes(folder: Path, suffix: str) -> None:
    path = folder / f"head{suffix}"
    write_particles(path, mixed(), overwrite=True)
    head = path.read_bytes()[:512]
    assert sum(entry.recognises(head) for entry in formats()) == 1


def outcome(path: Path) -> Particles | str:
    """The particles, or the text of the InputError. Any other exception is a failure."""
    try:
        return read_particles(path)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("suffix", ONE_EACH)
def test_truncated_files(tmp_path: Path, suffix: str) -> None:
    """A part of a file is refused; of a CSV file, a part that ends with a number is a smaller file."""
    path = tmp_path / f"whole{suffix}"
    write_particles(path, mixed(9))
    whole = path.read_bytes()
    cut = tmp_path / "cut"
    for length in sorted({*range(64), *np.linspace(0, len(whole) - 1, 150).astype(int).tolist()}):
        cut.write_bytes(whole[:length])
        found = outcome(cut)
        if isinstance(found, Particles):
            assert suffix == ".csv", f"{length} of {len(whole)} bytes were accepted"
            assert len(found) <= 9
        else:
            assert found.startswith(f"{cut}: ")


@pytest.mark.parametrize("suffix", ONE_EACH)
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    """Whatever bytes are wrong, the outcome is particles or an InputError that names the file."""
    path = tmp_path / f"whole{suffix}"
    write_particles(path, mixed(9))
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    random = np.random.default_rng(3)
    changed = tmp_path / "changed"
    for _ in range(150):
        damaged = whole.copy()
        damaged[random.integers(0, len(whole), 3)] = random.integers(0, 256, 3)
        changed.write_bytes(damaged.tobytes())
        found = outcome(changed)
        assert isinstance(found, Particles) or found.startswith(f"{changed}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; wanted a particle file"),
        (
            b"\x7fELF\x02\x01\x01\x00more",
            "not a particle file (it starts with the bytes 7f 45 4c 46 02 01 01 00 6d 6f 72 65)",
        ),
        (b"\xff\xfe\x00\x01", f"not a particle file (it starts with the bytes ff fe 00 01); {WANTED}"),
        (
            b"hello\n",
            "line 1 is 'hello'; wanted the names of the columns: x,y,z,vx,vy,vz,mass and perhaps id,component",
        ),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "damaged HDF5 file: "),
        (b"PK\x03\x04" + bytes(100), "damaged NPZ file: File is not a zip file"),
    ],
)
def test_foreign_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(InputError, match="^" + re.escape(f"{path}: {message}")):
        read_particles(path)


def test_missing_folder_and_closed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'none'}: there is no such file")):
        read_particles(tmp_path / "none")
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: this is a folder; wanted a particle file")):
        read_particles(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: this is not a regular file; wanted a particle file"):
        read_particles(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "closed"
    path.touch(0o000)
    path.chmod(0o600)
    path.write_text("x")
    path.chmod(0o000)
    with pytest.raises(InputError, match="closed: cannot be read: Permission denied"):
        read_particles(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_existing_file_is_kept(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("precious")
    with pytest.raises(InputError, match="the file exists already; give --overwrite to replace it"):
        write_particles(path, mixed())
    assert path.read_text() == "precious"


@pytest.mark.parametrize(("name", "seen"), [("a.txt", ".txt"), ("a", "(none)")])
def test_unknown_suffix(tmp_path: Path, name: str, seen: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / name}: unknown suffix {seen}; {WANTED}")):
        write_particles(tmp_path / name, mixed())
