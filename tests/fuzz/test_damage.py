"""Damaged files: an error in its form, or what the file held."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.campaign import every_shard
from tests.fuzz.damage import DAMAGE


def test_quick() -> None:
    tally = DAMAGE.quick(40)
    assert sum(tally.outcomes.values()) == 40


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    DAMAGE.long(shard, record)
