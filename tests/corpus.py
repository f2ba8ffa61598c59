"""The corpus of test kernels: ordinary kernels, each with random input and a float64 NumPy reference.

Every test of code generation runs over all of them. A `Case` knows how to fill arrays of any length, what the result
should be, and how close float32 comes to it. `same` tells whether target and source are one array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.patterns.pairwise.kernel import Pairwise
from tests.corpus_kernels import (
    Body,
    Charge,
    DBody,
    MBody,
    Mixed,
    count_ranks,
    gravity,
    gravity_f64,
    gravity_mixed,
    gravity_potential,
    grow,
    histogram,
    kick_drift,
    lennard_jones,
    march,
    order,
    ranked_distance,
    saxpy_norm,
    speed,
    yukawa,
)

Fields = dict[str, np.ndarray[Any, Any]]
Results = tuple[np.ndarray[Any, Any], ...]


@dataclass(frozen=True)
class Case:
    """A kernel with its data. Pairwise kernels have two records, elementwise ones at most one, and plain `arrays`."""

    name: str
    kernel: Any
    records: tuple[Any, ...]
    fill: Callable[[np.random.Generator, int], Fields]
    reference: Callable[..., Results]
    values: dict[str, Any] = field(default_factory=dict)
    arrays: Callable[[np.random.Generator, int], Fields] = lambda rng, n: {}
    rtol: float = 2e-5
    atol: float = 1e-6
    local_arrays: bool = False

    def __str__(self) -> str:
        return self.name  # in the names of tests, which every worker has to find alike

    @property
    def pairwise(self) -> bool:
        return isinstance(self.kernel, Pairwise)


def _bodies(dtype: type, places: type | None = None) -> Callable[[np.random.Generator, int], Fields]:
    def fill(rng: np.random.Generator, n: int) -> Fields:
        return {
            "position": rng.normal(size=(n, 3)).astype(places or dtype),
            "mass": rng.uniform(0.5, 1.5, n).astype(dtype),
            "velocity": rng.normal(size=(n, 3)).astype(dtype),
        }

    return fill


def _charges(rng: np.random.Generator, n: int) -> Fields:
    return {
        "charge": rng.choice([-1.0, 1.0], n).astype("f4"),
        "position": rng.normal(size=(n, 2)).astype("f4"),
        "rank": rng.integers(0, 5, n, "i4"),
    }


def _mixed(rng: np.random.Generator, n: int) -> Fields:
    return {
        "alive": rng.random(n) < 0.7,
        "key": rng.integers(0, 2**32, n, "u4"),
        "stamp": rng.integers(-(2**40), 2**40, n, "i8"),
        "weight": rng.random(n),
        "cell": rng.integers(-50, 50, (n, 3), "i4"),
        "flags": rng.integers(0, 2**32, n, "u4"),
        "half": rng.random(n).astype("f4"),
    }


def _differences(t: Fields, s: Fields) -> tuple[np.ndarray, np.ndarray]:
    d = s["position"].astype("f8")[None] - t["position"].astype("f8")[:, None]
    return d, (d * d).sum(-1)


def _gravity(t: Fields, s: Fields, same: bool, softening2: float) -> Results:
    d, r2 = _differences(t, s)
    w = s["mass"].astype("f8") / (r2 + softening2) ** 1.5
    return ((w[..., None] * d).sum(1),)


def _gravity_potential(t: Fields, s: Fields, same: bool, softening2: float) -> Results:
    d, r2 = _differences(t, s)
    inv = 1 / np.sqrt(r2 + softening2)
    potential = -s["mass"].astype("f8") * inv
    if same:
        np.fill_diagonal(potential, 0.0)
    return ((s["mass"].astype("f8") * inv**3)[..., None] * d).sum(1), potential.sum(1)


def _lennard_jones(t: Fields, s: Fields, same: bool, sigma2: float, cutoff2: float) -> Results:
    d, r2 = _differences(t, s)
    with np.errstate(all="ignore"):
        s6 = (sigma2 / (r2 + 0.25)) ** 3
        f = 24 * (2 * s6 * s6 - s6) * (cutoff2 - r2) ** 2 / (r2 + 0.25)
    f = np.where(r2 < cutoff2, f, 0.0)
    if same:
        np.fill_diagonal(f, 0.0)
    return (-(f[..., None] * d).sum(1),)


def _yukawa(t: Fields, s: Fields, same: bool, length: float) -> Results:
    _, r2 = _differences(t, s)
    r = np.sqrt(r2 + 0.01)
    e = t["charge"].astype("f8")[:, None] * s["charge"].astype("f8") * np.exp(-r / length) / r
    if same:
        np.fill_diagonal(e, 0.0)
    return (e.sum(1),)


def _count_ranks(t: Fields, s: Fields, same: bool) -> Results:
    less = s["rank"][None] < t["rank"][:, None]
    tie = s["rank"][None] == t["rank"][:, None]
    if same:
        np.fill_diagonal(tie, False)
    bits = (t["rank"][:, None] * 8 + s["rank"][None]).astype("i8")
    return less.sum(1).astype("i4"), tie.sum(1).astype("u4"), np.left_shift(np.int64(1), bits).sum(1)


def _order(t: Fields, s: Fields, same: bool) -> Results:
    n, m = len(t["rank"]), len(s["rank"])
    return np.full(n, m - (1 if same else 0), "i4"), np.full(n, float(m))


def _ranked_distance(t: Fields, s: Fields, same: bool, scale: float) -> Results:
    _, r2 = _differences(t, s)
    bins = np.minimum(np.abs(t["rank"][:, None] - s["rank"][None]), 3)
    weights = np.array([1.0, 0.5, 0.25, 0.125])
    return ((weights[bins] * np.sqrt(r2) * scale).sum(1),)


def _kick_drift(f: Fields, acceleration: Any, dt: float) -> Fields:
    v = f["velocity"].astype("f8") + acceleration.astype("f8") * dt
    return {"velocity": v, "position": f["position"].astype("f8") + v * dt}


def _grow(f: Fields, limit: int) -> Fields:
    key = (f["key"].astype("u8") * 1664525 + 1013904223) % 2**32
    alive = f["alive"] & (f["stamp"] % 3 != 0)
    return {
        "alive": alive,
        "key": key.astype("u4"),
        "stamp": np.where(alive, f["stamp"] // 7 - limit, f["stamp"]),
        "weight": f["weight"] * 2.0 + f["half"],
        "cell": np.stack([f["cell"][:, 0] // 3, f["cell"][:, 1] % 7, -f["cell"][:, 2]], 1),
        "flags": f["flags"] ^ (key.astype("u4") >> 3),
    }


def _march(x: np.ndarray, steps: int) -> Results:
    """Collatz lengths, at most `steps`."""
    lengths = np.zeros(len(x), "i4")
    for n, value in enumerate(x.tolist()):
        while value > 1 and lengths[n] < steps:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            lengths[n] += 1
    return (lengths,)


def _histogram(x: np.ndarray) -> Results:
    scaled = x[:, None] * np.arange(1, 9, dtype="f4") % np.float32(1)  # in float32: the bins jump
    bins = np.clip((scaled * 4).astype(int), 0, 3)
    counts = np.stack([(bins == b).sum(1) for b in range(4)], 1)
    return (counts.max(1).astype("f8") + 0.125 * counts[:, 0],)


CASES = (
    Case("gravity", gravity, (Body, Body), _bodies(np.float32), _gravity, {"softening2": 0.05}),
    Case(
        "gravity_f64",
        gravity_f64,
        (DBody, DBody),
        _bodies(np.float64),
        _gravity,
        {"softening2": 0.05},
        rtol=1e-12,
        atol=1e-12,
    ),
    Case(
        "gravity_mixed", gravity_mixed, (MBody, MBody), _bodies(np.float32, np.float64), _gravity, {"softening2": 0.05}
    ),
    Case(
        "gravity_potential",
        gravity_potential,
        (Body, Body),
        _bodies(np.float32),
        _gravity_potential,
        {"softening2": 0.05},
        atol=1e-5,
    ),
    Case(
        "lennard_jones",
        lennard_jones,
        (Body, Body),
        _bodies(np.float32),
        _lennard_jones,
        {"sigma2": 0.3, "cutoff2": 1.5},
        rtol=1e-4,
        atol=1e-4,
    ),
    Case("yukawa", yukawa, (Charge, Charge), _charges, _yukawa, {"length": 0.7}, rtol=1e-4, atol=1e-4),
    Case("count_ranks", count_ranks, (Charge, Charge), _charges, _count_ranks, rtol=0, atol=0),
    Case("order", order, (Charge, Charge), _charges, _order, rtol=0, atol=0),
    Case(
        "ranked_distance",
        ranked_distance,
        (Charge, Charge),
        _charges,
        _ranked_distance,
        {"scale": 1.7},
        local_arrays=True,
    ),
    Case(
        "kick_drift",
        kick_drift,
        (Body,),
        _bodies(np.float32),
        _kick_drift,
        {"dt": 0.01},
        arrays=lambda rng, n: {"acceleration": rng.normal(size=(n, 3)).astype("f4")},
    ),
    Case(
        "speed",
        speed,
        (Body,),
        _bodies(np.float32),
        lambda f: (
            np.sqrt((f["velocity"].astype("f8") ** 2).sum(1)),
            0.5 * f["mass"] * (f["velocity"].astype("f8") ** 2).sum(1),
        ),
    ),
    Case("grow", grow, (Mixed,), _mixed, _grow, {"limit": 5}, rtol=1e-12),
    Case(
        "saxpy_norm",
        saxpy_norm,
        (),
        lambda rng, n: {},
        lambda a, x, y: (np.linalg.norm(a * x.astype("f8") + y, axis=1), (x[:, 0] > y[:, 0])),
        {"a": 2.5},
        arrays=lambda rng, n: {"x": rng.normal(size=(n, 3)).astype("f4"), "y": rng.normal(size=(n, 3)).astype("f4")},
    ),
    Case(
        "march",
        march,
        (),
        lambda rng, n: {},
        _march,
        {"steps": 60},
        arrays=lambda rng, n: {"x": rng.integers(1, 500, n, "i8")},
        rtol=0,
        atol=0,
    ),
    Case(
        "histogram",
        histogram,
        (),
        lambda rng, n: {},
        _histogram,
        arrays=lambda rng, n: {"x": rng.random(n).astype("f4")},
        local_arrays=True,
    ),
)
PAIRWISE = tuple(c for c in CASES if c.pairwise)
ELEMENTWISE = tuple(c for c in CASES if not c.pairwise)
LAYOUTS = {"AoS": lw.AoS(), "SoA": lw.SoA(), "AoAS": lw.AoAS(), "SoAoAS": lw.SoAoAS(), "AoSoA": lw.AoSoA(8)}


def case(name: str) -> Case:
    return next(c for c in CASES if c.name == name)
