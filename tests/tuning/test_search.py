"""The search finds the best plan of a space in few measurements, and tells what became of all others."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.launch.trial import Failure
from lanewise.planning.plan import Plan
from lanewise.support.errors import LanewiseError
from lanewise.tuning.race import LEAST_RUNS
from lanewise.tuning.search import SMALL, Progress, search
from tests.tuning.landscapes import AXES, BASE, MadeUpMeasurer, MadeUpSpace, family

FOREVER = float("inf")
SMALL_AXES: dict[str, tuple[Any, ...]] = {"targets": (1, 2, 4, 8), "unroll": (1, 4, 8), "fma": (False, True)}


def test_a_small_space_is_measured_whole() -> None:
    space = MadeUpSpace((family(SMALL_AXES),))
    measurer = MadeUpMeasurer(lambda p: 1.0 + abs((p.targets or 0) - 4) + 0.1 * (p.unroll or 0) - 0.05 * bool(p.fma))
    found = search(space, measurer, seconds=FOREVER)
    assert (found.best.targets, found.best.unroll, found.best.fma) == (4, 1, True)
    assert (found.exhaustive, found.complete) == (True, True)
    assert len(measurer.prepared) == len(set(measurer.prepared)) == 24 <= SMALL


def test_a_plan_that_is_not_better_than_noise_leaves_the_default() -> None:
    measurer = MadeUpMeasurer(lambda p: 0.995 if p.targets == 4 else 1.0)
    found = search(MadeUpSpace((family(SMALL_AXES),)), measurer, seconds=FOREVER)
    assert found.best == found.default == BASE


def chosen(faster: float, noise: float, begin: int) -> bool:
    """Whether a plan of such a share of the default's time was taken, on a machine that does much else."""
    measurer = MadeUpMeasurer(lambda p: faster if p.targets == 4 else 1.0, noise=noise, clock=float(begin))
    found = search(MadeUpSpace((family(SMALL_AXES),)), measurer, seconds=FOREVER)
    return found.best != found.default


def test_luck_is_no_gain() -> None:
    """Where each time may be half as long again and all plans are alike, the median of some is far less."""
    assert sum(chosen(1.0, 0.5, n) for n in range(200)) <= 20


@pytest.mark.parametrize(("faster", "noise"), [(0.9, 0.08), (0.6, 0.5), (0.98, 0.015)])
def test_a_gain_beyond_the_noise_is_taken(faster: float, noise: float) -> None:
    assert all(chosen(faster, noise, n) for n in range(100))


@cache
def plans() -> list[Plan]:
    return MadeUpSpace((family(),)).legal_plans()


def share(plan: Plan, seed: int) -> float:
    """A number from 0 to 1 that depends on the plan, the same in every process."""
    return zlib.crc32(f"{seed} {plan}".encode()) / 2**32


@dataclass(frozen=True)
class Landscape:
    """Every value of every axis has a factor, and some pairs of values interact, as block size and targets do."""

    factors: tuple[tuple[float, ...], ...]
    interaction: float
    pair: tuple[int, int]

    def seconds(self, plan: Plan) -> float:
        result = 1e-3
        for factors, (axis, values) in zip(self.factors, AXES.items(), strict=True):
            result *= factors[values.index(getattr(plan, axis))]
        meetings = (plan.targets == self.pair[0]) + (plan.block == self.pair[1]) + (plan.unroll == plan.slices)
        return result * (1 + self.interaction * meetings)

    def best(self) -> float:
        return min(map(self.seconds, plans()))


factors = st.tuples(*(st.tuples(*[st.floats(1.0, 3.0)] * len(values)) for values in AXES.values()))
pairs = st.tuples(st.sampled_from(AXES["targets"]), st.sampled_from(AXES["block"]))
landscapes = st.builds(Landscape, factors, st.floats(0.0, 0.01), pairs)


