"""Random programs of every pattern: the same bits from the interpreter, the CPU, the kernels for a GPU, and ordinary
Python.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.fuzz.campaign import Campaign
from tests.fuzz.elsewhere import ARCHITECTURE, explained_for_a_gpu, pattern_of
from tests.fuzz.patterns import PATTERNS
from tests.fuzz.patterns.written import Pattern, whole
from tests.fuzz.shards import every_shard
from tests.fuzz.texts import executed
from tests.fuzz.wide import CAMPAIGNS, CAMPAIGNS_ON_A_GPU

of_patterns = pytest.mark.parametrize("campaign", [pytest.param(c, id=c.name) for c in CAMPAIGNS])
of_patterns_on_a_gpu = pytest.mark.parametrize("campaign", [pytest.param(c, id=c.name) for c in CAMPAIGNS_ON_A_GPU])


@of_patterns
def test_quick(campaign: Campaign) -> None:
    tally = campaign.quick(1)
    assert sum(tally.outcomes.values()) == 1


@pytest.mark.parametrize("pattern", [pytest.param(p, id=p.name) for p in PATTERNS])
def test_every_pattern_is_explained_for_a_gpu(pattern: Pattern) -> None:
    with executed(whole(pattern.write(Random(f"{pattern.name} explained"))), f"explained_{pattern.name}.py") as names:
        explanation = explained_for_a_gpu(names)
        assert ARCHITECTURE in str(explanation)
        assert explanation.rows
        assert explanation.pattern == pattern_of(names).name


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
