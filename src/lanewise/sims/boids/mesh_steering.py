"""The steering of a flock on a mesh: every part finds flockmates among its own agents and those of
other parts that may come near.

They are listed when agents have been brought into the order of their search, and whenever the
user may have written to them; and brought before every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import permutations
from typing import Any

import lanewise as lw
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.reach import CoarseGrid, box_of, grid_over, make_reach
from lanewise.sims.boids.settings import Settings
from lanewise.sims.boids.storage import REORDER
from lanewise.sims.common.devices import array_module, on, together
from lanewise.sims.common.loops import Task, mesh_call
from lanewise.sims.common.searches import Chooses, Move, Moves, NearRows, Rooms, without_look

READ = ("position", "forward")
URGES = 3
LISTED = (
    # steps: longer ones of more agents cost more than to list them anew, by the model of design
    # 0074; agents get other places after a multiple of them
    REORDER // 2
)


class MeshSteering:
    """The sums over flockmates of every part. urges: those of all agents, on the mesh."""

    def __init__(
        self,
        settings: Settings,
        rooms: Rooms,
        steer: lw.Pairwise,
        search: lw.Search,
        plan: lw.Plan | None,
        values: Mapping[str, Any],
    ) -> None:
        """search: by which a part finds flockmates (see `over_parts`)."""
        self._settings, self._rooms = settings, rooms
        self._steer = partial(steer.using(search).bind, plan=plan, **values)
        looks = () if search.sees is None else (search.sees.heading,)
        self._near = NearRows(rooms, frozenset((*READ, *looks)), search.k or 1)
        self._sums = [self._room_for_sums(device) for device in rooms.devices]
        self.urges = tuple(self._urge(n) for n in range(URGES))
        self._end = find_boundary(settings.boundary).end
        self._reach = make_reach(settings.precision, self._end)
        # among all agents, for when it is unknown who may come near
        self._all = [self._bound(n, range(len(rooms.array))) for n in self._near.parts]
        self._bring_all = self._near.bringing_all()
        self._calls: list[lw.Call] = []
        self._left = 0  # steps that lists are for
        self._run = partial(self._step, self._bring_all, self._all)

    def _room_for_sums(self, device: str) -> tuple[Any, ...]:
        kind, count = self._rooms.wholes[0].position.dtype, len(self._rooms.array)
        return tuple([array_module(device).zeros((count, 3), kind) for _ in range(URGES)])

    def _urge(self, n: int) -> lw.SplitArray:
        parts = zip(self._sums, self._rooms.own, strict=True)
        own = [sums[n][rows.start : rows.stop] for sums, rows in parts]
        return lw.SplitArray(self._rooms.mesh, own, self._rooms.lengths)

    def _bound(self, n: int, rows: range) -> lw.Call:
        """The sums of some rows of the room of a part, over these. Those of others are
        incomplete, and are not read.
        """
        agents = self._rooms.wholes[n][rows.start : rows.stop]
        out = tuple([sums[rows.start : rows.stop] for sums in self._sums[n]])
        return without_look(self._steer(agents, agents, out=out))

    @property
    def counts(self) -> dict[tuple[int, int], int]:
        """How many agents each part gets of each other one before a step."""
        return self._near.counts

    def forget(self) -> None:
        """Agents may be anywhere now: list them anew before the next step."""
        self._left = 0

    def task(self, dt: float) -> Task:
        """The sums of a step of `dt`, as a call of a loop."""
        drift = LISTED * dt * self._settings.parameters.max_speed
        parts = [self._rooms.part(n) for n in self._near.parts]
        sums = [urge.parts[n] for urge in self.urges for n in self._near.parts]

        def run() -> None:
            if not len(self._rooms.array):
                return  # there is no place to search around
            if not self._left:
                self._list(drift)
            self._left -= 1
            self._run()

        return mesh_call("search", "steer", run, self._rooms.devices, reads=parts, writes=sums)

    def _step(self, bring: Any, calls: list[lw.Call]) -> None:
        with together(self._rooms.devices):
            bring()
            for call in calls:
                call()

    # ------------------------------------------------------------ who may come near

    def _list(self, drift: float) -> None:
        """List who may come near in the next steps, in which agents fly so far at most. Several
        processes bring all agents to each other.
        """
        self._left = LISTED
        grid = None if self._rooms.mesh.everywhere else self._grid(drift)
        if grid is None:
            self._run = partial(self._step, self._bring_all, self._all)
            return
        with together(self._rooms.devices):
            changed = self._near.choose(self._needed(grid))
        if changed or not self._calls:
            self._near.bring()  # positions are looked at where calls are bound
            self._calls = [self._bound(n, self._near.of_part(n)) for n in self._near.parts]
        self._run = partial(self._step, self._near.bring, self._calls)

    def _grid(self, drift: float) -> CoarseGrid | None:
        """Cells over all agents; None where it is unknown who may come near."""
        world, radius = self._settings.world, self._settings.parameters.radius
        boxes: list[Any] = []
        for n in self._near.parts:
            corners = box_of(self._rooms.part(n), self._reach, self._end, world)
            if corners is None:
                return None
            boxes.append(corners)
        return grid_over(boxes, self._end, radius, drift, world, len(self._rooms.array))

    def _needed(self, grid: CoarseGrid) -> Chooses:
        """Of the agents of a part those that may come near to agents of another one: not 0."""
        devices, parts = self._rooms.devices, self._near.parts
        cells = {n: self._reach.cells(self._rooms.part(n), **grid.values) for n in parts}
        marks: dict[int, Any] = {}
        for n, (own, _) in cells.items():
            with on(devices[n]):
                marks[n] = grid.marked(array_module(devices[n]), own)
        there: dict[tuple[int, int], Any] = {}
        for p, q in permutations(parts, 2):
            with on(devices[p]):
                there[p, q] = array_module(devices[p]).empty(grid.total + 1, dtype="uint8")
        Moves(
            tuple(
                Move(devices[q], partial(marks.get, q), devices[p], to)
                for (p, q), to in there.items()
            )
        )()

        def needed(p: int, q: int) -> Any:
            (own, mirrored), near = cells[p], there[p, q]
            with on(devices[p]):
                return near[own] | near[mirrored]

        return needed
