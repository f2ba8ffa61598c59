"""Slabs: a box of sites cut along its slowest axis, one slab for each part of a mesh.

A part is a box of sites like any other: the layers that it owns, and ghost layers, copies of those
that its neighbours own. Its edges are those of the whole box, so its kernels are as well. What a
face does to the outermost ghosts is wrong there, and is not read: ghosts are brought anew before
every step that looks at them.

How many layers of ghosts there are follows from the streaming form. A step that only loads along
links needs one. A step that puts along links needs what its neighbours would put: the first ghosts
are updated as their owners update them, from copies of all that arrives there, so that nothing has
to be brought back. Their links lead to a second layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from lanewise.patterns.sitewise.kinds import AXES
from lanewise.patterns.sitewise.streaming import Form
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

LEAST_LAYERS = 8  # of a part


@dataclass(frozen=True, slots=True)
class Slab:
    """The layers of a part.

    layers: those of the box that it owns. below, above: how many ghosts it has on either side.
    updated: how many of them are updated as its own are. box: layers of the whole box. kinds: those
    of all its sites. dense: whether so many of these are special that each reads its flags.
    """

    layers: range
    below: int
    above: int
    updated: int
    box: int
    kinds: frozenset[int]
    dense: bool = False

    @property
    def count(self) -> int:
        """Layers with the ghosts."""
        return self.below + len(self.layers) + self.above

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Which layer of the box each of them is."""
        first, stop = self.layers.start - self.below, self.layers.stop + self.above
        return np.arange(first, stop) % self.box

    @property
    def ghosts(self) -> tuple[int, ...]:
        """The ghosts among its layers."""
        own = self.below + len(self.layers)
        return (*range(self.below), *range(own, self.count))

    def first(self, plane: int) -> int:
        """The number in the box of its first site; below 0 for a ghost beyond the first layer."""
        return (self.layers.start - self.below) * plane

    def own(self, plane: int) -> slice:
        """The sites that it owns, `plane` of them in a layer."""
        return slice(self.below * plane, (self.below + len(self.layers)) * plane)

    def stepped(self, plane: int) -> slice:
        """The sites that a step has to update."""
        first = self.below - min(self.updated, self.below)
        last = self.below + len(self.layers) + min(self.updated, self.above)
        return slice(first * plane, last * plane)


def cut(
    mesh: Mesh, shape: tuple[int, ...], form: Form, *, periodic: bool, kinds: frozenset[int]
) -> tuple[Slab, ...]:
    """The slabs of a box. periodic: along its slowest axis. kinds: those of all its sites.

    Raises `ArgumentError` where parts would be thinner than 8 layers.
    """
    box, parts = shape[0], mesh.parts
    if parts > 1 and box < LEAST_LAYERS * parts:
        most = box // LEAST_LAYERS
        wanted = f"a mesh of at most {most} parts" if most > 1 else "one device"
        raise ArgumentError(
            f"sites of shape {shape} have {box} layers along {AXES[len(shape) - 1]}, and a mesh of "
            f"{parts} parts ({mesh}) needs {LEAST_LAYERS} for each: wanted {wanted}, or at least "
            f"{LEAST_LAYERS * parts} layers"
        )
    layers, puts = [len(rows) for rows in mesh.rows(box)], form_puts(form)
    slabs = slabs_of(layers, ghost_depth(form), periodic=periodic)
    return tuple(replace(slab, updated=int(puts), kinds=kinds) for slab in slabs)


def form_puts(form: Form) -> bool:
    """Whether some step of a streaming form puts along links."""
    return any(phase.put_links for phase in form.phases)


def ghost_depth(form: Form) -> int:
    """How many ghost layers a streaming form needs on a side."""
    return 2 if form_puts(form) else 1


def slabs_of(layers: Sequence[int], depth: int, *, periodic: bool) -> tuple[Slab, ...]:
    """Slabs of so many layers each, with so many ghosts on a side; one slab alone has none."""
    parts, ends = len(layers), [0, *accumulate(layers)]
    ghosts = 0 if parts == 1 else depth
    return tuple(
        Slab(
            range(ends[n], ends[n + 1]),
            ghosts if n or periodic else 0,
            ghosts if n < parts - 1 or periodic else 0,
            0,
            ends[-1],
            frozenset(),
        )
        for n in range(parts)
    )
