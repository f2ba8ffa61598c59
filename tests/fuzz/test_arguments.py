"""Everything public, called with what does not belong there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.arguments import ARGUMENTS, POOL, QUICK, call_with, places
from tests.fuzz.shards import every_shard
from tests.public_calls import CALLS, COMPILING


def test_quick() -> None:
    QUICK.quick(600)


ONCE_RAW = ("abs", "min", "scatter_max", "Stencil.field", "Sitewise.run", "Mesh", "gravity.make_initial_conditions")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in ONCE_RAW else pytest.mark.slow)
        for n in CALLS
        if n in ONCE_RAW or not n.startswith(COMPILING)
    ],
)
def test_each_place_takes_or_refuses_everything(name: str) -> None:
    """One argument after the other, replaced by everything of the pool."""
    for place in places(name):
        for number in range(len(POOL)):
            call_with(name, {place: number})


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    ARGUMENTS.long(shard, record)
