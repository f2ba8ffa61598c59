"""The engine of a flock: its agents in memory, and what advances them by their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.profiling.profile import Profile, span
from lanewise.sims.boids.choice import Chosen
from lanewise.sims.boids.choosing import choose_search, looks_for
from lanewise.sims.boids.placing import check_places, check_plane, make_boids, placed
from lanewise.sims.boids.rules import FIELDS
from lanewise.sims.boids.semantics import Semantics, make_semantics
from lanewise.sims.boids.settings import Settings, check_extent, check_fit
from lanewise.sims.boids.state import State, check_state
from lanewise.sims.boids.storage import REORDER, AgentPlaces, make_mesh_storage, make_storage
from lanewise.sims.common.devices import bring, is_mesh, on, place_of
from lanewise.sims.common.loops import product_loop
from lanewise.sims.common.meshes import (
    copied,
    in_one_place,
    parts_of,
    transport_of,
    values_on_host,
)
from lanewise.sims.common.processes import lead
from lanewise.sims.common.searches import in_rooms, laid
from lanewise.support.errors import ArgumentError, InputError


class FlockEngine:
    """Agents, and the launches of a step that are bound to their memory.

    boids: the agents in the order of memory (see `rows`); ids: theirs in the caller's order.
    settings, choice: as they are now; laid: the search with its cells where they lie.
    """

    __slots__ = ("_rooms", "boids", "choice", "ids", "laid", "semantics", "settings", "storage")

    def __init__(
        self,
        settings: Settings,
        state: State,
        search: str | lw.Search | Chosen,
        profile: Profile | None,
        rows: NDArray[np.int32] | None = None,
        laid_before: lw.Search | None = None,
        place: str | lw.Mesh | None = None,
    ) -> None:
        """Allocate, compile and bind. search: as it was requested, or chosen before. place: where
        agents lie; None: as the settings say.

        rows: of the agent at each place in memory; None: as they are in the state. laid_before: see
        `_bind`.
        """
        check_state(state)
        self.ids = state.ids.copy()
        check_places(settings, state.position, state.ids)
        check_plane(settings, state)
        with span(profile, "transfer", name="agents to the device"):
            there = place_of(settings.device) if place is None else place
            self.boids = make_boids(state if rows is None else placed(state, rows), settings, there)
            self._rooms = in_rooms(self.boids) if is_mesh(settings.device) else None
            if self._rooms is not None:
                self.boids = self._rooms.array
        self.storage: AgentPlaces | None = None
        chosen = self._chosen(settings, search)
        self._bind(settings, chosen, rows, laid_before)

    def _chosen(self, settings: Settings, asked: str | lw.Search | Chosen) -> Chosen:
        """What finds flockmates; of several processes all take what the first one chooses."""
        own = choose_search(settings, in_one_place(self.boids), asked)
        return lead(transport_of(self.boids), lambda: own)

    def _bind(
        self,
        settings: Settings,
        chosen: Chosen,
        rows: NDArray[np.int32] | None = None,
        laid_before: lw.Search | None = None,
    ) -> None:
        """Compile, and bind to the memory of the agents. `rows`: of the agent at each place in
        memory, where that is known.

        laid_before: the search with its cells where they were laid for earlier positions, which a
        resumed flock continues with.
        """
        search = laid_before or laid(chosen.search, in_one_place(self.boids))
        try:
            semantics = make_semantics(settings, self.boids, search, chosen.plan, self._rooms)
        except ArgumentError as error:
            raise InputError(str(error)) from error
        storage = self._storage(settings, semantics)
        if storage is not None and rows is not None:
            storage.set(rows)
        # from now on agents lie in the caller's order
        if storage is None and self.storage is not None:
            for name in FIELDS:
                setattr(self.boids, name, self.storage.by_row(getattr(self.boids, name)))
        self.settings, self.choice, self.laid = settings, chosen, search
        self.semantics: Semantics = semantics
        self.storage = storage

    def _storage(self, settings: Settings, semantics: Semantics) -> AgentPlaces | None:
        if self._rooms is None:
            return make_storage(self.boids, semantics.structure, settings.think_every)
        return make_mesh_storage(self._rooms, semantics.structures, semantics.forget)

    def change(self, settings: Settings, search: str | lw.Search | None = None) -> None:
        """Continue with other settings; the search stays where nothing that it follows from
        changes.

        search: another one, as it was requested.
        """
        check_fit(settings)
        check_places(settings, values_on_host(self.by_row(self.boids.position)), self.ids)
        if search is None and looks_for(settings) == looks_for(self.settings):
            chosen = self.choice
        else:
            check_extent(settings)
            before = self.choice.search if settings.search == "given" else settings.search
            asked = before if search is None else search
            chosen = self._chosen(settings, asked)
        if self._rooms is not None:  # where no step reads the urges of the one before
            self._bind(settings, chosen, self.rows)
            return
        with on(settings.device):
            urges = [u.copy() for u in self.semantics.urges]
            self._bind(settings, chosen, self.rows)
            for mine, kept in zip(self.semantics.urges, urges, strict=True):
                mine[...] = kept

    def begin(self) -> None:
        """The user may have written to agents since the last step."""
        self.semantics.forget()

    def make_loop(self, dt: float, step: int, profile: Profile | None) -> lw.Steps:
        """Compile the steps of `dt`, of which `step` were taken."""
        calls: list[list[Any]] = [list(phase) for phase in self.semantics.calls(dt)]
        if self.storage is not None:
            calls[0].insert(0, lw.every(REORDER, self.storage.call()))
        loop = product_loop(calls, len(calls), profile, of="flock")
        loop.step = step
        return loop

    @property
    def changed(self) -> Mapping[str, Any]:
        """What steps write besides what they keep, by its name."""
        first, *others = parts_of(self.boids)
        changed: dict[str, Any] = {"agents": first}
        changed |= {f"agents of part {n}": part for n, part in enumerate(others, 1)}
        if self.storage is not None:
            rows = self.storage.rows
            parts = rows if isinstance(rows, tuple) else (rows,)
            changed |= {f"rows of part {n}" if n else "rows": own for n, own in enumerate(parts)}
        return changed

    @property
    def rows(self) -> NDArray[np.int32]:
        """Of the agent at each place of `boids`."""
        if self.storage is None:
            return np.arange(len(self.boids), dtype=np.int32)
        return self.storage.numbers

    def by_row(self, values: Any) -> Any:
        """Values of agents in the caller's order: a copy where they lie."""
        return copied(values) if self.storage is None else self.storage.by_row(values)

    def state(self) -> State:
        """A copy of the agents on the host."""
        fields = {n: values_on_host(self.by_row(getattr(self.boids, n))) for n in FIELDS}
        return State(**fields, ids=self.ids.copy())

    def follow(self, urges: Sequence[Any]) -> None:
        """Replace the sums over pairs of the last step by those of a checkpoint."""
        device = self.boids.device
        with on(device):
            for mine, kept in zip(self.semantics.urges, urges, strict=False):
                mine[...] = bring(kept, device)
