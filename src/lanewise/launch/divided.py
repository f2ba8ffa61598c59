"""How a call on a mesh is divided, as data, with what its parts copy to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.launch.sent import Sent
from lanewise.launch.tasks import Exchange
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.launch.compiled import Compiled

MOST_LISTED = 8  # parts whose rows are listed


@dataclass(frozen=True, slots=True)
class DividedRound:
    """What parts exchange (None: nothing), and the kernel that each of them runs then: those of
    this process, where there are several. title: of what they do.
    """

    exchange: Exchange | None
    parts: tuple[Compiled, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Divided:
    """The rows of each part, and the rounds of a call. devices: those of all parts, see
    `Mesh.places`.
    """

    mesh: str
    devices: tuple[str, ...]
    lengths: tuple[int, ...]
    rounds: tuple[DividedRound, ...]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What parts get from each other in a call."""
        return tuple(r.exchange for r in self.rounds if r.exchange is not None)

    def sent(self, rows: Sequence[int]) -> tuple[Sent, ...]:
        """What is copied in a call whose parts have so many rows."""
        return tuple(law(rows) for e in self.exchanges for law in e.laws)

    @property
    def line(self) -> str:
        """The parts and what is copied for them in a call."""
        copied = sum(s.total(self.devices) for s in self.sent(self.lengths))
        between = (
            f"{copied:,} bytes per call are copied for them" if copied else "nothing is copied"
        )
        return f"{parts_text(self.mesh, self.lengths, 'rows')}; {between}"


def parts_text(mesh: str, rows: Sequence[int], kind: str, blocks: str = "") -> str:
    """The parts of a mesh and what they have, in words. blocks: what they are, if that is said."""
    parts = counted(len(rows), "part", "parts") + (f" of {blocks}" if blocks else "")
    return f"{parts} ({mesh}), {_rows_text(rows, kind)}"


def _rows_text(rows: Sequence[int], kind: str) -> str:
    if len(set(rows)) == 1:
        return f"{rows[0]:,} {kind} each"
    if len(rows) > MOST_LISTED:
        return f"{min(rows):,} to {max(rows):,} {kind}"
    return f"{', '.join(map('{:,}'.format, rows))} {kind}"
