"""CSV text: a line of column names `x,y,z,vx,vy,vz,mass` and perhaps `id,component`, in any order,
then a body a line.

Format: RFC 4180, UTF-8. Time and softening have no place in it. Blank lines, and lines that begin
with #, are passed over. What lanewise writes has the sum of its lines in the first one
(`summed_text`).
"""

from __future__ import annotations

import codecs
import csv
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.columns import column_names, number_table
from lanewise.io.formats import Format
from lanewise.io.particles import DARK, Particles
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.io.summed_text import check_lines, summed_text, without_comments
from lanewise.support.attributes import near
from lanewise.support.errors import FileWarning
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
        names = column_names(lines, REAL, WHOLE, WANTED, separated=_separator, meant=_meant)
        table = number_table(lines, names, WHOLE)
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
        return "; leave it out, bodies are distinguished by the integers of a column id;"
    begun = [known for known in REAL + WHOLE if name and known.startswith(name)]
    return near(name, REAL + WHOLE) or (f"; did you mean {begun[0]!r}?" if len(begun) == 1 else ";")


def _columns(table: NDArray[np.void], *names: str) -> NDArray[np.float64]:
    return np.stack([table[name] for name in names], axis=1)


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
