"""Agents that touch: each is a ball of the agent radius, and two that overlap move apart.

After the update of a step, each agent moves by the mean of what its contacts ask of it: half of
the overlap, away from the other one. Two alone touch afterwards; in a crowd it takes some steps.
Headings and speeds stay what they are. Agents at one place know no way apart, and stay there until
their headings part them.

Method: one Jacobi iteration of position based dynamics (M. Mueller et al., 2007) a step, averaged
over contacts.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from dataclasses import dataclass
from functools import cache

import lanewise as lw
from lanewise.sims.boids.rules import TINY, kinds, world_rules


@dataclass(frozen=True, slots=True)
class Collisions:
    """bump: what contacts ask of an agent, and how many they are; apart: the agent follows."""

    bump: lw.Pairwise
    apart: lw.Elementwise


@cache
def make_collisions(precision: str, end_of_world: int) -> Collisions:
    """The kernels of a precision, for one end of the world."""
    boid, real, vec, _ = kinds(precision)
    kept, inside = world_rules(end_of_world)

    @lw.pairwise
    def bump(target: boid, source: boid, reach: real) -> tuple[vec, real]:  # type: ignore[valid-type]
        off = target.position - source.position
        d2 = lw.dot(off, off)
        touches = d2 > TINY and d2 < reach * reach
        inverse = lw.rsqrt(lw.select(touches, d2, TINY))
        half = off * (0.5 * (reach * inverse - 1))
        return lw.select(touches, half, vec(0)), lw.select(touches, real(1), real(0))

    @lw.elementwise
    def apart(b: boid, push: vec, contacts: real, world: real):  # type: ignore[no-untyped-def, valid-type]
        place = kept(b.position + push / lw.max(contacts, real(1)), world)
        if inside(b.position, world) and inside(place, world):
            b.position = place

    return Collisions(bump, apart)
