"""Recurrences in panels on a GPU, by default plans and others, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.patterns.panelled import CASES, Case, copies

cp = pytest.importorskip("cupy")

pytestmark = pytest.mark.cuda

TILES = lw.Plan(block=64, across=8, rows=2, targets=4, tile=16, unroll=0, panel=128)
SHAPES = [(300, 5), (769, 131), (1024, 1024)]
PANELS = lw.Plan(panel=256)
PLANS = {"forward": (None, PANELS, TILES), "apart": (None, TILES), "backward": (None, PANELS), "rows": (None, PANELS)}
QUICK = ("forward", "apart", "backward", "longest")  # kernels of the others take half a minute each to compile


def check(case: Case, arrays: dict[str, Any], changed: dict[str, Any]) -> None:
    bound = 1e-9 if arrays["a"].dtype == np.float64 else 1e-3
    for name, expected in case.expect(**copies(arrays)).items():
        np.testing.assert_allclose(cp.asnumpy(changed[name]), expected, rtol=bound, atol=bound)


def sometimes(*values: Any, quick: bool) -> Any:
    return pytest.param(
        *values, marks=() if quick else pytest.mark.slow, id="-".join(getattr(v, "name", str(v)) for v in values)
    )


@pytest.mark.parametrize(
    ("case", "plan"),
    [
        sometimes(c, p, quick=p is None or (c.name, p) == ("apart", TILES))
        for c in CASES
        for p in PLANS.get(c.name, (None,))
    ],
)
def test_recurrences(case: Case, plan: lw.Plan | None) -> None:
    for shape in SHAPES:
        arrays = case.make(np.random.default_rng(3), *shape)
        changed = {n: cp.asarray(a) for n, a in arrays.items()}
        case.kernel(**changed, grid=shape[1], plan=plan)
        check(case, arrays, changed)


@pytest.mark.parametrize("case", [sometimes(c, quick=c.name in QUICK) for c in CASES])
def test_calls_like_an_earlier_one(case: Case) -> None:
    """Launches of a series are filled in with the memory of each call."""
    for seed in range(3):
        arrays = case.make(np.random.default_rng(seed), 333, 64)
        changed = {n: cp.asarray(a) for n, a in arrays.items()}
        case.kernel(**changed, grid=64)
        check(case, arrays, changed)


def test_long_recurrences_go_by_panels() -> None:
    for n, panel in ((600, 512), (100, 0)):
        arrays = {name: cp.asarray(a) for name, a in CASES[0].make(np.random.default_rng(3), n, 600).items()}
        assert CASES[0].kernel.compile(**arrays, grid=600).plan.panel == panel
