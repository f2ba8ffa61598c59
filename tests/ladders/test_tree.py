"""The ladder `tree`: rungs with times and errors, that fall with the order; wrong forces have no time."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

import lanewise as lw
from lanewise.ladders import find_ladder
from lanewise.ladders.rung import Options
from lanewise.ladders.tree import ALL_PAIRS, ANGLES, ORDERS, PAIRED, draw, summary, versions


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
    rungs = list(ladder.climb(Options("cpu", (2000,), quick=True)))
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
    assert all(r.seconds is None and r.extra["skip"] == "wrong" for r in rungs)
    assert "wrong: 99 % of the errors are below" in str(rungs[1].skipped)
