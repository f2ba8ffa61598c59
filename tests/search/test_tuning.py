"""tune() over Neighbors and Nearest: what is measured, what is kept and for which calls, and what is refused, word by word."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.launch.trial import Failure
from lanewise.patterns.search.automatic import FEW, look
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.picker import kind_of_call
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.queries import points_from
from lanewise.patterns.search.tuning import candidates as search_candidates
from lanewise.patterns.search.tuning.candidates import (
    MOST_CELLS_A_SOURCE,
    Configuration,
    candidates,
    cells_of,
    configuration_from,
)
from lanewise.patterns.search.tuning.job import Choice, SearchJob, space_of
from lanewise.patterns.search.tuning.tune import CallMeasurer, tune_search
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.tuning import StoreWarning, Tuning, replay
from lanewise.tuning.race import FirstRun
from tests.search.clouds import Array
from tests.search.kernels import reference_kernel
from tests.search.numbered import KINDS, met, numbered

MEET = KINDS["f4", 3][1]
COUNT, WITHIN = 4000, 0.09  # about 12 others within it, in a unit cube
NEAR = lw.Neighbors(radius=WITHIN)
SEVEN = lw.Nearest(k=7, radius=WITHIN)
FINE = Configuration("StaticGrid", side=0.7)
pytestmark = pytest.mark.usefixtures("own_store")


def uniform(count: int = COUNT, axes: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((count, axes)).astype("f4")


def points(x: Array, world: Any = lw.Open()) -> Points:  # noqa: B008
    return points_from("test", "points", x, "cpu", lw.Nearest(k=1, world=world))


def kernel(search: Search) -> Any:
    """A kernel that knows nothing of what others tuned."""
    return MEET.using(search)


def job_of(search: Search, *records: Any, plan: Plan | None = None, over: Any = None) -> SearchJob:
    over = over or kernel(search)
    return over.searched.tuning_job(over._calls.given(records, {}), plan)


def drawn(seed: int, what: str) -> float:
    """A number below 1 that belongs to a text."""
    return zlib.crc32(f"{seed} {what}".encode()) / 2**32


@dataclass
class MadeUp:
    """Times by a function of the choice; `fails` gives what becomes of one that cannot be timed. Only this moves its clock."""

    seconds: Callable[[Choice], float]
    fails: Callable[[Choice], Failure | None] = lambda choice: None
    unstable: Callable[[Choice], bool] = lambda choice: False
    compiling: float = 0.0
    noise: float = 0.0
    clock: float = 0.0
    compilers: int = 1
    released: set[Choice] = field(default_factory=set)

    def prepare(self, plans: Sequence[Choice], until: float = math.inf) -> dict[Choice, Failure | None]:
        found: dict[Choice, Failure | None] = {}
        for choice in plans:
            if self.clock <= until:
                self.clock += self.compiling + self.seconds(choice)
                found[choice] = self.fails(choice)
        return found

    def first(self, plan: Choice) -> FirstRun:
        return FirstRun(self.seconds(plan), self.seconds(plan))

    def measure(self, plans: Sequence[Choice], rounds: int, until: float = math.inf) -> dict[Choice, list[float]]:
        assert not self.released & set(plans), "what was released is measured"
        times: dict[Choice, list[float]] = {c: [] for c in plans}
        for choice in [c for _ in range(rounds) for c in plans]:
            if self.clock > until and any(times.values()):
                break
            times[choice].append(self.seconds(choice) * (1 + self.noise * drawn(0, repr(self.clock))))
            self.clock += times[choice][-1]
        return times

    def confirm(self, plan: Choice) -> Failure | None:
        return Failure("wrong", "two runs from the same state gave different bits") if self.unstable(plan) else None

    def release(self, plan: Choice) -> None:
        self.released.add(plan)

    def elapsed(self) -> float:
        return self.clock


def tuned_to(configuration: Configuration, search: Search, *records: Any, over: Any = None) -> Tuning:
    """Tune with a measurer for which a structure takes half the time."""
    job = job_of(search, *records, over=over)
    return tune_search(job, 60.0, measurer=MadeUp(lambda c: 0.5e-3 if c.configuration == configuration else 1e-3))


# ---------------------------------------------------------------- what is measured


@pytest.mark.parametrize(
    "text", ["AllPairs", "StaticGrid", "DynamicGrid", "StaticGrid(side=0.7)", "DynamicGrid(leaf=16)"]
)
def test_recipes_are_kept_as_text(text: str) -> None:
    assert str(configuration_from(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Octree", "'Octree' is no structure; wanted AllPairs, StaticGrid(side=...) or DynamicGrid(leaf=...)"),
        (
            "AllPairs(leaf=4)",
            "'AllPairs(leaf=4)' is no structure; wanted AllPairs, StaticGrid(side=...) or DynamicGrid(leaf=...)",
        ),
        ("DynamicGrid(leaf=12)", "DynamicGrid(order='curve', leaf=12): wanted a power of two from 1 to 512"),
    ],
)
def test_other_texts_are_no_recipes(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        configuration_from(text)


def test_candidates_begin_with_the_automatic_choice() -> None:
    found = candidates(SEVEN, points(uniform()))
    assert [str(r) for r in found.configurations] == [
        "StaticGrid", "StaticGrid(side=0.5)", "StaticGrid(side=0.7)", "StaticGrid(side=1.4)", "StaticGrid(side=2)",
        "DynamicGrid", "DynamicGrid(leaf=4)", "DynamicGrid(leaf=16)", "DynamicGrid(leaf=32)",
    ]  # fmt: skip
    ((configuration, reason),) = found.refused
    assert str(configuration) == "AllPairs"
    assert re.fullmatch(r"a target would look at 4,000 sources, through others at about 3\d\d", reason)


def test_few_sources_may_be_looked_at_one_by_one() -> None:
    few = candidates(NEAR, points(uniform(FEW)))
    assert str(few.configurations[0]) == "AllPairs"
    assert Configuration("StaticGrid") in few.configurations
    more = candidates(NEAR, points(uniform(2 * FEW)))
    assert Configuration("AllPairs") in more.configurations[1:]
    many = dict(candidates(lw.Neighbors(radius=0.02), points(uniform(2**18))).refused)
    assert many[Configuration("AllPairs")].startswith(
        "a target would look at 262,144 sources, through others at about "
    )


def test_cells_have_to_fit() -> None:
    refused = dict(candidates(lw.Neighbors(radius=0.01), points(uniform())).refused)
    assert refused[Configuration("StaticGrid", side=0.5)].endswith(" cells are more than 64,000, 16 for each source")
    # A later call of the kind, whose world is larger, gets as many as fit.
    assert cells_of(lw.Neighbors(radius=0.01), points(uniform()), 0.5).total <= MOST_CELLS_A_SOURCE * COUNT


def test_grids_are_no_candidates_where_crowds_are_clear() -> None:
    x = uniform(20_000)
    x[::20] = (x[::20] - 0.5) * 1e6
    for search in (lw.Nearest(k=7, radius=0.002), lw.Neighbors(radius=0.002)):
        found = candidates(search, points(x))
        assert {r.name for r in found.configurations} == {"DynamicGrid"}
        reasons = {reason for r, reason in found.refused if r == Configuration("StaticGrid")}
        assert all(
            r.startswith("the cell of a source would hold ") and r.endswith(" sources on average") for r in reasons
        )


def test_equal_cells_are_one_candidate() -> None:
    x = uniform(1000)
    found = candidates(lw.Neighbors(radius=0.45), points(x))  # 2 x 2 x 2 cells by default
    assert [r.side for r in found.configurations if r.name == "StaticGrid"] == [None, 0.5, 0.7, 1.4]


def test_periodic_worlds_without_a_radius_have_no_grids() -> None:
    world = lw.Periodic((1.0, 1.0, 1.0))
    found = candidates(lw.Nearest(k=7, world=world), points(uniform(), world))
    assert {r.name for r in (*found.configurations, *(r for r, _ in found.refused))} == {"DynamicGrid", "AllPairs"}


def check_all_alike(search: Search) -> set[str]:
    """All candidates of a small cloud find what the first one finds, and are accepted by the measurer; their names."""
    records = numbered(uniform(600))
    job = job_of(search, records, records)
    choices = space_of(job).structures
    first = met(job.bind(choices[0])())
    for choice in choices[1:]:
        np.testing.assert_array_equal(met(job.bind(choice)()), first, str(choice.configuration))
    assert set(CallMeasurer(job).prepare(choices).values()) == {None}
    return {str(c.configuration) for c in choices}


def test_every_structure_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_candidates, "LEAVES", ())
    assert check_all_alike(SEVEN) >= {"StaticGrid", "StaticGrid(side=0.7)", "DynamicGrid", "AllPairs"}


@pytest.mark.slow
@pytest.mark.parametrize("search", [SEVEN, NEAR, lw.Nearest(k=5)], ids=["k nearest", "within", "no radius"])
def test_every_structure_with_every_parameter_finds_the_same(search: Search) -> None:
    assert len(check_all_alike(search)) >= 8


def test_the_plan_is_tried_on_the_other_structures_too() -> None:
    wide = [v for v in (0, 256, 512) if v]
    times = {("StaticGrid(side=0.7)", 0): 0.8, ("StaticGrid(side=0.7)", wide[-1]): 0.7, ("DynamicGrid", wide[-1]): 0.5}
    records = numbered(uniform())
    job = job_of(SEVEN, records, records)
    result = tune_search(
        job, 90.0, measurer=MadeUp(lambda c: times.get((str(c.configuration), c.plan.vector_bits), 1.0))
    )
    assert (result.structure, result.plan.vector_bits, result.factor) == ("DynamicGrid", wide[-1], 2.0)
    assert result.default_structure == "StaticGrid"


def test_the_plans_of_a_gpu_are_those_of_its_kernels() -> None:
    """Without one: times are made up, and every plan on the way makes a program."""
    records = numbered(uniform())
    job = replace(job_of(SEVEN, records, records), device="cuda:0", default=Plan(block=128).filled(NEUTRAL))
    result = tune_search(
        job,
        60.0,
        measurer=MadeUp(
            lambda c: 1e-3 * (1 + abs((c.plan.block or 0) - 256) / 256 + abs((c.plan.min_blocks or 0) - 4))
        ),
    )
    assert result.plan == replace(job.default, block=256, min_blocks=4)
    assert {t.plan.block for t in result.trials} == {32, 64, 128, 256, 512, 1024}
    assert {t.plan.min_blocks for t in result.trials} == {0, 1, 2, 4, 8}
    reference = reference_kernel(MEET, lw.StaticGrid(k=7, radius=WITHIN), records, records)
    for plan in {t.plan for t in result.trials}:
        assert build_program(reference, plan, "cuda").plan == plan
    assert result.path is not None
    again = replay(result.path)
    assert (again.plan, again.structure, again.factor) == (result.plan, result.structure, result.factor)


RECORDS = numbered(uniform())
SEVENTH = job_of(SEVEN, RECORDS, RECORDS)
ON_GPU = replace(SEVENTH, device="cuda:0", default=Plan(block=128).filled(NEUTRAL))


@given(
    seed=st.integers(0, 2**32), limit=st.floats(0.5, 60), job=st.sampled_from((SEVENTH, ON_GPU)),
    launch=st.sampled_from((1e-3, 0.1, 1.0)), spread=st.sampled_from((0.02, 0.3, 3.0)),
    noise=st.sampled_from((0.0, 0.03)), compiling=st.sampled_from((0.0, 0.5)),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_search_is_replayed_whatever_its_time_was_too_short_for(
    seed: int, limit: float, job: SearchJob, launch: float, spread: float, noise: float, compiling: float
) -> None:
    first = space_of(job).structures[0]
    measurer = MadeUp(
        lambda c: launch * (1 + spread * drawn(seed, f"time {c}")),
        lambda c: Failure("wrong", "3 of 8 values differ") if drawn(seed, f"fails {c}") < 0.1 and c != first else None,
        lambda c: drawn(seed, f"unstable {c}") < 0.1 and c != first,
        compiling=compiling,
        noise=noise,
    )
    try:
        result = tune_search(job, limit, measurer=measurer)
    except lw.LanewiseError as error:
        assume("no plan can be compared" not in str(error))
        raise
    assert result.path is not None
    again = replay(result.path)
    assert (again.plan, again.structure, again.seconds, again.factor) == (
        result.plan, result.structure, result.seconds, result.factor,
    )  # fmt: skip
    assert (again.complete, again.untried) == (result.complete, result.untried)
    assert [(t.short(), t.status, t.seconds) for t in again.trials] == [
        (t.short(), t.status, t.seconds) for t in result.trials
    ]


def test_slow_calls_keep_to_the_time() -> None:
    """Calls of two seconds run once each, as long as the last one ends within 20 s."""
    records = numbered(uniform())
    measurer = MadeUp(lambda c: 2.0, compiling=0.5)
    result = tune_search(job_of(SEVEN, records, records), 20.0, measurer=measurer)
    assert (result.complete, len(result.trials)) == (False, 7)
    assert measurer.clock <= 20.0
    assert f"a launch takes 2 s, 7 of {7 + result.untried} plans tried: the time ran out" in str(result)
    with pytest.raises(
        lw.LanewiseError, match=r"^no plan can be compared with the default plan in 6 s: a launch takes 2 s"
    ):
        tune_search(job_of(SEVEN, records, records), 6.0, measurer=MadeUp(lambda c: 2.0, compiling=0.5))


# ---------------------------------------------------------------- what is kept


def test_it_measures_and_later_calls_use_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing, on the CPU: plans are fixed, so that only structures are compiled."""
    monkeypatch.setattr(search_candidates, "LEAVES", ())
    over, records, fixed = kernel(SEVEN), numbered(uniform(1500)), Plan(vector_bits=0)
    before = met(over.bind(records, records, plan=fixed)())
    result = over.tune(records, records, plan=fixed, seconds=60)
    assert {t.status for t in result.trials} == {"measured"}
    assert result.factor >= 1
    assert (result.plan.vector_bits, len({t.structure for t in result.trials})) == (0, len(result.trials))
    call = over.bind(records, records, plan=fixed)
    assert call.compiled.search_tuned
    assert "(measured: " in call.compiled.search
    np.testing.assert_array_equal(met(call()), before)
    assert not over.compile(records, records).search_tuned  # calls that fix nothing are others
    again = replay(result.path)
    assert (again.plan, again.structure, again.seconds, again.factor) == (
        result.plan, result.structure, result.seconds, result.factor,
    )  # fmt: skip
    assert [(t.short(), t.status) for t in again.trials] == [(t.short(), t.status) for t in result.trials]


