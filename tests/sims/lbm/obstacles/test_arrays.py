"""Masks that come as arrays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.sims.lbm.obstacles import Placement, as_kinds, as_solid, read_mask
from lanewise.support.errors import InputError

KNOWN = {0: "fluid", 1: "wall", 3: "inlet"}


def test_true_is_the_solid_kind() -> None:
    mask = np.array([[True, False], [False, True]])
    assert as_kinds(mask, (2, 2), KNOWN, solid=3).tolist() == [[3, 0], [0, 3]]
    assert as_solid(mask, (2, 2)).tolist() == mask.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_whole_numbers_are_kinds(dtype: str) -> None:
    mask = np.array([[0, 1, 3], [3, 0, 1]], dtype)
    kinds = as_kinds(mask[:, ::-1], (2, 3), KNOWN)
    assert kinds.dtype == np.uint8
    assert kinds.flags.c_contiguous
    assert kinds.tolist() == mask[:, ::-1].tolist()
    assert as_kinds(mask.tolist(), (2, 3), KNOWN).tolist() == mask.tolist()


def test_the_result_is_a_copy() -> None:
    mask = np.zeros((2, 2), np.uint8)
    as_kinds(mask, (2, 2), KNOWN)[0, 0] = 1
    assert mask[0, 0] == 0


WRONG = np.zeros((3, 4), np.int64)
WRONG[1, 2] = WRONG[2, 0] = 7
WRONG[0, 3] = -1


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((4, 3), bool), "the mask has shape (4, 3); wanted (ny, nx) = (3, 4): its axes are in the order x, y, z, so give mask.T"),
        (np.zeros((3, 5), bool), "the mask has shape (3, 5); wanted (ny, nx) = (3, 4)"),
        (np.zeros((1, 3, 4), bool), "the mask has shape (1, 3, 4); wanted (ny, nx) = (3, 4)"),
        (np.zeros((3, 4)), "the mask has dtype float64; wanted bool (True is solid) or integers (kinds of sites)"),
        (np.zeros((3, 4), "U1"), "the mask has dtype <U1; wanted bool (True is solid) or integers (kinds of sites)"),
        (
            WRONG,
            "the mask holds kind -1 at 1 site (at (y, x) = (0, 3)), kind 7 at 2 sites (first at (y, x) = (1, 2)); "
            "wanted one of the kinds 0 (fluid), 1 (wall), 3 (inlet)",
        ),
        (
            np.arange(12).reshape(3, 4),
            "the mask holds kind 2 at 1 site (at (y, x) = (0, 2)), kind 4 at 1 site (at (y, x) = (1, 0)), "
            "kind 5 at 1 site (at (y, x) = (1, 1)), kind 6 at 1 site (at (y, x) = (1, 2)), 5 more kinds; "
            "wanted one of the kinds 0 (fluid), 1 (wall), 3 (inlet)",
        ),
    ],
)  # fmt: skip
def test_refusals(mask: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        as_kinds(mask, (3, 4), KNOWN)


def test_ragged_lists_are_no_mask() -> None:
    with pytest.raises(InputError, match=r"^the mask is not an array of numbers: "):
        as_kinds([[1, 0], [1]], (2, 2), KNOWN)


def test_large_kinds_are_not_cut_off_to_a_byte() -> None:
    with pytest.raises(InputError, match="kind 257 at 1 site"):
        as_kinds(np.array([[257, 0]]), (1, 2), KNOWN)


def test_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "mask.npy"
    np.save(path, np.array([[0, 3, 1]]))
    said: list[str] = []
    assert read_mask(path, (1, 3), report=said.append).tolist() == [[0, 3, 1]]
    assert said == ["mask.npy: int64 mask of shape (1, 3)"]
    with pytest.raises(
        InputError, match=f"^{re.escape(f'{path}: the mask has shape (1, 3); wanted (ny, nx) = (2, 3)')}$"
    ):
        read_mask(path, (2, 3))
    with pytest.raises(InputError, match=r"a \.npy mask has its size and place already; wanted no placement$"):
        read_mask(path, (1, 3), placement=Placement(fraction=0.5))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: damaged NumPy file: "):
        read_mask(path, (1, 3))
    np.save(path, np.array([object()]), allow_pickle=True)  # objects are never unpickled
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: damaged NumPy file: "):
        read_mask(path, (1, 3))


def test_unknown_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"mask\.txt: unknown suffix \.txt; wanted \.npy, \.png \.jpg .*, \.stl \.obj \.ply \.off$"
    ):
        read_mask(tmp_path / "mask.txt", (2, 2))
    for name, wanted in (
        ("a.npy", "a NumPy mask (.npy)"),
        ("a.png", "a picture (PNG, JPEG)"),
        ("a.stl", "a mesh (STL)"),
    ):
        with pytest.raises(InputError, match=re.escape(f"{name}: there is no such file; wanted {wanted}")):
            read_mask(tmp_path / name, (2, 2, 2))
        (tmp_path / name).touch()
        with pytest.raises(InputError, match=re.escape(f"{name}: the file is empty; wanted {wanted}")):
            read_mask(tmp_path / name, (2, 2, 2))
