"""Walks of searches on a GPU: a warp goes on until the longest row of its targets ends, and what a thread reads in the
next turn lies beside what it has read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.region import Region
from lanewise.analysis.regions import SECTOR, analyse
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.calls import call_subject
from lanewise.explanation.compiled import find_model
from lanewise.ir.names import GATHER_STEP, longest_of, turns_of
from lanewise.language.target import WARP
from lanewise.patterns.search.turns import ROW, longest_row


class Point(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise(search=lw.StaticGrid(radius=0.1))
def density(target: Point, source: Point) -> lw.f32:
    d = source.position - target.position
    return source.mass / (1 + lw.dot(d, d))


@pytest.mark.parametrize("apart", [2, 3, 5, 17])
def test_the_longest_row_is_that_of_random_ones(apart: int) -> None:
    row = WARP / (apart - 1)
    drawn = np.random.default_rng(apart).poisson(row, (100_000, apart)).max(axis=1)
    assert longest_row(row) == pytest.approx(drawn.mean(), rel=0.01)


def test_no_longest_row_is_shorter_than_others() -> None:
    rows = np.geomspace(1e-3, 499, 60)
    longest = np.array([longest_row(r) for r in rows])
    assert (longest > rows).all()
    assert (np.diff(longest) > 0).all()
    assert (np.diff(longest / rows) < 0).all()


@pytest.mark.parametrize("neighbours", [0.5, 2.0, 20.0])
def test_the_longest_row_is_that_of_a_grid(neighbours: float) -> None:
    """Points in the order of their cells, counted by hand: 3 cells of a row, beside every target of a warp."""
    rng, n = np.random.default_rng(3), 20
    members = rng.poisson(neighbours * 3 / (4 * np.pi), (n, n, n))
    z, y, x = (np.repeat(a.ravel(), members.ravel()) for a in np.indices(members.shape))
    inside = np.pad(members, 1)
    rows = [
        sum(inside[z + 1 + a, y + 1 + b, x + 1 + c] for c in (-1, 0, 1))
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
        if a or b
    ]
    whole = len(z) // WARP * WARP
    warps = np.stack([r[:whole].reshape(-1, WARP) for r in rows])
    assert longest_row(float(warps.mean())) == pytest.approx(warps.max(axis=-1).mean(), rel=0.15)


@dataclass(frozen=True)
class Seen:
    """Of the loop over a row, for a warp: its turns, and the sectors of sources that it reads in all of them."""

    turns: float
    sectors: float


def seen(turns: float, longest: float | None, *, beside: bool) -> Seen:
    rng = np.random.default_rng(0)
    points = Point.array(position=rng.random((4000, 3), np.float32), mass=np.ones(4000, np.float32), layout=lw.SoA())
    model: Any = find_model("cuda", None)
    subject, _, _ = call_subject(density, (points, points), {}, "cuda", model)
    environment = {**subject.environment, turns_of(ROW): turns}
    environment.pop(turns_of(longest_of(ROW)), None)
    if longest is not None:
        environment[turns_of(longest_of(ROW))] = longest
    if not beside:
        environment.pop(GATHER_STEP)
    plan = subject.default(lw.Plan(unroll=1))
    (kernel,) = (k for k in build_program(subject.reference, plan, "cuda", between=False).kernels if k.grid)
    root = analyse(kernel, environment).regions[0]
    entries = {id(c): r.executions for r in every(root) for c in r.children}
    (loop,) = (r for r in every(root) if any(key.startswith("source/") for key in r.sectors))
    (sectors,) = loop.sectors.values()
    return Seen(loop.executions / entries[id(loop)], sectors * loop.trips)


def every(region: Region) -> list[Region]:
    return [region, *(r for c in region.children for r in every(c))]


@pytest.mark.parametrize("beside", [True, False])
def test_a_warp_goes_on_to_the_end_of_its_longest_row(beside: bool) -> None:
    """It issues so often; what it reads is what its threads read, and no more."""
    even, uneven = seen(4.0, None, beside=beside), seen(4.0, 16.0, beside=beside)
    assert even.turns == pytest.approx(4.0)
    assert uneven.turns == pytest.approx(16.0)
    assert even.sectors <= uneven.sectors < 2 * even.sectors


def test_threads_that_lie_apart_read_along_sectors() -> None:
    """Of the 16 bytes of a source two are in a sector."""
    one, many = (seen(turns, None, beside=False).sectors for turns in (1.0, 81.0))
    assert many / one == pytest.approx(1 + 80 * 16 / SECTOR)