def test_explain_says_what_was_measured() -> None:
    over, records = kernel(SEVEN), numbered(uniform())
    tuned_to(FINE, SEVEN, records, records, over=over)
    compiled = over.compile(records, records)
    why = "measured: 500 µs for a call like this one through StaticGrid(side=0.7), 2.00 times as fast as through StaticGrid"
    assert compiled.search.endswith(f" ({why})")
    assert compiled.search.startswith("static grid: the 7 nearest within 0.09; ")
    explained = compiled.explain()
    assert explained.origin == "tune()"
    assert explained.as_dict()["analysis"]["search"].endswith(f" ({why})")


def test_the_default_may_be_the_best() -> None:
    over, records = kernel(SEVEN), numbered(uniform())
    result = tuned_to(Configuration("StaticGrid"), SEVEN, records, records, over=over)
    assert (result.factor, result.structure) == (1.0, "StaticGrid")
    assert "\nStaticGrid with the default plan is the best\n" in str(result)
    assert "structure" in result.as_dict()
    assert over.compile(records, records).search.endswith(
        " (measured: 500 µs for a call like this one, and nothing else was faster)"
    )


@pytest.mark.slow
def test_another_kernel_and_another_process_read_the_store(own_store: Path) -> None:
    records = numbered(uniform())
    tuned_to(FINE, SEVEN, records, records)
    assert "StaticGrid(side=0.7)" in kernel(SEVEN).compile(records, records).search
    code = (
        "import sys; from pathlib import Path; from lanewise.launch import tuned_plans as store; store.store_directory = lambda: Path(sys.argv[1])\n"
        "from tests.search.test_tuning import *\n"
        "x = numbered(uniform(seed=int(sys.argv[2]))); print(kernel(SEVEN).compile(x, x).search_tuned)"
    )
    root = Path(__file__).parents[2]

    def is_tuned(**more: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")]), **more}
        command = [sys.executable, "-W", "error", "-c", code, str(own_store), "3"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert is_tuned() == "True"  # other positions of the same kind
    assert is_tuned(LANEWISE_TUNED="off") == "False"


def test_it_is_for_calls_of_one_kind() -> None:
    records = numbered(uniform())
    tuned_to(FINE, SEVEN, records, records)

    def is_tuned(search: Search, x: Array, plan: Plan | None = None) -> bool:
        r = numbered(x)
        return kernel(search).compile(r, r, plan=plan).search_tuned

    assert is_tuned(SEVEN, uniform(seed=1))
    assert is_tuned(lw.Nearest(k=7, radius=10 * WITHIN), 10 * uniform())  # the same in other units
    assert not is_tuned(lw.Nearest(k=6, radius=WITHIN), uniform())
    assert not is_tuned(lw.Nearest(k=7, radius=WITHIN / 4), uniform())
    assert not is_tuned(lw.Nearest(k=7), uniform())
    assert not is_tuned(lw.Nearest(k=7, radius=WITHIN, world=lw.Bounded((0.0,) * 3, (1.0,) * 3)), uniform())
    assert not is_tuned(SEVEN, uniform(4 * COUNT))
    assert not is_tuned(SEVEN, uniform(), Plan(vector_bits=0))
    assert not is_tuned(lw.StaticGrid(k=7, radius=WITHIN), uniform())


def test_the_kind_of_a_call_in_words() -> None:
    p = points(uniform())
    kinds = [kind_of_call(s, p, look(s, p)) for s in (SEVEN, NEAR, lw.Nearest(k=3))]
    assert kinds == [
        "7 nearest within a radius in 3 axes, open world; 4 in a cell of 1 radii",
        "all within a radius in 3 axes, open world; 4 in a cell of 1 radii",
        "3 nearest in 3 axes, open world; 4 in a cell",
    ]
    assert kind_of_call(SEVEN, p, None) == "7 nearest within a radius in 3 axes, open world; few"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"structure": "Octree"}, "'Octree' is no structure; wanted AllPairs, StaticGrid(side=...) or DynamicGrid(leaf=...)"),
        ({"structure": None}, "it does not hold what an entry holds: expected string or bytes-like object, got 'NoneType'"),
        ({"default_structure": ...}, "'default_structure' is missing"),
    ],
)  # fmt: skip
def test_a_damaged_entry_is_set_aside(change: dict[str, Any], reason: str) -> None:
    records = numbered(uniform())
    path = tuned_to(FINE, SEVEN, records, records).path
    assert path is not None
    data = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({n: v for n, v in data.items() if v is not ...}))
    with pytest.warns(StoreWarning) as caught:
        compiled = kernel(SEVEN).compile(records, records)
    assert not compiled.search_tuned
    assert str(caught[0].message) == (
        f"{path} is set aside: {reason}; it is now {path.with_suffix('.damaged').name}, and the default plan is used"
    )


