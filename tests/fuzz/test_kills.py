"""Runs that are killed: their ends have the bits of undisturbed ones."""

from __future__ import annotations

from typing import Any

import pytest

from lanewise.launch import support
from tests.fuzz.kills import KILLS
from tests.fuzz.shards import every_shard


def test_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "built", support.built)  # which the campaign replaces: only here
    tally = KILLS.quick(3)
    assert sum(tally.outcomes.values()) == 3


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    KILLS.long(shard, record)
