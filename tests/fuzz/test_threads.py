"""Threads and forked children: the bits of one call alone, or a clear error; never a crash or a hang."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.shards import every_shard
from tests.fuzz.threads import THREADS


def test_quick() -> None:
    tally = THREADS.quick(5)
    assert sum(tally.outcomes.values()) == 5


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    THREADS.long(shard, record)
