"""An accuracy in the least time: what `tune` finds over a tree keeps it, and is kept."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language import types as t
from lanewise.launch import tuned_plans as store
from lanewise.launch.tuned_plans import StoreWarning
from lanewise.patterns.search.points import points_of_values
from lanewise.patterns.search.tree.choice import TreeChoice, choice_from
from lanewise.patterns.search.tree.search import FINE
from lanewise.patterns.search.tree.tail import calibrated_by
from lanewise.patterns.search.tuning import calibration
from lanewise.patterns.search.tuning.calibration import MARGIN, CalibrationJob, calibrate
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime import host_device, timing
from lanewise.tuning import replay


class Star(lw.Record):
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Star, source: Star, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are those of this process alone: other programs on the machine decide nothing."""
    for module in (host_device, timing):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=time.process_time))


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    return tmp_path / "tuned"


def stars(count: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return Star.array(position=rng.normal(size=(count, 3)), mass=rng.uniform(0.5, 1.5, count))


@pytest.mark.usefixtures("own_clock")
def test_what_is_found_keeps_the_accuracy_and_later_calls_take_it(
    own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, asked = stars(1500), lw.Tree(accuracy=1e-2, order=2, leaf=16, method="walk")
    far = pull.using(search=asked)
    careful = np.asarray(far(cloud, cloud, softening2=1e-4))
    before = far.compile(cloud, cloud, softening2=1e-4).search
    assert "(requested; 99 % of results within 0.01 predicted, not measured: tune() measures and" in before
    measured_before = lw.far_errors(far, cloud, cloud, softening2=1e-4)
    assert not measured_before.kept
    tuning = far.tune(cloud, cloud, softening2=1e-4)
    measured_after = lw.far_errors(far, cloud, cloud, softening2=1e-4)
    another = tuning.structure != tuning.default_structure  # else the default was the fastest, and its errors are known
    assert measured_after.kept is not another
    assert (measured_after.median > measured_before.median) is another
    assert measured_after.predicted == 1e-2
    assert tuning.structure.startswith("walk(order=2, leaf=16, ")
    assert tuning.default_structure == "walk(order=2, leaf=16, opening=0.01)"
    assert tuning.seconds <= tuning.default_seconds
    assert tuning.note.startswith("99 % of the results within 0.01 predicted; measured median ")
    assert {x.status for x in tuning.trials} <= {"measured", "wrong"}

    found = np.asarray(far(cloud, cloud, softening2=1e-4))  # the call before was another one
    fresh = pull.using(search=asked)
    assert np.array_equal(fresh(cloud, cloud, softening2=1e-4), found)
    assert np.array_equal(fresh.bind(cloud, cloud, softening2=1.1e-4)(), far(cloud, cloud, softening2=1.1e-4))
    wanted = np.asarray(pull(cloud, cloud, softening2=1e-4), np.float64)
    away = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.quantile(away, 0.99) < 1e-2
    text = str(fresh.compile(cloud, cloud, softening2=1e-4).explain())
    assert "calibrated for an accuracy of 0.01: 99 % within it predicted, measured median " in " ".join(text.split())
    measured = f"99 % {np.quantile(away[calibrated_by(len(away), len(away))], 0.99, method='inverted_cdf'):.1e}"
    assert measured in tuning.note

    monkeypatch.setenv("LANEWISE_TUNED", "off")
    assert np.array_equal(pull.using(search=asked)(cloud, cloud, softening2=1e-4), careful)
    monkeypatch.delenv("LANEWISE_TUNED")
    other = pull.using(search=lw.Tree(accuracy=5e-3, order=2)).compile(cloud, cloud, softening2=1e-4)
    assert "not measured" in other.search
    (file,) = (f for f in own_store.glob("*.json") if '"structure"' in f.read_text())
    with pytest.raises(lw.InputError, match="is no search through plans, and cannot be replayed"):
        replay(file)
    file.write_text(file.read_text().replace('"structure": "walk(', '"structure": "wade('))
    with pytest.warns(StoreWarning, match="is no tree; wanted walk"):
        assert np.array_equal(pull.using(search=asked)(cloud, cloud, softening2=1e-4), careful)


def test_a_tree_without_an_accuracy_leaves_no_choice() -> None:
    cloud = stars(40)
    with pytest.raises(lw.ArgumentError) as caught:
        pull.using(search=lw.Tree()).tune(cloud, cloud, softening2=0.1)
    assert str(caught.value) == (
        "pull runs over tree: theta 0.6, order 4, leaves of 32, which was requested and leaves nothing to choose; wanted a "
        "tree with an accuracy, lw.Tree(accuracy=1e-3) (lanewise tune: --accuracy 1e-3), for which trees are measured, or "
        "all pairs, for which plans are"
    )


# ------------------------------------------------------------ without a clock


Law = tuple[float, float, float]
"""Of a method and order: its error at an opening of 1, the power of that, seconds at an opening of 1."""


def made_up(laws: dict[tuple[str, int], Law], accuracy: float, **asked: Any) -> CalibrationJob:
    wanted = np.ones((1024, 1))

    def law(choice: TreeChoice) -> Law:
        return laws[choice.method, choice.order]

    def bind(choice: TreeChoice) -> Any:
        size, power, seconds = law(choice)
        error = size * choice.opening**power
        slower = {16: 1.1, 32: 1.0, 64: 0.9}[choice.leaf]
        took = slower * seconds / choice.opening**0.3
        return SimpleNamespace(launch=lambda: None, results=(wanted * (1 + error),), took=took)

    key: Any = SimpleNamespace(
        device="d", arch="a", driver="", compiler="c", version="v", layouts="l", wanted="", file_name="f-1.json",
        as_dict=dict,
    )  # fmt: skip
    return CalibrationJob(
        "f", "cpu", lw.Tree(accuracy=accuracy, **asked), t.F32, {"target": 1024}, True, Plan().filled(NEUTRAL), key,
        bind, slice(0, 1024, 1), lambda: [wanted], lambda _: None,
    )  # fmt: skip


@given(
    accuracy=st.sampled_from([1e-4, 1e-3, 1e-2]),
    walk=st.tuples(st.floats(0.05, 2.0), st.floats(0.5, 1.5), st.floats(0.1, 1.0)),
    dual=st.tuples(st.floats(1e-4, 1.0), st.floats(2.0, 6.0), st.floats(0.1, 1.0)),
    faster=st.floats(0.5, 2.0),
)
def test_the_fastest_that_holds_is_found(accuracy: float, walk: Law, dual: Law, faster: float) -> None:
    walks = (2, 3, 4) if accuracy >= FINE else (3, 4, 5)
    laws = {("walk", n): (walk[0] / n, walk[1], walk[2] * faster**n) for n in walks}
    laws |= {("dual", n): (dual[0] / n, dual[1], dual[2] * faster**n) for n in (3, 4, 5)}
    job = made_up(laws, accuracy)
    patch = pytest.MonkeyPatch()
    patch.setattr(calibration._Calibration, "_run", lambda _, call: call.took)
    patch.setattr(calibration, "write_entry", lambda *_: None)
    try:
        found = calibrate(job)
    except lw.ArgumentError:
        for (method, order), (size, power, _) in laws.items():
            narrowest = 0.3 if method == "dual" else accuracy / 16
            assert size * narrowest**power > MARGIN * accuracy * 0.99, (method, order)
        return
    finally:
        patch.undo()
    best = choice_from(found.structure)

    def seconds(method: str, order: int, opening: float) -> float:
        return 0.9 * laws[method, order][2] / opening**0.3

    def widest(method: str, order: int) -> float:
        size, power, _ = laws[method, order]
        return min((MARGIN * accuracy / size) ** (1 / power), 0.9 if method == "dual" else 0.95)

    size, power, _ = laws[best.method, best.order]
    assert size * best.opening**power <= accuracy * 1.001
    open_ = {m: {"dual": 0.3, "walk": accuracy / 16}[m] for m, _ in laws}
    fastest = min((seconds(m, n, w) for m, n in laws if (w := widest(m, n)) >= open_[m]), default=np.inf)
    assert found.seconds <= 1.2 * fastest


def test_an_accuracy_that_no_tree_keeps() -> None:
    laws: dict[tuple[str, int], Law] = {("walk", n): (0.5, 0.0, 1.0) for n in (2, 3, 4)}
    laws |= {("dual", n): (0.6 - 0.1 * n, 0.0, 1.0) for n in (3, 4, 5)}
    with pytest.raises(lw.ArgumentError) as refused:
        calibrate(made_up(laws, 1e-3))
    assert str(refused.value).startswith(
        "f: no tree that was tried has 99 % of its results within 0.001 of those of all pairs. The best found is "
        "dual(order=5, leaf=32, opening="
    )
    assert str(refused.value).endswith(
        "median 1.0e-01, 99 % 1.0e-01, largest 1.0e-01 of 1,024 targets. Choose accuracy=0.2 or more, records of "
        "float64, or lw.AllPairs()"
    )


@pytest.mark.parametrize("accuracy", [1e-5, 1.5e-5, 1e-3])
def test_no_tree_is_tried_that_would_be_refused(accuracy: float) -> None:
    """Estimates aim at no accuracy that float32 does not have, also where only that would be enough."""
    tried: list[TreeChoice] = []
    job = made_up({(m, n): (0.5, 0.0, 1.0) for m in ("walk", "dual") for n in (2, 3, 4, 5)}, accuracy)

    def bind(choice: TreeChoice) -> Any:
        tried.append(choice)
        assert choice.search(job.asked).structure(points := positions(), points)
        return job.bind(choice)

    with pytest.raises(lw.ArgumentError, match="no tree that was tried has 99 %"):
        calibrate(replace(job, bind=bind))
    least = min(c.opening for c in tried if c.method == "walk")
    assert max(1e-5, accuracy / 64) <= least <= max(1e-5, accuracy / 16)


def positions() -> Any:
    return points_of_values(np.random.default_rng(0).normal(size=(50, 3)).astype("f4"), "cpu")


def test_one_tree_lies_in_memory_at_a_time(own_store: Path) -> None:
    cloud, alive, most = stars(600), 0, 0
    far = pull.using(search=lw.Tree(accuracy=5e-2, order=2))
    searched: Any = far.searched
    arguments = far._calls.given((cloud, cloud), {"softening2": 1e-4})
    job = searched.calibration_job(arguments, None)

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def bind(choice: TreeChoice) -> Any:
        nonlocal alive, most
        call = job.bind(choice)
        alive += 1
        launch: Any = call.launch
        most = max(most, alive)
        weakref.finalize(launch.structure._order, gone)
        return call

    said: list[str] = []
    found = calibrate(replace(job, bind=bind), progress=lambda state: said.append(state.doing))
    assert most == 1
    assert len(found.trials) >= 4
    assert said[0] == str(job.default)
    assert said[-1].startswith("once more: ")


def test_what_is_given_stays() -> None:
    laws: dict[tuple[str, int], Law] = {("walk", 3): (0.5, 1.0, 1.0)}
    patch = pytest.MonkeyPatch()
    patch.setattr(calibration._Calibration, "_run", lambda _, call: call.took)
    patch.setattr(calibration, "write_entry", lambda *_: None)
    try:
        found = calibrate(made_up(laws, 1e-3, order=3, theta=0.5, leaf=16))
    finally:
        patch.undo()
    assert all(x.structure.startswith("walk(order=3, leaf=16, ") for x in found.trials)
    choice = choice_from(found.structure)
    assert choice.search(lw.Tree(accuracy=1e-3, theta=0.5)).theta == 0.5


@pytest.mark.parametrize(
    "choice", [TreeChoice("walk", 2, 32, 0.00432), TreeChoice("dual", 5, 16, 0.72), TreeChoice("walk", 0, 1, 1e-5)]
)
def test_a_choice_is_read_as_it_is_written(choice: TreeChoice) -> None:
    assert choice_from(str(choice)) == choice


@pytest.mark.parametrize(
    "text",
    ["", "walk", "walk(order=9, leaf=32, opening=0.1)", "dual(order=2, leaf=0, opening=0.5)",
     "dual(order=2, leaf=32, opening=0.95)", "walk(order=2, leaf=32, opening=0)", "hop(order=2, leaf=32, opening=0.1)"],
)  # fmt: skip
def test_what_is_no_choice(text: str) -> None:
    with pytest.raises(ValueError, match="is no tree"):
        choice_from(text)


# ------------------------------------------------------------ what decides it


def test_what_was_calibrated_is_for_calls_alike(own_store: Path) -> None:
    """A crowd, an extent, a value by far, and other targets are other kinds; another seed is none."""
    asked = lw.Tree(accuracy=4e-2, order=2, leaf=16)
    rng = np.random.default_rng(5)

    def cloud(positions: Any) -> Any:
        return Star.array(position=positions, mass=np.ones(len(positions)))

    even = cloud(rng.uniform(size=(900, 3)))
    far = pull.using(search=asked)
    far.tune(even, even, softening2=1e-4, seconds=0.2)

    def calibrated(targets: Any, sources: Any, softening2: float) -> bool:
        return far.compile(targets, sources, softening2=softening2).search.count("calibrated for") == 1

    again = cloud(rng.uniform(size=(920, 3)) * 1.1 + 5)
    crowd = cloud(np.where(rng.uniform(size=(900, 1)) < 0.5, 1e-3, 1.0) * rng.uniform(size=(900, 3)))
    wide = cloud(rng.uniform(size=(900, 3)) * 50)
    apart = cloud(rng.uniform(size=(900, 3)) + 30)
    assert calibrated(even, even, 1e-4)
    assert calibrated(again, again, 1e-4)
    assert not calibrated(crowd, crowd, 1e-4)
    assert not calibrated(wide, wide, 1e-4)
    assert not calibrated(apart, even, 1e-4)
    assert not calibrated(even, even, 1e-2)


def test_a_call_that_is_repeated_takes_the_tree_of_its_values_and_places(own_store: Path) -> None:
    """What a call gives follows from its arguments, and not from the call before it."""
    asked = lw.Tree(accuracy=4e-2, order=2, leaf=16)
    moving = stars(900, seed=2)
    pull.using(search=asked).tune(moving, moving, softening2=1e-4, seconds=0.2)
    far = pull.using(search=asked)

    def alike(softening2: float) -> None:
        found = np.asarray(far(moving, moving, softening2=softening2))
        fresh = pull.using(search=asked)
        assert np.array_equal(found, fresh(moving, moving, softening2=softening2))

    for softening2 in (1e-4, 1e-2, 1e-4):
        alike(softening2)
    moving.position = np.asarray(moving.position) * 40
    alike(1e-4)
    moving.position = np.asarray(moving.position) / 40
    alike(1e-4)
