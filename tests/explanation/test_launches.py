"""Explanations name every launch of a call, with what it runs over and its share of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def crowd(target: Body, source: Body) -> lw.f32:
    return source.mass


@lw.threadwise
def total(i: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i]


@lw.elementwise
def deposit(at: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, at, v)


@lw.elementwise
def grow(body: Body, rate: lw.f32):
    body.mass *= rate


@pytest.fixture
def bodies() -> Any:
    return Body.array(position=np.random.default_rng(1).random((600, 3)), mass=1.0)


@pytest.mark.parametrize(
    ("search", "names"),
    [
        (lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1))), ["cells", "gather", "crowd"]),
        (lw.DynamicGrid(radius=0.2), ["curve", "gather", "crowd"]),
        (lw.AllPairs(radius=0.2), ["crowd"]),
    ],
    ids=str,
)
def test_a_search_fills_gathers_and_walks(search: Any, names: list[str], bodies: Any) -> None:
    report = crowd.using(search).compile(bodies, bodies).explain()
    assert [row.name for row in report.launches] == names
    walk = report.launches[-1]
    assert walk.grid == "600 turns"
    assert walk.nbytes is not None
    assert walk.nbytes > 600 * 4
    shares = dict(zip(names, report.shares(), strict=True))
    assert shares.get("cells") is None  # it is written by hand, and no model says how long it takes
    known = [s for s in shares.values() if s is not None]
    assert sum(known) == pytest.approx(1) if len(names) > 1 else not known  # a loop that may end early
    assert ("of what is known" in report.text()) is (len(names) > 1)


def test_sums_are_rounded_behind_the_kernel() -> None:
    values = np.zeros(50, np.int32), np.ones(50, np.float32), np.zeros(9, np.float32)
    report = deposit.compile(*values).explain()
    assert [row.name for row in report.launches] == ["deposit", "rounding of sums"]
    assert report.as_dict()["launches"][1]["share"] is None


def test_measured_launches_have_shares_of_the_call() -> None:
    values = np.ones(100_000, np.float32)
    report = total.compile(values, grid=100_000).explain(values, grid=100_000, measure=True)
    assert [row.name for row in report.launches] == ["total", "total_combine"]
    shares = report.shares()
    assert sum(s or 0 for s in shares) == pytest.approx(1)
    assert all(row.measured is not None for row in report.launches)
    assert (values == 1).all()
    assert "measured" in report.text().partition("\nlaunches\n")[2].partition("\n\n")[0]


def test_a_call_of_one_launch_has_no_list_of_them(bodies: Any) -> None:
    report = grow.compile(bodies, 2.0).explain()
    assert [row.name for row in report.launches] == ["grow"]
    assert report.shares() == (1.0,)
    assert report.launches[0].nbytes == bodies.nbytes
    assert "\nlaunches\n" not in report.text()


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, force: lw.f32):
    for q in lw.D2Q9:
        f[q] += lw.f32(0.5) * (q.weight * force - f[q])


@flow.observer
def density(f: lw.populations) -> lw.f32:
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    return total


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_a_step_over_sites_observes_updates_and_corrects(streaming: str) -> None:
    sites = flow.sites((12, 40), edges={"x": ("slip", "outflow")}, streaming=streaming, device="cpu")
    report = flow.compile(sites, force=density.of(sites), outflow_speed=0.1).explain()
    names = [row.name for row in report.launches]
    assert names[0].partition("_")[0] == "density"
    assert names[-1] == "outflow"
    assert {n.partition("_")[0] for n in names} == {"density", "flow", "outflow"}
    assert sum(s or 0 for s in report.shares()) == pytest.approx(1)
    *_, behind = report.launches
    assert behind.grid == "12 turns"
    assert behind.nbytes is not None
    # a face of 12 sites: their populations, flags, numbers, and the three that left before
    assert 12 * (9 * 4) <= behind.nbytes <= 12 * (9 * 4 + 4 + 8 + 3 * 4)
    looks = [row for row in report.launches if row.name.startswith("density")]
    updates = [row for row in report.launches if row.name.startswith("flow")]
    # all populations once, and a number for each site; the update writes them, too
    assert sum(row.nbytes or 0 for row in looks) >= 480 * 10 * 4
    copies = 1 if streaming == "in-place" else 2
    assert sum(row.nbytes or 0 for row in updates) >= 480 * (9 * copies + 1) * 4
    assert all(n in report.text() for n in names)