# ---------------------------------------------------------------- what fails


def test_failures_are_reported_with_their_reasons_and_replayed() -> None:
    def fails(choice: Choice) -> Failure | None:
        if choice.configuration == Configuration("DynamicGrid", leaf=4):
            return Failure("failed", "no memory")
        return (
            Failure("wrong", "7 of 8 values differ from the default plan's") if choice.configuration == FINE else None
        )

    records = numbered(uniform())
    unstable = Configuration("DynamicGrid", leaf=32)
    result = tune_search(
        job_of(SEVEN, records, records), 60.0,
        measurer=MadeUp(lambda c: 0.5 if c.configuration == unstable else 1.0, fails, lambda c: c.configuration == unstable),
    )  # fmt: skip
    assert result.structure == "StaticGrid"
    assert {t.structure: (t.status, t.reason) for t in result.failed} == {
        "StaticGrid(side=0.7)": ("wrong", "7 of 8 values differ from the default plan's"),
        "DynamicGrid(leaf=4)": ("failed", "no memory"),
        "DynamicGrid(leaf=32)": ("wrong", "two runs from the same state gave different bits"),
    }
    text = str(result)
    assert "  structure='AllPairs': a target would look at 4,000 sources, through others at about " in text
    assert "  1 plan failed: no memory" in text
    assert result.path is not None
    again = replay(result.path)
    assert {t.short(): (t.status, t.reason) for t in again.trials} == {
        t.short(): (t.status, t.reason) for t in result.trials
    }


