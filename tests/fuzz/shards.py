"""The shards of a long campaign as parameters of a test."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import SHARDS

every_shard = pytest.mark.parametrize("shard", [pytest.param(k, id=f"shard{k:02}") for k in range(SHARDS)])
