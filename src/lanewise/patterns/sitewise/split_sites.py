"""Sites on a mesh: a box that lies on several devices, part by part
(`patterns/sitewise/blocks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.launch.steps.task import StepState
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.balance import Balance, Moving, kept_balance
from lanewise.patterns.sitewise.blocks import blocks_of, cut_box
from lanewise.patterns.sitewise.flags import SECTOR, make_flags, mixed_sectors
from lanewise.patterns.sitewise.fractions import (
    Interpolation,
    WallFractions,
    interpolation_weights,
    make_interpolation,
)
from lanewise.patterns.sitewise.halo import (
    BoxCut,
    GhostExchange,
    Steps,
    array_exchange,
    leaves_needed,
    record_exchange,
)
from lanewise.patterns.sitewise.kinds import Edges, Rule, Wall, read_edges
from lanewise.patterns.sitewise.parts import (
    block_of,
    own_column,
    own_rows,
    own_rows_of_parts,
    row_lengths,
    rows_of_parts,
    rows_on_mesh,
    set_own_column,
    sites_in_order,
    whole_rows,
)
from lanewise.patterns.sitewise.sites import (
    DENSE,
    Sites,
    kinds_present,
    may_be_dense,
    solid_sites,
)
from lanewise.patterns.sitewise.split_ghosts import Ghosts
from lanewise.patterns.sitewise.standing import Standing
from lanewise.patterns.sitewise.streaming import Form, Phase
from lanewise.records.split_array import SplitArray
from lanewise.runtime.memory import on, to_host
from lanewise.runtime.mesh import Mesh
from lanewise.support.whole_steps import WholeSteps


class SplitSites(Standing):
    """The sites of a box on a mesh: each part has a slab or a block of them, as its own sites.

    Make one with `flow.sites(..., device=mesh)`. parts: the sites of each, with ghost layers, which
    stand where the whole stands in a cycle of steps; on a mesh of several processes they are those
    of this one, and every process makes the same calls.
    """

    def __init__(
        self,
        mesh: Mesh,
        lattice: Lattice,
        shape: tuple[int, ...],
        *,
        kinds: npt.NDArray[np.uint8],
        walls: tuple[Wall, ...],
        edges: Mapping[str, Rule] | None,
        storage: Scalar,
        form: Form,
        layout: Layout,
        record: Record | None = None,
    ) -> None:
        """As those of one device. Raises `ArgumentError` where parts would be thinner than 8
        layers.
        """
        self.mesh, self.lattice, self.shape = mesh, lattice, shape
        self.form, self.storage, self.layout = form, storage, layout
        numbers = {w.name: w.number for w in walls}
        self.edges: Edges = read_edges(edges, lattice.dimension, numbers)
        self._walls = frozenset(numbers.values())
        periodic = periodic_axes(self.edges)
        cut, self.present = cut_box(mesh, shape, periodic), kinds_present(kinds)
        dense = record is None and self._dense(kinds)
        blocks = blocks_of(cut, form, periodic, self.present)
        blocks = tuple(replace(block, dense=dense) for block in blocks)
        self.box_cut = BoxCut(mesh, cut, periodic, blocks)
        mixed = self._mixed(kinds, walls) if dense and not self.box_cut.in_slabs else None
        self.parts = tuple(
            Sites(
                lattice,
                block.shape,
                kinds=np.ascontiguousarray(kinds[block.numbers]),
                walls=walls,
                edges=edges,
                storage=storage,
                form=form,
                layout=layout,
                device=device,
                record=record,
                block=block,
                mixed=None if mixed is None else mixed[block.numbers].reshape(-1),
            )
            for block, device in zip(self.box_cut.own, mesh.devices, strict=True)
        )
        first = self.parts[0].state
        remedy = "set their populations again, or continue from a checkpoint"
        self.state = StepState(first.cycle, WholeSteps("these sites", remedy))
        for part in self.parts:
            part.state = self.state
        self.ghosts = Ghosts(mesh.devices)
        self._exchanges: dict[tuple[Phase, int], GhostExchange] = {}
        self._balances: dict[Moving, Balance] = {}
        self._curved = False  # whether walls of any part are interpolated
        self._walled: Any = None
        # of kernels, what they have bound to this memory
        self.kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def _dense(self, kinds: npt.NDArray[np.uint8]) -> bool:
        """As the sites of one device decide it: so walls hold the same bytes."""
        if not may_be_dense(self.device, self.form, self.count) or not kinds.any():
            return False
        placed = self.form.name == "pull"
        flags = make_flags(self.lattice, kinds, self.edges, self._walls, placed=placed)
        return int(np.count_nonzero(flags)) > DENSE * self.count

    def _mixed(
        self, kinds: npt.NDArray[np.uint8], walls: tuple[Wall, ...]
    ) -> npt.NDArray[np.bool_]:
        """Of each site, whether its sector in the memory of one device holds one that is updated:
        memory of blocks has other sectors.
        """
        solid = solid_sites(kinds, walls).reshape(-1)
        return mixed_sectors(solid, SECTOR // self.storage.size).reshape(kinds.shape)

    @property
    def device(self) -> str:
        """That of the first part."""
        return self.mesh.devices[0]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def plane(self) -> int:
        """The sites of a layer along the slowest axis."""
        return self.count // self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of populations, flags and marks on the devices of this process, with the
        ghosts.
        """
        return sum(part.nbytes for part in self.parts)

    @property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """The kind of every site, in the lattice's shape."""
        own = [own_rows(block_of(part), part.kinds.reshape(-1)) for part in self.parts]
        return whole_rows(self.box_cut, own).reshape(self.shape)

    @property
    def special(self) -> int:
        """How many sites are no bulk sites of their part."""
        return int(np.count_nonzero(self.whole_of([part.flags for part in self.parts])))

    @property
    def interpolations(self) -> tuple[Interpolation | None, ...]:
        """The interpolated links of each part."""
        return tuple(part.interpolation for part in self.parts)

    @property
    def corrected(self) -> bool:
        """Whether populations are corrected between two steps, in whichever part."""
        return self._curved or bool(self.edges.outlets)

    def balance(self, velocities: Mapping[int, tuple[float, ...]]) -> Balance:
        """What walls that move with these velocities add to the mass of the box."""
        box = self.lattice, self.kinds, self.edges, self._walls
        return kept_balance(self._balances, *box, velocities)

    # ------------------------------------------------------------ where they stand

    def interpolate(self, fractions: WallFractions | None, real: Scalar) -> None:
        """Let walls cut links at these fractions. Raises `ArgumentError` for what does not fit."""
        if fractions is None:
            return
        self._curved = len(fractions.places) > 0
        flags = self.whole_of([part.flags for part in self.parts])
        interpolation_weights(self.lattice, fractions, flags, self._walls)  # which checks it
        for part in self.parts:
            here, places = block_of(part).owned_among(fractions.places)
            own = WallFractions(places, fractions.fractions[here])
            mine = to_host(part.flags)
            part.interpolation = make_interpolation(
                self.lattice, own, mine, self._walls, real, part.device
            )

    # ------------------------------------------------------------ parts and the whole

    def gathered(self, values: Sequence[Any]) -> SplitArray:
        """What arrays with a row for each site of a part hold of the whole, without the ghosts."""
        return rows_on_mesh(self.box_cut, self._own(values), self.plane)

    def whole_of(self, values: Sequence[Any]) -> npt.NDArray[Any]:
        """The same on the host."""
        return whole_rows(self.box_cut, self._own(values))

    def _own(self, values: Sequence[Any]) -> list[Any]:
        own: list[Any] = []
        for block, array, device in zip(self.box_cut.own, values, self.mesh.devices, strict=True):
            with on(device):
                own.append(own_rows(block, array))
        return own

    def cut(self, values: Any) -> list[Any]:
        """The rows of each part, with the ghosts, of an array with a row for each site, in one axis
        or in those of the box.
        """
        return rows_of_parts(self.box_cut, values)

    def walled_order(self) -> npt.NDArray[np.int64] | None:
        """The sites next to walls of all parts, as they follow each other in the box; None where
        those of one part after another do so.
        """
        if self._walled is None and not self.box_cut.in_slabs:
            numbers = sites_in_order(self.box_cut, [part.walled for part in self.parts])
            self._walled = None if numbers is None else np.argsort(numbers)
        return self._walled

    # ------------------------------------------------------------ ghosts

    def exchange(self, phase: Phase, step: int) -> GhostExchange:
        """Brings the ghosts that a phase needs, in the copy of the populations that a step
        reads.
        """
        copy = step % self.form.buffers
        if (phase, copy) not in self._exchanges:
            held = [part.copies[copy] for part in self.parts]
            populations = len(held[0].record.leaves) == self.lattice.size
            fields = range(len(held[0].record.leaves))

            def leaves_of(steps: Steps) -> Sequence[int]:
                if self.form.name == "two-copies":
                    return fields
                assert populations
                return leaves_needed(self.lattice, phase, steps)

            what = "populations" if populations else "fields"
            self._exchanges[phase, copy] = record_exchange(
                f"ghosts of {what}", held, self.box_cut, self.storage, leaves_of
            )
        return self._exchanges[phase, copy]

    def array_exchange(self, name: str, arrays: Sequence[Any]) -> GhostExchange:
        """Brings the ghosts of arrays with a row for each site of a part."""
        return array_exchange(name, arrays, self.box_cut)

    def __repr__(self) -> str:
        size = " x ".join(map(str, reversed(self.shape)))
        return (
            f"<{size} sites of {self.lattice.name}, {self.storage}, {self.form.name}, "
            f"{self.layout} on a mesh ({self.mesh})>"
        )


