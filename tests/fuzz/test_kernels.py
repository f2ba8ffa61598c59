"""Random typed programs: the same numbers from the interpreter, the CPU, the IR for a GPU, and ordinary Python."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.kernels import KERNELS, ON_A_GPU
from tests.fuzz.shards import every_shard


def test_quick() -> None:
    tally = KERNELS.quick(16)
    assert sum(tally.outcomes.values()) == 16


@pytest.mark.fuzz
@every_shard
def test_long(shard: int, record: Any) -> None:
    KERNELS.long(shard, record)


@pytest.mark.cuda
@pytest.mark.fuzz
@every_shard
def test_long_on_a_gpu(shard: int, record: Any) -> None:
    ON_A_GPU.long(shard, record)