def test_a_wrong_structure_is_found_out() -> None:
    """Half the radius meets fewer sources: a candidate that did so would be out."""
    records = numbered(uniform(600))
    for search in (NEAR, SEVEN):
        job = job_of(search, records, records, plan=Plan(vector_bits=0))
        narrow = job_of(type(search)(radius=WITHIN / 2, k=search.k), records, records, plan=Plan(vector_bits=0))
        right, wrong, *_ = space_of(job).structures
        calls = {right: job.bind(right), wrong: narrow.bind(right)}
        measurer = CallMeasurer(replace(job, bind=calls.__getitem__))
        found = measurer.prepare([right, wrong])
        assert found[right] is None
        assert (failure := found[wrong]) is not None
        assert failure.status == "wrong"
        assert failure.reason.startswith("result 0: ")
        assert failure.reason.endswith(" of 600 values differ from the default plan's")


def test_when_the_time_runs_out_the_best_so_far_wins() -> None:
    records = numbered(uniform())
    result = tune_search(
        job_of(SEVEN, records, records),
        10.0,
        measurer=MadeUp(lambda c: 1e-3 if c.configuration.side else 2e-3, compiling=4.0),
    )
    assert not result.complete
    assert "the time ran out: a larger seconds= tries more" in str(result)
    assert len(result.trials) < 5


