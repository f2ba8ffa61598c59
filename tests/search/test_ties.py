"""Places of few points: many sources in one place, equally far from a target, or exactly at the radius. NumPy says
which are met.
"""

from typing import Any

import numpy as np
import pytest

import lanewise as lw

SIDE = 4  # points along an axis, a unit apart
SEARCHES: dict[str, Any] = {
    "all pairs": lw.AllPairs, "static grid": lw.StaticGrid, "dynamic grid": lw.DynamicGrid,
    "leaves of 4": lambda **asked: lw.DynamicGrid(**asked, leaf=4),
}  # fmt: skip
WORLDS: dict[str, tuple[Any, float]] = {
    "open": (lw.Open(), 0.0), "bounded": (lw.Bounded((-2.0, -2.0), (2.0, 2.0)), 0.0),
    # two points may be half a period apart, on both sides: the two images of a source are equally near, and it is met
    # once
    "periodic": (lw.Periodic((4.0, 4.0), origin=-2.0), 4.0),
}  # fmt: skip


@lw.record
class Place:
    position: lw.vec2
    bit: lw.i64


@lw.pairwise
def met(target: Place, source: Place) -> lw.i64:
    return source.bit  # whose sum says which sources were met, each once


def places(rng: Any, count: int, device: str) -> Any:
    position = rng.integers(0, SIDE, (count, 2)) - 2
    return Place.array(position=position.astype("f4"), bit=1 << np.arange(count, dtype="i8"), device=device)


def wanted(targets: Any, sources: Any, period: float, radius: float, k: int | None) -> Any:
    apart = np.asarray(sources.numpy()["position"], "f8") - np.asarray(targets.numpy()["position"], "f8")[:, None]
    apart -= period * np.round(apart / period) if period else 0.0
    squared = (apart**2).sum(2)
    nearer = squared < radius**2
    if k is not None and sources is targets:
        np.fill_diagonal(nearer, val=False)
    order = np.argsort(squared, axis=1, kind="stable")
    rows = [[j for j in row if near[j]][:k] for row, near in zip(order, nearer, strict=True)]
    return [sum(1 << int(j) for j in row) for row in rows]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("world", [pytest.param(w, marks=pytest.mark.slow if w != "periodic" else ()) for w in WORLDS])
@pytest.mark.parametrize(
    "search", [pytest.param(s, marks=pytest.mark.slow if s == "leaves of 4" else ()) for s in SEARCHES]
)
@pytest.mark.parametrize("k", [pytest.param(None, marks=pytest.mark.slow), 3])
def test_of_equally_near_sources_the_first_are_met(k: int | None, search: str, world: str, device: str) -> None:
    where, period = WORLDS[world]
    for seed in range(40):
        rng = np.random.default_rng(seed)
        targets = places(rng, int(rng.choice([5, 17, 60])), device)
        sources = targets if seed % 2 else places(rng, int(rng.choice([4, 30, 60])), device)
        radius = float(rng.choice([1.0, 1.25, 2.0, 2.0]))
        found = met.using(SEARCHES[search](radius=radius, k=k, world=where))(targets, sources)
        assert found.tolist() == wanted(targets, sources, period, radius, k)
