"""What the parts of a flock on a mesh bring each other in a step, by where its agents are: the same
order, boxes and lists as in `MeshSteering`, without a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import lanewise as lw
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.mesh_steering import LISTED, READ
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.reach import box_of, grid_over, make_reach
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.settings import Settings
from lanewise.sims.boids.storage import REORDER
from lanewise.sims.common.meshes import transport_of
from lanewise.sims.common.searches import bytes_in_rooms, in_cells, list_lengths, lists_near
from lanewise.sims.common.shown import DividedStep, Sent

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock

NEAR, ALL, ORDER = "agents that may come near", "all agents", "agents for their order"
# Calibrated with bench/results/mesh_cuda.md (flocks of 2^20 and 2^22 agents, two NVIDIA H200): what
# a step takes for each part, with no kernel and no copy at work: the host launches and makes lists
WAITS = 0.25e-3
NUMBER = 4  # bytes of an agent's number, which goes with it when agents are brought into order


@dataclass(frozen=True, slots=True, eq=False)
class FlockDivision:
    """The agents of a flock on the host, in the layout in which a device has them, and the search
    with its cells.

    ordered: whether agents are brought into the order of the search. near: whether parts may list
    agents that come near, as in one process. parts: that there are.
    """

    settings: Settings
    search: lw.Search
    boids: lw.RecordArray
    dt: float
    ordered: bool
    near: bool = True
    parts: int = 1

    def __call__(self, parts: int) -> DividedStep:
        """A step on so many parts."""
        rows = lw.Mesh("cpu", parts=parts).rows(len(self.boids))
        own = tuple(map(len, rows))
        lists = self._lists(rows)
        read = self._read
        if lists is None:
            worked, sent = own, [Sent(ALL, self._all(own, self._column_bytes(read)), shared=True)]
        else:
            each = bytes_in_rooms(self.boids, read)
            got = (sum(n for (_, to), n in lists.items() if to == q) for q in range(parts))
            worked = tuple(mine + n for mine, n in zip(own, got, strict=True))
            sent = [Sent(NEAR, {pair: count * each for pair, count in lists.items()})]
        if self.ordered:
            pairs = _pairs(own)
            every = bytes_in_rooms(self.boids) + NUMBER
            sent.append(Sent(ORDER, {(p, q): own[p] * every for p, q in pairs}, REORDER))
        return DividedStep(own, worked, tuple(sent), self._waits(parts))

    def _waits(self, parts: int) -> float:
        return WAITS * parts if parts > 1 and self.near and lists_near(self.search) else 0.0

    def grow(self, parts: int) -> DividedStep:
        """A step on so many parts, each with as many agents as the parts that there are, as close
        to each other: of those that come near, which lie about a part, an estimate.
        """
        most, now = -(-len(self.boids) // self.parts), self(parts)
        ratio = most * parts / max(1, len(self.boids))
        rows, sent = (most,) * parts, list[Sent]()
        for s in now.sent:
            wider = ratio ** (2 / 3) if s.name == NEAR else ratio
            scaled = {pair: round(nbytes * wider) for pair, nbytes in s.nbytes.items()}
            sent.append(replace(s, nbytes=scaled))
        near = zip(now.rows, now.worked, strict=True)
        worked = tuple(most + round((w - r) * ratio ** (2 / 3)) for r, w in near)
        return DividedStep(rows, worked, tuple(sent), self._waits(parts))

    @property
    def _read(self) -> tuple[str, ...]:
        """The fields of flockmates that steering reads, and where they look."""
        sees = self.search.sees
        return READ if sees is None else tuple(dict.fromkeys((*READ, sees.heading)))

    def _column_bytes(self, fields: Sequence[str]) -> int:
        """Of these fields of an agent, each scalar in its column."""
        size = 8 if self.settings.precision == "f64" else 4
        return sum(size for leaf in self.boids.record.leaves if leaf.field in fields)

    def _all(self, own: Sequence[int], each: int) -> dict[tuple[int, int], int]:
        """All rows to all devices, of which parts have one copy together."""
        parts = range(len(own))
        return {(p, q): own[p] * each for q in parts for p in parts if len(own) > 1}

    def _lists(self, rows: Sequence[range]) -> dict[tuple[int, int], int] | None:
        """How many agents each part gets of each other one; None where all get all."""
        search, s, own = self.search, self.settings, [len(r) for r in rows]
        if not lists_near(search):
            return None
        if not self.near:
            return {(a, b): own[a] for a, b in _pairs(own)}
        placed = np.asarray(self.boids.position)[in_cells(search, self.boids)]
        ordered = record_class(s.precision).array(position=placed, device="cpu")
        parts = {n: ordered[r.start : r.stop] for n, r in enumerate(rows) if r}
        end, radius = find_boundary(s.boundary).end, s.parameters.radius
        reach, drift = make_reach(s.precision, end), LISTED * self.dt * s.parameters.max_speed
        boxes = [box_of(part, reach, end, s.world) for part in parts.values()]
        if any(corners is None for corners in boxes):
            return {(a, b): own[a] for a, b in _pairs(own)}
        grid = grid_over(boxes, end, radius, drift, s.world, len(self.boids))
        cells = {n: reach.cells(part, **grid.values) for n, part in parts.items()}
        needed: dict[tuple[int, int], int] = {}
        for q in parts:
            near = grid.marked(np, cells[q][0])
            for p in parts:
                if p != q:
                    mine, mirrored = cells[p]
                    needed[p, q] = int(np.count_nonzero(near[mine] | near[mirrored]))
        return list_lengths(needed, own, search.k or 1)


def division_of(flock: Flock, dt: float = DT, parts: int = 1) -> FlockDivision:
    """Of the agents of a flock as they are now, on any device or mesh. parts: that there are."""
    structure, alone = flock.structure, transport_of(flock.boids).size == 1
    ordered = structure is not None and structure.order is not None
    boids = flock.boids.to("cpu")
    return FlockDivision(flock.settings, flock.laid, boids, dt, ordered, alone, parts)


def _pairs(own: Sequence[int]) -> list[tuple[int, int]]:
    """Of parts that have rows, each with each other one."""
    having = [n for n, count in enumerate(own) if count]
    return [(p, q) for p in having for q in having if p != q]
