"""How far units are, read from their files: also while they are computed, and by anybody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.io.claims import holder_of
from lanewise.sims.common.cards import WAITING, waits
from lanewise.sims.units.products import step_of
from lanewise.sims.units.results import UnitFiles, read_result
from lanewise.sims.units.scan import Scan, ScanUnit
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError


@frozen
@dataclass(frozen=True, slots=True)
class UnitState:
    """state: "done", "running", "waiting for a GPU" (its process does), "begun" (a checkpoint that
    no process continues), "waiting" or "damaged". step: that of the last checkpoint. note: what is
    wrong, or who computes it. copies: results that are there.
    """

    unit: ScanUnit
    state: str
    step: int | None
    note: str
    copies: int


def status(scan: Scan, folder: Path) -> list[UnitState]:
    """The state of every unit, in their order."""
    return [_state(scan, folder, unit) for unit in scan.units]


def _state(scan: Scan, folder: Path, unit: ScanUnit) -> UnitState:
    done = 0
    for copy in range(1, scan.quorum + 1):
        files = UnitFiles(folder, unit.number, copy)
        try:
            result = read_result(files, scan, unit)
        except InputError as error:
            return UnitState(unit, "damaged", None, str(error), done)
        if result is None:
            step = step_of(scan.product, files.state)
            if (holder := holder_of(files.state)) is not None:
                state = WAITING if waits(files.waits) else "running"
                return UnitState(unit, state, step, str(holder), done)
            return UnitState(unit, "waiting" if step is None else "begun", step, "", done)
        done += 1
    step = step_of(scan.product, UnitFiles(folder, unit.number).state)
    return UnitState(unit, "done", step, "", done)
