"""The physics of gravity for one body and one pair of bodies, in every precision.

All of the product's kernels are here.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from dataclasses import dataclass
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.support.errors import InputError


@lw.record
class Body:
    """A body in float32: 28 bytes."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


@lw.record
class Body64:
    """A body in float64: 56 bytes."""

    position: lw.dvec3
    mass: lw.f64
    velocity: lw.dvec3


@lw.record
class BodyMixed:
    """A body whose position and velocity are float64 while its forces are computed in float32."""

    position: lw.dvec3
    mass: lw.f32
    velocity: lw.dvec3


RECORDS: dict[str, Any] = {"f32": Body, "f64": Body64, "mixed": BodyMixed}


@dataclass(frozen=True, slots=True)
class Physics:
    """The kernels for one record class."""

    acceleration: lw.Pairwise
    potential: lw.Pairwise
    potential_energy: lw.Elementwise
    kick_drift: lw.Elementwise
    push: lw.Elementwise
    kick: lw.Elementwise
    moments: lw.Elementwise


def precision_of(record: Any) -> str:
    """The name of the precision, from the types of the fields; raises `InputError` for a record
    that is no body.
    """
    kinds = {f.name: f.type for f in record.fields}
    own = tuple(kinds.get(n) for n in ("position", "mass", "velocity"))
    for name, cls in RECORDS.items():
        expected = {f.name: f.type for f in cls.__record__.fields}
        if own == (expected["position"], expected["mass"], expected["velocity"]):
            return name
    raise InputError(
        f"{record} is no body: gravity needs position, mass and velocity as vec3, f32, vec3 or "
        "dvec3, f64, dvec3 or dvec3, f32, dvec3"
    )


def state_type(precision: str) -> str:
    """The scalar type of positions and velocities, by its name."""
    return "f32" if precision == "f32" else "f64"


def pair_type(precision: str) -> str:
    """The scalar type of forces, by its name."""
    return "f64" if precision == "f64" else "f32"


@cache
def make_physics(body_class: Any, softened: bool) -> Physics:
    """Compile-ready kernels for a record class.

    Unless `softened`, a body is kept from meeting itself.
    """
    precision = precision_of(body_class.__record__)
    state, state_vector = (lw.f32, lw.vec3) if precision == "f32" else (lw.f64, lw.dvec3)
    pair, pair_vector = (lw.f64, lw.dvec3) if precision == "f64" else (lw.f32, lw.vec3)

    # Newton's law with Plummer softening (Plummer 1911; Aarseth 1963): a_i = sum m_j d / (|d|^2 +
    # eps^2)^(3/2).
    @lw.pairwise
    def gravity(target: body_class, source: body_class, softening2: pair) -> pair_vector:  # type: ignore[valid-type]
        d = pair_vector(source.position - target.position)
        inv = lw.rsqrt(lw.dot(d, d) + softening2)
        return pair(source.mass) * inv**3 * d

    @lw.pairwise
    def gravity_unsoftened(target: body_class, source: body_class, softening2: pair) -> pair_vector:  # type: ignore[valid-type]
        if lw.same(target, source):
            return pair_vector(0)
        d = pair_vector(source.position - target.position)
        inv = 1 / lw.sqrt(lw.dot(d, d) + softening2)
        return pair(source.mass) * inv**3 * d

    # The potential at a target, with the softening of the force. Masses come in later: m_i m_j in
    # SI is more than float32 holds.
    @lw.pairwise
    def potential(target: body_class, source: body_class, softening2: pair) -> pair:  # type: ignore[valid-type]
        if lw.same(target, source):
            return 0
        d = pair_vector(source.position - target.position)
        return -pair(source.mass) / lw.sqrt(lw.dot(d, d) + softening2)

    # Every pair is met twice, so a body's share is half of its mass in the potential of the others.
    @lw.elementwise
    def potential_energy(body: body_class, potential_there: pair) -> lw.f64:  # type: ignore[valid-type]
        return 0.5 * lw.f64(body.mass) * lw.f64(potential_there)

    @lw.elementwise
    def kick_drift(
        body: body_class, acceleration: pair_vector, kick_time: state, drift_time: state
    ):  # type: ignore[valid-type]
        body.velocity += state_vector(acceleration) * kick_time
        body.position += body.velocity * drift_time

    # The kick of a force besides gravity.
    @lw.elementwise
    def push(body: body_class, acceleration: pair_vector, kick_time: state):  # type: ignore[valid-type]
        body.velocity += state_vector(acceleration) * kick_time

    # Counts the steps after which a body still has finite coordinates: where the count stops, the
    # run broke.
    @lw.elementwise
    def kick(
        body: body_class, acceleration: pair_vector, survived: lw.i32, kick_time: state
    ) -> lw.i32:  # type: ignore[valid-type]
        body.velocity += state_vector(acceleration) * kick_time
        total = lw.dot(body.velocity, body.velocity) + lw.dot(body.position, body.position)
        return survived + 1 if lw.isfinite(total) else survived

    # Kinetic energy, momentum, angular momentum, and the sum of |m v| that drifts of momentum are
    # measured against.
    @lw.elementwise
    def moments(body: body_class) -> tuple[lw.f64, lw.dvec3, lw.dvec3, lw.f64]:  # type: ignore[valid-type]
        m, x, v = lw.f64(body.mass), lw.dvec3(body.position), lw.dvec3(body.velocity)
        v2 = lw.dot(v, v)
        return 0.5 * m * v2, m * v, m * lw.cross(x, v), m * lw.sqrt(v2)

    force = gravity if softened else gravity_unsoftened
    return Physics(force, potential, potential_energy, kick_drift, push, kick, moments)
