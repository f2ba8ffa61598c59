"""Which agents may come near to others within some steps, wherever these fly.

No agent flies farther than `drift`, the way at full speed: two of them meet only if they are nearer
than the radius and twice the drift now. In a periodic box this also holds for images. Who leaves a
sphere comes back at the opposite side, as the mirror image of where it would be: so agents near its
surface may meet those that are near to their mirror images.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.boids.rules import BOUNDED, BOX, OPEN, SPHERE, kinds

ROUNDING = 1e-5  # of lengths, and more than what float32 loses


@dataclass(frozen=True, slots=True)
class Reach:
    """The kernels of it. ends: the lowest coordinates of an agent, the negative highest ones, and
    its negative squared distance from the centre: the least of all agents are those of their box.
    comes_near: 1 for an agent that may come near to agents in a box that is as much larger.
    """

    ends: lw.Elementwise
    comes_near: lw.Elementwise


@cache
def make_reach(precision: str, end_of_world: int) -> Reach:
    """The kernels of a precision, for one end of the world."""
    boid, real, vec, _ = kinds(precision)

    @lw.elementwise
    def ends(b: boid) -> tuple[vec, vec, real]:  # type: ignore[valid-type]
        return b.position, -b.position, -lw.dot(b.position, b.position)

    @lw.function
    def within(p, low, high):  # type: ignore[no-untyped-def]
        return (
            p.x >= low.x and p.x <= high.x and p.y >= low.y and p.y <= high.y
            and p.z >= low.z and p.z <= high.z
        )  # fmt: skip

    @lw.function
    def around(x, low, high, size):  # type: ignore[no-untyped-def]
        """Whether a coordinate or one of its images lies in a range."""
        return (
            (x >= low and x <= high)
            or (x + size >= low and x + size <= high)
            or (x - size >= low and x - size <= high)
        )

    @lw.function
    def found(p, low, high, world, shell2):  # type: ignore[no-untyped-def]
        if end_of_world == SPHERE:
            return within(p, low, high) or (lw.dot(p, p) >= shell2 and within(-p, low, high))
        if end_of_world == BOX:
            return (
                around(p.x, low.x, high.x, 2 * world)
                and around(p.y, low.y, high.y, 2 * world)
                and around(p.z, low.z, high.z, 2 * world)
            )
        return within(p, low, high)

    @lw.elementwise
    def comes_near(b: boid, low: vec, high: vec, world: real, shell2: real) -> lw.i32:  # type: ignore[valid-type]
        return 1 if found(b.position, low, high, world, shell2) else 0

    return Reach(ends, comes_near)


@dataclass(frozen=True, slots=True)
class Within:
    """A box that may be met: its corners, and the squared distance from the centre from which on
    mirror images count.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    shell2: float


def box_of(part: lw.RecordArray, reach: Reach, end: int, world: float) -> Any:
    """The corners of the box of some agents; None where one of them is not where its world lets it
    be, or nowhere: then it is unknown who may come near.
    """
    low, high, away2 = (np.asarray(v, np.float64) for v in reach.ends.min(part))
    corners = np.stack([low, -high])
    if not np.isfinite(corners).all():
        return None
    most = world * (1 + ROUNDING)
    if end == BOX and np.abs(corners).max() > most:
        return None
    if end in (SPHERE, BOUNDED) and math.sqrt(-float(away2)) > most:
        return None
    assert end in (SPHERE, BOUNDED, BOX, OPEN)
    return corners


def within(corners: NDArray[np.float64], radius: float, drift: float, world: float) -> Within:
    """The box that agents who fly so far may come near to, and are near to within the radius."""
    more = radius + 2 * drift
    more += ROUNDING * (more + world + float(np.abs(corners).max()))
    shell = max(0.0, world - radius - 2 * drift - ROUNDING * world)
    return Within(corners[0] - more, corners[1] + more, shell * shell)
