"""The formulas of the papers give the papers' own figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.models.formulas import Branch, LoopCosts, branch_splitting_speedup, unrolling_speedup
from lanewise.runtime.occupancy import Limits, resident

# Gravit's inner loop: a little more than 25 instructions, of which unrolling by 128 removes a compare, an addition, a
# jump
# and the addition of an address. The paper reports 18 %, from sizes of 40,000 to 1,000,000 bodies in tiles of 128.
ROLLED, UNROLLED = LoopCosts(30, 25, 25.5), LoopCosts(30, 25, 21.5)


@pytest.mark.parametrize("bodies", [40_000, 100_000, 1_000_000])
def test_unrolling_of_gravit(bodies):
    speedup = unrolling_speedup(ROLLED, UNROLLED, bodies, 128)
    assert speedup == pytest.approx(1.18, abs=0.01)
    assert speedup == pytest.approx(ROLLED.inner / UNROLLED.inner, rel=0.005)  # the paper's approximation P1 / Pur


costs = st.builds(LoopCosts, st.floats(1, 100), st.floats(1, 100), st.floats(1, 100))


@given(costs, st.integers(1, 10**6), st.sampled_from([32, 128, 256]))
def test_nothing_removed_nothing_gained(cost, sources, tile):
    assert unrolling_speedup(cost, cost, sources, tile) == 1.0


def test_unrolling_needs_sources():
    with pytest.raises(ValueError, match="at least one source and one source a tile, found 0 and 128"):
        unrolling_speedup(ROLLED, UNROLLED, 0, 128)


# The multiprocessor of that paper: 24 warps, 8 blocks, 8,192 registers that blocks take in units of 256.
G80 = Limits(24, 8, 16_384, 16_384, 8_192, 8_192, 0, 512)


def test_registers_of_the_papers_branches():
    """One branch of 6 registers, one of 13: 100 % and 67 % of the warps."""
    assert resident(G80, 256, 6, 0).share == 1.0
    assert resident(G80, 256, 13, 0).share == pytest.approx(0.67, abs=0.01)


def test_two_equal_branches():
    """One of them gains a third of its time: 2 / (0.67 + 1)."""
    both = [Branch(1.0, 1.0), Branch(1.0, 0.67)]
    assert branch_splitting_speedup(both, 0.67, 0.0) == pytest.approx(1.2, abs=0.003)


@pytest.mark.parametrize(("gain", "overhead"), [(0.301, 0.0986), (0.24, 0.1365)])
def test_measured_gains_lie_below_the_limit(gain, overhead):
    """Both kernels at 100 % instead of 67 %: at most 1.49; launches that take 10 and 14 % give what was measured."""
    both = [Branch(0.5, 1.0), Branch(0.5, 1.0)]
    assert branch_splitting_speedup(both, 0.67, 0.0) == pytest.approx(1 / 0.67)
    assert branch_splitting_speedup(both, 0.67, overhead) == pytest.approx(1 + gain, abs=1e-3)


@given(st.lists(st.builds(Branch, st.floats(1e-6, 1.0), st.floats(0.1, 1.0)), min_size=1, max_size=4), st.floats(0, 1))
def test_splitting_never_gains_more_than_occupancy(branches, launch):
    lowest = min(b.occupancy for b in branches)
    found = branch_splitting_speedup(branches, lowest, launch)
    assert found <= max(b.occupancy for b in branches) / lowest * (1 + 1e-9)
    assert found <= branch_splitting_speedup(branches, lowest, 0.0)


@pytest.mark.parametrize(
    ("branches", "occupancy", "message"),
    [
        ([], 0.5, "needs at least one branch, found none"),
        ([Branch(0.0, 1.0)], 0.5, "times must be positive"),
        ([Branch(1.0, 1.5)], 0.5, "an occupancy lies between 0 and 1"),
        ([Branch(1.0, 1.0)], 0.0, "an occupancy lies between 0 and 1"),
    ],
)
def test_refusals(branches, occupancy, message):
    with pytest.raises(ValueError, match=message):
        branch_splitting_speedup(branches, occupancy, 0.0)
