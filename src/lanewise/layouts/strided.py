"""Every n-th element of another layout: what `bodies[::2]` is.

The elements between belong to the whole array, and stay untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewise.language.record import Leaf
from lanewise.layouts.base import Arrangement, Layout
from lanewise.support.attributes import frozen


@frozen
@dataclass(frozen=True, slots=True)
class Strided(Layout):
    """Elements of `layout`, `step` of them apart. Views have it; a whole array has no use for
    it.

    Only layouts without blocks of several elements have such views: within blocks there is no
    common stride.
    """

    layout: Layout
    step: int

    def arrange(self, leaves: Sequence[Leaf]) -> Arrangement:
        whole = self.layout.arrange(leaves)
        return replace(
            whole,
            buffers=tuple(
                replace(b, block=b.block * self.step, own=b.own or b.block) for b in whole.buffers
            ),
        )

    def __str__(self) -> str:
        return f"{self.layout} in steps of {self.step}"


def strided(layout: Layout, step: int) -> Layout:
    """A layout with a step, however it was strided before."""
    if step == 1:
        return layout
    return (
        Strided(layout.layout, layout.step * step)
        if isinstance(layout, Strided)
        else Strided(layout, step)
    )


def packed(layout: Layout) -> Layout:
    """The layout that a copy of an array has: without the elements between."""
    return layout.layout if isinstance(layout, Strided) else layout
