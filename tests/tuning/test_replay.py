"""A search is replayed from what it measured: the same plans, the same result, without the device."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.trial import Failure
from lanewise.launch.tuned_plans import Entry, Key
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import InputError, LanewiseError
from lanewise.tuning import Tuning, replay, tune_job
from lanewise.tuning.search import search
from lanewise.tuning.tune import RecordedMeasurer, families_to, read_recording, recording_of, tune_space
from tests.tuning.kernels import attraction, points
from tests.tuning.landscapes import AXES, BASE, MadeUpMeasurer, MadeUpSpace, family
from tests.tuning.test_space import space


def uneven(plan: Plan) -> float:
    """Within 2 %, another number for every plan: no two are equally fast."""
    return 1 + 0.02 * zlib.crc32(str(plan).encode()) / 2**32


def found_again(result: Tuning, again: Tuning) -> None:
    assert (again.plan, again.seconds) == (result.plan, result.seconds)
    assert (again.default, again.default_seconds, again.factor) == (
        result.default,
        result.default_seconds,
        result.factor,
    )
    assert {t.plan: (t.status, t.reason) for t in again.trials} == {t.plan: (t.status, t.reason) for t in result.trials}
    assert again.refused == result.refused
    assert again.about == result.about


def test_a_search_on_this_cpu_is_replayed_from_its_file() -> None:
    cloud = points(64)
    result = lw.pairwise(attraction.python).tune(
        cloud, cloud, softening2=1e-2, seconds=2, plan=Plan(vector_bits=0, tile=0)
    )
    assert result.path is not None
    found_again(result, replay(result.path))
    found_again(result, replay(str(result.path)))


def test_a_search_that_met_failures_is_replayed() -> None:
    cloud = points(64)
    measurer = MadeUpMeasurer(
        lambda p: uneven(p) / (p.targets or 1) + 0.1 * (p.vector_bits == 256),
        lambda p: Failure("wrong", "3 of 8 values differ from the default plan's") if p.targets == 8 else None,
        unstable=lambda p: p.targets == 4 and p.vector_bits == 0,
        drift=0.01,
    )
    result = tune_job(lw.pairwise(attraction.python).tuning_job(cloud, cloud, softening2=1e-2), 1e6, measurer=measurer)
    assert {t.status for t in result.trials} >= {"measured", "wrong"}
    assert result.path is not None
    found_again(result, replay(result.path))


def made_up_gpu_seconds(plan: Plan) -> float:
    """Some times, as uneven as those of a device, with a clear best one among the plans that compute pairs once."""
    both = 0.6 if plan.reciprocity != "off" else 1.0
    return 1e-4 * both * uneven(plan) * (1 + abs((plan.targets or 1) - 8) / 16) * (1.1 if plan.registers else 1.0)


def test_the_search_for_a_gpu_is_replayed_without_one(tmp_path: Path) -> None:
    """The real passes and models decide what is tried for an NVIDIA H200; the times are made up."""
    wanted = Plan(
        parts=1,
        uniforms="constant",
        prefetch="none",
        unroll=8,
        tile=256,
        block=256,
        min_blocks=0,
        self_term="test",
        fma=False,
    )
    gpu = space("gravity", "cuda", wanted)
    found = search(gpu, MadeUpMeasurer(made_up_gpu_seconds), seconds=1e6)
    assert found.best.targets == 8
    log = {
        "about": {"kernel": "gravity", "elapsed": 1.0}, "note": "", "families": families_to(gpu.families),
        "refused": [{"field": f, "value": v, "reason": r} for f, v, r in gpu.refused],
        "exhaustive": found.exhaustive, "starts": [[name, dict(point)] for name, point in found.starts],
        "trials": [t.as_dict() for t in found.trials.values()],
    }  # fmt: skip
    entry = Entry(found.best, found.seconds(found.best), found.default, found.seconds(found.default), log)
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(entry.as_dict()))
    again = replay(path)
    assert (again.plan, again.seconds, again.default_seconds) == (entry.plan, entry.seconds, entry.default_seconds)
    assert {t.plan: t.status for t in again.trials} == {p: t.status for p, t in found.trials.items()}
    # The same recording serves a search in the kernel's own space, too.
    once_more = search(gpu, RecordedMeasurer(recording_of(read_recording(path))), seconds=1e6)
    assert once_more.best == found.best


@dataclass
class MadeUpSubject:
    """What the store and the report ask of what is tuned."""

    name: str = "made up"
    device: str = "cpu"
    counts: Mapping[str, int] = field(default_factory=lambda: {"elements": 1})
    key: Key = field(default_factory=lambda: keyed())
    adopt: Callable[[Plan], None] = lambda plan: None
    advise: Callable[[], str] = lambda: ""


def keyed() -> Key:
    return lw.pairwise(attraction.python).tuning_job(points(4), points(4), softening2=1e-2).key


@dataclass
class RefusingSpace(MadeUpSpace):
    refused: list[tuple[str, Any, str]] = field(default_factory=list)


SMALL_AXES: dict[str, tuple[Any, ...]] = {"targets": (1, 2, 4), "unroll": (1, 2), "fma": (False, True)}


@given(
    seed=st.integers(0, 2**32), large=st.booleans(), families=st.integers(1, 3),
    limit=st.floats(0.02, 30), launch=st.sampled_from((1e-4, 1e-2, 0.3)), spread=st.sampled_from((0.02, 0.3, 3.0)),
    noise=st.sampled_from((0.0, 0.03)), compiling=st.sampled_from((0.0, 0.02, 0.3)),
    looking=st.sampled_from((0.0, 0.01)), around=st.sampled_from((None, 0.0, 0.5)),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_a_search_is_replayed_whatever_its_time_was_too_short_for(
    seed: int, large: bool, families: int, limit: float, launch: float, spread: float,
    noise: float, compiling: float, looking: float, around: float | None,
) -> None:  # fmt: skip
    def drawn(plan: Plan, what: str) -> float:
        return zlib.crc32(f"{seed} {what} {plan}".encode()) / 2**32

    def seconds(plan: Plan) -> float:
        return launch * (1 + spread * drawn(plan, "time"))

    def predicted(plan: Plan) -> float | None:
        measurer.clock += looking
        return None if drawn(plan, "known") < 0.1 else seconds(plan) * (0.5 + 1.5 * drawn(plan, "model"))

    measurer = MadeUpMeasurer(
        seconds,
        lambda p: Failure("wrong", "3 of 8 values differ") if drawn(p, "fails") < 0.1 and p != BASE else None,
        unstable=lambda p: drawn(p, "unstable") < 0.1 and p != BASE,
        compiling=compiling, drift=0.002, noise=noise, around=around,
    )  # fmt: skip
    axes = AXES if large else SMALL_AXES
    made_up = tuple(family(axes, replace(BASE, block=256 << n), f"family {n}") for n in range(families))
    space = RefusingSpace(made_up, lambda p: "no" if drawn(p, "illegal") < 0.1 and p != BASE else "", predicted)
    try:
        result = tune_space(MadeUpSubject(), space, measurer, limit, lambda state: None)
    except LanewiseError as error:
        assume("no plan can be compared" not in str(error))
        raise
    assert result.path is not None
    again = replay(result.path)
    found_again(result, again)
    assert (again.complete, again.untried, again.exhaustive) == (result.complete, result.untried, result.exhaustive)
    assert [t.seconds for t in again.trials] == [t.seconds for t in result.trials]


def test_an_entry_that_says_less_than_a_replay_needs_is_refused(tmp_path: Path) -> None:
    cloud = points(64)
    measurer = MadeUpMeasurer(uneven)
    result = tune_job(lw.pairwise(attraction.python).tuning_job(cloud, cloud, softening2=1e-2), 1e6, measurer=measurer)
    assert result.path is not None
    entry = json.loads(result.path.read_text())
    path = tmp_path / "earlier.json"

    def without(holder: Any) -> Any:
        return {k: without(v) if isinstance(v, dict) else v for k, v in holder.items() if k != "starts"}

    path.write_text(json.dumps(without(entry)))
    said = "the entry does not say where its search began, as those of later versions do; tune again"
    with pytest.raises(InputError, match=said):
        replay(path)


def test_a_plan_that_was_not_measured_fails() -> None:
    assert RecordedMeasurer({}).prepare([NEUTRAL]) == {
        NEUTRAL: Failure("failed", "the recording has no measurement of it")
    }


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    with pytest.raises(InputError) as caught:
        replay(missing)
    assert str(caught.value) == f"{missing}: cannot be read: No such file or directory"
    path = tmp_path / "other.json"
    for content, reason in (
        ("{}", "'plan' is missing"),
        ("[]", "it does not hold what an entry holds: list indices must be integers or slices, not str"),
        ('{"plan": {}, "default": {}, "seconds": 1, "default_seconds": 1}', "'trials'"),
    ):
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            replay(path)
        assert str(caught.value) == f"{path}: no entry of the store of tuned plans: {reason}"
