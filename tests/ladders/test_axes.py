"""Ladders along one setting: every point is right, names its rung, and is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.ladders import find_ladder, layouts_bodies, lbm_solid
from lanewise.ladders.layouts import SERIAL
from lanewise.ladders.lbm import AUTOMATIC, BOTH, ONE
from lanewise.ladders.lbm_flow import SOLID, SiteBox
from lanewise.ladders.plot import plot_ladder
from lanewise.ladders.rung import Options, Rung


@pytest.mark.parametrize("shape", [(128, 128), (256, 256), (24, 24, 24)])
def test_the_share_of_solid_sites_is_what_was_asked_for(shape: tuple[int, ...]) -> None:
    """But for the edges, which are no discs, and sites that are as far away as each other."""
    box = SiteBox(lw.D2Q9 if len(shape) == 2 else lw.D3Q19, shape)
    for share in lbm_solid.ALONG:
        found = float(np.mean(replace(box, solid=share)._discs()))
        assert abs(found - share) < 0.02, (share, found)
    assert np.array_equal(replace(box, solid=0.0)._discs(), np.zeros(shape, bool))


@pytest.fixture(scope="module")
def solid() -> Iterator[list[Rung]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lbm_solid, "QUICK", (0.0, 0.2))
        patch.setattr(lbm_solid, "QUICK_MOST", 800)
        yield list(find_ladder("lbm", "solid").climb(Options("cpu", (32**2,), quick=True)))


@pytest.mark.slow
def test_flows_are_checked_at_every_share(solid: list[Rung]) -> None:
    """Named by the share that there is: discs are made of whole sites, and edges are not solid."""
    mask = SiteBox(lw.D2Q9, (32, 32), 0.2).mask("together")
    real = float(np.mean(mask == SOLID))
    assert real != 0.2
    names = [f"D2Q9, {share:.1%} solid, {name}" for share in (0, real) for name in (ONE, BOTH, AUTOMATIC)]
    assert [r.name for r in solid] == names
    assert all(r.relative_error is not None and r.relative_error < 1e-4 for r in solid if r.seconds is not None)
    assert solid[0].seconds is not None
    assert {r.over for r in solid if r.seconds is not None} - {None} == {names[0], names[3]}
    for rung in solid:
        steps = rung.extra["steady_steps"]
        assert steps is None or steps % lbm_solid.LOOK == 0
    assert [r.extra["share"] for r in solid] == [0.0] * 3 + [real] * 3
    assert [r.extra["share_requested"] for r in solid] == [0.0] * 3 + [0.2] * 3


def test_levels_are_checked_at_every_size() -> None:
    ladder = find_ladder("layouts", "bodies")
    rungs = list(ladder.climb(Options("cpu", (128, 300), quick=True)))
    names = [SERIAL, *(level.name for level in layouts_bodies.LEVELS), layouts_bodies.OWN]
    assert [r.name for r in rungs] == [*names, *names]
    for rung in rungs:
        assert rung.seconds is not None, rung.skipped
        assert rung.relative_error is not None
        assert rung.relative_error < 1e-5
        assert rung.over == (None if rung.name == SERIAL else SERIAL)
        parts = [float(rung.extra[k]) for k in ("kernel_seconds", "in_seconds", "out_seconds")]  # type: ignore[arg-type]
        assert sum(parts) == rung.seconds
        assert parts[1:] == [0.0, 0.0]  # of a CPU
    lines = ladder.summary(rungs)
    assert lines[0].startswith("128 bodies: fastest is ")
    assert lines[-1] == "paper: 87 times its serial CPU code, at up to 1 million bodies"


@pytest.mark.parametrize(("name", "axis"), [("lbm", "solid"), ("layouts", "bodies")])
def test_pictures(name: str, axis: str, tmp_path) -> None:
    ladder = find_ladder(name, axis)
    assert ladder.draw is not None
    rungs = [
        Rung(
            name=f"{n} {k}",
            bodies=n,
            seconds=k * n,
            speedup=2.0,
            extra={"share": 0.1 * k, "count": n, "steady_seconds": None, "curve": f"c{k}"},
        )
        for n in (10, 200)
        for k in (1, 2, 3)
    ]
    for some in (rungs, rungs[:1], []):
        ladder.draw(tmp_path / "curves.png", ladder, some, "a test")
        assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_a_picture_has_every_figure_of_a_paper_and_what_it_expects(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """One bar for each size where a paper has a figure for each; equation 1 beside them; rungs without a factor where they have a rate."""
    from lanewise.ladders import plot

    ladder = find_ladder("lbm")
    seen: list[tuple[str, dict[str, float]]] = []
    rows: list[tuple[str | None, ...]] = []
    monkeypatch.setattr(plot, "_handles", lambda shown: seen.extend((s.label, dict(s.factors)) for s in shown) or [])
    monkeypatch.setattr(plot, "_draw_rates", lambda axes, panel, *rest: rows.append(panel.rows))
    rate = {"sites_per_second": 1e6}
    rungs = [
        made
        for n, figure in ((16_384, 1.301), (65_536, 1.24))
        for made in (
            Rung(name="one", bodies=n, seconds=1.0, extra=rate),
            Rung(
                name="both",
                bodies=n,
                seconds=1.0,
                speedup=1.1,
                paper={"G80": figure},
                extra={**rate, "equation_1": figure + 1},
            ),
        )
    ]
    plot_ladder(tmp_path / "bars.png", ladder, rungs, "a test")
    assert seen[2:] == [
        ("eq. 1, 16,384 sites", {"both": 2.301}),
        ("eq. 1, 65,536 sites", {"both": 2.24}),
        ("G80, 16,384 sites", {"both": 1.301}),
        ("G80, 65,536 sites", {"both": 1.24}),
    ]
    assert rows == [("one", "both")]
