"""Checkpoints of units: one JSON file each, with a checksum, whole or not there at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from lanewise.io.documents import damaged, read_document, write_document
from lanewise.profiling import staged
from lanewise.sims.waves.hierarchical import CANDIDATE, COLUMNS, Candidates
from lanewise.sims.waves.units.job import Configuration
from lanewise.sims.waves.units.partition import Unit
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

SEARCH = "search.json"
UNIT, WHOLE = "lanewise waves unit", "lanewise waves search"


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class State:
    """How far a unit is: the direction and the spin-down that come next, and the candidates so far.

    digest: of the configuration. At the end `sky` is the number after the unit's last direction.
    """

    unit: Unit
    digest: str
    sky: int
    spin: int
    candidates: Candidates

    @property
    def complete(self) -> bool:
        return self.sky == self.unit.sky[1]

    @property
    def done(self) -> int:
        """Steps that are behind it."""
        return self.unit.done(self.sky, self.spin)


def start_of(unit: Unit, digest: str) -> State:
    """Before the first step."""
    return State(unit, digest, unit.sky[0], unit.spins[0], np.empty(0, CANDIDATE))


def path_of(folder: Path, unit: Unit) -> Path:
    """The checkpoint of a unit."""
    return folder / f"unit-{unit.number:06d}.json"


def mark_of(folder: Path, number: int) -> Path:
    """What a worker has claimed while it waits for a card for this unit; it is never there."""
    return folder / f"unit-{number:06d}.card"


@staged("checkpoint", name="units")
def write_state(folder: Path, state: State) -> None:
    """Replace the unit's checkpoint; on a full disk the last one stays as it is, and InputError
    says so.
    """
    u = state.unit
    write_document(
        path_of(folder, u),
        UNIT,
        {
            "search": state.digest,
            "unit": u.number,
            "sky": list(u.sky),
            "spins": list(u.spins),
            "frequencies": list(u.frequencies),
            "next": [state.sky, state.spin],
            "columns": list(COLUMNS),
            "candidates": state.candidates.tolist(),
        },
    )


def read_state(folder: Path, unit: Unit, digest: str) -> State:
    """The unit's last checkpoint, or its start where there is none.

    Raises InputError for one that is damaged or of another search.
    """
    path = path_of(folder, unit)
    if not path.exists():
        return start_of(unit, digest)
    saved = read_document(path, UNIT)
    try:
        sky, spin = (int(x) for x in saved["next"])
        rows = np.array([tuple(map(float, row)) for row in saved["candidates"]], CANDIDATE)
        parts = [tuple(saved[n]) for n in ("sky", "spins", "frequencies")]
        number, columns, search = saved["unit"], tuple(saved["columns"]), saved["search"]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error
    if search != digest:
        raise InputError(
            f"{path}: it is a checkpoint of another search; wanted one of {digest[:16]}, found "
            f"{str(search)[:16]}"
        )
    if (number, *parts) != (
        unit.number,
        unit.sky,
        unit.spins,
        unit.frequencies,
    ) or columns != COLUMNS:
        raise InputError(
            f"{path}: it is a checkpoint of another unit; delete it to compute this one from its "
            "start"
        )
    inside = unit.sky[0] <= sky < unit.sky[1] and unit.spins[0] <= spin < unit.spins[1]
    if not (inside or (sky, spin) == (unit.sky[1], unit.spins[0])):
        raise damaged(path, f"its next step is {sky}, {spin}")
    return State(unit, digest, sky, spin, rows)


def write_configuration(folder: Path, configuration: Configuration, units: int) -> None:
    """Say in the folder what is searched there."""
    write_document(folder / SEARCH, WHOLE, {"configuration": dict(configuration), "units": units})


def read_configuration(folder: Path) -> tuple[Configuration, int]:
    """What is searched in a folder, and the number of units requested."""
    path = folder / SEARCH
    saved = read_document(path, WHOLE)
    configuration, units = saved.get("configuration"), saved.get("units")
    if not isinstance(configuration, dict) or not isinstance(units, int):
        raise damaged(path, "it has no configuration")
    return cast("dict[str, Any]", configuration), units
