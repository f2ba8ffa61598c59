"""Broken kernels: an error in its form, or a kernel that means one thing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.mutants import MUTANTS
from tests.fuzz.shards import every_shard


def test_quick() -> None:
    tally = MUTANTS.quick(50)
    assert sum(tally.outcomes.values()) == 50


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    MUTANTS.long(shard, record)
