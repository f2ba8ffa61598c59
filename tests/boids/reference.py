"""Flocks in plain NumPy, float64: the three semantics, one agent or all at once, with nothing of lanewise in it.

The rules are those of OpenSteer's Boids and of the synchronous version on GPUs (the thesis variant); see
docs/flocks.md.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DATA = Path(__file__).parents[1] / "data" / "boids"
DT = float(np.float32(1 / 60))  # of the truth files


@dataclass(frozen=True)
class Rules:
    """The numbers of a variant. `facing` is the sign with which offsets are looked at."""

    radius: float = 9.0
    k: int | None = None
    near2: float = 2.25
    facing: float = 1.0
    unit_side: bool = True
    separation: tuple[float, float, float] = (5.0, -0.707, 12.0)  # radius, cosine, weight
    alignment: tuple[float, float, float] = (7.5, 0.7, 8.0)
    cohesion: tuple[float, float, float] = (9.0, -0.15, 8.0)
    most_force: float = 27.0
    most_speed: float = 9.0
    mass: float = 1.0
    world: float = 50.0


OPENSTEER = Rules()
THESIS = Rules(radius=18**0.5, k=7, near2=1.5, facing=-1.0, unit_side=False)


@dataclass
class State:
    """(n, 3) each, but for the speed, (n,)."""

    position: Array
    forward: Array
    up: Array
    side: Array
    speed: Array
    acceleration: Array


def read(path: Path) -> State:
    """A truth file."""
    with path.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))

    def columns(*names: str) -> Array:
        return np.array([[float(row[n]) for n in names] for row in rows])

    vectors = {x: columns(f"{x}x", f"{x}y", f"{x}z") for x in "pfusa"}
    return State(vectors["p"], vectors["f"], vectors["u"], vectors["s"], columns("speed")[:, 0], vectors["a"])


def unit(v: Any) -> Array:
    """v / |v| by row, and 0 for 0."""
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.divide(v, size, out=np.zeros_like(v), where=size > 0)


def truncated(v: Array, most: float) -> Array:
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.where(size > most, v * (most / np.where(size > 0, size, 1)), v)


def neighbours(state: State, rules: Rules, i: int, box: float | None = None) -> NDArray[np.int64]:
    """The agents that agent i sees: nearer than the radius, the k nearest of them if there is a k; nearest
    first then.
    """
    off = offsets(state, i, box)
    d2 = (off * off).sum(axis=1)
    found = np.flatnonzero((d2 < rules.radius**2) & (np.arange(len(d2)) != i))
    return found if rules.k is None else found[np.argsort(d2[found], kind="stable")][: rules.k]


def offsets(state: State, i: int, box: float | None) -> Array:
    off = state.position - state.position[i]
    return off if box is None else off - box * np.round(off / box)


def steering(state: State, rules: Rules, i: int, box: float | None = None) -> Array:
    """The force on agent i, (3,), before it is limited."""
    others = neighbours(state, rules, i, box)
    off = offsets(state, i, box)[others]
    d2 = (off * off).sum(axis=1)
    distance = np.sqrt(d2)
    cosine = np.divide(
        rules.facing * (off @ state.forward[i]), distance, out=np.full(len(d2), -np.inf), where=distance > 0
    )

    def seen(radius: float, least: float) -> NDArray[np.bool_]:
        return (d2 < rules.near2) | ((d2 <= radius**2) & (cosine > least))

    apart = seen(*rules.separation[:2]) & (d2 > 0)
    alike, together = seen(*rules.alignment[:2]), seen(*rules.cohesion[:2])
    force = rules.separation[2] * unit((-off[apart] / d2[apart, None]).sum(axis=0))
    if alike.any():
        force = force + rules.alignment[2] * unit(state.forward[others[alike]].mean(axis=0) - state.forward[i])
    if together.any():
        force = force + rules.cohesion[2] * unit(off[together].mean(axis=0))
    return force


def limited(force: Array, forward: Array, speed: float, rules: Rules) -> Array:
    """No sharp turns at low speed: the force stays within a cone around the heading."""
    slow, size = 0.2 * rules.most_speed, float(np.linalg.norm(force))
    if speed > slow or size == 0:
        return force
    least = 1 - 2 * (speed / slow) ** 20
    along = float(force @ forward)
    if along / size >= least:
        return force
    across = unit((force - along * forward)[None])[0]
    return size * (least * forward + np.sqrt(max(0.0, 1 - least * least)) * across)


def updated(state: State, i: int, force: Array, rules: Rules, dt: float) -> None:
    """Move agent i by one step; `state` is changed in place."""
    p, f, up = state.position[i], state.forward[i], state.up[i]
    force = limited(force, f, float(state.speed[i]), rules)
    a = truncated(force, rules.most_force) / rules.mass
    rate = min(max(9 * dt, 0.15), 0.4)
    smooth = state.acceleration[i] + (a - state.acceleration[i]) * rate
    velocity = truncated(f * state.speed[i] + smooth * dt, rules.most_speed)
    speed = float(np.linalg.norm(velocity))
    p = p + velocity * dt
    blend = min(max(3 * dt, 0.0), 1.0)
    up = unit((up + (0.05 * smooth + np.array([0, 0.2, 0]) - up) * blend)[None])[0]
    if speed > 0:
        f = velocity / speed
    side = np.cross(f, up)
    if rules.unit_side:
        side = unit(side[None])[0]
    distance = float(np.linalg.norm(p))
    if distance > rules.world:
        p = p - 2 * rules.world * p / distance
    state.position[i], state.forward[i], state.up[i], state.side[i] = p, f, np.cross(side, f), side
    state.speed[i], state.acceleration[i] = speed, smooth


def synchronous(state: State, rules: Rules, dt: float = DT, steps: int = 1) -> State:
    """All steering from the old state, then all updates."""
    state = copied(state)
    for _ in range(steps):
        forces = [steering(state, rules, i) for i in range(len(state.speed))]
        for i, force in enumerate(forces):
            updated(state, i, force, rules, dt)
    return state


def one_after_another(state: State, rules: Rules, dt: float = DT, steps: int = 1) -> State:
    """Every agent steers and moves before the next one looks."""
    state = copied(state)
    for _ in range(steps):
        for i in range(len(state.speed)):
            updated(state, i, steering(state, rules, i), rules, dt)
    return state


def copied(state: State) -> State:
    return replace(
        state,
        **{
            name: getattr(state, name).copy() for name in ("position", "forward", "up", "side", "speed", "acceleration")
        },
    )


def polarisation(state: State) -> float:
    """The length of the mean heading: 1 when all fly the same way."""
    return float(np.linalg.norm(state.forward.mean(axis=0)))


RUNS: dict[str, tuple[Any, Rules]] = {
    "sync": (synchronous, OPENSTEER), "seq": (one_after_another, OPENSTEER), "thesis": (synchronous, THESIS),
}  # fmt: skip
