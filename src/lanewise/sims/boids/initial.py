"""How a flock starts: where its agents are.

They look in random directions, upright, at 0.3 of the largest speed, as in OpenSteer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.boids.state import State
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import require_memory
from lanewise.sims.common.seeds import check_seed
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

START_SPEED = 0.3  # of the largest speed
OPENSTEER_SHARE = 0.4  # of the radius of the world: 20 of 50
CLUSTERS = 8
DEFAULT_AGENTS = 16384
BYTES = 170  # of an agent while it is placed: its 14 numbers in float64, and what they are made of
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Start:
    """A distribution: (agents, random, radius) -> positions of shape (agents, 3); `share` of the
    world is its radius by default. flat: the same in the plane y = 0.
    """

    name: str
    description: str
    share: float
    points: Callable[[int, np.random.Generator, float], Points]
    flat: Callable[[int, np.random.Generator, float], Points]


def _ball(agents: int, random: np.random.Generator, radius: float) -> Points:
    return _directions(agents, random) * (radius * np.cbrt(random.random(agents)))[:, None]


def _shell(agents: int, random: np.random.Generator, radius: float) -> Points:
    return _directions(agents, random) * radius


def _cube(agents: int, random: np.random.Generator, radius: float) -> Points:
    return radius * (2 * random.random((agents, 3)) - 1)


def _disc(agents: int, random: np.random.Generator, radius: float) -> Points:
    angle, distance = 2 * np.pi * random.random(agents), radius * np.sqrt(random.random(agents))
    return np.stack([distance * np.cos(angle), np.zeros(agents), distance * np.sin(angle)], axis=1)


def _clusters(agents: int, random: np.random.Generator, radius: float) -> Points:
    """Balls around places of the large ball; together they take a hundredth of its volume."""
    small = radius * (0.01 / CLUSTERS) ** (1 / 3)
    centers = _ball(CLUSTERS, random, radius - small)
    return centers[random.integers(CLUSTERS, size=agents)] + _ball(agents, random, small)


def _circle(agents: int, random: np.random.Generator, radius: float) -> Points:
    return _directions_in_plane(agents, random) * radius


def _square(agents: int, random: np.random.Generator, radius: float) -> Points:
    return _cube(agents, random, radius) * (1.0, 0.0, 1.0)


def _groups(agents: int, random: np.random.Generator, radius: float) -> Points:
    """Discs around places of the large disc; together they take a hundredth of its area."""
    small = radius * (0.01 / CLUSTERS) ** (1 / 2)
    centers = _disc(CLUSTERS, random, radius - small)
    return centers[random.integers(CLUSTERS, size=agents)] + _disc(agents, random, small)


STARTS: dict[str, Start] = {
    s.name: s
    for s in (
        Start(
            "ball",
            "evenly in a ball of 0.4 of the world's radius, as OpenSteer",
            OPENSTEER_SHARE,
            _ball,
            _disc,
        ),
        Start("world", "evenly in the whole sphere", 1.0, _ball, _disc),
        Start("cube", "evenly in the cube within the sphere", 1 / math.sqrt(3), _cube, _square),
        Start("shell", "on a sphere of half the radius", 0.5, _shell, _circle),
        Start("disc", "on a flat disc of half the radius", 0.5, _disc, _disc),
        Start(
            "clusters",
            "in eight dense clusters, a hundredth of the volume",
            0.9,
            _clusters,
            _groups,
        ),
    )
}
"""Name -> distribution."""


@checked(InputError)
def make_state(
    agents: int | None,
    *,
    start: str = "ball",
    radius: float | None = None,
    world: float = 50.0,
    max_speed: float = 9.0,
    seed: int = 0,
    dimension: int = 3,
) -> State:
    """`agents` (default 16384) placed by the distribution `start`. radius: of the distribution; by
    default a fraction of the world's.

    dimension: 2 for the plane y = 0, where balls are discs. The same arguments give the same bits.
    Raises InputError for values out of range.
    """
    check_known("start", start, STARTS)
    count = check_agents(DEFAULT_AGENTS if agents is None else agents)
    check_seed(seed)
    size = STARTS[start].share * world if radius is None else radius
    if not (math.isfinite(size) and size > 0):
        raise InputError(f"the start radius is {size:g}; wanted a finite length above zero")
    require_memory("cpu", BYTES * count, f"a start of {counted(count, 'agent', 'agents')}")
    random = np.random.default_rng(seed)
    flat = dimension == 2
    distribution = STARTS[start]
    position = (distribution.flat if flat else distribution.points)(count, random, size)
    forward = (_directions_in_plane if flat else _directions)(count, random)
    up = np.tile((0.0, 1.0, 0.0), (count, 1)) if flat else _upright(forward)
    speed = np.full(count, START_SPEED * max_speed)
    return State(position, forward, up, speed, np.zeros((count, 3)), np.arange(count))


def check_agents(agents: int) -> int:
    """Refuse fewer than none."""
    if agents < 0:
        raise InputError(f"{agents} agents requested; wanted 0 or more")
    return agents


def _directions(count: int, random: np.random.Generator) -> Points:
    """(count, 3) unit vectors, evenly over the sphere."""
    z, angle = 2 * random.random(count) - 1, 2 * np.pi * random.random(count)
    across = np.sqrt(1 - z * z)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def _directions_in_plane(count: int, random: np.random.Generator) -> Points:
    """(count, 3) unit vectors, evenly over the circle in the plane y = 0."""
    angle = 2 * np.pi * random.random(count)
    return np.stack([np.cos(angle), np.zeros(count), np.sin(angle)], axis=1)


def _upright(forward: Points) -> Points:
    """The unit vectors at right angles to `forward` that are nearest to the y axis; the x axis
    where it looks along y.
    """
    steep = np.abs(forward[:, 1]) > 1 - 1e-12
    side = np.cross(forward, np.where(steep[:, None], (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    return np.asarray(np.cross(side, forward), np.float64)
