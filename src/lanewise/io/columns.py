"""Text tables: a line of column names, then rows of numbers, as CSV has them.

Blank lines are passed over. `lines` is a csv.reader: it counts the lines of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.support.errors import InputError


def names_at_top(path: Path) -> frozenset[str]:
    """The words between commas in the first line that is neither blank nor a comment, whatever the
    file is.
    """
    with path.open("rb") as file:
        lines = file.read(4096).decode("utf-8", "replace").splitlines()
    head = next((line for line in lines if line and not line.startswith("#")), "")
    return frozenset(name.strip() for name in head.split(","))


def column_names(
    lines: Any,
    required: Sequence[str],
    optional: Sequence[str],
    wanted: str,
    *,
    separated: Callable[[list[str]], str] = lambda names: "",
    meant: Callable[[str], str] = lambda name: ";",
) -> list[str]:
    """The names of the first line, each once and none unknown; raises `InputError`.

    wanted: both kinds, in words. separated: what stands between names where it is no comma, or "".
    meant: what to say of an unknown name, before what is wanted.
    """
    written = (line for line in lines if any(map(str.strip, line)))
    names = [cell.strip().lower() for cell in next(written, [])]
    line, known = f"line {max(lines.line_num, 1)}", (*required, *optional)
    if separator := separated(names):
        raise InputError(
            f"{line}: columns are separated by {separator}; wanted commas, and points in numbers: "
            f"{wanted}"
        )
    if not set(names) & set(required):
        raise InputError(
            f"{line} is {_shortened(','.join(names))}; wanted the names of the columns: {wanted}"
        )
    for place, name in enumerate(names, 1):
        if name not in known:
            raise InputError(
                f"{line}, column {place}: unknown column {_shortened(name)}{meant(name)} wanted "
                f"{wanted}"
            )
        if names.index(name) != place - 1:
            raise InputError(f"{line}, column {place}: a second column {name}")
    if missing := [name for name in required if name not in names]:
        raise InputError(f"{line}: no column {', '.join(missing)}; wanted {wanted}")
    return names


def number_table(lines: Any, names: list[str], whole: Collection[str]) -> NDArray[np.void]:
    """The rows below the names: int64 in the columns `whole`, float64 in the others; raises
    `InputError` naming line and column.
    """
    kinds = [(name, "i8" if name in whole else "f8") for name in names]
    return np.fromiter(_rows(lines, names, whole), kinds)


def _rows(lines: Any, names: list[str], whole: Collection[str]) -> Iterator[tuple[float, ...]]:
    """One tuple of numbers per row."""
    converters: list[Callable[[str], float]] = [
        _whole if name in whole else _finite for name in names
    ]
    for cells in lines:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) != len(names):
            raise InputError(
                f"line {lines.line_num} has {len(cells)} values; wanted {len(names)} "
                f"({','.join(names)})"
            )
        try:
            yield tuple([convert(cell) for convert, cell in zip(converters, cells, strict=True)])
        except ValueError:
            raise _bad_cell(lines.line_num, names, converters, cells) from None


def _bad_cell(
    line: int, names: list[str], converters: list[Callable[[str], float]], cells: list[str]
) -> InputError:
    """Which cell of a line that does not convert is at fault: looked for only now, to keep good
    lines fast.
    """
    for place, (name, convert, cell) in enumerate(zip(names, converters, cells, strict=True), 1):
        try:
            convert(cell)
        except ValueError:
            wanted = "an integer" if convert is _whole else "a finite number"
            return InputError(
                f"line {line}, column {place} ({name}): {_shortened(cell)}; wanted {wanted}"
            )
    raise AssertionError("called for a good line")


def plain(cell: str) -> str:
    """A cell without what Python alone takes for a part of a number: underscores, and digits of
    other scripts.
    """
    if "_" in cell or not cell.isascii():
        raise ValueError
    return cell


def _finite(cell: str) -> float:
    value = float(plain(cell))
    if not math.isfinite(value):
        raise ValueError
    return value


def _whole(cell: str) -> int:
    value = int(plain(cell))
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
