"""docs/flocks.md names what there is: keys of the summary, boundaries, starts, cameras, colours, columns."""

from __future__ import annotations

import re
from pathlib import Path

from lanewise.sims.boids import BOUNDARIES, SEMANTICS, STARTS
from lanewise.sims.boids.choice import SEARCHES
from lanewise.sims.boids.obstacles import KINDS
from lanewise.sims.boids.parameters import Parameters
from lanewise.sims.boids.run import start
from lanewise.sims.boids.state import COLUMNS
from lanewise.sims.boids.view.camera import CAMERAS
from lanewise.sims.boids.view.colours import COLOURINGS
from lanewise.sims.common.films import FPS, MOST_FRAMES

TEXT = (Path(__file__).parents[2] / "docs/flocks.md").read_text(encoding="utf-8")


def rows(head: str) -> list[str]:
    """The rows of the table whose first line begins so."""
    return TEXT.partition(head)[2].partition("\n\n")[0].splitlines()[2:]


def test_json_keys_are_those_of_the_summary() -> None:
    named = [key for row in rows("| JSON key |") for key in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(start({"agents": 3, "search": "all-pairs"}, steps=1).finish())


def test_every_name_is_explained() -> None:
    for name in (*SEMANTICS, *BOUNDARIES, *STARTS, *CAMERAS, *COLOURINGS, *SEARCHES):
        assert f"`{name}`" in TEXT, name
    for kind, form in KINDS.items():
        assert f"`{kind}:{form}`" in TEXT
    assert "id, px,py,pz, fx,fy,fz, ux,uy,uz, sx,sy,sz, speed, ax,ay,az".replace(" ", "") == ",".join(COLUMNS)
    assert f"at most {MOST_FRAMES['.gif']} frames (GIF) or {MOST_FRAMES['.mp4']} (MP4)" in TEXT
    assert f"{FPS['.gif']:g} and 800x450 as GIF, {FPS['.mp4']:g} and 1280x720 as MP4" in TEXT


def test_constants_are_those_of_the_rules() -> None:
    found = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows("| urge |")]
    p = Parameters()
    for name, _, *numbers in found:
        wanted = [getattr(p, f"{name}_{part}") for part in ("radius", "cosine", "weight")]
        assert [float(n) for n in numbers] == wanted
    for text in (
        f"`--near-radius` ({p.near_radius:g})",
        f"`--radius` ({p.radius:g}",
        f"`--max-force` ({p.max_force:g})",
    ):
        assert text in TEXT
    assert f"`--max-speed` ({p.max_speed:g})" in TEXT
    assert f"`--avoid-time` ({p.avoid_time:g})" in TEXT
