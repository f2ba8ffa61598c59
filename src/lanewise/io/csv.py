"""CSV text: a line of column names `x,y,z,vx,vy,vz,mass` and perhaps `id,component`, in any order,
then a body a line.

Format: RFC 4180, UTF-8. Time and softening have no place in it. Blank lines, and lines that begin
with #, are passed over. What lanewise writes has the sum of its lines in the first one
(`summed_text`).
"""

from __future__ import annotations

import codecs
import csv
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.formats import Format
from lanewise.io.particles import DARK, Particles
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.io.summed_text import check_lines, summed_text, without_comments
from lanewise.support.attributes import near
from lanewise.support.errors import FileWarning, InputError
from lanewise.support.warned import warn_user

NAMES = ("name", "names", "label", "object", "body", "star", "planet")
REAL = ("x", "y", "z", "vx", "vy", "vz", "mass")
WHOLE = ("id", "component")
WANTED = f"{','.join(REAL)} and perhaps {','.join(WHOLE)}"


def read_csv(path: FilePath) -> Particles:
    """The bodies of a CSV file.

    Raises InputError naming the file, the line (from 1) and the column that is wrong, and where the
    lines are not those of the file's sum.
    """
    file = existing_file(path)
    with (
        reading(path, "CSV", (UnicodeDecodeError, csv.Error)),
        file.open(encoding="utf-8-sig", newline="") as stream,
    ):
        check_lines(file)
        lines = csv.reader(without_comments(stream))
        names = _column_names(lines)
        table = np.fromiter(
            _rows(lines, names), [(name, "i8" if name in WHOLE else "f8") for name in names]
        )
        return Particles.of(
            position=_columns(table, "x", "y", "z"),
            velocity=_columns(table, "vx", "vy", "vz"),
            mass=table["mass"],
            ids=table["id"] if "id" in names else None,
            component=table["component"] if "component" in names else DARK,
        )


def write_csv(path: FilePath, particles: Particles, *, overwrite: bool = False) -> None:
    """Write in one step, with as many digits as bring back the same float64.

    Raises InputError as `atomic_path`.

    Warns (`FileWarning`) of a time other than 0 and of a softening, for which there is no place.
    """
    lost = [f"the time {particles.time:g}"] * bool(particles.time)
    lost += [] if particles.softening is None else [f"the softening {particles.softening:g}"]
    if lost:
        warn_user(f"{path}: CSV has no place for {' and '.join(lost)}", FileWarning)
    columns: list[NDArray[Any]] = [
        *particles.position.T,
        *particles.velocity.T,
        particles.mass,
        particles.ids,
    ]
    names = [*REAL, "id"]
    if (particles.component != DARK).any():
        columns.append(particles.component)
        names.append("component")
    with summed_text(path, overwrite) as lines:
        lines.write(",".join(names) + "\n")
        for row in zip(*(column.tolist() for column in columns), strict=True):
            lines.write(",".join(map(repr, row)) + "\n")


def _column_names(lines: Any) -> list[str]:
    written = (line for line in lines if any(map(str.strip, line)))
    names = [cell.strip().lower() for cell in next(written, [])]
    number = max(lines.line_num, 1)
    if separator := _separator(names):
        raise InputError(
            f"line {number}: columns are separated by {separator}; wanted commas, and points in "
            f"numbers: {WANTED}"
        )
    if not set(names) & set(REAL):
        raise InputError(
            f"line {number} is {_shortened(','.join(names))}; wanted the names of the columns: "
            f"{WANTED}"
        )
    for place, name in enumerate(names, 1):
        if name not in REAL + WHOLE:
            raise InputError(
                f"line {number}, column {place}: unknown column {_shortened(name)}{_meant(name)} "
                f"wanted {WANTED}"
            )
        if names.index(name) != place - 1:
            raise InputError(f"line {number}, column {place}: a second column {name}")
    if missing := [name for name in REAL if name not in names]:
        raise InputError(f"line {number}: no column {', '.join(missing)}; wanted {WANTED}")
    return names


def _separator(names: list[str]) -> str:
    """What stands between names of columns where it is no comma; "" where it is."""
    for cell in names:
        for mark, words in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (None, "spaces")):
            if len({part.strip() for part in cell.split(mark)} & set(REAL)) > 1:
                return words
    return ""


def _meant(name: str) -> str:
    """A column that is called so, or begins so, where there is one such; what else to do with one
    that bodies do not have.
    """
    if name in NAMES:
        return "; leave it out, bodies are told apart by the whole numbers of a column id;"
    begun = [known for known in REAL + WHOLE if name and known.startswith(name)]
    return near(name, REAL + WHOLE) or (f"; did you mean {begun[0]!r}?" if len(begun) == 1 else ";")


def _rows(lines: Any, names: list[str]) -> Iterator[tuple[float, ...]]:
    """One tuple of numbers a body. `lines` is a csv.reader: it counts the lines of the file."""
    converters: list[Callable[[str], float]] = [
        _whole if name in WHOLE else _finite for name in names
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
            wanted = "a whole number" if name in WHOLE else "a finite number"
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


def _columns(table: NDArray[np.void], *names: str) -> NDArray[np.float64]:
    return np.stack([table[name] for name in names], axis=1)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _is_text(head: bytes) -> bool:
    """UTF-8 without NUL bytes; a character may be cut in two where `head` ends."""
    try:
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False


FORMAT = Format(
    name="CSV",
    suffixes=(".csv",),
    recognises=_is_text,
    read=read_csv,
    write=lambda path, particles, overwrite: write_csv(path, particles, overwrite=overwrite),
    last=True,
)
