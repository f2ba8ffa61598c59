"""What is right: one step of the rules in float64 with NumPy, for some of the agents, from all
pairs.

What an agent does in a step shows in the change of its velocity: the force, cut off and smoothed,
times the step. Agents for which rounding decides (a flockmate at the edge of the radius, of an
angle, or tied for the seventh place; urges that cancel) are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.boids import Flock, Parameters, State
from lanewise.sims.boids.options import DT
from lanewise.sims.common.devices import to_host

TOLERANCE = 1e-4  # of the largest change of a velocity
EDGE = 1e-5  # how near to a border, relative to it, float32 may be on its other side
CANCELS = 0.01  # urges shorter than this share of their summands have lost digits
ROUNDINGS = 4 * float(np.finfo(np.float32).eps)  # of a velocity, as its direction and its length
FEW, MANY, LARGE = 256, 2048, 2**18  # agents that are checked: of more than LARGE, and of fewer
IN_TURN = 64  # of a step in which one moves after another: the first ones
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The rows that are checked, and the change of their velocities (m, 3); `neighbours`: that they
    have together.
    """

    rows: NDArray[np.int64]
    before: Floats
    change: Floats
    neighbours: int

    def error(self, flock: Flock) -> float:
        """The largest difference of a flock after its first step, over the largest change. A change
        that float32 loses when it rounds velocities counts as the smallest one that it keeps.
        """
        speed, forward = (
            np.asarray(to_host(x), np.float64)[self.rows] for x in (flock.speed, flock.forward)
        )
        change = forward * speed[:, None] - self.before
        largest = float(np.max(np.abs(self.change), initial=0.0))
        kept = ROUNDINGS / TOLERANCE * float(np.max(np.abs(self.before), initial=0.0))
        largest = max(largest, kept)
        difference = float(np.max(np.abs(change - self.change), initial=0.0))
        return difference / largest if largest else difference


def make_truth(
    state: State, parameters: Parameters, k: int, seed: int, sight: lw.Sight | None = None
) -> Truth:
    """One step in which all steer and then all move; all agents are checked if they are few.

    sight: which others an agent can have as neighbours; None: all.
    """
    n = len(state)
    most = MANY if n <= LARGE else FEW
    rows = (
        np.arange(n)
        if n <= most
        else np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    )
    world = _World(state)
    velocity, sure, neighbours = np.empty((len(rows), 3)), np.ones(len(rows), np.bool_), 0
    for at, row in enumerate(rows.tolist()):
        mates, sure[at] = world.nearest(row, parameters, k, sight)
        wish, clear = _wish(world, row, mates, parameters)
        sure[at] &= clear
        velocity[at] = _velocity(world, row, wish, parameters)
        neighbours += len(mates)
    before = world.velocity(rows)
    return Truth(rows[sure], before[sure], (velocity - before)[sure], neighbours)


def make_truth_in_turn(state: State, parameters: Parameters, world_radius: float) -> Truth:
    """The first agents of a step in which each moves before the next one looks, all flockmates
    within the radius counting.
    """
    world = _World(state)
    rows = np.arange(min(IN_TURN, len(state)))
    before, sure, neighbours = world.velocity(rows), np.ones(len(rows), np.bool_), 0
    for row in rows.tolist():
        d2 = ((world.place - world.place[row]) ** 2).sum(axis=1)
        mates = np.flatnonzero((d2 < parameters.radius**2) & (np.arange(len(state)) != row))
        wish, clear = _wish(world, row, mates, parameters)
        # Who sees an agent that is not sure is not sure either.
        sure[row] = (
            clear
            and not _near(d2, parameters.radius**2).any()
            and bool(sure[mates[mates < row]].all())
        )
        velocity = _velocity(world, row, wish, parameters)
        world.speed[row] = np.linalg.norm(velocity)
        world.forward[row] = velocity / world.speed[row]
        world.place[row] = _kept(world.place[row] + velocity * DT, world_radius)
        neighbours += len(mates)
    return Truth(rows[sure], before[sure], (world.velocity(rows) - before)[sure], neighbours)


