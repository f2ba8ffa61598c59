"""Gravity over a tree: close to all pairs, with the errors that it says, and the same bits wherever a run is cut."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.launch import tuned_plans as store
from lanewise.runtime.memory import to_host
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions, runner, trees
from lanewise.sims.gravity.checkpoint import check_order
from lanewise.sims.gravity.options import Output, Settings
from lanewise.sims.gravity.trees import CROSSING, ForceErrors, accuracy_warning, tree_of, with_method
from lanewise.support import whole_steps
from tests.sims.test_interruption import pressed

COUNT = 700


def simulation(precision: str = "f32", tree: lw.Tree | None = None, **more: Any) -> Simulation:
    particles = make_initial_conditions("plummer", COUNT, 3)
    softening = more.pop("softening", 0.02)
    return Simulation(make_bodies(particles, precision=precision), softening=softening, search=tree, **more)


def test_a_tree_is_calibrated_with_the_softening_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels take its square."""
    taken: list[float] = []

    class Law:
        def tune(self, *bodies: Any, softening2: float) -> Any:
            taken.append(softening2)
            raise lw.ArgumentError("looked at")

    monkeypatch.setattr(trees, "law_over", lambda *_: Law())
    asked = Settings(method="tree", accuracy=1e-3, softening=0.25)
    with pytest.raises(lw.InputError, match="looked at"):
        trees.calibrated(asked, asked, simulation().bodies)
    assert taken == [0.0625]


