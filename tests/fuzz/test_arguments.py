"""Everything public, called with what does not belong there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.arguments import ARGUMENTS, QUICK
from tests.fuzz.shards import every_shard


def test_quick() -> None:
    QUICK.quick(600)


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    ARGUMENTS.long(shard, record)
