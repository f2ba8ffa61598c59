"""Blocks: a box of sites cut along one axis or several, one block for each part of a mesh.

A part is a box of sites like any other: the layers that it owns along every axis, and ghost layers,
copies of those that its neighbours own. Its edges are those of the whole box, so its kernels are as
well. What a face does to the outermost ghosts is wrong there, and is not read: ghosts are brought
anew before every step that looks at them. A slab is a block of a box that is cut along its slowest
axis alone.

How many layers of ghosts there are follows from the streaming form. A step that only loads along
links needs one. A step that puts along links needs what its neighbours would put: the first ghosts
are updated as their owners update them, from copies of all that arrives there, so that nothing has
to be brought back. Their links lead to a second layer.

Axes are those of arrays, the slowest one first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import prod

import numpy as np
import numpy.typing as npt

from lanewise.launch.sent import even
from lanewise.patterns.sitewise.kinds import AXES
from lanewise.patterns.sitewise.streaming import Form
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

LEAST_LAYERS = 8  # of a part, along every axis that is cut
MOST_SLABS = 8  # parts that are slabs wherever these are thick enough

Whole = npt.NDArray[np.int64]
Place = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What a part has along an axis.

    owned: the layers of the box that it owns. below, above: how many ghosts it has on either side.
    box: layers of the whole box.
    """

    owned: range
    below: int
    above: int
    box: int

    @property
    def count(self) -> int:
        """Layers with the ghosts."""
        return self.below + len(self.owned) + self.above

    @property
    def numbers(self) -> Whole:
        """Which layer of the box each of them is."""
        first, stop = self.owned.start - self.below, self.owned.stop + self.above
        return np.arange(first, stop) % self.box

    def inner(self, more: int = 0) -> slice:
        """Those of its layers that it owns, and so many of the ghosts next to them."""
        first = self.below - min(more, self.below)
        return slice(first, self.below + len(self.owned) + min(more, self.above))


@dataclass(frozen=True, slots=True)
class Block:
    """The sites of a part.

    updated: how many layers of its ghosts are updated as its own are. kinds: those of all sites of
    the box. dense: whether so many of these are special that each reads its flags.
    """

    spans: tuple[Span, ...]
    updated: int = 0
    kinds: frozenset[int] = frozenset()
    dense: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """With the ghosts."""
        return tuple(s.count for s in self.spans)

    @property
    def owned_shape(self) -> tuple[int, ...]:
        return tuple(len(s.owned) for s in self.spans)

    @property
    def place(self) -> Place:
        """Where the sites that it owns lie in the box."""
        return tuple(slice(s.owned.start, s.owned.stop) for s in self.spans)

    @property
    def inner(self) -> Place:
        """The sites that it owns, among its own and the ghosts."""
        return tuple(s.inner() for s in self.spans)

    @property
    def numbers(self) -> tuple[Whole, ...]:
        """Which sites of the box its sites are, as an index."""
        return np.ix_(*(s.numbers for s in self.spans))

    @property
    def is_slab(self) -> bool:
        """Whether it has ghosts along the slowest axis at most: its own sites lie together, and so
        does each layer of ghosts.
        """
        return not any(s.below or s.above for s in self.spans[1:])

    @property
    def first(self) -> int:
        """Of a slab, the number in the box of its first site; below 0 for a ghost beyond the first
        layer.
        """
        return (self.spans[0].owned.start - self.spans[0].below) * prod(self.shape[1:])

    @property
    def own(self) -> slice | Whole:
        """The sites that it owns; of a slab they lie together."""
        return sites_of(self.shape, self.inner)

    @property
    def stepped(self) -> slice | Whole:
        """The sites that a step has to update."""
        return sites_of(self.shape, tuple(s.inner(self.updated) for s in self.spans))

    def in_box(self, sites: Whole) -> Whole:
        """The numbers in the box of some of its sites."""
        at = np.unravel_index(sites, self.shape)
        there = tuple(s.numbers[n] for s, n in zip(self.spans, at, strict=True))
        return np.ravel_multi_index(there, tuple(s.box for s in self.spans))

    def owned_among(self, places: Whole) -> tuple[npt.NDArray[np.bool_], Whole]:
        """Of some sites of the box, which of them it owns, and what these are among its own."""
        at = np.unravel_index(places, tuple(s.box for s in self.spans))
        mine = np.ones(len(places), np.bool_)
        for s, n in zip(self.spans, at, strict=True):
            mine &= (n >= s.owned.start) & (n < s.owned.stop)
        own = (n[mine] - s.owned.start + s.below for s, n in zip(self.spans, at, strict=True))
        return mine, np.ravel_multi_index(tuple(own), self.shape)


