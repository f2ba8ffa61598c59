"""Running values that threads share on a GPU: right against float64, the same bits in every run."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.planning.plan import Plan
from tests.patterns.running import ANSWERS, answer, farthest, inputs

pytestmark = pytest.mark.cuda

PLANS = (None, Plan(block=256, slices=32, unroll=4), Plan(block=256, slices=256), Plan(block=64, slices=8))


@pytest.mark.parametrize("kernel", ANSWERS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (257, 1009), (64, 4096), (3, 100_004), (5003, 7), (20_000, 36)])
def test_values_and_bits(kernel, shape):
    import cupy

    host = inputs(*shape)
    wanted = answer(kernel, host)
    scale = max(1.0, float(np.abs(wanted).max()))
    for plan in PLANS:
        runs: list[np.ndarray] = []
        for _ in range(2):
            a, r = map(cupy.asarray, host)
            kernel(a, r, grid=(shape[0],), plan=plan)
            runs.append(r.get())
        np.testing.assert_allclose(runs[0], wanted, rtol=1e-4, atol=2e-6 * scale, err_msg=str(plan))
        assert runs[0].tobytes() == runs[1].tobytes(), plan


def test_what_gathers_running_values():
    import cupy

    a, r = inputs(300, 5_000)
    s = np.cumsum(a.astype(np.float64) - 0.5, axis=1)
    for plan in PLANS:
        given = [cupy.asarray(x) for x in (a, r, np.zeros(300, np.float32))]
        farthest(*given, grid=(300,), plan=plan)
        np.testing.assert_allclose(given[2].get(), np.abs(s).max(axis=1) + s[:, -1], rtol=1e-3, atol=1e-3)
