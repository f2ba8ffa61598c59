"""Draw the pictures of ladders again, from their files of results.

    python -m bench.ladder_pictures boids compiler

NAME: of bench/results/ladders/NAME.json; the picture is written beside it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from lanewise.ladders import find_ladder
from lanewise.ladders.plot import plot_ladder
from lanewise.ladders.rung import Rung

RESULTS = Path(__file__).parent / "results" / "ladders"
NAMED = {f.name for f in fields(Rung)} - {"extra"}


def rung_of(values: dict[str, Any]) -> Rung:
    """A rung as `--json` prints it."""
    extra = {name: value for name, value in values.items() if name not in NAMED}
    return Rung(**{n: v for n, v in values.items() if n in NAMED}, extra=extra)


def draw(source: Path, picture: Path) -> None:
    """The picture of a file of results."""
    content: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    ladder, rungs = find_ladder(content["ladder"]), [rung_of(r) for r in content["rungs"]]
    (ladder.draw or plot_ladder)(picture, ladder, rungs, str(content["machine"]["name"]))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        draw(RESULTS / f"{name}.json", RESULTS / f"{name}.png")
        print(f"bench/results/ladders/{name}.png")
