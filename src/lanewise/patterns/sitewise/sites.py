"""Sites: the populations of all sites of a box, and what is known of every site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.language.types import Scalar
from lanewise.launch.steps.task import StepState
from lanewise.layouts import AoSoA, Layout, SoA
from lanewise.patterns.sitewise.balance import Balance, Moving, kept_balance
from lanewise.patterns.sitewise.blocks import Block
from lanewise.patterns.sitewise.flags import (
    KIND_SHIFT,
    LINKS,
    SECTOR,
    make_flags,
    make_marks,
    make_spans,
    mark_mixed,
    mark_shared_sectors,
)
from lanewise.patterns.sitewise.fractions import WEIGHTS, Interpolation, weight_array
from lanewise.patterns.sitewise.kinds import AXES, MOST, Edges, Rule, Wall, read_edges
from lanewise.patterns.sitewise.runs import Classes, make_classes, make_places, make_runs
from lanewise.patterns.sitewise.site_records import population_record, zero_records
from lanewise.patterns.sitewise.standing import Standing
from lanewise.patterns.sitewise.streaming import Form, Phase
from lanewise.records.arrays import RecordArray
from lanewise.runtime.cpu import SLAB_UNIT
from lanewise.runtime.memory import array_module, bring, to_host
from lanewise.support.errors import ArgumentError
from lanewise.support.whole_steps import WholeSteps

LEAST_DENSE = 65_536  # sites of a box that is worth telling dense from sparse
VECTOR = 4  # sites that a thread may load at once
# share of special sites from which on a GPU every site reads its flags first
# (bench/results/gpu_lbm.md)
DENSE = 0.1


class Sites(Standing):
    """The sites of a box: populations in a streaming form, storage type and layout, and the flags
    of every site.

    Make one with `flow.sites(...)`. `state`: where they stand in a cycle of steps.
    """

    def __init__(
        self,
        lattice: Lattice,
        shape: tuple[int, ...],
        *,
        kinds: npt.NDArray[np.uint8],
        walls: tuple[Wall, ...],
        edges: Mapping[str, Rule] | None,
        storage: Scalar,
        form: Form,
        layout: Layout,
        device: str,
        record: Record | None = None,
        block: Block | None = None,
        mixed: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """`record`: what a site holds instead of populations. block: of a part of a larger box,
        which of its sites these are. mixed: which of these share a sector of the box's memory with
        a site that is updated, where their own memory does not say it.
        """
        self.lattice = lattice
        self.shape = shape
        self.form = form
        self.storage = storage
        self.device = device
        self.edges: Edges = read_edges(edges, lattice.dimension, {w.name: w.number for w in walls})
        self.layout, self.block = layout, block
        # of a part those of the whole box: all parts run the same kernels
        self.present = kinds_present(kinds) if block is None else block.kinds
        held = record or population_record(lattice, storage)
        self.copies = [
            zero_records(held, self.count, self.layout, device) for _ in range(form.buffers)
        ]
        self._walls = frozenset(w.number for w in walls)
        # On a GPU every site computes where it lies, when that is all that it takes to find its
        # neighbours.
        self.placed = target_of(device).has_blocks and form.name in ("pull", "two-copies")
        self.framed = self.placed and not any(self.present)
        self.row_block = (
            0 if not self.placed else row_block_of(layout, shape[-1], plain=record is not None)
        )
        self._mark(kinds, walls, mixed, plain=record is None)
        remedy = "set their populations again, or continue from a checkpoint"
        whole = WholeSteps("these sites", remedy)
        self.state = StepState(max(len(form.phases), form.buffers), whole)
        self._parts: dict[int | None, Any] = {}
        self._classes: Classes | None = None
        self._moving = frozenset(w.number for w in walls if w.velocity is not None)
        self._walled: Any = None
        self._outlets: dict[tuple[int, int], Any] = {}
        self.outflow: dict[tuple[int, int], Any] = {}
        self.interpolation: Interpolation | None = None
        self._walled_weights: Any = None
        # one number a site, written by observers before each step
        self.fields: dict[tuple[str, Scalar], Any] = {}
        self._balances: dict[Moving, Balance] = {}
        # of kernels, what they have bound to this memory
        self.kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        _check_outlets(self.edges, self.shape)

    def _mark(
        self,
        kinds: npt.NDArray[np.uint8],
        walls: tuple[Wall, ...],
        mixed: npt.NDArray[np.bool_] | None,
        *,
        plain: bool,
    ) -> None:
        """Bring the flags of all sites to the device, and bits that say which of them are special.
        plain: they hold populations.
        """
        block, device = self.block, self.device
        flags = make_flags(self.lattice, kinds, self.edges, self._walls, placed=self.placed)
        # In place memory counts: there every site reads its flags instead of a bit that says
        # whether it has to.
        self.special = int(np.count_nonzero(flags))
        self.dense = (
            may_be_dense(device, self.form, self.count)
            and plain
            and not self.framed
            and self.special > DENSE * self.count
            if block is None
            else block.dense
        )
        marked = self.form.buffers > 1 and not self.dense
        solid = solid_sites(kinds, walls).reshape(-1) if self.present & self._walls else None
        if solid is not None and self.dense:
            if mixed is None:
                sector = SECTOR // self.storage.size
                first = 0 if block is None else block.first % sector
                mark_shared_sectors(flags, solid, sector, first)
            else:
                mark_mixed(flags, solid, mixed)
        self.flags = bring(flags, device)
        self.marks = bring(make_marks(flags), device) if marked else None
        self.solids = None if solid is None or not marked else bring(make_marks(solid), device)
        self.wall_sites = 0 if solid is None else int(np.count_nonzero(solid))

    def field(self, name: str, kind: Scalar) -> Any:
        """The array of a field that an observer writes, (count,) on the device."""
        if (name, kind) not in self.fields:
            self.fields[name, kind] = array_module(self.device).zeros(self.count, kind.dtype)
        return self.fields[name, kind]

    def balance(self, velocities: Mapping[int, tuple[float, ...]]) -> Balance:
        """What walls that move with these velocities add to the mass of the box."""
        box = self.lattice, self.kinds, self.edges, self._walls
        return kept_balance(self._balances, *box, velocities)

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of populations, flags and marks on the device."""
        arrays = (self.flags, self.marks, self.solids)
        return sum(c.nbytes for c in self.copies) + sum(
            int(x.nbytes) for x in arrays if x is not None
        )

    @property
    def fetched_bytes(self) -> int | None:
        """How many bytes at a time memory should be requested; None: as always.

        Among many walls fewer are loaded in vain.
        """
        return SECTOR if self.dense else None

    @property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """The kind of every site, in the lattice's shape."""
        return (
            (to_host(self.flags) >> np.uint32(KIND_SHIFT) & np.uint32(31))
            .astype(np.uint8)
            .reshape(self.shape)
        )

    @property
    def current(self) -> RecordArray:
        """The copy of the populations that the next step reads."""
        return self.copies[self.step % len(self.copies)]

    @property
    def following(self) -> RecordArray:
        """The copy that the next step writes."""
        return self.copies[(self.step + 1) % len(self.copies)]

    def _places(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Indices of sites, or spans of them, on the device, in the type that its kernels count
        in.
        """
        index = target_of(self.device).index.dtype
        return bring(np.ascontiguousarray(numbers.astype(index)), self.device)

    def part(self, kind: int | None) -> Any:
        """Spans (n, 2) of the bulk (None), or the special sites of a kind (-1: of all but walls),
        as indices on the device.
        """
        if kind not in self._parts:
            flags, kinds = to_host(self.flags), self.kinds.reshape(-1)
            if kind is None:
                chosen = flags == 0
            elif kind < 0:
                chosen = (flags != 0) & ~np.isin(kinds, sorted(self._walls))
            else:
                chosen = (flags != 0) & (kinds == kind)
            chosen = self._stepped(chosen)
            spans = kind is None
            places = make_spans(chosen, SLAB_UNIT) if spans else np.flatnonzero(chosen)
            self._parts[kind] = self._places(places)
        return self._parts[kind]

    def _stepped(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Of some sites those that a step has to update: all but ghosts that are not read."""
        return chosen if self.block is None else _within(chosen, self.block.stepped)

    def _owned(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Of some sites those that are no ghosts."""
        return chosen if self.block is None else _within(chosen, self.block.own)

    @property
    def ranged(self) -> bool:
        """Whether steps of a part run over some of its layers at a time."""
        if self.block is None or not target_of(self.device).has_blocks:
            return False
        return self.block.spans[0].count > len(self.block.spans[0].owned)

    @property
    def place(self) -> tuple[int, bool]:
        """Where the sites stand in a cycle of steps, and whether they have made none."""
        return self.step % self.cycle, self.fresh

    @property
    def classes(self) -> Classes:
        """The classes of sites whose links lead alike."""
        if self._classes is None:
            moving_sites = bool(self._moving & self.present)
            self._classes = make_classes(
                to_host(self.flags), self.shape, self.edges, self._moving, moving_sites
            )
        return self._classes

    def runs(self) -> Any:
        """The runs (n, 3) of sites of one class, on the device: first, after the last, class."""
        of_site = self.classes.of_site
        if self.block is not None:
            of_site = np.where(self._stepped(np.ones(self.count, np.bool_)), of_site, -1)
        return self._places(make_runs(of_site, SLAB_UNIT))

    def places(self, phase: Phase) -> Any:
        """Where the populations of each class arrive from in a phase, (classes, Q) scalars on the
        device; for one array a population.
        """
        arrangement = self.layout.arrange(population_record(self.lattice, self.storage).leaves)
        size = self.storage.size
        starts = [n // size for n in arrangement.starts(self.count)]
        return self._places(
            make_places(self.classes, self.lattice, self.shape, self.edges, phase, starts)
        )

    def unclassed(self, kind: int) -> Any:
        """The sites of `part(kind)` that belong to no class."""
        listed = to_host(self.part(kind))
        return self._places(listed[self.classes.of_site[listed] < 0])

    @property
    def walled(self) -> Any:
        """The sites of no wall that have links cut by walls, as an array of indices on the
        device.
        """
        if self._walled is None:
            solid = np.isin(self.kinds.reshape(-1), sorted(self._walls))
            walled = (to_host(self.flags) & LINKS != 0) & ~solid
            self._walled = self._places(np.flatnonzero(self._owned(walled)))
        return self._walled

    @property
    def walled_weights(self) -> RecordArray:
        """The weights of interpolated links for each of the sites `walled`, zeros where there are
        none.
        """
        if self._walled_weights is None:
            interpolation = self.interpolation
            assert interpolation is not None
            walled = to_host(self.walled)
            rows = np.zeros((len(WEIGHTS), len(walled), self.lattice.size))
            weights = interpolation.weights.numpy()
            places = np.searchsorted(walled, to_host(interpolation.places))
            for values, name in zip(rows, WEIGHTS, strict=True):
                for q in range(1, self.lattice.size):
                    values[places, q] = weights[f"{name}{q}"]
            real = interpolation.weights.record.leaves[0].type
            self._walled_weights = weight_array(self.lattice, rows, real, self.device)
        return self._walled_weights

    def outlet(self, axis: int, step: int) -> Any:
        """The sites of an outflow face that are no walls, nor behind one, as indices on the
        device.
        """
        if (axis, step) not in self._outlets:
            open_sites = ~np.isin(self.kinds, sorted(self._walls))
            owned = self._owned(np.ones(self.count, np.bool_)).reshape(self.shape)
            ends: list[Any] = [slice(None)] * len(self.shape)
            further = list(ends)
            ends[-1 - axis], further[-1 - axis] = (0, 1) if step < 0 else (-1, -2)
            places = np.arange(self.count).reshape(self.shape)[tuple(ends)]
            is_open = open_sites[tuple(ends)] & open_sites[tuple(further)] & owned[tuple(ends)]
            open_places = places[is_open].reshape(-1)
            self._outlets[axis, step] = self._places(open_places)
        return self._outlets[axis, step]

    def before(self, axis: int, step: int, real: Scalar) -> Any:
        """What arrived through an outflow face, (sites, unknown directions) on the device: part of
        the state, as populations are.
        """
        if (axis, step) not in self.outflow:
            unknown = sum(e[axis] == -step for e in self.lattice.velocities)
            shape = (len(self.outlet(axis, step)), unknown)
            self.outflow[axis, step] = array_module(self.device).zeros(shape, real.dtype)
        return self.outflow[axis, step]

    def __repr__(self) -> str:
        size = " x ".join(map(str, reversed(self.shape)))
        return (
            f"<{size} sites of {self.lattice.name}, {self.storage}, {self.form.name}, "
            f"{self.layout} on {self.device}>"
        )


def row_block_of(layout: Layout, extent: int, *, plain: bool = False) -> int:
    """The sites of a block of the layout, if rows of this extent are whole blocks; else 0.

    With `plain` also the sites of a vector, where each field has an array for itself.
    """
    width = layout.width if isinstance(layout, AoSoA) else 1
    if plain and isinstance(layout, SoA):
        return VECTOR if extent % VECTOR == 0 else 0
    return width if width > 1 and extent % width == 0 else 0


def may_be_dense(device: str, form: Form, count: int) -> bool:
    """Whether so many sites may each read their flags first, if enough of them are special."""
    return target_of(device).has_blocks and form.buffers > 1 and count >= LEAST_DENSE


def kinds_present(kinds: npt.NDArray[np.uint8]) -> frozenset[int]:
    """The kinds that some sites have."""
    return frozenset(int(k) for k in np.flatnonzero(np.bincount(kinds.reshape(-1), minlength=MOST)))


def _within(
    chosen: npt.NDArray[np.bool_], part: slice | npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    kept = np.zeros_like(chosen)
    kept[part] = chosen[part]
    return kept


def solid_sites(kinds: npt.NDArray[np.uint8], walls: tuple[Wall, ...]) -> npt.NDArray[np.bool_]:
    """Which sites are walls."""
    return np.isin(kinds, sorted({w.number for w in walls}))


def _check_outlets(edges: Edges, shape: tuple[int, ...]) -> None:
    for axis, _ in edges.outlets:
        if shape[-1 - axis] < 2:
            raise ArgumentError(
                "an outflow looks one site further in: wanted at least 2 sites along "
                f"{AXES[axis]}, found 1"
            )
