"""Simulations that people use as they are, each written on the public interface of lanewise alone."""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    """`lw.sims.gravity` is imported when it is first used."""
    if name == "gravity":
        return importlib.import_module("lanewise.sims.gravity")
    raise AttributeError(f"module 'lanewise.sims' has no attribute {name!r}")
