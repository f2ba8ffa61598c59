"""Ladders: series of versions of one kernel, each a plan of the same user function, measured beside
a paper's figures.

rung.py is what a ladder consists of and how it is shown, run.py how a rung is checked and timed;
every other file is of one ladder. The text for users is docs/ladders.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lanewise.sims.common.checks import check_known

if TYPE_CHECKING:
    from lanewise.ladders.rung import Ladder

LADDERS = (
    "tutorial", "layouts", "memory", "lbm", "boids", "waves", "compiler", "tree", "gravity-mesh",
)  # fmt: skip

AXES = ("cells",)  # of `boids`; named here, so that completing one imports no ladder


def find_ladder(name: str) -> Ladder:
    """The ladder of this name; raises `InputError` for another.

    Each is the `LADDER` of a module of its name, which has `_` where the ladder has `-`.
    """
    check_known("ladder", name, LADDERS)
    ladder: Ladder = import_module(f"lanewise.ladders.{name.replace('-', '_')}").LADDER
    return ladder
