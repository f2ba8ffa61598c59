"""Tables and indices on a GPU: the checks of the other devices, and plans that a CPU does not have."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from tests.patterns import tables as k
from tests.patterns.tables import Grain

pytestmark = pytest.mark.cuda

PLANS = (
    None,
    Plan(block=128, tile=128, slices=4, targets=2, parts=3),
    Plan(tile=0, block=64),
    Plan(tile=64, block=64, prefetch="registers"),
    Plan(tile=256, block=256, targets=4, accumulate="f64", uniforms="global"),
)


@pytest.mark.parametrize("layout", k.LAYOUTS, ids=str)
def test_elements(layout):
    for count in (1, 37, 10_000):
        k.check_elements("cuda", layout, count)
        k.check_noise("cuda", layout, count)


def test_returns_and_loops():
    k.check_early("cuda", 3000)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_pairs(plan):
    k.check_pairs("cuda", 300, plan)


@pytest.mark.parametrize("search", [lw.Neighbors(radius=0.2), lw.Nearest(k=5)], ids=str)
@pytest.mark.parametrize("layout", [None, lw.SoA()], ids=str)
def test_searches(search, layout):
    k.check_search("cuda", search, 700, layout)


def test_interpolation():
    k.check_interpolation("cuda", 3000)


def test_sites():
    mask = np.zeros((6, 8), int)
    mask[0], mask[4, 5] = 2, 2
    for some in (None, mask):
        first = k.check_sites("cpu", mask=some)
        for how in ({}, {"layout": lw.AoS()}, {"streaming": "in-place"}):
            np.testing.assert_allclose(k.check_sites("cuda", mask=some, **how), first, atol=1e-6)


def test_the_same_totals():
    x = np.zeros(100_000, np.float32)
    bring, _ = k.on("cuda")
    assert k.shaken.max(bring(x), 3) == k.shaken.max(x, 3)
    assert k.shaken.sum(bring(x), 3) == pytest.approx(k.shaken.sum(x, 3), rel=1e-12)


@pytest.mark.parametrize("search", [None, lw.Neighbors(radius=0.4)], ids=str)
def test_an_index_outside_is_named(search):
    bring, back = k.on("cuda")
    f = k.fields(500)
    f["kind"][333] = 9
    bad, w = Grain.array(**f, device="cuda"), bring(k.table(k.KINDS, k.KINDS))
    kernel = k.by_kind if search is None else k.by_kind.using(search)
    good = Grain.array(**k.fields(500), device="cuda")
    with pytest.raises(
        lw.VerificationError, match=r"index 0 is 9 in a pair of the target 333, and 'w' has the shape \(3, 3\)"
    ):
        kernel(bad, good, w, 0.01, checks=True)
    np.testing.assert_array_equal(back(kernel(good, good, w, 0.01, checks=True)), back(kernel(good, good, w, 0.01)))
    with pytest.raises(lw.VerificationError, match="the index is 9 in the element 333"):
        k.look_up(bad, bring(k.table(k.KINDS)), bring(k.table(k.KINDS, 5, kind=np.float64)), checks=True)
    assert not back(bad.level).any()


def test_a_table_on_the_host_is_refused():
    grains, factors = Grain.array(**k.fields(8), device="cuda"), k.table(k.KINDS, 5, kind=np.float64)
    with pytest.raises(
        lw.ArgumentError, match="'levels' lies on the host, and the call runs on 'cuda'; nothing is copied"
    ):
        k.look_up(grains, k.table(k.KINDS), factors)
    bring, _ = k.on("cuda")
    with pytest.raises(lw.ArgumentError, match="lies on 'cuda', and the call runs on the host"):
        k.look_up(Grain.array(**k.fields(8)), bring(k.table(k.KINDS)), factors)
