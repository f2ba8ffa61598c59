"""tune() over a search that names its structure: plans alone are measured, and kept for exactly this search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.base import Search
from lanewise.tuning import replay
from tests.search.numbered import met, numbered
from tests.search.test_tuning import kernel, uniform

pytestmark = pytest.mark.usefixtures("own_store")
SQUARE = lw.Periodic((1.0, 1.0, 1.0))
NAMED = [
    lw.AllPairs(radius=0.2),
    lw.StaticGrid(radius=0.2),
    lw.StaticGrid(k=5, world=SQUARE, radius=0.3),
    lw.StaticGrid(radius=0.2, cells=(3, 4, 5)),
    lw.DynamicGrid(k=4),
    lw.DynamicGrid(radius=0.2, leaf=4),
    lw.CellArray(radius=0.2),
    lw.NeighborLists(radius=0.2, skin=0.05),
]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("search", NAMED, ids=lambda s: s.describe())
def test_a_structure_that_was_requested_stays_and_its_plans_are_measured(
    search: Search, device: str, own_store: Path
) -> None:
    over, records = kernel(search), numbered(uniform(200), device=device)
    before, plain = met(over(records, records)), over.compile(records, records)
    assert not plain.search_tuned
    result = over.tune(records, records, seconds=30)
    assert (result.structure, result.default_structure) == ("the requested structure",) * 2
    assert (result.default, result.complete, result.factor >= 1) == (plain.plan, True, True)
    axis = "block" if device == "cuda" else "vector_bits"
    assert len({getattr(t.plan, axis) for t in result.measured}) > 1
    assert "wrong" not in {t.status for t in result.trials}, str(result)
    assert replay(str(result.path)).plan == result.plan
    # another plan wins, and another process looks it up: its results are the same
    (path,) = own_store.glob("*.json")
    other = {"block": 64} if device == "cuda" else {"vector_bits": 256}
    path.write_text(json.dumps({**json.loads(path.read_text()), "plan": other}))
    again = kernel(search)
    tuned = again.compile(records, records)
    assert (getattr(tuned.plan, axis), tuned.search_tuned) == (other[axis], True)
    assert tuned.search.startswith(plain.search.removesuffix(" (requested)"))
    assert " (requested; measured: " in tuned.search
    for _ in range(2):  # the second call is one that repeats
        np.testing.assert_array_equal(met(again(records, records)), before)
    # of no other search, and not of elements in other numbers
    assert not kernel(lw.StaticGrid(radius=0.21)).compile(records, records).search_tuned
    assert not again.compile(*[numbered(uniform(20), device=device)] * 2).search_tuned


def test_what_was_tuned_just_now_is_used_without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.tuning.tune.write_entry", lambda key, entry: None)
    monkeypatch.setattr("lanewise.patterns.search.tuning.tune.write_entry", lambda key, entry: None)
    over, records = kernel(NAMED[1]), numbered(uniform(200))
    over(records, records)
    result = over.tune(records, records, seconds=1)
    assert result.path is None
    call = over.compile(records, records)
    assert (call.search_tuned, call.plan) == (True, result.plan)