class _World:
    """A state in float64, with the order of its agents along x: what is near lies within a
    short piece of it.
    """

    def __init__(self, state: State) -> None:
        self.place, self.forward = (
            np.array(x, np.float64) for x in (state.position, state.forward)
        )
        self.speed, self.acceleration = (
            np.array(x, np.float64) for x in (state.speed, state.acceleration)
        )
        self.order = np.argsort(self.place[:, 0])
        self.sorted_x = self.place[self.order, 0]

    def velocity(self, rows: NDArray[np.int64]) -> Floats:
        return self.forward[rows] * self.speed[rows, None]

    def nearest(
        self, row: int, p: Parameters, k: int, sight: lw.Sight | None
    ) -> tuple[NDArray[np.int64], bool]:
        """The k nearest of those that it sees within the radius, but for the agent itself, and
        whether rounding cannot change them.
        """
        x, reach = self.place[row, 0], p.radius * (1 + EDGE)
        first, last = np.searchsorted(self.sorted_x, (x - reach, x + reach))
        near = self.order[first:last]
        near = near[near != row]
        d2 = ((self.place[near] - self.place[row]) ** 2).sum(axis=1)
        within = d2 < p.radius**2
        sure = not _near(d2, p.radius**2).any()
        if sight is not None:
            ahead, distance = (self.place[near] - self.place[row]) @ self.forward[row], np.sqrt(d2)
            side = ahead - sight.cosine * distance
            sure = (
                sure
                and not (
                    within & ((np.abs(side) < EDGE * distance) | _near(d2, sight.near**2))
                ).any()
            )
            within &= (side >= 0) | (d2 < sight.near**2)
        near, d2 = near[within], d2[within]
        chosen = np.argsort(d2, kind="stable")
        if len(near) > k:
            sure = sure and not _near(d2[chosen[k]], d2[chosen[k - 1]]).any()
        return near[chosen[:k]], sure


def _wish(world: _World, row: int, mates: NDArray[np.int64], p: Parameters) -> tuple[Floats, bool]:
    """Where an agent wants to go, and whether rounding changes it by little."""
    off, heading = world.place[mates] - world.place[row], world.forward[row]
    d2 = (off**2).sum(axis=1)
    apart = d2 > 0
    ahead = p.facing * (off @ heading) / np.sqrt(np.where(apart, d2, 1.0))
    wish, clear = np.zeros(3), not _near(d2, p.near_radius**2).any()
    behaviours: tuple[tuple[float, float, float, Any], ...] = (
        (
            p.separation_weight,
            p.separation_radius,
            p.separation_cosine,
            -off / np.where(apart, d2, 1.0)[:, None],
        ),
        (
            p.alignment_weight,
            p.alignment_radius,
            p.alignment_cosine,
            world.forward[mates] - heading,
        ),
        (p.cohesion_weight, p.cohesion_radius, p.cohesion_cosine, off),
    )
    for weight, radius, cosine, terms in behaviours:
        far = d2 >= p.near_radius**2
        seen = ~far | ((d2 <= radius**2) & (ahead > cosine))
        clear = clear and not (_near(d2, radius**2) | (far & (np.abs(ahead - cosine) < EDGE))).any()
        total, size = terms[seen].sum(axis=0), np.linalg.norm(terms[seen], axis=1).sum()
        length = np.linalg.norm(total)
        clear = clear and not length < CANCELS * size
        wish += weight * total / length if length else 0.0
    return wish, bool(clear)


def _velocity(world: _World, row: int, wish: Floats, p: Parameters) -> Floats:
    """After a step of `DT`. The start is fast enough for the cone of slow agents not to matter."""
    if world.speed[row] <= 0.2 * p.max_speed:
        raise ValueError(f"agent {row} is too slow for this reference: {world.speed[row]:g}")
    smoothing = min(max(9 * DT, 0.15), 0.4)
    acceleration = world.acceleration[row]
    acceleration = (
        acceleration + (_truncated(wish, p.max_force) / p.mass - acceleration) * smoothing
    )
    return _truncated(world.forward[row] * world.speed[row] + acceleration * DT, p.max_speed)


def _truncated(v: Floats, most: float) -> Floats:
    size = float(np.linalg.norm(v))
    return v * (most / size) if size > most else v


def _kept(p: Floats, world: float) -> Floats:
    distance = float(np.linalg.norm(p))
    return p - p * (2 * world / distance) if distance > world else p


def _near(value: Any, border: Any) -> Any:
    return np.abs(value - border) < EDGE * border
