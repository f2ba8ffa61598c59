"""Ladders: series of versions of one kernel, each a plan of the same user function, measured
besides a paper's figures.

rung.py is what a ladder consists of and how it is shown, run.py how a rung is checked and timed;
every other file is of one ladder. The text for users is docs/ladders.md, with a page for each
ladder.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from lanewise.sims.common.checks import check_known

if TYPE_CHECKING:
    from lanewise.ladders.rung import Ladder

LADDERS: Mapping[str, tuple[str, ...]] = {
    "tutorial": (), "layouts": ("bodies",), "memory": (), "lbm": ("solid",),
    "boids": ("cells", "agents"), "waves": (), "compiler": (), "tree": (), "gravity-mesh": (),
}  # fmt: skip
"""All ladders, and of each the settings along which it has its own series: its axes.

Said here, so that a shell completes them without an import of ladders, which takes seconds.
"""

AXES = tuple(dict.fromkeys(itertools.chain(*LADDERS.values())))


def find_ladder(name: str, axis: str | None = None) -> Ladder:
    """The ladder of this name, or its series along an axis that it has.

    Each is the `LADDER` of a module of its name, which has `_` where the ladder has `-`, and ends
    with `_` and the axis. Raises `InputError` for another name.
    """
    check_known("ladder", name, LADDERS)
    module = name.replace("-", "_") + ("" if axis is None else f"_{axis}")
    ladder: Ladder = import_module(f"lanewise.ladders.{module}").LADDER
    return ladder
