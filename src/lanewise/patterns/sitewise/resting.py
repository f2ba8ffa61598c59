"""Links that pass between two different walls are at rest: what a moving wall adds to them would be
missing at its other end.

A moving wall with velocity u adds 6 w (e . u) to what it sends back along e. Over a wall that moves
along itself these terms cancel: a fluid site gains along one oblique link what its neighbour loses
along the mirrored one. Where the wall ends at another wall, one link of such a pair has no partner,
since it would leave from inside the other wall. So an oblique link that meets a moving wall is at
rest when any site that it passes between, one with a part of its steps, belongs to a wall that
moves otherwise: a face of the box and a site of the mask alike. That keeps the mass of closed boxes
to rounding (`balance.py` counts the terms).
"""

from __future__ import annotations

from itertools import combinations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import BOOL, I32, U32
from lanewise.patterns.sitewise.kinds import AXES, OUTFLOW, REST, Wall
from lanewise.patterns.sitewise.links import FLAGS, Links, kind_of, walls_of

Steps = tuple[int, ...]


def parts_of(steps: Steps) -> list[Steps]:
    """The steps along some of the axes of an oblique direction, not along none and not along
    all.
    """
    axes = [a for a, step in enumerate(steps) if step]
    chosen = (kept for count in range(1, len(axes)) for kept in combinations(axes, count))
    return [tuple(step if a in kept else 0 for a, step in enumerate(steps)) for kept in chosen]


def mover_met(links: Links, q: int, name: str) -> ir.Block:
    """Assign the kind of the moving wall that adds to the population arriving along q to `name`
    (i32); another number if none does.
    """
    return (*links.wall_met(q, name), *rest_between(links, q, ir.Local(name, I32)))


def rest_between(links: Links, q: int, met: ir.Local) -> ir.Block:
    """Make `met` `REST` where it is a wall that moves, and the link passes by one that moves
    otherwise.

    Faces alone need no look: a link that crosses two different ones is at rest already.
    """
    if not (links.solids and links.moving):
        return ()
    looks = tuple(
        s
        for n, steps in enumerate(_parts_to_look_at(links, q))
        for s in _look(links, met, steps, f"{q}.{n}")
    )
    return (ir.If(walls_of(links.moving, met), looks),) if looks else ()


def _parts_to_look_at(links: Links, q: int) -> list[Steps]:
    """Of the way back along q.

    Past a single face that moves only what lies on this side of it has to be looked at.
    """
    back = tuple(-c for c in links.lattice.velocities[q])
    parts = parts_of(back)
    if links.moving_sites:
        return parts
    numbers = {w.number for w in links.moving}
    through = [a for a, step in enumerate(back) if step and links.edges.face(a, step) in numbers]
    if len(through) != 1:
        return parts if through else []
    return [steps for steps in parts if not steps[through[0]]]


def _look(links: Links, met: ir.Local, steps: Steps, tag: str) -> ir.Block:
    beside = ir.Local(own(f"beside.{tag}"), I32)
    word = ir.Local(own(f"beside.word.{tag}"), U32)

    def load(place: ir.Expression, _: int) -> ir.Block:
        return (
            ir.LoadRecord(FLAGS, place, (("value", word.name),)),
            ir.Assign(beside.name, kind_of(word)),
        )

    look = ir.If(build.equal(beside, 0), links.follow(steps, 0, load))
    at_rest = ir.Assign(met.name, ir.Literal(REST, I32))
    return (
        ir.Assign(beside.name, links.face_met(steps)),
        look,
        ir.If(_otherwise(links, met, beside), (at_rest,)),
    )


def _otherwise(links: Links, met: ir.Local, beside: ir.Local) -> ir.Expression:
    """Whether `beside` is a wall, and moves otherwise than the wall `met`."""
    walls = (*links.walls, *(Wall(n, "") for n in (REST, OUTFLOW)))
    other = ir.Logical(
        "and", walls_of(walls, beside), ir.Unary("not", build.equal(beside, met), BOOL)
    )
    for n, one in enumerate(links.moving):
        for two in links.moving[n + 1 :]:
            pair = ir.Logical("or", _are(met, one, beside, two), _are(met, two, beside, one))
            together = ir.Logical("and", pair, _same_velocity(links, one, two))
            other = ir.Logical("and", other, ir.Unary("not", together, BOOL))
    return other


def _are(met: ir.Local, one: Wall, beside: ir.Local, two: Wall) -> ir.Expression:
    return ir.Logical("and", build.equal(met, one.number), build.equal(beside, two.number))


def _same_velocity(links: Links, one: Wall, two: Wall) -> ir.Expression:
    condition: ir.Expression | None = None
    for axis in AXES[: links.lattice.dimension]:
        u, v = (ir.Local(f"{w.velocity}.{axis}", links.real) for w in (one, two))
        same = ir.Compare("==", u, v)
        condition = same if condition is None else ir.Logical("and", condition, same)
    assert condition is not None
    return condition
