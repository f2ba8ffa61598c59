"""NPZ: names, shapes, no pickles."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.io.npz import read_npz
from lanewise.support.errors import InputError

GOOD: dict[str, Any] = {"position": np.zeros((3, 3)), "velocity": np.zeros((3, 3)), "mass": np.ones(3)}
NAMES = "position, velocity, mass and perhaps ids, component, time, softening"


def test_the_three_arrays_are_enough(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", **GOOD)
    bodies = read_npz(tmp_path / "a.npz")
    assert bodies.ids.tolist() == [0, 1, 2]
    assert bodies.component.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"position": GOOD["position"], "mass": GOOD["mass"]},
            f"no array velocity (there is position, mass); wanted {NAMES}",
        ),
        (GOOD | {"masses": np.ones(3)}, f"unknown array masses; did you mean 'mass'? wanted {NAMES}"),
        (GOOD | {"mass": np.ones(2)}, "mass has shape (2,); wanted (3,)"),
        (GOOD | {"time": np.ones(2)}, "time has shape (2,) and dtype float64; wanted one number"),
        (GOOD | {"time": np.array("now")}, "time has shape () and dtype <U3; wanted one number"),
        (GOOD | {"mass": np.array([1, 2, np.nan])}, "mass of body 2 is nan; wanted a finite number"),
        (
            GOOD | {"mass": np.array([1, None, 2])},
            "damaged NPZ file: Object arrays cannot be loaded when allow_pickle=False",
        ),
    ],
)
def test_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="^" + re.escape(f"{path}: {message}")):
        read_npz(path)


@pytest.mark.parametrize("more", [-8, 8])
def test_members_of_more_or_fewer_values_than_they_promise_are_refused(more: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **GOOD)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["mass.npy"] = members["mass.npy"][:more] if more < 0 else members["mass.npy"] + bytes(more)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(
        InputError, match=r"b\.npz: mass is \(3,\) of float64, which is .* bytes, and the archive holds"
    ):
        read_npz(tmp_path / "b.npz")


def test_zip_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=re.escape(f"{path}: unknown array readme.txt; wanted {NAMES}")):
        read_npz(path)
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(InputError, match=re.escape(f"{path}: no array position (there is none); wanted {NAMES}")):
        read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in GOOD:
            archive.writestr(name, "hello")
    with pytest.raises(InputError, match=re.escape(f"{path}: position is not a NumPy array")):
        read_npz(path)
