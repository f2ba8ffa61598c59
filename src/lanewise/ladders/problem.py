"""What the gravity ladders compute: one user function, star clusters, and the float64 answer that
it is checked against.

Without `from __future__ import annotations`: a kernel's types are read where it is defined.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.common.devices import to_host
from lanewise.sims.gravity import Body, Body64, make_initial_conditions
from lanewise.sims.gravity.physics import RECORDS

SOFTENING = (
    # Plummer softening length, in Henon units: the tutorial's softened force with a cluster's usual
    # length
    0.05
)
FLOPS = 20  # of one interaction, as the tutorial counts
SAMPLE = 256  # targets that are checked against all sources
CHUNK = 512  # sources of one float64 block, so that a core's cache holds it with 256 targets


@lw.pairwise
def attraction(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    """The acceleration by Newton's law with Plummer softening, as one writes it first: with a test
    and a division.
    """
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    inverse = 1 / lw.sqrt(lw.dot(d, d) + softening2)
    return source.mass * inverse**3 * d


@lw.pairwise
def attraction64(target: Body64, source: Body64, softening2: lw.f64) -> lw.dvec3:
    """The same in float64."""
    if lw.same(target, source):
        return lw.dvec3(0)
    d = source.position - target.position
    inverse = 1 / lw.sqrt(lw.dot(d, d) + softening2)
    return source.mass * inverse**3 * d


@lw.pairwise
def attracting_force(
    target: Body, source: Body, softening2: lw.f32, gravitational_constant: lw.f32
) -> lw.vec3:
    """The force, as codes have it that move bodies by forces: a product of values of the target is
    in every pair.
    """
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    inverse = lw.rsqrt(lw.dot(d, d) + softening2)
    return gravitational_constant * target.mass * source.mass * inverse**3 * d


@dataclass(frozen=True, slots=True)
class Law:
    """A user function of two bodies, the values that it takes besides them (G = 1), whether it
    gives forces or accelerations, and in which precision.
    """

    kernel: lw.Pairwise
    values: Mapping[str, float]
    gives_force: bool = False
    precision: str = "f32"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of bodies and results."""
        return np.dtype(np.float32 if self.precision == "f32" else np.float64)


ACCELERATION = Law(attraction, {"softening2": SOFTENING**2})
ACCELERATION64 = Law(attraction64, {"softening2": SOFTENING**2}, precision="f64")
FORCE = Law(
    attracting_force, {"softening2": SOFTENING**2, "gravitational_constant": 1.0}, gives_force=True
)


@dataclass
class Problem:
    """A Plummer cluster in the precision of a law; its arrays and float64 answer are made once
    each.
    """

    bodies: int
    seed: int = 0
    law: Law = ACCELERATION
    _arrays: dict[tuple[lw.Layout, str], Any] = field(
        default_factory=dict[tuple[lw.Layout, str], Any]
    )
    _answer: "tuple[NDArray[np.int64], NDArray[np.float64]] | None" = None

    def __post_init__(self) -> None:
        particles = make_initial_conditions("plummer", self.bodies, self.seed)
        self.position = particles.position.astype(self.law.dtype)
        self.mass = particles.mass.astype(self.law.dtype)
        self.velocity = particles.velocity.astype(self.law.dtype)

    def records(self, layout: lw.Layout, device: str) -> Any:
        """The bodies in this layout on this device."""
        key = (layout, device)
        if key not in self._arrays:
            self._arrays[key] = RECORDS[self.law.precision].array(
                position=self.position,
                mass=self.mass,
                velocity=self.velocity,
                layout=layout,
                device=device,
            )
        return self._arrays[key]

    def answer(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The checked targets (k,), and their accelerations or forces (k, 3) by a float64 sum over
        all sources.
        """
        if self._answer is None:
            chosen = sample(self.bodies, self.seed)
            acceleration = direct_sum(
                self.position[chosen],
                self.position,
                self.mass,
                softening2=float(self.law.dtype.type(self.law.values["softening2"])),
            )
            factor = self.mass[chosen, None].astype(np.float64) if self.law.gives_force else 1.0
            self._answer = chosen, acceleration * factor
        return self._answer

    def error(self, result: Any) -> float:
        """The relative error, max |a - a64| / max |a64| over the sample, of results a of shape (n,
        3).

        Infinite when a body anywhere has none: the memory of the result holds NaN before the kernel
        runs.
        """
        host = to_host(result)
        if host.shape != (self.bodies, 3) or not np.isfinite(host).all():
            return float("inf")
        chosen, exact = self.answer()
        difference = np.linalg.norm(host[chosen].astype(np.float64) - exact, axis=1)
        return float(difference.max() / (np.linalg.norm(exact, axis=1).max() or 1.0))

    @property
    def tolerance(self) -> float:
        """The largest relative error that sums of this length explain in their precision.

        Rounding errors of n additions grow like sqrt(n) u with u = 2^-24, in float64 2^-53, where
        the answer has as many itself (Higham and Mary, SIAM
        Journal on Scientific Computing 41, A2815, 2019). One after the other they reach half of
        that here; 8 times it, and 64 u for a pair's own arithmetic, is allowed. A body left out or
        met twice changes a result by about 1/n, a wrong term by its size.
        """
        unit = 2.0**-24 if self.law.precision == "f32" else 2.0**-52
        return (8 * self.bodies**0.5 + 64) * unit


def sample(bodies: int, seed: int) -> NDArray[np.int64]:
    """At least 256 targets, or all: both ends, where blocks and tiles are partial, and others at
    random.
    """
    if bodies <= 2 * SAMPLE:
        return np.arange(bodies)
    ends = np.concatenate([np.arange(32), np.arange(bodies - 32, bodies)])
    others = np.random.default_rng(seed).choice(
        np.arange(32, bodies - 32), SAMPLE - len(ends), replace=False
    )
    return np.sort(np.concatenate([ends, others]))


def direct_sum(
    targets: NDArray[np.floating[Any]],
    sources: NDArray[np.floating[Any]],
    mass: NDArray[np.floating[Any]],
    softening2: float = float(np.float32(SOFTENING**2)),
) -> NDArray[np.float64]:
    """Accelerations (k, 3) of targets (k, 3) by sources (n, 3) of mass (n,), G = 1; a body adds
    nothing to itself.
    """
    place = targets.T.astype(np.float64)[:, :, None]

    def of_sources(first: int) -> NDArray[np.float64]:
        near, many = slice(first, first + CHUNK), len(place[0])
        d = [s - t for s, t in zip(sources[near].T.astype(np.float64), place, strict=True)]
        squared = sum((x * x for x in d), np.full((many, 1), float(softening2)))
        squared[squared == 0] = np.inf  # itself, without a softening
        weight = mass[near] / (squared * np.sqrt(squared))
        return np.stack([np.einsum("ts,ts->t", weight, x) for x in d], axis=1)

    with ThreadPoolExecutor() as pool:  # NumPy lets the others compute meanwhile
        pieces = pool.map(of_sources, range(0, len(sources), CHUNK))
        return sum(pieces, np.zeros((len(targets), 3)))
