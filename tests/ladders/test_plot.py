from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from lanewise.ladders import find_ladder, layouts, plot, tutorial
from lanewise.ladders.plot import EDGE_HIGH, EDGE_LOW, factor_ticks, plot_ladder
from lanewise.ladders.plot import _limits as limits
from lanewise.ladders.plot import _panels as panels
from lanewise.ladders.rung import Ladder, Rung
from lanewise.support.errors import InputError
from tests.ladders.test_parts import RESULT
from tests.ladders.test_parts import rungs as measured


def size(path: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def rung(name: str, factor: float | None, bodies: int = 1000, **more: object) -> Rung:
    extra = {"pairs_per_second": 1e9 * (factor or 1.0)}
    return Rung(name=name, bodies=bodies, seconds=1.0, speedup=factor, extra=extra, **more)  # type: ignore[arg-type]


CASES: dict[str, tuple[Ladder, list[Rung]]] = {
    "one rung": (tutorial.LADDER, [rung("alone", None)]),
    "all skipped": (tutorial.LADDER, [Rung(name="a", bodies=5, skipped="no"), Rung(name="b", bodies=5, skipped="no")]),
    "far outside": (
        tutorial.LADDER,
        [rung("a", None), rung("b", 1e-9, paper={"X": 0.01}), rung("c", 1e9, predicted=1e7)],
    ),
    "several sizes": (tutorial.LADDER, [rung(n, 1.1, bodies) for bodies in range(1, 9) for n in ("a", "b")]),
    "panels": (layouts.LADDER, [rung(c.name, 1.2, paper=c.paper) for c in layouts.combinations(False)]),
}


@pytest.mark.parametrize("name", CASES)
def test_pictures_of_any_ladder(name, tmp_path):
    ladder, rungs = CASES[name]
    plot_ladder(tmp_path / "bars.png", ladder, rungs, "a machine")
    width, height = size(tmp_path / "bars.png")
    assert width > 600
    assert height > 300


@pytest.fixture(scope="module")
def figures() -> dict[str, tuple[list[Rung], Any]]:
    """Pictures of measured ladders, before they are saved."""
    made: dict[str, tuple[list[Rung], Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("lbm", "memory", "tutorial", "layouts_1M"):
            every = measured(RESULT.with_name(f"{name}.json"))
            patch.setattr(plot, "save_png", lambda figure, _, n=name, e=every: made.update({n: (e, figure)}))
            plot_ladder(Path("bars.png"), find_ladder(name.partition("_")[0]), every, "a machine")
    return made


@pytest.mark.parametrize("name", ["lbm", "memory", "tutorial", "layouts_1M"])
def test_a_row_says_over_which_rung_its_factors_are(name: str, figures: dict[str, tuple[list[Rung], Any]]) -> None:
    every, figure = figures[name]
    axes = figure.axes[0]
    below = {round(t.xy[1]): t.get_text() for t in axes.texts if t.get_text().startswith("over ")}
    said = {label.get_text(): below.get(at, "") for at, label in enumerate(axes.get_yticklabels())}
    panels = {a.get_title(loc="left") for a in figure.axes}
    with_factor = [r for r in every if r.speedup is not None]
    assert with_factor
    for r in with_factor:
        title, _, rest = r.name.partition(", ")
        row, inside = (rest, f"{title}, ") if title in panels else (r.name, "")
        assert r.over is not None
        assert f"over {r.over.removeprefix(inside)}" in said[row], r.name
    bases = {r.name for r in every} - {r.name for r in with_factor}
    assert all(said.get(name, "") == "" for name in bases)


@pytest.mark.parametrize("name", ["lbm", "memory", "tutorial", "layouts_1M"])
def test_words_and_legends_are_inside_the_picture(name: str, figures: dict[str, tuple[list[Rung], Any]]) -> None:
    _, figure = figures[name]
    (legend,) = figure.legends
    for part in (legend, *figure.axes[0].texts):
        box = part.get_window_extent()
        assert 0 <= box.x0
        assert box.x1 <= figure.bbox.width


def test_rungs_in_panels():
    names = [c.name for c in layouts.combinations(False)]
    labels, found = panels(names)
    assert [p.title for p in found] == list(layouts.LAYOUTS)
    assert len(labels) == 32
    assert [n for p in found for n in p.rows] == sorted(
        names, key=lambda n: list(layouts.LAYOUTS).index(n.partition(",")[0])
    )
    labels, found = panels(["a", "b, c"])
    assert (labels, [p.rows for p in found]) == (["a", "b, c"], [("a", "b, c")])


def test_limits_hold_what_is_inside_them():
    for factors in ([], [1.0], [0.7, 1.6], [EDGE_LOW / 10, 5.0], [2.0, EDGE_HIGH * 100]):
        low, high = limits([[f] for f in factors])
        assert low < 1 < high
        assert all(low <= f <= high for f in factors if EDGE_LOW <= f <= EDGE_HIGH)


def test_the_axis_reaches_large_factors_where_many_are():
    low, high = limits([[20.0, 70.0], [108.0, 3.0], [945.0], [5.2], [6.1]])
    assert (round(low, 2), high) == (0.82, 945.0)
    assert limits([[0.001], [0.01], [1.2]])[0] == 0.001
    few = [[1.2]] * 11
    assert limits([[0.014], [9000.0, 12150.0], *few]) == (EDGE_LOW, EDGE_HIGH)


def test_ticks():
    assert factor_ticks(0.82, 8) == [1, 1.5, 2, 3, 5, 8]
    assert factor_ticks(0.82, 1200) == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert factor_ticks(0.04, 3e4) == [0.1, 1, 10, 100, 1000, 10_000]


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        plot_ladder(tmp_path / "nowhere" / "bars.png", *CASES["one rung"], "a machine")
