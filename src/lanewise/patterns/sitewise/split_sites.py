"""Sites on a mesh: a box whose layers lie on several devices, part by part
(`patterns/sitewise/slabs.py`).
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
from lanewise.patterns.sitewise.flags import make_flags
from lanewise.patterns.sitewise.fractions import (
    Interpolation,
    WallFractions,
    interpolation_weights,
    make_interpolation,
)
from lanewise.patterns.sitewise.halo import (
    BoxCut,
    GhostExchange,
    array_exchange,
    leaves_needed,
    record_exchange,
)
from lanewise.patterns.sitewise.kinds import Edges, Rule, Wall, read_edges
from lanewise.patterns.sitewise.sites import DENSE, Sites, kinds_present, may_be_dense
from lanewise.patterns.sitewise.slabs import Slab, cut
from lanewise.patterns.sitewise.standing import Standing
from lanewise.patterns.sitewise.streaming import Form, Phase
from lanewise.records.split_array import SplitArray
from lanewise.runtime.memory import array_module, bring, on, to_host
from lanewise.runtime.mesh import Mesh
from lanewise.support.whole_steps import WholeSteps


class SplitSites(Standing):
    """The sites of a box on a mesh: each part has a slab of layers, as its own sites.

    Make one with `flow.sites(..., device=mesh)`. parts: the sites of each, with ghost layers, which
    stand where the whole stands in a cycle of steps; slabs: their layers. On a mesh of several
    processes they are those of this one, and every process makes the same calls.
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
        slabs = cut_box(mesh, shape, form, self.edges, kinds)
        dense = record is None and self._dense(kinds)
        self.box_cut = BoxCut(mesh, tuple(replace(slab, dense=dense) for slab in slabs), self.plane)
        self.slabs = self.box_cut.slabs[mesh.own.start : mesh.own.stop]
        self.present = slabs[0].kinds
        self.parts = tuple(
            Sites(
                lattice,
                (slab.count, *shape[1:]),
                kinds=np.ascontiguousarray(kinds[slab.numbers]),
                walls=walls,
                edges=edges,
                storage=storage,
                form=form,
                layout=layout,
                device=device,
                record=record,
                slab=slab,
            )
            for slab, device in zip(self.slabs, mesh.devices, strict=True)
        )
        first = self.parts[0].state
        remedy = "set their populations again, or continue from a checkpoint"
        self.state = StepState(first.cycle, WholeSteps("these sites", remedy))
        for part in self.parts:
            part.state = self.state
        self._exchanges: dict[tuple[Phase, int], GhostExchange] = {}
        self._balances: dict[Moving, Balance] = {}
        self._curved = False  # whether walls of any part are interpolated
        # of kernels, what they have bound to this memory
        self.kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def _dense(self, kinds: npt.NDArray[np.uint8]) -> bool:
        """As the sites of one device decide it: so walls hold the same bytes."""
        if not may_be_dense(self.device, self.form, self.count) or not kinds.any():
            return False
        placed = self.form.name == "pull"
        flags = make_flags(self.lattice, kinds, self.edges, self._walls, placed=placed)
        return int(np.count_nonzero(flags)) > DENSE * self.count

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
        own = np.concatenate([part.kinds[self.layers_of(part)] for part in self.parts])
        return self.mesh.gather(own, self.lengths(1))

    @property
    def special(self) -> int:
        """How many sites are no bulk sites of their part."""
        flags = self.gathered([part.flags for part in self.parts])
        return int(np.count_nonzero(flags.numpy()))

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
        flags = self.gathered([part.flags for part in self.parts]).numpy()
        interpolation_weights(self.lattice, fractions, flags, self._walls)  # which checks it
        for part, slab in zip(self.parts, self.slabs, strict=True):
            first, stop = slab.layers.start * self.plane, slab.layers.stop * self.plane
            here = slice(*np.searchsorted(fractions.places, (first, stop)))
            places = fractions.places[here] - first + slab.own(self.plane).start
            own = WallFractions(places, fractions.fractions[here])
            mine = to_host(part.flags)
            part.interpolation = make_interpolation(
                self.lattice, own, mine, self._walls, real, part.device
            )

    # ------------------------------------------------------------ parts and the whole

    def layers_of(self, part: Sites) -> slice:
        assert part.slab is not None
        return part.slab.own(1)

    def gathered(self, values: Sequence[Any]) -> SplitArray:
        """What arrays with a row for each site of a part hold of the whole, without the ghosts."""
        pairs = zip(self.slabs, values, self.mesh.devices, strict=True)
        own: list[Any] = []
        for slab, array, device in pairs:
            with on(device):
                own.append(array[slab.own(self.plane)])
        return SplitArray(self.mesh, own, self.lengths(self.plane))

    def lengths(self, rows: int) -> tuple[int, ...]:
        """How many rows all parts own, of which a layer has so many."""
        return tuple(len(slab.layers) * rows for slab in self.box_cut.slabs)

    def cut(self, values: Any) -> list[Any]:
        """The rows of each part, with the ghosts, of an array with a row for each layer or site."""
        rows = len(values) // self.shape[0]
        if isinstance(values, SplitArray):
            values = values.numpy()
        pieces: list[Any] = []
        for slab, device in zip(self.slabs, self.mesh.devices, strict=True):
            first, stop = slab.layers.start - slab.below, slab.layers.stop + slab.above
            spans = [(max(first, 0), min(stop, slab.box))]
            if first < 0:
                spans.insert(0, (first + slab.box, slab.box))
            if stop > slab.box:
                spans.append((0, stop - slab.box))
            each = [bring(values[a * rows : b * rows], device) for a, b in spans]
            pieces.append(array_module(device).concatenate(each) if len(each) > 1 else each[0])
        return pieces

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

            def leaves_of(steps: int) -> Sequence[int]:
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
    for part, slab in zip(sites.parts, sites.slabs, strict=True):
        layers, plane = slab.layers, sites.plane
        own = bring(row[layers.start * plane : layers.stop * plane], part.device)
        with on(part.device):
            setattr(part.current[slab.own(plane)], name, own)


def leaf_of(sites: SplitSites, name: str, real: Scalar) -> SplitArray:
    """A field of the records that the next step reads, as an array of the box's shape."""
    found: list[Any] = []
    for part in sites.parts:
        with on(part.device):
            column = getattr(part.current, name).astype(real.dtype)
            found.append(column.reshape(part.shape)[sites.layers_of(part)])
    return SplitArray(sites.mesh, found, sites.lengths(1))


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


def cut_box(
    mesh: Mesh, shape: tuple[int, ...], form: Form, edges: Edges, kinds: npt.NDArray[np.uint8]
) -> tuple[Slab, ...]:
    """The slabs of a box with these edges and kinds of sites."""
    periodic = edges.face(len(shape) - 1, 1) == "periodic"
    return cut(mesh, shape, form, periodic=periodic, kinds=kinds_present(kinds))