@given(landscapes, st.floats(0.0, 0.002))
def test_the_best_is_found_within_three_per_cent(land: Landscape, drift: float) -> None:
    measurer = MadeUpMeasurer(land.seconds, drift=drift)
    found = search(MadeUpSpace((family(),)), measurer, seconds=FOREVER)
    assert land.seconds(found.best) <= 1.03 * land.best()
    assert len(measurer.prepared) < 80  # of 3,600


@given(landscapes, st.integers(0, 2**32))
def test_failures_on_the_way_do_not_mislead(land: Landscape, seed: int) -> None:
    """A quarter of the plans fails: the chosen one never does, and it is the best of all that were measured."""

    def fails(plan: Plan) -> Failure | None:
        return Failure("failed", "it spills") if share(plan, seed) < 0.25 and plan != BASE else None

    measurer = MadeUpMeasurer(land.seconds, fails)
    found = search(MadeUpSpace((family(),)), measurer, seconds=FOREVER)
    assert fails(found.best) is None
    ready = [p for p in measurer.prepared if fails(p) is None]
    assert land.seconds(found.best) <= 1.01 * min(map(land.seconds, ready))
    assert {p for p, t in found.trials.items() if t.status == "failed"} == set(measurer.prepared) - set(ready)


@given(landscapes, st.integers(0, 2**32))
def test_the_model_tells_where_to_start_and_what_to_leave_out(land: Landscape, seed: int) -> None:
    space = MadeUpSpace((family(),), predicted=lambda p: land.seconds(p) * (0.85 + 0.3 * share(p, seed)))
    found = search(space, MadeUpMeasurer(land.seconds), seconds=FOREVER)
    assert land.seconds(found.best) <= 1.03 * land.best()
    left_out = [land.seconds(t.plan) for t in found.trials.values() if t.status == "unpromising"]
    assert all(seconds > 1.4 * land.seconds(found.best) for seconds in left_out)


def test_two_families_are_both_searched() -> None:
    other = Plan(reciprocity="scratch", block=32).filled(BASE)
    families = (family(), family({"targets": (4, 8, 10), "unroll": (1, 4, 8)}, other, "reciprocity scratch"))

    def seconds(p: Plan) -> float:
        if p.reciprocity == "off":
            return 1.0 - 0.01 * (p.targets or 0)
        return 0.9 - 0.03 * (p.targets or 0) + 0.02 * abs((p.unroll or 0) - 4)

    found = search(MadeUpSpace(families), MadeUpMeasurer(seconds), seconds=FOREVER)
    assert (found.best.reciprocity, found.best.targets, found.best.unroll) == ("scratch", 10, 4)


def test_every_plan_that_was_looked_at_is_reported_with_its_reason() -> None:
    wrong = Failure("wrong", "3 of 8 values differ from the default plan's")
    space = MadeUpSpace((family(SMALL_AXES),), illegal=lambda p: "targets cannot be merged" if p.targets == 8 else "")
    measurer = MadeUpMeasurer(lambda p: 1.0 / (p.targets or 1), lambda p: wrong if p.targets == 4 else None)
    found = search(space, measurer, seconds=FOREVER)
    assert found.best.targets == 2
    reasons = {(t.plan.targets, t.status, t.reason) for t in found.trials.values()}
    assert reasons == {
        (1, "measured", ""), (2, "measured", ""),
        (4, "wrong", "3 of 8 values differ from the default plan's"), (8, "illegal", "targets cannot be merged"),
    }  # fmt: skip
    assert all((t.seconds is not None) == (t.status == "measured") for t in found.trials.values())


def test_a_plan_that_does_not_repeat_its_bits_is_never_chosen() -> None:
    measurer = MadeUpMeasurer(lambda p: 1.0 / (p.targets or 1), unstable=lambda p: p.targets == 8)
    found = search(MadeUpSpace((family(SMALL_AXES),)), measurer, seconds=FOREVER)
    assert found.best.targets == 4 or found.best == BASE
    unstable = [t for t in found.trials.values() if t.status == "wrong"]
    assert unstable
    assert {t.reason for t in unstable} == {"two runs from the same state gave different bits"}