AnySites = Sites | SplitSites


def set_leaf(sites: AnySites, name: str, values: Any) -> None:
    """Give a field of the records that the next step reads its values: an array with one per site,
    on the first device, of any type.
    """
    with on(sites.device):
        row = values.astype(sites.storage.dtype).reshape(-1)
    if isinstance(sites, Sites):
        with on(sites.device):
            setattr(sites.current, name, row)
        return
    sites.ghosts.changed()
    for part, own in zip(sites.parts, own_rows_of_parts(sites.box_cut, row), strict=True):
        set_own_column(part, name, own)


def leaf_of(sites: SplitSites, name: str, real: Scalar) -> SplitArray:
    """A field of the records that the next step reads, as an array of the box's shape."""
    own: list[Any] = []
    for part in sites.parts:
        column = own_column(part, name)
        with on(part.device):
            own.append(column.astype(real.dtype))
    found = rows_on_mesh(sites.box_cut, own, sites.plane)
    layers = [rows.reshape(-1, *sites.shape[1:]) for rows in found.parts]
    return SplitArray(sites.mesh, layers, row_lengths(sites.box_cut, 1))


def sites_on(
    where: str | Mesh,
    lattice: Lattice,
    shape: tuple[int, ...],
    *,
    kinds: npt.NDArray[np.uint8],
    walls: tuple[Wall, ...],
    edges: Mapping[str, Rule] | None,
    storage: Scalar,
    form: Form,
    layout: Layout,
    record: Record | None = None,
) -> AnySites:
    """The sites of a box on a device or a mesh; see `Sites`."""
    if isinstance(where, Mesh):
        return SplitSites(
            where,
            lattice,
            shape,
            kinds=kinds,
            walls=walls,
            edges=edges,
            storage=storage,
            form=form,
            layout=layout,
            record=record,
        )
    return Sites(
        lattice,
        shape,
        kinds=kinds,
        walls=walls,
        edges=edges,
        storage=storage,
        form=form,
        layout=layout,
        device=where,
        record=record,
    )


def periodic_axes(edges: Edges) -> tuple[bool, ...]:
    """Which axes wrap around, the slowest one first."""
    return tuple(low == "periodic" for low, _ in reversed(edges.faces))
