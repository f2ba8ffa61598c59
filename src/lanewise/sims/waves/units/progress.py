"""How far the units of a search are, read from their checkpoints, also while others compute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lanewise.io.documents import damaged, read_document
from lanewise.sims.common.cards import waits
from lanewise.sims.waves.units.checkpoint import UNIT, mark_of
from lanewise.support.attributes import frozen

_MARK = re.compile(r"\.unit-(\d+)\.card\.lock")


@frozen
@dataclass(frozen=True, slots=True)
class UnitProgress:
    """Steps of a unit that are done, of how many; a step is a direction and a spin-down."""

    number: int
    done: int
    steps: int


def waiting(folder: Path) -> list[int]:
    """The units whose workers wait for a card."""
    found = [int(n[1]) for p in folder.iterdir() if (n := _MARK.fullmatch(p.name))]
    return sorted(n for n in found if waits(mark_of(folder, n)))


def progress(folder: Path) -> list[UnitProgress]:
    """The units that have a checkpoint; raises InputError for one that is damaged."""
    found: list[UnitProgress] = []
    for path in sorted(folder.glob("unit-*.json")):
        saved = read_document(path, UNIT)
        try:
            (first, end), (low, high) = saved["sky"], saved["spins"]
            sky, spin = saved["next"]
            spins = high - low
            done = (sky - first) * spins + spin - low
            found.append(UnitProgress(saved["unit"], done, (end - first) * spins))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"{type(error).__name__}: {error}") from error
    return found
