"""Simulations that people use as they are. Each lives in a folder of its own: its physics, files, views, and its command."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers: what `__getattr__` imports
    from lanewise.sims import boids as boids
    from lanewise.sims import gravity as gravity
    from lanewise.sims import lbm as lbm

PRODUCTS = (
    "boids",
    "gravity",
    "lbm",
)
"""The folders, by the names of their commands: `command.py` of each has an `app`, which `lanewise NAME` is."""


def __getattr__(name: str) -> object:
    """`lw.sims.boids`, `lw.sims.gravity` and `lw.sims.lbm` are imported when they are first used."""
    if name in PRODUCTS:
        return importlib.import_module(f"lanewise.sims.{name}")
    raise AttributeError(f"module 'lanewise.sims' has no attribute {name!r}")
