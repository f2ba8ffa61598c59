"""Accesses of a launch by the model, beside what a naive product surely makes."""

from __future__ import annotations

import pytest

from lanewise.explanation.offline import compile_offline
from lanewise.ladders import compiler_kernels
from lanewise.models.predict import predict
from lanewise.planning.plan import NEUTRAL, Plan


def accesses(plan: Plan, n: int) -> tuple[float, float]:
    square = dict.fromkeys(("a", "b", "c", "grid"), (n, n))
    made = compile_offline(compiler_kernels.matmul, n, "cuda", arch="sm_90", shapes=square, requested=plan)
    s = made.subject
    assert s.model is not None
    found = predict(made.executable.program, s.environment, s.model, s.taken).details
    return found["global accesses"], found["shared accesses"]


@pytest.mark.parametrize("n", [64, 256])
def test_a_naive_product_reads_two_elements_for_every_product(n: int) -> None:
    assert accesses(Plan(**{**NEUTRAL.as_dict(), "block": 256}), n) == (pytest.approx(n * n * (2 * n + 1)), 0.0)


def test_tiles_read_less_of_global_memory_and_something_of_shared_memory() -> None:
    naive = accesses(Plan(**{**NEUTRAL.as_dict(), "block": 256}), 256)
    tiled = accesses(Plan(block=256, tile=16, unroll=0), 256)
    assert tiled[0] < naive[0] / 8
    assert tiled[1] > tiled[0]
