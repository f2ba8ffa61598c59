"""Searches of the caller's in checkpoints: every field of every structure is read back."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids import Flock
from lanewise.sims.boids.choice import CONCRETE, search_from_json, search_to_json
from tests.sims.boids.flocks import bits

SIGHT = lw.Sight(heading="forward", cosine=-0.25, near=np.float64(0.125))
SET: dict[str, dict[str, Any]] = {
    "AllPairs": {"sight": SIGHT},
    "StaticGrid": {
        "cells": (3, 4, 5), "over": ((-1, 1), (-2.5, 2), (0, 0.1)), "build": "host", "index": "constant", "sight": SIGHT,
    },
    "CellArray": {"over": ((-1, 1), (-2.5, 2), (0, 0.1))},
    "DynamicGrid": {"order": "1-D", "leaf": 24, "leaves": "around"},
    "NeighborLists": {"skin": np.float64(0.1)},
}  # fmt: skip
INSTEAD: dict[str, dict[str, Any]] = {"StaticGrid": {"side": np.float64(0.5)}}  # of fields that exclude them
SHARED = {"radius": 9.0, "k": 7, "world": lw.Open()}


def read(text: str) -> lw.Search:
    return search_from_json(text, 9.0, 7, lambda _: lw.Open())


@pytest.mark.parametrize("name", CONCRETE)
def test_every_field_is_read_back(name: str) -> None:
    seen = set[str]()
    for given in (SET[name], INSTEAD.get(name, {})):
        search = CONCRETE[name](
            **SHARED, **({"skin": 1} if name == "NeighborLists" else {}) | given, position="forward"
        )
        own = [f for f in fields(search) if f.name not in SHARED]
        seen |= {f.name for f in own if f.default is MISSING or getattr(search, f.name) != f.default}
        assert read(search_to_json(search)) == search
    assert seen == {f.name for f in own} == {*SET[name], *INSTEAD.get(name, {}), "position"}


@pytest.mark.parametrize("name", CONCRETE)
def test_defaults_are_read_back(name: str) -> None:
    more = {"skin": 1} if name == "NeighborLists" else {}
    search = CONCRETE[name](**SHARED, **more)
    assert read(search_to_json(search)) == search


@pytest.mark.parametrize("cls", [lw.AllPairs, lw.StaticGrid])
def test_a_flock_that_sees_ahead_goes_on(cls: Any, tmp_path: Path) -> None:
    search = cls(radius=9.0, sight=lw.Sight(heading="forward", cosine=0.0))
    flock = Flock(50, boundary="open", search=search, device="cpu").run(3)
    flock.checkpoint(tmp_path / "a.h5")
    again = Flock.resume(tmp_path / "a.h5")
    assert again.search == search
    assert bits(again.run(3)) == bits(flock.run(3))