def sites_of(shape: tuple[int, ...], place: Place) -> slice | Whole:
    """The sites of a box within a box of this shape: a slice where they lie together."""
    if all(p == slice(0, n) for p, n in zip(place[1:], shape[1:], strict=True)):
        plane = prod(shape[1:])
        return slice(place[0].start * plane, place[0].stop * plane)
    return np.arange(prod(shape)).reshape(shape)[place].reshape(-1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A box of this shape, in so many parts along every axis. The parts along the fastest axis
    follow each other.
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]

    @property
    def parts(self) -> int:
        return prod(self.grid)

    @property
    def in_slabs(self) -> bool:
        """Whether the sites of the parts follow each other."""
        return self.grid[0] == self.parts

    def blocks(self, depth: int, periodic: tuple[bool, ...]) -> tuple[Block, ...]:
        """All parts, with so many ghosts on a side; an axis that is not cut has none."""
        axes = zip(self.shape, self.grid, periodic, strict=True)
        spans = [_spans(n, parts, depth, around=around) for n, parts, around in axes]
        return tuple(Block(each) for each in product(*spans))


def _spans(count: int, parts: int, depth: int, *, around: bool) -> list[Span]:
    ends = list(accumulate(even(count, parts), initial=0))
    ghosts = 0 if parts == 1 else depth
    return [
        Span(
            range(ends[n], ends[n + 1]),
            ghosts if n or around else 0,
            ghosts if n < parts - 1 or around else 0,
            count,
        )
        for n in range(parts)
    ]


def grids(parts: int, axes: int) -> Iterator[tuple[int, ...]]:
    """All ways of so many parts along so many axes; those with many along the first one first."""
    if axes == 1:
        yield (parts,)
        return
    for n in range(parts, 0, -1):
        if parts % n == 0:
            yield from ((n, *others) for others in grids(parts // n, axes - 1))


def least_side(parts: int, axes: int) -> int:
    """The least layers along every axis of a box that can be cut in so many parts."""
    return LEAST_LAYERS * min(max(grid) for grid in grids(parts, axes))


def _is_thick(shape: tuple[int, ...], grid: tuple[int, ...]) -> bool:
    pairs = zip(shape, grid, strict=True)
    return all(parts == 1 or count // parts >= LEAST_LAYERS for count, parts in pairs)


def _sites_at_cuts(cut: Cut, periodic: tuple[bool, ...]) -> int:
    """How many sites lie on one side of all cuts."""
    axes = zip(cut.shape, cut.grid, periodic, strict=True)
    cuts = ((n, parts - (not around)) for n, parts, around in axes if parts > 1)
    return sum(times * prod(cut.shape) // n for n, times in cuts)


def best_cut(shape: tuple[int, ...], parts: int, periodic: tuple[bool, ...]) -> Cut | None:
    """How a box is cut: in slabs up to 8 parts, if they are thick enough; else so that parts move
    the least, and of several such ways the one with most parts along the slowest axes. None where
    parts would be too thin.
    """
    slabs = (parts, *(1 for _ in shape[1:]))
    if parts <= MOST_SLABS and _is_thick(shape, slabs):
        return Cut(shape, slabs)
    fitting = [Cut(shape, g) for g in grids(parts, len(shape)) if _is_thick(shape, g)]
    return min(fitting, key=lambda cut: _sites_at_cuts(cut, periodic), default=None)


def cut_box(mesh: Mesh, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> Cut:
    """How a box is cut on a mesh.

    Raises `ArgumentError` where parts would be thinner than 8 layers.
    """
    if (cut := best_cut(shape, mesh.parts, periodic)) is not None:
        return cut
    fit = [n for n in range(1, mesh.parts) if best_cut(shape, n, periodic) is not None]
    most = fit[-1]
    wanted = f"a mesh of {'at most ' if len(fit) == most else ''}{most} parts"
    blocks = f"; blocks need {LEAST_LAYERS} along every axis that is cut"
    raise ArgumentError(
        f"sites of shape {shape} have {shape[0]} layers along {AXES[len(shape) - 1]}, and a mesh "
        f"of {mesh.parts} parts ({mesh}) needs {LEAST_LAYERS} for each: wanted "
        f"{wanted if most > 1 else 'one device'}, or at least {LEAST_LAYERS * mesh.parts} layers"
        f"{blocks if len(shape) > 1 else ''}"
    )


def blocks_of(
    cut: Cut, form: Form, periodic: tuple[bool, ...], kinds: frozenset[int]
) -> tuple[Block, ...]:
    """The parts of a box, as a streaming form needs them. kinds: those of all its sites."""
    updated = int(form_puts(form))
    blocks = cut.blocks(ghost_depth(form), periodic)
    return tuple(replace(b, updated=updated, kinds=kinds) for b in blocks)


def form_puts(form: Form) -> bool:
    """Whether some step of a streaming form puts along links."""
    return any(phase.put_links for phase in form.phases)


def ghost_depth(form: Form) -> int:
    """How many ghost layers a streaming form needs on a side."""
    return 2 if form_puts(form) else 1
