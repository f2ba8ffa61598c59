"""Damaged files: an error in its form, or what the file held."""

from __future__ import annotations

from typing import Any

import pytest

from lanewise.launch import support
from tests.fuzz.damage import DAMAGE
from tests.fuzz.shards import every_shard


def test_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "built", support.built)  # which the campaign replaces: only here
    tally = DAMAGE.quick(12)
    assert sum(tally.outcomes.values()) == 12


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    DAMAGE.long(shard, record)
