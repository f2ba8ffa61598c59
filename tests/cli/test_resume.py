"""`--resume` continues to the bits of an uninterrupted run, whatever way the run was divided, and after kill -9."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from lanewise.launch import tuned_plans as store
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.sims.gravity.physics import make_physics
from lanewise.sims.gravity.runner import NO_FILES, resume
from tests.cli.command import Command, Outcome, start_process, state

STEPS = 23


def run(lanewise: Command, steps: int, out: str, *more: object) -> Outcome:
    return lanewise(
        "gravity", "run", "--bodies", 96, "--softening", 0.05, "--dt", 0.003, "--steps", steps, "--out", out, *more
    )


def divided(lanewise: Command, parts: tuple[int, ...], *more: object) -> None:
    """The run of STEPS in parts, each measuring at other steps than the whole does."""
    assert run(lanewise, parts[0], "parts.h5", *more).code == 0
    for every, part in enumerate(parts[1:], 2):
        outcome = lanewise("gravity", "run", "--resume", "parts.h5", "--steps", part, "--diagnostics-every", every)
        assert outcome.code == 0, outcome.err


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("integrator", ["euler", "leapfrog", "yoshida4"])
@pytest.mark.parametrize("precision", ["f32", "f64", "mixed"])
def test_every_precision_and_integrator(lanewise: Command, precision: str, integrator: str) -> None:
    options = ("--precision", precision, "--integrator", integrator)
    assert run(lanewise, STEPS, "whole.h5", *options).code == 0
    divided(lanewise, (7, 16), *options)
    assert state(Path("parts.h5")) == state(Path("whole.h5"))


@pytest.mark.quick("soa", "aosoa")
@pytest.mark.parametrize("layout", ["soa", "aos", "aoas", "soaoas", "aosoa"])
def test_every_layout(lanewise: Command, layout: str) -> None:
    run(lanewise, STEPS, "whole.h5", "--layout", layout)
    divided(lanewise, (11, 12), "--layout", layout)
    assert state(Path("parts.h5")) == state(Path("whole.h5"))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("parts", [(1, 22), (22, 1), (1, 1, 21), (3, 5, 7, 8)])
@pytest.mark.parametrize("every", [0, 1, 4, 100])
def test_every_division(lanewise: Command, parts: tuple[int, ...], every: int) -> None:
    run(lanewise, STEPS, "whole.h5", "--diagnostics-every", every)
    divided(lanewise, parts)
    assert state(Path("parts.h5")) == state(Path("whole.h5"))


def test_the_gravitational_constant_is_kept(lanewise: Command) -> None:
    run(lanewise, STEPS, "whole.h5", "-G", 2.5)
    divided(lanewise, (9, 14), "-G", 2.5)
    assert state(Path("parts.h5")) == state(Path("whole.h5"))


def tune_to(plan: Plan, checkpoint: str) -> None:
    """As if `lanewise tune gravity` had found this plan the fastest for such bodies, since the last command."""
    simulation = resume(Path(checkpoint), steps=1, device="cpu", output=NO_FILES).state.simulation
    physics, bodies = simulation._law.physics, simulation.bodies  # pyright: ignore[reportPrivateUsage]
    job = physics.acceleration.tuning_job(bodies, bodies, plan=Plan(parts=1), softening2=simulation.softening**2)
    store.write_entry(job.key, store.Entry(plan, 1e-6, NEUTRAL, 2e-6, {}))
    make_physics.cache_clear()  # a command begins without what another one has looked up


def test_a_tuning_on_the_way_changes_no_bit(lanewise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    make_physics.cache_clear()
    run(lanewise, STEPS, "whole.h5")
    run(lanewise, 9, "parts.h5")
    tune_to(Plan(targets=2, tile=32).filled(NEUTRAL), "parts.h5")
    outcome = lanewise("gravity", "run", "--resume", "parts.h5", "--steps", STEPS - 9)
    assert (outcome.code, outcome.err) == (0, "")
    assert state(Path("parts.h5")) == state(Path("whole.h5"))
    run(lanewise, STEPS, "tuned.h5")
    assert state(Path("tuned.h5")) != state(Path("whole.h5"))
    make_physics.cache_clear()


def test_another_kind_of_device_is_said(lanewise: Command) -> None:
    run(lanewise, 3, "a.h5")
    with h5py.File("a.h5", "r+") as file:
        file["lanewise"].attrs["device"] = "cuda"
    outcome = lanewise("gravity", "run", "--resume", "a.h5", "--steps", 1, "--device", "cpu")
    wanted = "note: a.h5 was computed on cuda; on cpu plans are chosen anew, and the last places differ\n"
    assert (outcome.code, outcome.err) == (0, wanted)


def test_out_leaves_the_checkpoint_alone(lanewise: Command) -> None:
    run(lanewise, 5, "a.h5")
    before = Path("a.h5").read_bytes()
    assert lanewise("gravity", "run", "--resume", "a.h5", "--steps", 2, "--out", "b.h5").code == 0
    assert Path("a.h5").read_bytes() == before
    assert state(Path("b.h5"))["step"] == 7


def test_the_checkpoint_itself_may_be_named_as_out(lanewise: Command) -> None:
    run(lanewise, 5, "a.h5")
    assert lanewise("gravity", "run", "--resume", "a.h5", "--steps", 2, "--out", Path("a.h5").resolve()).code == 0
    assert state(Path("a.h5"))["step"] == 7


def test_a_complete_run_needs_steps(lanewise: Command) -> None:
    run(lanewise, 5, "a.h5")
    outcome = lanewise("gravity", "run", "--resume", "a.h5")
    assert (outcome.code, outcome.err) == (2, "error: a.h5 is complete at step 5; say with --steps how many more\n")


OPTIONS = {
    "ic": "plummer", "bodies": 96, "dt": 0.003, "softening": 0.05, "integrator": "leapfrog", "precision": "f32",
    "layout": "soa", "seed": 0, "gravitational-constant": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_the_checkpoint_keeps(lanewise: Command, name: str) -> None:
    outcome = lanewise("gravity", "run", "--resume", "a.h5", f"--{name}", OPTIONS[name])
    wanted = f"error: --{name} cannot be given with --resume: the checkpoint keeps its own\n"
    assert (outcome.code, outcome.err) == (2, wanted)


def interrupted(folder: Path, number: signal.Signals) -> tuple[int, str]:
    """A long run, stopped by a signal after a few checkpoints."""
    process = start_process(
        folder, "gravity", "run", "--bodies", 2000, "--softening", 0.05, "--steps", 10_000_000,
        "--out", "cut.h5", "--checkpoint-seconds", 0,
    )  # fmt: skip
    path, until = folder / "cut.h5", time.monotonic() + 60
    while not (path.exists() and state(path)["step"] > 5) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def assert_same_as_uninterrupted(lanewise: Command, folder: Path) -> None:
    """Both go on to the same step, for the interrupted run's own end is far away."""
    step = state(folder / "cut.h5")["step"]
    assert step > 5
    assert lanewise("gravity", "run", "--resume", "cut.h5", "--steps", 3).code == 0
    whole = ("--bodies", 2000, "--softening", 0.05, "--steps", step + 3, "--out", "whole.h5")
    assert lanewise("gravity", "run", *whole).code == 0
    assert state(folder / "cut.h5") == state(folder / "whole.h5")