def test_a_default_plan_that_does_not_repeat_its_bits_is_an_error() -> None:
    measurer = MadeUpMeasurer(lambda p: 1.0, unstable=lambda p: True)
    with pytest.raises(LanewiseError, match=r"^the default plan cannot be tuned: two runs from the same state gave"):
        search(MadeUpSpace((family(SMALL_AXES),)), measurer, seconds=FOREVER)


@given(landscapes, st.floats(2.0, 60.0), st.floats(0.05, 2.0))
def test_it_keeps_to_its_time(land: Landscape, seconds: float, compiling: float) -> None:
    measurer = MadeUpMeasurer(land.seconds, compiling=compiling)
    found = search(MadeUpSpace((family(),)), measurer, seconds=seconds)
    beyond = measurer.compilers * compiling + 16 * max(map(land.seconds, plans()))  # what had begun already
    assert measurer.elapsed() <= seconds + beyond
    assert land.seconds(found.best) <= land.seconds(BASE)
    if not found.complete:
        assert measurer.elapsed() + measurer.compilers * compiling > 0.5 * seconds


def test_progress_is_told() -> None:
    states: list[Progress] = []
    search(
        MadeUpSpace((family(SMALL_AXES),)),
        MadeUpMeasurer(lambda p: 1.0 / (p.targets or 1), compiling=0.1),
        seconds=100.0,
        progress=states.append,
    )
    assert [s.measured for s in states] == sorted(s.measured for s in states)
    assert states[-1].doing == "the best few once more"
    assert (states[-1].measured, states[-1].factor) == (24, 8.0)
    assert all(0 <= s.elapsed <= s.seconds for s in states)


@given(
    landscapes,
    st.floats(0.3, 60.0),
    st.floats(0.0, 2.0),
    st.floats(1.0, 3.9) | st.floats(4.1, 100.0),
    st.integers(1, 16),
)
def test_kernels_whose_launches_take_long_end_in_time(
    land: Landscape, launch: float, around: float, runs: float, compilers: int
) -> None:
    """However many launches there is time for: what had begun ends, and nothing else begins."""
    unit = launch / land.seconds(BASE)
    measurer = MadeUpMeasurer(lambda p: unit * land.seconds(p), around=around, compilers=compilers)
    launch = measurer.seconds(BASE)  # rounded as the clock rounds it
    slowest = unit * max(map(land.seconds, plans())) + around
    seconds = runs * (launch + around)
    said = r"no plan can be compared with the default plan in .* s: a launch takes .* m?s"
    if runs < LEAST_RUNS + 1:
        with pytest.raises(LanewiseError, match=said):
            search(MadeUpSpace((family(),)), measurer, seconds=seconds)
        assert measurer.elapsed() == pytest.approx(launch + around)
        return
    found = search(MadeUpSpace((family(),)), measurer, seconds=seconds)
    assert measurer.elapsed() <= seconds + 2 * slowest
    assert land.seconds(found.best) <= land.seconds(BASE)
    assert found.complete or found.untried or len(found.trials) > 1
    measured = [p for p, t in found.trials.items() if t.status == "measured"]
    assert found.complete or len(measured) > 1


def test_a_candidate_far_slower_than_the_default_does_not_use_up_the_time_of_all_rounds() -> None:
    measurer = MadeUpMeasurer(lambda p: 0.01 if p == BASE else 3.0, around=0.0, compilers=64)
    found = search(MadeUpSpace((family(),)), measurer, seconds=10.0)
    assert measurer.elapsed() <= 10.0 + 2 * 3.0
    assert not found.complete
    assert found.untried > 0


def test_few_times_need_a_larger_gain() -> None:
    """One launch of each says little: only what is surely faster replaces the default."""
    for gain, left in ((0.03, True), (0.1, False)):
        measurer = MadeUpMeasurer(lambda p, gain=gain: 1.0 if p == BASE else 1.0 - gain, around=0.0, compilers=1)
        found = search(MadeUpSpace((family({"fma": (False, True)}),)), measurer, seconds=4.0)
        assert (found.best == BASE) == left
