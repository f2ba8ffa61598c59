"""An obstacle from whatever file the user names: a NumPy array, a picture or a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles import image, mesh
from lanewise.sims.lbm.obstacles.arrays import Report, check_array, existing
from lanewise.sims.lbm.obstacles.boxes import Placement
from lanewise.sims.lbm.obstacles.stl import stl_mask
from lanewise.support.checks import checked
from lanewise.support.errors import InputError


@checked(InputError)
def read_mask(
    path: FilePath,
    shape: Sequence[int],
    *,
    placement: Placement | None = None,
    report: Report | None = None,
) -> NDArray[Any]:
    """The mask of a .npy file (bool or kinds of sites, of exactly `shape`), a picture or a mesh,
    told apart by suffix.

    Pictures and meshes give bool masks and take a `placement` (see `image_mask` and `stl_mask`).
    Raises InputError that names the file.
    """
    suffix = Path(path).suffix.lower()
    if suffix in mesh.SUFFIXES:
        return stl_mask(path, shape, placement=placement, report=report)
    if suffix in image.SUFFIXES:
        return image.image_mask(path, shape, placement=placement, report=report)
    if suffix != ".npy":
        suffixes = ", ".join(" ".join(s) for s in ((".npy",), image.SUFFIXES, mesh.SUFFIXES))
        raise InputError(f"{path}: unknown suffix {suffix or '(none)'}; wanted {suffixes}")
    if placement is not None:
        raise InputError(f"{path}: a .npy mask has its size and place already; wanted no placement")
    return _array(path, shape, report)


def _array(path: FilePath, shape: Sequence[int], report: Report | None) -> NDArray[Any]:
    file = existing(path, "a NumPy mask (.npy)")
    with reading(path, "NumPy", (ValueError, TypeError, EOFError, SyntaxError, TokenError)):
        array = check_array(np.load(file, allow_pickle=False), shape)
    if report is not None:
        report(f"{file.name}: {array.dtype} mask of shape {array.shape}")
    return array
