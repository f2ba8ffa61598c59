"""Random programs of every pattern: the same bits from the interpreter, the CPU, the kernels for a GPU, and ordinary Python."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.campaign import Campaign
from tests.fuzz.shards import every_shard
from tests.fuzz.wide import CAMPAIGNS, CAMPAIGNS_ON_A_GPU

of_patterns = pytest.mark.parametrize("campaign", [pytest.param(c, id=c.name) for c in CAMPAIGNS])
of_patterns_on_a_gpu = pytest.mark.parametrize("campaign", [pytest.param(c, id=c.name) for c in CAMPAIGNS_ON_A_GPU])


@of_patterns
def test_quick(campaign: Campaign) -> None:
    tally = campaign.quick(1)
    assert sum(tally.outcomes.values()) == 1


@pytest.mark.fuzz
@of_patterns
@every_shard
def test_long(campaign: Campaign, shard: int, record: Any) -> None:
    campaign.long(shard, record)


@pytest.mark.cuda
@pytest.mark.fuzz
@of_patterns_on_a_gpu
@every_shard
def test_long_on_a_gpu(campaign: Campaign, shard: int, record: Any) -> None:
    campaign.long(shard, record)
