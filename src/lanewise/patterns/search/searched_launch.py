"""The launches of one bound call over a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewise.language.target import is_gpu
from lanewise.language.types import I32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.compiled import Call
from lanewise.launch.own_memory import nothing
from lanewise.launch.task_list import views_of_memory
from lanewise.patterns.mesh_launch import MeshLaunch, MeshRound
from lanewise.patterns.search.base import ORDER, Structure
from lanewise.patterns.search.tree.arguments import TARGET_ORDER
from lanewise.patterns.search.watched import DeviceFilling, Guard
from lanewise.runtime.lease import Lease
from lanewise.runtime.prepared import Flat, Prepared
from lanewise.runtime.programs import Work
from lanewise.support.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class SearchedLaunch:
    """The launches of one call: those of the structure, the gather of its sources, the kernel.

    The structure's memory is this call's own, and every call fills it anew: threads that share the
    call share a lease. launches: all of them, of which so many as `builds` come before the walk and
    its tests. guards: what looks at positions before, on the host. looked: on a GPU, the
    filling together with a look at positions; walked: what follows it. follow: gives the launch of
    a plain call on the elements where they are now, or None for this one; it is None itself where
    this one fits wherever they are. looks: the guards, also on a GPU. orders: so many first
    launches make an order that a loop may keep for some steps.
    """

    structure: Structure
    launches: Prepared
    builds: int
    guards: tuple[Callable[[], None], ...] = ()
    looked: Callable[[], None] | None = None
    walked: Work = nothing
    follow: Callable[[], SearchedLaunch | None] | None = None
    looks: tuple[Guard, ...] = ()
    orders: int = 0

    def check(self) -> None:
        """Raise `ArgumentError` where an array was changed in length since the structure was made
        for it.
        """
        self.launches.check()

    @property
    def lease(self) -> Lease:
        """At the memory of the structure."""
        assert self.launches.lease is not None
        return self.launches.lease

    @property
    def fill(self) -> Work:
        """What builds the structure, and puts the sources in its order."""
        return self.launches.part(0, self.builds)

    @property
    def kernel(self) -> Prepared:
        """What walks through the structure, with the tests of indices before it."""
        return replace(self.launches, pieces=self.launches.pieces[self.builds :], lease=None)

    def opened(self, arrays: frozenset[str], values: frozenset[str]) -> Flat | None:
        """The same launches, of which the walk is open for these; None where values are fixed."""
        walk = self.kernel.opened(arrays, values)
        return None if walk is None else replace(walk, lease=self.lease, first=(self.fill,))

    def __call__(self) -> None:
        self.check()
        for guard in self.guards:
            guard()
        if self.looked is None:
            self.launches.run()
            return
        with self.lease:
            self.looked()
            self.walked()

    @property
    def waits(self) -> bool:
        """Whether the host takes part, in what builds the structure or in what walks through it."""
        return self.launches.waits

    @property
    def ordering(self) -> Prepared:
        """What makes an order that may be kept."""
        return replace(self.launches, pieces=self.launches.pieces[: self.orders])

    def on_orders(self, device: str, orders: Mapping[str, Any]) -> SearchedLaunch:
        """The same launches on orders in other memory, by their names."""
        memory = {n: bind_value_array(order, I32).data for n, order in orders.items()}
        launches = self.launches.elsewhere(views_of_memory(memory, device), memory)
        return self._with(device, launches, self.builds, self.orders)

    def keeping_order(self, device: str) -> SearchedLaunch:
        """The same launches without those that make an order."""
        launches = replace(self.launches, pieces=self.launches.pieces[self.orders :])
        return self._with(device, launches, self.builds - self.orders, 0)

    def _with(self, device: str, launches: Prepared, builds: int, orders: int) -> SearchedLaunch:
        made = replace(self, launches=launches, builds=builds, orders=orders)
        return made if self.looked is None else made.guarded(device, self.looks)

    def guarded(self, device: str, guards: tuple[Guard, ...]) -> SearchedLaunch:
        """The same launches behind a look at positions, for a call that runs many times."""
        if not is_gpu(device):
            return replace(self, guards=guards, looks=guards)
        return replace(
            self,
            looked=DeviceFilling(device, guards, self.fill, self.structure.in_graphs),
            walked=self.launches.part(self.builds),
            looks=guards,
        )

    def unguarded(self) -> SearchedLaunch:
        """The same launches without a look at positions, for code that looks at them afterwards."""
        return replace(self, guards=(), looked=None, looks=())


def builds_of(structure: Structure) -> int:
    """How many launches of a call come before its walk."""
    return len(structure.tasks()) + structure.ordered + structure.targets_ordered


def orders_of(structure: Structure) -> list[tuple[str, Any]]:
    """The orders that a structure has, by the names that launches have for them."""
    orders = ((ORDER, structure.order), (TARGET_ORDER, structure.target_order))
    return [(name, order) for name, order in orders if order is not None]


def structure_of(call: Call) -> Structure:
    """The structure of a bound call over a search.

    Raises `ArgumentError` for a call over all pairs, which has none.
    """
    launch: Any = call.launch
    if isinstance(launch, MeshLaunch):  # all parts have the same one
        return structure_of(launch.rounds[0].calls[0])
    if not isinstance(launch, SearchedLaunch):
        raise ArgumentError(f"{call.compiled.name} runs over all pairs: it has no search structure")
    return launch.structure


def without_look(call: Call) -> Call:
    """A bound call over a search that looks at no positions, for code that does so afterwards."""
    launch: Any = call.launch
    if isinstance(launch, MeshLaunch):
        parts = tuple(
            MeshRound(r.brought, tuple(map(without_look, r.calls))) for r in launch.rounds
        )
        return replace(call, launch=replace(launch, rounds=parts))
    return replace(call, launch=launch.unguarded()) if isinstance(launch, SearchedLaunch) else call
