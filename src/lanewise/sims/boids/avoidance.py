"""Which obstacle an agent will meet first on its way: where its path hits it, and where to steer
to.

One kernel a kind of obstacle. Each takes the nearest obstacle so far, as (hint, distance), and
gives it on or takes its place; so obstacles may be as many as one likes. The rules are those of
OpenSteer's obstacles (Reynolds 1999, obstacle avoidance): the path is straight on, and what counts
is where it enters the obstacle, made larger by the agent's own radius.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.boids.obstacles import SEEN, Box, Obstacle, Plane, Rectangle, Sphere, frame
from lanewise.sims.boids.rules import kinds, unit

FAR = 1e30  # no obstacle ahead
OUTSIDE, INSIDE, BOTH = range(3)  # the places in SEEN
ENDLESS = 1e30  # the extent of a plane


@dataclass(frozen=True, slots=True)
class Avoidance:
    """The kernels: `clear` has nothing ahead; the others look at one obstacle each."""

    clear: lw.Elementwise
    sphere: lw.Elementwise
    box: lw.Elementwise
    rectangle: lw.Elementwise


@cache
def make_avoidance(precision: str) -> Avoidance:
    """The kernels of a precision."""
    boid, _, _, vec4 = kinds(precision)

    @lw.elementwise
    def clear(b: boid) -> vec4:  # type: ignore[valid-type]
        return vec4(0, 0, 0, FAR)

    return Avoidance(clear, _sphere(precision), _box(precision), _rectangle(precision))


def _sphere(precision: str) -> Any:
    boid, real, vec, vec4 = kinds(precision)

    # A line meets a sphere where |o + s f| = r: s = -o.f -+ sqrt((o.f)^2 - |o|^2 + r^2), o the
    # place seen from the centre.
    @lw.elementwise
    def sphere(
        b: boid, ahead: vec4, center: vec, radius: real, agent_radius: real, seen: lw.i32
    ) -> vec4:  # type: ignore[valid-type]
        o = b.position - center
        along = lw.dot(o, b.forward)
        reach = radius + agent_radius
        discriminant = along * along - lw.dot(o, o) + reach * reach
        root = lw.sqrt(lw.max(0 * discriminant, discriminant))
        near, far = -along - root, -along + root
        distance = near
        if near <= 0:  # within: a solid one is met at once, a hollow one where the path leaves it
            distance = lw.select(seen == OUTSIDE, 0 * far, far)
        normal = unit(o + distance * b.forward)
        inwards = seen == INSIDE or (seen == BOTH and lw.dot(o, o) <= radius * radius)
        hint = lw.select(inwards, -normal, normal)
        meets = discriminant >= 0 and far >= 0 and distance < ahead.w
        return vec4(hint.x, hint.y, hint.z, distance) if meets else ahead

    return sphere


@lw.function
def crossing(p, f, side, up, forward, width, height, agent_radius, seen):  # type: ignore[no-untyped-def]
    """Where a path from p (seen from the centre) along f meets a rectangle: distance (FAR:
    nowhere), and the place in its plane.
    """
    z, rate = lw.dot(p, forward), lw.dot(f, forward)
    towards = rate != 0 and not (z > 0 and rate > 0) and not (z < 0 and rate < 0)
    visible = not (seen == OUTSIDE and z < 0) and not (seen == INSIDE and z > 0)
    distance = -z / lw.select(rate != 0, rate, rate + 1)
    place = p + distance * f
    x, y = lw.dot(place, side), lw.dot(place, up)
    within = lw.abs(x) <= agent_radius + width / 2 and lw.abs(y) <= agent_radius + height / 2
    return lw.select(towards and visible and within, distance, 0 * distance + FAR), x, y


def _rectangle(precision: str) -> Any:
    boid, real, vec, vec4 = kinds(precision)

    @lw.elementwise
    def rectangle(
        b: boid,
        ahead: vec4,
        center: vec,
        side: vec,
        up: vec,
        forward: vec,
        width: real,
        height: real,
        agent_radius: real,  # type: ignore[valid-type]
        seen: lw.i32,
    ) -> vec4:  # type: ignore[valid-type]
        p = b.position - center
        distance, x, y = crossing(
            p, b.forward, side, up, forward, width, height, agent_radius, seen
        )
        facing = lw.select(lw.dot(p, forward) > 0, forward, -forward)
        hint = facing + unit(x * side + y * up)  # away from it, and from its middle to its edge
        return vec4(hint.x, hint.y, hint.z, distance) if distance < ahead.w else ahead

    return rectangle


def _box(precision: str) -> Any:
    boid, real, vec, vec4 = kinds(precision)

    @lw.elementwise
    def box(
        b: boid,
        ahead: vec4,
        center: vec,
        side: vec,
        up: vec,
        forward: vec,
        size: vec,
        agent_radius: real,
        seen: lw.i32,  # type: ignore[valid-type]
    ) -> vec4:  # type: ignore[valid-type]
        p, f = b.position - center, b.forward
        w, h, d = size.x, size.y, size.z
        nearest, outside = 0 * w + FAR, 0 * w
        for face in range(6):
            normal, across, along, extent, wide, high = forward, side, up, d, w, h
            if face % 3 == 1:
                normal, across, along, extent, wide, high = side, forward, up, w, d, h
            if face % 3 == 2:
                normal, across, along, extent, wide, high = up, side, forward, h, w, d
            if face >= 3:
                normal = -normal
            q = p - normal * (extent / 2)
            distance, _, _ = crossing(q, f, across, along, normal, wide, high, agent_radius, seen)
            if distance < nearest:
                nearest = distance
                outside = lw.select(lw.dot(q, normal) > 0, 1 + 0 * w, 0 * w)
        middle = unit(p + nearest * f)  # from the middle of the box to where the path meets it
        hint = lw.select(outside > 0, middle, -middle)
        return vec4(hint.x, hint.y, hint.z, nearest) if nearest < ahead.w else ahead

    return box


def kernel_of(
    kernels: Avoidance, o: Obstacle, agent_radius: float
) -> tuple[lw.Elementwise, dict[str, Any]]:
    """The kernel of an obstacle, and its uniform arguments."""
    seen = SEEN.index(o.seen)
    common = {"center": np.array(o.center), "agent_radius": agent_radius, "seen": seen}
    match o:
        case Sphere():
            return kernels.sphere, {**common, "radius": o.radius}
        case Box():
            axes = _axes(o.forward, o.up)
            return kernels.box, {**common, **axes, "size": np.array([o.width, o.height, o.depth])}
        case Rectangle():
            return kernels.rectangle, {
                **common,
                **_axes(o.forward, o.up),
                "width": o.width,
                "height": o.height,
            }
        case Plane():
            axes = _axes(o.normal, (0.0, 1.0, 0.0))
            return kernels.rectangle, {**common, **axes, "width": ENDLESS, "height": ENDLESS}


def _axes(forward: Any, up: Any) -> dict[str, Any]:
    return dict(zip(("side", "up", "forward"), map(np.array, frame(forward, up)), strict=True))
