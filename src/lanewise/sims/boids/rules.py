"""The rules of the flock for one pair of agents and for one agent, in every precision.

The function of a pair gives the contribution of a flockmate to the three steering behaviours of an
agent (`urges` in the code); the search determines the flockmates. Only the direction of each
behaviour counts (it is normalised after the sum over all flockmates), so the function sums
differences instead of means and counts: sum(f_j - f_i) has the direction of mean(f_j) - f_i. An
agent that meets itself adds nothing.

Source: C. W. Reynolds, Flocks, Herds, and Schools (1987), and Steering Behaviors for Autonomous
Characters (1999), with the constants and the details of his OpenSteer; see docs/flocks.md.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from dataclasses import dataclass
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.common.checks import known

SPHERE, OPEN, BOX, BOUNDED = 0, 1, 2, 3  # what happens to an agent at the end of the world
# a squared distance whose inverse, added up over a crowd and squared, is still a number in float32
TINY = 1e-30
NOTHING = (
    # a squared length that has no direction: float32 has few digits below, and 1 / sqrt as one
    # instruction none
    1e-37
)


@lw.record
class Boid:
    """An agent in float32: 52 bytes. The side is forward x up."""

    position: lw.vec3
    speed: lw.f32
    forward: lw.vec3
    up: lw.vec3
    acceleration: lw.vec3


@lw.record
class Boid64:
    """An agent in float64: 104 bytes."""

    position: lw.dvec3
    speed: lw.f64
    forward: lw.dvec3
    up: lw.dvec3
    acceleration: lw.dvec3


RECORDS: dict[str, Any] = {"f32": Boid, "f64": Boid64}
FIELDS = tuple(f.name for f in Boid.__record__.fields)  # type: ignore[attr-defined]


def record_class(precision: str) -> Any:
    """The record of an agent; raises `InputError` for an unknown precision."""
    return known("precision", precision, RECORDS)


@dataclass(frozen=True, slots=True)
class Rules:
    """The kernels of a flock.

    steer: over the pairs that a search finds; steer_within: over all of them. move: moves an agent
    by its steering behaviours; move_around: the same with obstacles ahead. settle: brings an agent
    into a periodic box. unsound: 1 for an agent that is no longer in the world.
    """

    steer: lw.Pairwise
    steer_within: lw.Pairwise
    move: lw.Elementwise
    move_around: lw.Elementwise
    settle: lw.Elementwise
    unsound: lw.Elementwise


@lw.function
def unit(v):  # type: ignore[no-untyped-def]
    """The direction of a vector: v / |v|, and 0 for 0 (and what is as good as that)."""
    square = lw.dot(v, v)
    inverse = 1 / lw.sqrt(
        square
        # before the choice: what stands in it is a branch on a CPU, and no loop with one is
        # vectorised
    )
    return v * lw.select(square > NOTHING, inverse, 0 * square)


@lw.function
def truncated(v, most):  # type: ignore[no-untyped-def]
    """v, no longer than `most`."""
    size = lw.sqrt(lw.dot(v, v))
    share = most / size
    return v * lw.select(size > most, share, 0 * size + 1)


# Where the speed is low an agent must not turn on the spot: the force stays in a cone around the
# heading, whose cosine falls from 1 at rest to -1 at a fifth of the largest speed.
@lw.function
def in_cone(force, forward, speed, max_speed):  # type: ignore[no-untyped-def]
    """The force, turned towards the heading as far as the speed asks for."""
    square = lw.dot(force, force)
    share = speed / (0.2 * max_speed)
    least = 1 - 2 * share**20
    size = lw.sqrt(square)
    along = lw.dot(force, forward)
    across = unit(force - along * forward)
    turned = size * (least * forward + lw.sqrt(lw.max(0 * least, 1 - least * least)) * across)
    return lw.select(share <= 1 and square > 0 and along < least * size, turned, force)


@cache
def make_rules(precision: str, end_of_world: int, unit_side: bool, flat: bool = False) -> Rules:
    """The kernels of a precision, for one end of the world, with the side normalised or (in the
    thesis) not. flat: agents in the plane y = 0 stay there, whatever they have to avoid.
    """
    kept, inside = world_rules(end_of_world)
    moved = _vehicle(precision, kept, unit_side)
    if flat:
        moved = _in_the_plane(precision, moved)
    move = _move(precision, inside, moved)
    move_around = _move_around(precision, end_of_world, inside, moved)
    return Rules(*_pairs(precision), move, move_around, *_at_the_end(precision, kept, inside))


def kinds(precision: str) -> tuple[Any, Any, Any, Any]:
    """The record of an agent, a number, a vector, and one of four components."""
    if precision == "f64":
        return Boid64, lw.f64, lw.dvec3, lw.dvec4
    return Boid, lw.f32, lw.vec3, lw.vec4


def _pairs(precision: str) -> tuple[Any, Any]:
    """What flockmates add: those that a search finds, and those within reach among all."""
    boid, real, vec, _ = kinds(precision)

    # A behaviour sees who is very near, and who is within its radius and its angle.
    @lw.function
    def seen(d2, cosine, near2, radius2, least):  # type: ignore[no-untyped-def]
        return d2 < near2 or (d2 <= radius2 and cosine > least)

    # Vectors of numbers have the order of the behaviours: separation, alignment, cohesion.
    @lw.function
    def urges(off, heading, other_heading, near2, facing, radius2, cosine):  # type: ignore[no-untyped-def]
        """What a flockmate at `off` adds to separation, alignment and cohesion."""
        d2 = lw.dot(off, off)
        inverse = lw.rsqrt(lw.select(d2 > TINY, d2, TINY))
        ahead = facing * lw.dot(heading, off) * inverse
        away = off * (-inverse * inverse)  # nothing from an agent at the same place
        turn = other_heading - heading
        apart = seen(d2, ahead, near2, radius2.x, cosine.x)
        alike = seen(d2, ahead, near2, radius2.y, cosine.y)
        together = seen(d2, ahead, near2, radius2.z, cosine.z)
        none = vec(0)
        return (
            lw.select(apart, away, none),
            lw.select(alike, turn, none),
            lw.select(together, off, none),
        )

    @lw.pairwise
    def steer(
        target: boid, source: boid, near2: real, facing: real, radius2: vec, cosine: vec
    ) -> tuple[vec, vec, vec]:  # type: ignore[valid-type]
        off = source.position - target.position
        return urges(off, target.forward, source.forward, near2, facing, radius2, cosine)

    # For all pairs without a search: who is not nearer than `reach` is no flockmate.
    @lw.pairwise
    def steer_within(
        target: boid,
        source: boid,
        near2: real,
        facing: real,
        radius2: vec,
        cosine: vec,
        reach2: real,  # type: ignore[valid-type]
    ) -> tuple[vec, vec, vec]:  # type: ignore[valid-type]
        off = source.position - target.position
        if lw.dot(off, off) >= reach2:
            return vec(0), vec(0), vec(0)
        return urges(off, target.forward, source.forward, near2, facing, radius2, cosine)

    return steer, steer_within


def world_rules(end_of_world: int) -> tuple[Any, Any]:
    """What happens at the end of the world."""

    @lw.function
    def kept(p, world):  # type: ignore[no-untyped-def]
        """A place at the end of the world: through the sphere, or in at the other side of the
        box.
        """
        if end_of_world == SPHERE:
            distance = lw.sqrt(lw.dot(p, p))
            share = 2 * world / distance
            return p - p * lw.select(distance > world, share, 0 * distance)
        if end_of_world == BOX:
            return p - 2 * world * lw.floor((p + world) / (2 * world))
        return p

    @lw.function
    def inside(p, world):  # type: ignore[no-untyped-def]
        """Whether an agent may continue: one that has left a bounded world stays where it is, so
        that it is found.
        """
        if end_of_world == BOUNDED:
            return lw.dot(p, p) <= world * world
        return True

    return kept, inside


@lw.function
def urge(separation, alignment, cohesion, weights):  # type: ignore[no-untyped-def]
    """The weighted sum of the three steering behaviours."""
    return weights.x * unit(separation) + weights.y * unit(alignment) + weights.z * unit(cohesion)


def _vehicle(precision: str, kept: Any, unit_side: bool) -> Any:
    """How a wish moves an agent."""
    _, _, vec, _ = kinds(precision)
    normalised = int(unit_side)

    # OpenSteer's SimpleVehicle: smoothed acceleration, Euler's method, and a body that banks into
    # its turns.
    @lw.function
    def moved(b, wish, max_force, max_speed, inverse_mass, dt, smoothing, roll, world):  # type: ignore[no-untyped-def]
        force = truncated(in_cone(wish, b.forward, b.speed, max_speed), max_force)
        acceleration = b.acceleration + (force * inverse_mass - b.acceleration) * smoothing
        velocity = truncated(b.forward * b.speed + acceleration * dt, max_speed)
        square = lw.dot(velocity, velocity)
        speed = lw.sqrt(square)
        position = kept(b.position + velocity * dt, world)
        up = unit(b.up + (0.05 * acceleration + vec(0, 0.2, 0) - b.up) * roll)
        forward = lw.select(square > NOTHING, velocity * (1 / speed), b.forward)
        side = lw.cross(forward, up)
        if normalised == 1:
            side = unit(side)
        return position, speed, forward, lw.cross(side, forward), acceleration

    return moved


def _in_the_plane(precision: str, moved: Any) -> Any:
    """The same vehicle by the part of its wish that lies in the plane y = 0."""
    _, _, vec, _ = kinds(precision)

    @lw.function
    def moved_flat(b, wish, max_force, max_speed, inverse_mass, dt, smoothing, roll, world):  # type: ignore[no-untyped-def]
        level = vec(wish.x, 0, wish.z)
        return moved(b, level, max_force, max_speed, inverse_mass, dt, smoothing, roll, world)

    return moved_flat


def _move(precision: str, inside: Any, moved: Any) -> Any:
    """Move an agent by its steering behaviours."""
    boid, real, vec, _ = kinds(precision)

    @lw.elementwise
    def move(
        b: boid,
        separation: vec,
        alignment: vec,
        cohesion: vec,
        weights: vec,
        max_force: real,
        max_speed: real,
        inverse_mass: real,  # type: ignore[valid-type]
        dt: real,
        smoothing: real,
        roll: real,
        world: real,  # type: ignore[valid-type]
    ):  # type: ignore[no-untyped-def]
        wish = urge(separation, alignment, cohesion, weights)
        if inside(b.position, world):
            b.position, b.speed, b.forward, b.up, b.acceleration = moved(
                b, wish, max_force, max_speed, inverse_mass, dt, smoothing, roll, world
            )

    return move


def _move_around(precision: str, end_of_world: int, inside: Any, moved: Any) -> Any:
    """Move an agent by its steering behaviours, and by the obstacle ahead."""
    boid, real, vec, vec4 = kinds(precision)

    @lw.function
    def pace(speed, max_speed):  # type: ignore[no-untyped-def]
        """How fast an agent expects to fly.

        Of a periodic world only those images of obstacles are known that this lets it see.
        """
        if end_of_world == BOX:
            return lw.min(speed, max_speed)
        return speed

    # `ahead` is the nearest obstacle on the path: where to steer to, and how far it is (see
    # avoidance.py). Avoiding it comes first.
    @lw.elementwise
    def move_around(
        b: boid,
        separation: vec,
        alignment: vec,
        cohesion: vec,
        ahead: vec4,
        avoid_time: real,
        weights: vec,
        max_force: real,  # type: ignore[valid-type]
        max_speed: real,
        inverse_mass: real,
        dt: real,
        smoothing: real,
        roll: real,
        world: real,  # type: ignore[valid-type]
    ):  # type: ignore[no-untyped-def]
        hint = vec(ahead.x, ahead.y, ahead.z)
        lateral = hint - lw.dot(hint, b.forward) * b.forward
        avoiding = ahead.w < avoid_time * pace(b.speed, max_speed) and lw.dot(lateral, lateral) > 0
        wish = lw.select(
            avoiding, max_force * unit(lateral), urge(separation, alignment, cohesion, weights)
        )
        if inside(b.position, world):
            b.position, b.speed, b.forward, b.up, b.acceleration = moved(
                b, wish, max_force, max_speed, inverse_mass, dt, smoothing, roll, world
            )

    return move_around


def _at_the_end(precision: str, kept: Any, inside: Any) -> tuple[Any, Any]:
    """What brings agents back into a periodic world, and tells of those that have left."""
    boid, real, _, _ = kinds(precision)

    @lw.elementwise
    def settle(b: boid, world: real):  # type: ignore[no-untyped-def, valid-type]
        b.position = kept(b.position, world)

    @lw.elementwise
    def unsound(b: boid, world: real) -> lw.i32:  # type: ignore[valid-type]
        total = lw.dot(b.position, b.position) + lw.dot(b.forward, b.forward) + b.speed
        return 0 if lw.isfinite(total) and inside(b.position, world) else 1

    return settle, unsound
