"""How a call on a mesh is divided, in words and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.launch.tasks import Exchange
from lanewise.runtime.links import BETWEEN_PROCESSES, links_of
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.launch.compiled import Compiled

MOST_LISTED = 8  # parts whose rows are listed


@dataclass(frozen=True, slots=True)
class DividedRound:
    """What parts exchange (None: nothing), and the kernel that each of them runs then."""

    exchange: Exchange | None
    parts: tuple[Compiled, ...]


@dataclass(frozen=True, slots=True)
class Divided:
    """The rows of each part, and the rounds of a call.

    devices, and parts of rounds: those of this process, where there are several.
    """

    mesh: str
    devices: tuple[str, ...]
    lengths: tuple[int, ...]
    rounds: tuple[DividedRound, ...]
    processes: int = 1

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What parts get from each other in a call."""
        return tuple(r.exchange for r in self.rounds if r.exchange is not None)

    @property
    def crossing(self) -> int:
        """Bytes that go between parts in a call."""
        return sum(e.crossing for e in self.exchanges)

    @property
    def line(self) -> str:
        """The parts, what goes between them in a call, and how."""
        lengths = list(map("{:,}".format, self.lengths))
        if len(set(lengths)) == 1:
            rows = f"{lengths[0]} rows each"
        elif len(lengths) <= MOST_LISTED:
            rows = f"{', '.join(lengths)} rows"
        else:
            rows = f"{min(self.lengths):,} to {max(self.lengths):,} rows"
        parts = f"{counted(len(lengths), 'part', 'parts')} ({self.mesh}), {rows}"
        if not self.exchanges:
            return f"{parts}; nothing goes between them"
        links = " and ".join(self.links)
        return f"{parts}; {self.crossing:,} bytes a call go between them ({links})"

    @property
    def facts(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "devices": list(self.devices),
            "rows": list(self.lengths),
            "bytes_between_parts": self.crossing,
            "links": list(self.links),
        }

    @property
    def links(self) -> tuple[str, ...]:
        """What rows go over."""
        if self.processes == 1:
            return links_of(self.devices)
        own = links_of(self.devices) if len(self.devices) > 1 else ()
        return *own, BETWEEN_PROCESSES
