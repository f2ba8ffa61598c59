"""The agents of a flock on the host, and their table as CSV: what `--from` reads and `--final`
writes.

Columns, in any order: id, the position px,py,pz, the unit vectors forward fx,fy,fz, up ux,uy,uz and
side sx,sy,sz, the speed, and the smoothed acceleration ax,ay,az. Written are all of them, below the
sum of the lines (`io/summed_text.py`); read may be tables without id, side and acceleration. The
side follows from forward and up; columns stx,sty,stz (a steering force) are passed over.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.columns import column_names, number_table
from lanewise.io.source import FilePath, existing_file, reading
from lanewise.io.summed_text import check_lines, summed_text, without_comments
from lanewise.support.checks import check_fields, checked
from lanewise.support.errors import InputError

VECTORS = {"position": "p", "forward": "f", "up": "u", "acceleration": "a"}
REQUIRED = ("px", "py", "pz", "fx", "fy", "fz", "ux", "uy", "uz", "speed")
OPTIONAL = ("id", "sx", "sy", "sz", "ax", "ay", "az")
PASSED_OVER = ("stx", "sty", "stz")
COLUMNS = ("id", *REQUIRED[:9], *OPTIONAL[1:4], "speed", *OPTIONAL[4:])
WANTED = f"{','.join(REQUIRED)} and perhaps {','.join(OPTIONAL)}"
UNIT_TOLERANCE = 1e-3  # how far the length of a heading may be from 1


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """n agents: vectors (n, 3), speed (n,), float32 or float64; ids (n,) int64."""

    position: NDArray[Any]
    forward: NDArray[Any]
    up: NDArray[Any]
    speed: NDArray[Any]
    acceleration: NDArray[Any]
    ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    def __len__(self) -> int:
        return len(self.speed)

    @property
    def side(self) -> NDArray[Any]:
        """The third unit vector: forward x up."""
        return np.cross(self.forward, self.up)

    @property
    def velocity(self) -> NDArray[Any]:
        return self.forward * self.speed[:, None]


def check_state(state: State) -> None:
    """Refuse shapes that differ, NaN and infinity, headings that are no unit vectors, negative
    speeds, ids that come twice.
    """
    count = len(state.speed)
    for name in (*VECTORS, "speed"):
        values: NDArray[Any] = getattr(state, name)
        shape = (count, 3) if name in VECTORS else (count,)
        if values.shape != shape:
            raise InputError(f"{name} has shape {values.shape}; wanted {shape}")
        if (row := _first(~np.isfinite(values))) is not None:
            raise InputError(
                f"{name} of agent {row} is {_shown(values[row])}; wanted finite numbers"
            )
    length = np.linalg.norm(state.forward.astype(np.float64), axis=1)
    if (row := _first(np.abs(length - 1) > UNIT_TOLERANCE)) is not None:
        raise InputError(f"forward of agent {row} has length {length[row]:g}; wanted a unit vector")
    if (row := _first(~state.up.any(axis=1))) is not None:
        raise InputError(f"up of agent {row} is {_shown(state.up[row])}; wanted a direction")
    if (row := _first(state.speed < 0)) is not None:
        raise InputError(f"speed of agent {row} is {state.speed[row]:g}; wanted zero or more")
    ids, counts = np.unique(state.ids, return_counts=True)
    if (row := _first(counts > 1)) is not None:
        raise InputError(f"{counts[row]} agents have the id {ids[row]}; wanted one each")


def _first(bad: Any) -> int | None:
    bad = bad.any(axis=1) if bad.ndim == 2 else bad
    return int(np.argmax(bad)) if bad.any() else None


def _shown(value: Any) -> str:
    numbers = [f"{float(x):g}" for x in np.ravel(value)]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


# ------------------------------------------------------------ the table


@checked(InputError)
def read_state(path: FilePath) -> State:
    """The agents of a table, in the order of its lines; blank lines and those that begin with # are
    ignored.

    Raises `InputError` that names the file, the line (from 1) and the column, and if the lines do
    not match the checksum of the file.
    """
    file = existing_file(path)
    with (
        reading(path, "CSV", (UnicodeDecodeError, csv.Error)),
        Path(file).open(encoding="utf-8-sig", newline="") as stream,
    ):
        check_lines(file)
        lines = csv.reader(without_comments(stream))
        names = column_names(lines, REQUIRED, (*OPTIONAL, *PASSED_OVER), WANTED)
        for letter in "sa":
            axes = [f"{letter}{axis}" for axis in "xyz"]
            if 0 < len({*axes} & {*names}) < 3:
                first = max(lines.line_num, 1)
                raise InputError(f"line {first}: wanted all of {','.join(axes)}, or none")
        table = number_table(lines, names, ("id",))
        zero = np.zeros(len(table))

        def column(name: str) -> NDArray[Any]:
            return np.array(table[name]) if name in names else zero

        def vector(letter: str) -> NDArray[np.float64]:
            return np.stack([column(f"{letter}{axis}") for axis in "xyz"], axis=1)

        ids = column("id") if "id" in names else np.arange(len(table))
        vectors = {name: vector(letter) for name, letter in VECTORS.items()}
        state = State(**vectors, speed=column("speed"), ids=ids)
        if not len(state):
            raise InputError("0 agents; wanted at least 1")
        check_state(state)
        return state


@checked(InputError)
def write_state(path: FilePath, state: State, *, overwrite: bool = False) -> None:
    """Write the agents to a table, completely or not at all, with enough digits to restore the same
    numbers.

    Raises InputError as `atomic_path`, and for no agents.
    """
    if not len(state):
        raise InputError(f"{path}: there are no agents, and a file of a flock has at least one")
    columns = [
        state.ids,
        *state.position.T,
        *state.forward.T,
        *state.up.T,
        *state.side.T,
        state.speed,
        *state.acceleration.T,
    ]
    with summed_text(path, overwrite) as lines:
        lines.write(",".join(COLUMNS) + "\n")
        for row in zip(*columns, strict=True):
            lines.write(",".join(map(str, row)) + "\n")  # the shortest text of each precision
