"""Masks that come as arrays: bool (True is solid) or integers, the kinds of the sites; and the
files that hold them.

Files are distinguished by suffix, and refused where they are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles.boxes import AXES, check_shape, site_text
from lanewise.support.checks import checked, host_array
from lanewise.support.errors import InputError

NAMED = 4
"""So many unknown kinds are named one by one; the others are counted."""


@checked(InputError)
def as_kinds(
    mask: ArrayLike, shape: Sequence[int], known: Mapping[int, str], solid: int = 1
) -> NDArray[np.uint8]:
    """`mask` as kinds of sites: uint8, of `shape`, x fastest, a copy.

    Args:
        mask: bool, where True becomes the kind `solid` and False kind 0; or integers, taken as
        they are.
        shape: (ny, nx) or (nz, ny, nx).
        known: the kinds that exist, with their names, for example {0: "fluid", 1: "wall"}; 0 to
        255.
        solid: the kind that True stands for.

    Raises InputError for another shape (a transposed one is named as such), another dtype, and
    kinds that do not exist: each with its count and its first site.
    """
    array = check_array(mask, shape)
    if array.dtype == np.bool_:
        return np.where(array, np.uint8(solid), np.uint8(0))
    _check_kinds(array, known)
    return np.array(array, np.uint8, order="C")


@checked(InputError)
def as_solid(mask: ArrayLike, shape: Sequence[int]) -> NDArray[np.bool_]:
    """`mask` as bool, True for solid: bool, or integers of which 0 is fluid and 1 solid.

    Raises as `as_kinds`.
    """
    return as_kinds(mask, shape, {0: "fluid", 1: "solid"}).astype(np.bool_)


def check_array(mask: ArrayLike, shape: Sequence[int]) -> NDArray[Any]:
    """`mask` as an array of `shape`, bool or integers, not copied; raises InputError."""
    sizes = check_shape(shape)
    array = host_array("the mask", mask, InputError)
    if array.dtype.kind not in "biu":
        raise InputError(
            f"the mask has dtype {array.dtype}; wanted bool (True is solid) or integers "
            "(kinds of sites)"
        )
    if array.shape != sizes:
        axes = ", ".join(f"n{a}" for a in AXES[: len(sizes)][::-1])
        raise InputError(
            f"the mask has shape {array.shape}; wanted ({axes}) = "
            f"{sizes}{_transposed(array.shape, sizes)}"
        )
    return array


def _transposed(own: tuple[int, ...], shape: tuple[int, ...]) -> str:
    return ": its axes are in the order x, y, z, so give mask.T" if own == shape[::-1] else ""


def _check_kinds(array: NDArray[Any], kinds: Mapping[int, str]) -> None:
    present = [int(kind) for kind in np.unique(array)]
    unknown = [kind for kind in present if kind not in kinds]
    if not unknown:
        return
    described = [_described(array, kind) for kind in unknown[:NAMED]]
    if len(unknown) > NAMED:
        described.append(f"{len(unknown) - NAMED} more kinds")
    names = ", ".join(f"{kind} ({name})" for kind, name in sorted(kinds.items()))
    raise InputError(f"the mask holds {', '.join(described)}; wanted one of the kinds {names}")


def _described(array: NDArray[Any], kind: int) -> str:
    places = array == kind
    count = int(np.count_nonzero(places))
    first = np.unravel_index(int(np.argmax(places)), array.shape)
    where = f"first at {site_text(first)}" if count > 1 else f"at {site_text(first)}"
    return f"kind {kind} at {count:,} site{'s' if count > 1 else ''} ({where})"


Report: TypeAlias = Callable[[str], object]
"""Called with one sentence on what was read, how it was scaled and where it lies.

`print` and loggers fit.
"""


def existing(path: FilePath, what: str) -> Path:
    """`path` as a readable, non-empty, regular file; anything else is an InputError that says
    `what` is wanted.
    """
    file = Path(path)
    with reading(path, what, ()):
        if not file.exists():
            raise InputError(f"there is no such file; wanted {what}")
        if not file.is_file():
            raise InputError(
                f"this is {'a folder' if file.is_dir() else 'not a regular file'}; wanted {what}"
            )
        if file.stat().st_size == 0:
            raise InputError(f"the file is empty; wanted {what}")
        file.open("rb").close()
    return file


def percent(solid: int, sites: int) -> str:
    """`12.3 % of the sites are solid`."""
    return f"{100 * solid / sites:.3g} % of the sites are solid"
