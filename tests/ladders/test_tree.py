"""The ladder `tree`: rungs with times and errors, that fall with the order; wrong forces have no time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lanewise as lw
from lanewise.ladders import find_ladder, tree
from lanewise.ladders.problem import direct_sum
from lanewise.ladders.rung import Options, Rung
from lanewise.ladders.tree import ALL_PAIRS, ANGLES, ORDERS, PAIRED, draw, summary, versions
from lanewise.ladders.tree_peers import PEERS, Array, Forces, Peer


def test_it_has_all_orders_at_all_angles() -> None:
    named = versions(Options("cpu", (100,)))
    assert len(named) == 1 + (len(ORDERS) + len(PAIRED)) * len(ANGLES)
    assert named[ALL_PAIRS] is None
    assert named["monopoles, theta 0.6"] == lw.Tree(theta=0.6, order=1, method="walk")
    assert named["order 6, theta 0.4"] == lw.Tree(theta=0.4, order=6, method="walk")
    assert named["order 5, pairs of groups, theta 0.8"] == lw.Tree(theta=0.8, order=5, method="dual")


@pytest.mark.slow
def test_quick_rungs_are_timed_and_their_errors_fall_with_the_order(tmp_path: Path) -> None:
    ladder = find_ladder("tree")
    rungs = [r for r in ladder.climb(Options("cpu", (2000,), quick=True)) if r.extra["library"] is None]
    assert [r.skipped for r in rungs] == [None] * 5
    assert rungs[0].name == ALL_PAIRS
    assert all(r.seconds for r in rungs)
    errors = [float(r.extra["error_99"] or 0) for r in rungs]
    assert errors[0] < 1e-5
    assert 0.5 > errors[1] > errors[2] > errors[3] > errors[0]
    assert errors[2] > errors[4] > errors[0]
    assert [r.extra["order"] for r in rungs] == [None, 1, 2, 4, 4]
    assert [r.extra["method"] for r in rungs] == [None, "walk", "walk", "walk", "dual"]
    assert any("99 % of errors below" in line for line in summary(rungs))
    draw(tmp_path / "a.png", ladder, rungs, "a machine")
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > 900


def test_forces_that_are_wrong_have_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.ladders.tree.LIMIT", 1e-9)
    rungs = list(find_ladder("tree").climb(Options("cpu", (500,), quick=True)))
    rungs = [r for r in rungs if r.extra["skip"] != "absent"]
    assert len(rungs) >= 5
    assert all(r.seconds is None and r.extra["skip"] == "wrong" for r in rungs)
    assert "wrong: 99 % of the errors are below" in str(rungs[1].skipped)


def beside(monkeypatch: pytest.MonkeyPatch, *peers: Peer, quick: bool = False, device: str = "cpu") -> list[Rung]:
    """The rungs of libraries, without those of trees."""
    monkeypatch.setattr(tree, "PEERS", peers)
    monkeypatch.setattr(tree, "versions", lambda options: {ALL_PAIRS: None})
    first, *others = find_ladder("tree").climb(Options(device, (300,), quick=quick))
    assert first.name == ALL_PAIRS
    return others


def exact(position: Array, mass: Array, softening: float, threads: int) -> Forces:
    assert threads >= 1
    found = direct_sum(position, position, mass, softening**2)
    return {"one": lambda: found.astype(np.float32), "two": lambda: 1.1 * found, "three": lambda: 2 * found}


def test_libraries_are_rungs_with_times_and_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each against forces of the softening that it has."""
    softened, plain = Peer("json", exact, unsoftened=False), Peer("ast", exact, softened=False)
    rungs = beside(monkeypatch, softened, plain)
    names = ["one", "two", "three", "one, unsoftened", "two, unsoftened", "three, unsoftened"]
    assert [r.name for r in rungs] == names
    assert [r.extra["library"] for r in rungs] == ["json"] * 3 + ["ast"] * 3
    for one, two, three in (rungs[:3], rungs[3:]):
        assert one.seconds
        assert one.over == ALL_PAIRS
        assert 0 < float(one.extra["error_99"] or 0) < 1e-6
        assert two.extra["error_median"] == pytest.approx(0.1, rel=1e-5)
        assert two.extra["error_largest"] == pytest.approx(0.1, rel=1e-5)
        assert three.seconds is None
        assert three.extra["skip"] == "wrong"
    assert (
        "; of other libraries one, "
        in summary([replace(rungs[0], name=ALL_PAIRS, extra={**rungs[0].extra, "library": None}), *rungs])[0]
    )
    draw(tmp_path / "a.png", find_ladder("tree"), rungs, "a machine")
    assert [r.name for r in beside(monkeypatch, softened, plain, quick=True)] == ["one", "one, unsoftened"]


def test_a_library_that_is_absent_or_fails_is_a_rung_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(position: Array, mass: Array, softening: float, threads: int) -> Forces:
        raise OSError("no such table")

    absent, failing = beside(
        monkeypatch, Peer("no_such_library", exact), Peer("json", fails), Peer("ast", exact, on_gpu=True)
    )
    assert (absent.name, absent.extra["skip"]) == ("no_such_library", "absent")
    assert absent.skipped == "the package no_such_library is not installed"
    assert (failing.name, failing.extra["skip"], failing.skipped) == ("json", "failed", "OSError: no such table")
    assert Peer("json", exact, softened=False).lacking(0.05) == "json has no forces of a softening of 0.05"
    assert Peer("json", exact, unsoftened=False).lacking(0.0) == "json has no forces of a softening of 0"


@pytest.mark.parametrize("peer", [pytest.param(p, id=p.package) for p in PEERS if not p.on_gpu])
def test_libraries_that_are_installed_have_these_forces(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(peer.package)
    rungs = beside(monkeypatch, peer)
    assert len(rungs) > 1
    assert [r.skipped for r in rungs] == [None] * len(rungs)
    assert all(float(r.extra["error_median"] or 1) < 3e-2 for r in rungs)