@pytest.mark.slow
def test_kill_9_leaves_a_checkpoint_that_resumes_to_the_same_bits(lanewise: Command, tmp_path: Path) -> None:
    code, _ = interrupted(tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert_same_as_uninterrupted(lanewise, tmp_path)


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_that_resumes_to_the_same_bits(lanewise: Command, tmp_path: Path) -> None:
    code, errors = interrupted(tmp_path, signal.SIGINT)
    wanted = "interrupted; continue with: lanewise gravity run --resume cut.h5\n"
    assert (code, errors) == (130, wanted)
    assert_same_as_uninterrupted(lanewise, tmp_path)


def test_without_steps_an_interrupted_run_goes_on_to_its_end(lanewise: Command) -> None:
    """The first snapshot is what a run killed after step 8 would have left."""
    run(lanewise, STEPS, "a.h5", "--snapshot-every", 8)
    summary = lanewise("gravity", "run", "--resume", "a_00000008.h5", "--out", "b.h5", "--json").last_json
    assert (summary["steps"], summary["step"]) == (STEPS - 8, STEPS)
    assert state(Path("b.h5")) == state(Path("a.h5"))


def cut_history(group: h5py.Group) -> None:
    del group["history"]
    group["history"] = np.zeros((0, 3))


DAMAGE = {
    "no history": (lambda g: g.__delitem__("history"), "a Gadget snapshot but no checkpoint of lanewise; start a new"),
    "short rows": (
        cut_history,
        "damaged checkpoint: lanewise/history is (0, 3) of float64; wanted (measurements, 11) of float64",
    ),
    "step": (lambda g: g.attrs.__setitem__("step", 99), "damaged checkpoint: it is at step 99 of 4"),
    "setting": (lambda g: g.attrs.__delitem__("dt"), "damaged checkpoint: there is no lanewise@dt"),
    "plan": (lambda g: g.attrs.__setitem__("force_plan", "{}}"), "damaged checkpoint: force_plan: it is no JSON"),
    "one plan": (lambda g: g.attrs.__delitem__("potential_plan"), "damaged checkpoint: it has one plan; wanted"),
    "text": (
        lambda g: g.attrs.__setitem__("steps", "many"),
        "damaged checkpoint: lanewise@steps is 'many'; wanted an integer",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_refused(lanewise: Command, kind: str) -> None:
    run(lanewise, 4, "a.h5")
    harm, message = DAMAGE[kind]
    with h5py.File("a.h5", "r+") as file:
        harm(file["lanewise"])
    before = Path("a.h5").read_bytes()
    outcome = lanewise("gravity", "run", "--resume", "a.h5", "--steps", 2)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: a.h5: {message}")
    assert Path("a.h5").read_bytes() == before


def test_a_flock_in_an_open_world(lanewise: Command) -> None:
    """Its cells lie where they lay at the start, which decides the order of sums."""
    common = ("boids", "run", "--agents", 700, "--boundary", "open", "--start-radius", 12, "--dt", 0.1)
    assert lanewise(*common, "--steps", 60, "--final", "whole.csv").code == 0
    assert lanewise(*common, "--steps", 23, "--out", "run.h5").code == 0
    resumed = lanewise("boids", "run", "--resume", "run.h5", "--steps", 37, "--final", "parts.csv")
    assert resumed.code == 0
    assert "may differ" not in resumed.err
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()
