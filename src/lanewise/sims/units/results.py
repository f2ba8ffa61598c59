"""What units found: one document each, which says nothing of machines and clocks, and a table of
all of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.io.documents import damaged, digest_of_file, read_document, write_document
from lanewise.io.summed_text import summed_text
from lanewise.sims.units.products import results_of
from lanewise.sims.units.scan import Scan, ScanUnit
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

KIND, TABLE = "lanewise unit", "results.csv"


@frozen
@dataclass(frozen=True, slots=True)
class UnitFiles:
    """The files of one computation of a unit: its checkpoint, which ends as its final state, its
    result, and what it said. copy: from 1 on, if a quorum is requested.
    """

    folder: Path
    unit: int
    copy: int = 1

    def _named(self, ending: str) -> Path:
        copy = "" if self.copy == 1 else f"-{self.copy}"
        return self.folder / f"unit-{self.unit:06d}{copy}.{ending}"

    @property
    def state(self) -> Path:
        return self._named("h5")

    @property
    def result(self) -> Path:
        return self._named("json")

    @property
    def log(self) -> Path:
        return self._named("log")

    @property
    def waits(self) -> Path:
        """What its process has claimed while it waits for a card; the file itself is never
        there.
        """
        return self._named("card")


@frozen
@dataclass(frozen=True, slots=True)
class UnitResult:
    """What a unit found, by name, and the SHA-256 of its final state."""

    results: Mapping[str, Any]
    state: str


def write_result(
    files: UnitFiles, scan: Scan, unit: ScanUnit, summary: Mapping[str, Any]
) -> UnitResult:
    """Keep the result of a unit whose final state is there."""
    found = UnitResult(results_of(scan.product, summary), digest_of_file(files.state))
    write_document(
        files.result,
        KIND,
        {
            "scan": scan.digest,
            "unit": unit.number,
            "values": list(unit.values),
            "results": dict(found.results),
            "state": found.state,
        },
    )
    return found


def read_result(files: UnitFiles, scan: Scan, unit: ScanUnit) -> UnitResult | None:
    """The result of a unit, or None where there is none; raises InputError for one that is damaged,
    of another scan, or next to another state than its own.
    """
    path = files.result
    if not path.exists():
        return None
    saved = read_document(path, KIND)
    if (saved.get("scan"), saved.get("unit")) != (scan.digest, unit.number):
        raise InputError(f"{path}: it is the result of another scan; delete it")
    results, state = saved.get("results"), saved.get("state")
    if not isinstance(results, dict) or not isinstance(state, str):
        raise damaged(path, "it has no results")
    if digest_of_file(files.state) != state:
        raise InputError(f"{files.state}: damaged: its SHA-256 is not that of its result")
    return UnitResult(results, state)  # pyright: ignore[reportUnknownArgumentType]


def write_table(folder: Path, scan: Scan, rows: Sequence[tuple[ScanUnit, UnitResult]]) -> Path:
    """A line for each unit: its number, its values, its results, the SHA-256 of its state."""
    names = list(dict.fromkeys(n for _, found in rows for n in found.results))
    path = folder / TABLE
    with summed_text(path, overwrite=True) as lines:
        lines.write(_line(["unit", *(a.name for a in scan.axes), *names, "sha256"]))
        for unit, found in rows:
            values = ["" if (v := found.results.get(n)) is None else v for n in names]
            lines.write(_line([unit.number, *unit.values, *values, found.state]))
    return path


def _line(values: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