@pytest.mark.quick("f32-0.02")
@pytest.mark.parametrize(("precision", "softening"), [("f32", 0.02), ("f64", 0.0), ("mixed", 0.02)])
def test_forces_and_energy_are_close_to_those_of_all_pairs(precision: str, softening: float) -> None:
    tree = simulation(precision, lw.Tree(theta=0.5, order=4, leaf=16), softening=softening)
    pairs = simulation(precision, softening=softening)
    wanted = np.asarray(pairs.acceleration, np.float64)
    away = np.linalg.norm(np.asarray(tree.acceleration, np.float64) - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.median(away) < 3e-4
    assert away.max() > 1e-6
    found = tree.force_errors()
    assert found.bodies == COUNT
    assert found.median == pytest.approx(np.median(away), rel=0.05, abs=1e-6)
    assert found.largest == pytest.approx(away.max(), rel=0.05)
    assert found.median < found.most <= found.largest
    assert pairs.force_errors().largest < (1e-12 if precision == "f64" else 1e-4)
    assert tree.diagnostics().potential == pytest.approx(pairs.diagnostics().potential, rel=1e-5)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4"])
@pytest.mark.parametrize("cut", [5, 32, 40])
def test_no_bit_depends_on_where_a_run_is_cut_and_taken_up(cut: int, integrator: str) -> None:
    tree = lw.Tree(theta=0.7, order=2, leaf=16)
    whole = simulation(tree=tree, integrator=integrator)
    whole.run(70, dt=0.02)
    first = simulation(tree=tree, integrator=integrator)
    first.run(cut, dt=0.02)
    plans, order = first.plans, first.tree_order
    bodies = first.bodies.copy()
    rest = Simulation(
        bodies, softening=0.02, search=tree, integrator=integrator, plan=plans.force, potential_plan=plans.potential
    )
    rest.continue_from(cut, 0.02, order)
    assert np.array_equal(rest.acceleration, first.acceleration)
    rest.run(70 - cut, dt=0.02)
    assert np.array_equal(rest.bodies.position, whole.bodies.position)
    assert np.array_equal(rest.bodies.velocity, whole.bodies.velocity)
    assert rest.diagnostics().total == whole.diagnostics().total


def test_the_order_is_needed_for_the_same_bits() -> None:
    """What the tests above would not see if orders were made anew in every step."""
    tree = lw.Tree(theta=0.7, order=2, leaf=16)
    first = simulation(tree=tree)
    first.run(20, dt=0.02)
    rest = Simulation(first.bodies.copy(), softening=0.02, search=tree)
    assert not np.array_equal(rest.acceleration, first.acceleration)
    assert simulation().tree_order is None


def test_what_is_done_for_a_method() -> None:
    few, many = (with_method(Settings(method="auto", device="cpu"), n) for n in (19_999, 20_000))
    assert CROSSING == 20_000
    assert (few[0].method, few[0].theta, few[1]) == (
        "direct",
        None,
        "auto: fewer than 20,000 bodies, where a tree pays on a CPU, measured for theta 0.6 and order 4",
    )
    assert (many[0].method, many[0].theta, many[0].order, many[0].leaf) == ("tree", 0.6, 4, 32)
    assert many[1] == "auto: from 20,000 bodies, where a tree pays on a CPU, measured for theta 0.6 and order 4"
    asked, why = with_method(Settings(method="tree", theta=0.4, order=2), 10)
    assert (tree_of(asked), why) == (lw.Tree(theta=0.4, order=2, method="walk"), "requested")
    for settings, message in (
        (Settings(method="octree"), "unknown method 'octree'; did you mean 'tree'? wanted one of auto, direct, tree"),
        (Settings(theta=0.5), "--theta needs --method tree: all pairs have no groups of bodies"),
        (Settings(method="tree", theta=2.0), "Tree(theta=2.0): wanted a number above 0 and at most 0.9"),
        (Settings(accuracy=1e-3), "--accuracy needs --method tree: all pairs have no groups of bodies"),
        (Settings(method="tree", accuracy=1.0), "Tree(accuracy=1.0): wanted a number above 0 and below 1"),
        (Settings(method="auto", order=99), "Tree(order=99): wanted an integer from 0 to 8"),
    ):
        with pytest.raises(lw.InputError) as refused:
            with_method(settings, 10)
        assert message in str(refused.value)


@pytest.mark.parametrize("change", ["bodies", "softening", "dt", "profile"])
def test_a_run_that_is_cut_after_a_change_goes_on_with_the_same_bits(change: str) -> None:
    tree, dt = lw.Tree(theta=0.7, order=2, leaf=16), 0.02
    whole = simulation(tree=tree)
    whole.run(20, dt=dt)
    if change == "bodies":
        whole.bodies.position[5] += 0.3
    elif change == "softening":
        whole.softening = 0.04
    elif change == "profile":
        whole.profile = lw.Profile()
    else:
        dt = 0.03
    whole.run(5, dt=dt)
    rest = Simulation(whole.bodies.copy(), softening=whole.softening, search=tree)
    rest.continue_from(whole.step, dt, whole.tree_order)
    assert np.array_equal(rest.acceleration, whole.acceleration)
    for one in (whole, rest):
        one.run(20, dt=dt)
    assert np.array_equal(rest.bodies.position, whole.bodies.position)


def test_a_profile_that_is_set_between_steps_keeps_the_bits() -> None:
    tree = lw.Tree(theta=0.7, order=2, leaf=16)
    whole, parts = simulation(tree=tree), simulation(tree=tree)
    whole.run(40, dt=0.05)
    parts.run(10, dt=0.05)
    order = np.asarray(parts.tree_order)
    parts.profile = lw.Profile()
    parts.prepare(0.05)
    assert np.array_equal(np.asarray(parts.tree_order), order)
    parts.run(30, dt=0.05)
    assert bytes(parts.bodies.data) == bytes(whole.bodies.data)


@pytest.mark.parametrize("order", [np.arange(10), np.zeros(COUNT, int), np.arange(COUNT) + 1])
def test_an_order_that_is_none_is_refused(order: Any) -> None:
    tree = simulation(tree=lw.Tree(order=1))
    with pytest.raises(lw.InputError, match=f"order= does not name each of {COUNT} bodies once"):
        tree.continue_from(3, 0.01, order)
    assert tree.step == 0
    with pytest.raises(lw.InputError, match="this simulation has none; leave it out"):
        simulation().continue_from(3, 0.01, order)


@pytest.mark.parametrize("steps", [1, 50])
@pytest.mark.parametrize("end", ["met", "apart"])
def test_bodies_that_no_search_can_use_are_said_as_over_all_pairs(end: str, steps: int) -> None:
    """Bodies 3 and 8 are in one place, where their force is no number; or a body leaves what forces reach.

    Over all pairs a body without a place takes all others along, so another one may be named.
    """
    said: list[str] = []
    for search in (None, lw.Tree(leaf=4)):
        particles = make_initial_conditions("plummer", 20, 3)
        if end == "met":
            particles.position[8] = particles.position[3]
        else:
            particles.velocity[8, 0] = 3e37
        falling = Simulation(make_bodies(particles), search=search)
        with pytest.raises(lw.InputError) as refused:
            falling.advance(steps, dt=1e-2)
        said.append(str(refused.value))
    lost = "step 1: body {} has no finite position or velocity any more; a smaller dt or more softening keeps close"
    assert said[0].startswith(lost.format(0 if end == "met" else 8))
    if end == "met":
        assert said[1] == said[0].replace("body 0", "body 3")
    else:
        assert said[1].startswith("position of body 8 is (3e+35, ")
        assert "; forces in f32 reach 1.7e+12: use precision f64 or another unit of length" in said[1]


def test_rebuilds_are_the_orders_that_steps_have_made() -> None:
    """Counted by a profile, which sees launches."""
    profile = lw.Profile()
    tree = simulation(tree=lw.Tree(theta=0.7, order=2, leaf=16), profile=profile, integrator="yoshida4")
    for steps, rebuilds in ((20, 1), (12, 1), (33, 3)):
        tree.run(steps, dt=0.02)
        launched = profile.summary()["stages"]["build"]["parts"]["order"]["calls"]
        assert tree.rebuilds == launched == rebuilds
    tree.bodies.position[5] += 0.3
    tree.run(5, dt=0.03)
    assert tree.rebuilds == 4
    assert simulation().rebuilds is None
    direct = runner.start(bodies=20, steps=40)
    direct.execute()
    assert direct.finish()["rebuilds"] is None


def begin(steps: int, out: str, device: str = "cpu", **other: Any) -> runner.GravityRun:
    chosen: dict[str, Any] = {"method": "tree", "order": 2, "leaf": 16, "device": device, **(other or {"theta": 0.7})}
    run = runner.start(bodies=300, seed=2, steps=steps, dt=0.01, output=Output(out=Path(out)), **chosen)
    run.execute()
    return run


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_checkpoint_keeps_the_tree(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps in which the order is made anew."""
    monkeypatch.chdir(tmp_path)
    whole = begin(70, "whole.h5", device)
    part = begin(37, "part.h5", device).finish()
    rest = runner.resume(Path("part.h5"), steps=33, device=None, output=Output())
    rest.execute()
    assert not rest.note
    one, other = (to_host(r.state.simulation.bodies.data).tobytes() for r in (whole, rest))
    assert one == other
    one, other = whole.finish(), rest.finish()
    assert one["energy_final"] == other["energy_final"]
    assert [summary["rebuilds"] for summary in (one, part, other)] == [3, 2, 1]
    assert (other["method"], other["theta"], other["order"], other["leaf"]) == ("tree", 0.7, 2, 16)
    assert (one["method_reason"], other["method_reason"], other["pairs_per_second"]) == ("requested", "as before", None)
    assert 0 < one["force_errors"]["median"] < one["force_errors"]["99 %"] <= one["force_errors"]["largest"] < 0.1
    assert other["device"].startswith(device)
    with h5py.File("part.h5") as file:
        order = np.asarray(file["lanewise/tree_order"])
    check_order(rest.state.settings, order, 300)
    for damaged in (order[:-1], np.where(order == 7, 8, order), None):
        with pytest.raises(lw.InputError, match="lanewise/tree_order does not name each of 300 bodies once"):
            check_order(rest.state.settings, damaged, 300)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_run_that_ctrl_c_ended_goes_on_with_the_same_bits(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a whole step that is no multiple of 32, from the checkpoint that it leaves."""
    monkeypatch.chdir(tmp_path)
    whole = begin(75, "whole.h5", device)
    monkeypatch.setattr(whole_steps, "PIECE_SECONDS", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pressed(3 if device == "cpu" else 1), pytest.raises(KeyboardInterrupt):
            begin(75, "part.h5", device)
    finally:
        signal.signal(signal.SIGINT, before)
    rest = runner.resume(Path("part.h5"), steps=None, device=None, output=Output())
    ended = rest.state.simulation.step
    assert 0 < ended < 75
    assert device != "cpu" or ended % 32
    rest.execute()
    assert rest.state.simulation.step == 75
    one, other = (to_host(r.state.simulation.bodies.data).tobytes() for r in (whole, rest))
    assert one == other


@pytest.mark.slow
def test_a_checkpoint_keeps_the_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = begin(44, "whole.h5", accuracy=1e-2)
    begin(40, "part.h5", accuracy=1e-2)
    with h5py.File("part.h5") as file:
        assert file["lanewise"].attrs["accuracy"] == 1e-2
    rest = runner.resume(Path("part.h5"), steps=4, device=None, output=Output())
    rest.execute()
    assert bytes(rest.state.simulation.bodies.data) == bytes(whole.state.simulation.bodies.data)
    one, other = whole.finish(), rest.finish()
    assert one["energy_final"] == other["energy_final"]
    assert (other["accuracy"], other["theta"], other["order"]) == (1e-2, 0.7, 2)
    assert 0 < other["force_errors"]["99 %"] <= 1e-2
    assert other["warning"] is None


def test_a_calibrated_tree_stays_in_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    tried = {"accuracy": 2e-2, "calibrate": True}
    whole = begin(44, "whole.h5", **tried)
    summary = whole.finish()
    assert summary["method_reason"].startswith("calibrated for an accuracy of 0.02, ")
    assert summary["opening"] > 0
    assert summary["force_errors"]["99 %"] <= 2e-2
    begin(40, "part.h5", order=2, **{k: summary[k] for k in ("accuracy", "walk", "theta", "leaf", "opening")})
    rest = runner.resume(Path("part.h5"), steps=4, device=None, output=Output())
    rest.execute()
    assert bytes(rest.state.simulation.bodies.data) == bytes(whole.state.simulation.bodies.data)
    assert rest.finish()["opening"] == summary["opening"]
    with pytest.raises(lw.InputError, match="--calibrate needs --method tree and --accuracy"):
        begin(1, "none.h5", theta=0.5, calibrate=True)


def test_groups_that_meet_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = begin(3, "dual.h5", theta=0.5, walk="dual")
    assert "pairs of groups" in str(run.state.simulation.search.describe())
    rest = runner.resume(Path("dual.h5"), steps=2, device=None, output=Output())
    rest.execute()
    assert rest.finish()["walk"] == "dual"
    with pytest.raises(lw.InputError, match="unknown walk 'trip'"):
        begin(1, "none.h5", walk="trip")
    with pytest.raises(lw.InputError, match="errors are estimated where targets meet groups"):
        begin(1, "none.h5", walk="dual", accuracy=1e-2)


def test_errors_above_the_accuracy_that_was_asked_for_are_said() -> None:
    errors = ForceErrors(1e-4, 2e-3, 5e-3, 1000)
    assert accuracy_warning(2e-3, errors) == ""
    assert accuracy_warning(None, None) == ""
    said = accuracy_warning(1e-3, errors)
    assert said.startswith(
        "99 % of the forces are within 2.0e-03 of those of all pairs, not within the accuracy of 0.001"
    )
    with pytest.raises(
        lw.LanewiseError, match=r"Tree\(accuracy=1e-06\): results in f32 are no closer than about 1e-05"
    ):
        simulation(tree=lw.Tree(accuracy=1e-6))
    assert "theta at most 0.3" in lw.Tree(accuracy=1e-3, theta=0.3).describe()


def test_orders_of_runs_that_keep_momentum() -> None:
    for accuracy, order in ((1e-2, 3), (1e-3, 4), (5e-4, 4), (1e-4, 5)):
        assert with_method(Settings(method="tree", accuracy=accuracy), 100)[0].order == order
    assert with_method(Settings(method="tree", accuracy=1e-3, order=2), 100)[0].order == 2