def test_refusals() -> None:
    def refused(kind: type[Exception], attempt: Callable[[], Any]) -> str:
        with pytest.raises(kind) as caught:
            attempt()
        return str(caught.value)

    records = numbered(uniform(40))
    over = kernel(SEVEN)
    assert refused(ArgumentError, lambda: over.tuning_job(records, records)) == (
        "meet_vec3 runs over nearest: the 7 nearest within 0.09: plans are measured together with structures, by meet_vec3.tune()"
    )
    assert refused(ArgumentError, lambda: over.tune(records, records, seconds=0)) == (
        "seconds=0: wanted a positive number, the time that tuning may take"
    )
    assert refused(ArgumentError, lambda: kernel(lw.Nearest(k=7)).tune(*[numbered(uniform(5))] * 2)) == (
        "all pairs: the 7 nearest: there are only 5 sources"
    )
    flat, many = kernel(lw.Neighbors(radius=0.1, world=lw.Periodic((1.0, 1.0)))), numbered(uniform(FEW + 1))
    for attempt in (flat.tune, flat):
        assert refused(ArgumentError, lambda attempt=attempt: attempt(many, many)) == (
            "neighbors: all within 0.1, periodic world of 1 x 1: the world has 2 axes, and the positions have 3"
        )
    x = uniform(40)
    x[3, 1] = np.nan
    broken = numbered(x)
    assert refused(ArgumentError, lambda: over.tune(broken, broken)).startswith(
        "meet_vec3: 'source': the position of element 3 is ("
    )
    interpreted = numbered(uniform(9), device="python")
    assert refused(DeviceError, lambda: over.tune(interpreted, interpreted)) == (
        "meet_vec3: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'"
    )


@pytest.mark.cuda
@pytest.mark.parametrize("search", [SEVEN, NEAR], ids=["k nearest", "within"])
def test_on_a_gpu(search: Search) -> None:
    over, records = kernel(search), numbered(uniform(), device="cuda")
    before = met(over(records, records))
    result = over.tune(records, records, seconds=120)
    assert result.complete
    assert {t.status for t in result.trials if t.plan == result.default} == {"measured"}, str(result)
    assert {t.plan.block for t in result.measured} >= {32, 64, 128, 256}
    if search.k is not None:
        assert "wrong" not in {t.status for t in result.trials}, str(result)
    call = over.bind(records, records)
    assert call.compiled.search_tuned
    np.testing.assert_array_equal(met(call()), before)
    again = replay(result.path)
    assert (again.plan, again.structure) == (result.plan, result.structure)
