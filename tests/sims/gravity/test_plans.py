"""Checkpoints keep the plans of their simulation, and resumed runs go on with them, whatever was tuned meanwhile."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest

from lanewise.launch import tuned_plans as store
from lanewise.launch.tuned_plans import Entry, write_entry
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.sims.common.plan_text import from_json, to_json
from lanewise.sims.gravity import Simulation, runner
from lanewise.sims.gravity.checkpoint import read_checkpoint
from lanewise.sims.gravity.options import Output
from lanewise.sims.gravity.physics import RECORDS, make_physics
from lanewise.sims.gravity.plans import wanted_potential
from lanewise.sims.gravity.run import GravityRun
from lanewise.support.errors import InputError

COUNT, STEPS, SOFTENING = 300, 8, 0.05
OTHERS: dict[str, Plan] = {  # plans that sum in another order than the default one
    "f32": Plan(targets=2, tile=32, parts=1).filled(NEUTRAL),
    "f64": Plan(targets=4, tile=64, fma=True, parts=1).filled(NEUTRAL),
    "mixed": Plan(targets=2, tile=32, parts=1, accumulate="f64").filled(NEUTRAL),
}


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plan of another test, none for other tests: kernels remember what they looked up."""
    monkeypatch.setattr(store, "store_directory", lambda: tmp_path / "tuned")
    monkeypatch.delenv(store.SWITCH, raising=False)
    make_physics.cache_clear()
    yield
    make_physics.cache_clear()


def started(out: Path | None, steps: int, precision: str = "f32") -> GravityRun:
    run = runner.start(
        bodies=COUNT, steps=steps, dt=0.003, softening=SOFTENING, precision=precision, device="cpu", output=Output(out)
    )
    run.execute()
    return run


def resumed(path: Path, steps: int | None = None, device: str | None = None) -> GravityRun:
    run = runner.resume(path, steps=steps, device=device, output=Output())
    run.execute()
    return run


def tune(simulation: Simulation, kernel: str, plan: Plan) -> None:
    """As if tuning on this machine had found `plan` the fastest for a kernel of such a simulation, in another
    process.
    """
    physics, bodies = simulation._law.physics, simulation.bodies  # pyright: ignore[reportPrivateUsage]
    wanted = {"acceleration": simulation.plan, "potential": wanted_potential()}[kernel]
    job = getattr(physics, kernel).tuning_job(bodies, bodies, plan=wanted, softening2=SOFTENING**2)
    write_entry(job.key, Entry(plan, 1e-6, NEUTRAL, 2e-6, {}))
    make_physics.cache_clear()


def bits(run: GravityRun) -> dict[str, bytes]:
    return {n: a.tobytes() for n, a in run.state.simulation.bodies.numpy().items()}


@pytest.mark.quick("mixed")
@pytest.mark.parametrize("precision", RECORDS)
def test_a_tuning_between_a_run_and_its_resumption_changes_no_bit(tmp_path: Path, precision: str) -> None:
    path = tmp_path / "half.h5"
    whole = started(None, STEPS, precision)
    half = started(path, STEPS // 2, precision)
    tune(half.state.simulation, "acceleration", OTHERS[precision])
    tune(half.state.simulation, "potential", OTHERS["mixed"])

    rest = resumed(path, STEPS - STEPS // 2)
    assert rest.note == ""
    assert rest.state.simulation.plans == half.state.simulation.plans
    assert bits(rest) == bits(whole)
    assert rest.state.history[-1].total.hex() == whole.state.history[-1].total.hex()

    # A new run takes the tuned plan, and that does change the bits: else this test could not fail.
    tuned = started(None, STEPS, precision)
    assert tuned.state.simulation.plans.force == OTHERS[precision]
    assert tuned.state.simulation.plans.potential == OTHERS["mixed"]
    assert bits(tuned) != bits(whole)


def test_a_run_with_a_tuned_plan_goes_on_with_it_when_the_store_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "half.h5"
    tune(started(None, 1).state.simulation, "acceleration", OTHERS["f32"])
    whole, half = started(None, STEPS), started(path, 3)
    for entry in store.store_directory().iterdir():
        entry.unlink()
    make_physics.cache_clear()
    rest = resumed(path, STEPS - 3)
    assert rest.state.simulation.plans.force == half.state.simulation.plans.force == OTHERS["f32"]
    assert bits(rest) == bits(whole)
    assert bits(started(None, STEPS)) != bits(whole)


def test_a_checkpoint_has_every_field_of_both_plans(tmp_path: Path) -> None:
    run = started(tmp_path / "a.h5", 1, "mixed")
    with h5py.File(tmp_path / "a.h5") as file:
        kept = {n: json.loads(file["lanewise"].attrs[f"{n}_plan"]) for n in ("force", "potential")}
    assert kept == {n: getattr(run.state.simulation.plans, n).as_dict() for n in kept}
    assert all(fields.keys() == Plan().as_dict().keys() for fields in kept.values())
    assert None not in kept["force"].values()
    assert read_checkpoint(tmp_path / "a.h5").plans == run.state.simulation.plans


def change(path: Path, **attributes: object) -> None:
    """Set attributes of `/lanewise`, or delete them (None)."""
    with h5py.File(path, "r+") as file:
        for name, value in attributes.items():
            if value is None:
                del file["lanewise"].attrs[name]
            else:
                file["lanewise"].attrs[name] = value


def test_an_old_checkpoint_without_plans_goes_on_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    whole, _ = started(None, STEPS), started(path, 3)
    change(path, force_plan=None, potential_plan=None)
    rest = resumed(path, STEPS - 3)
    assert (
        rest.note
        == f"{path} keeps no plans, as older checkpoints; they are chosen anew, and the last places may differ"
    )
    assert bits(rest) == bits(whole)  # as nothing has changed meanwhile
    assert resumed(path, 1).note == ""  # now it keeps them


def test_on_another_kind_of_device_the_plan_is_chosen_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    started(path, 3)
    there = Plan(targets=8, block=32, unroll=8, fma=True, reciprocity="scratch").filled(NEUTRAL)
    change(path, device="cuda", force_plan=to_json(there))
    rest = resumed(path, 2, device="cpu")
    assert rest.note == f"{path} was computed on cuda; on cpu plans are chosen anew, and the last places differ"
    assert rest.state.simulation.plans.force == Plan(targets=1).filled(NEUTRAL)
    kept = read_checkpoint(path)
    assert (kept.settings.device, kept.plans) == ("cpu", rest.state.simulation.plans)
    assert resumed(path, 1).note == ""


@pytest.mark.parametrize("kernel", ["force", "potential"])
def test_a_plan_that_does_not_work_here_is_refused_with_what_to_do(tmp_path: Path, kernel: str) -> None:
    path = tmp_path / "a.h5"
    started(path, 3)
    change(path, **{f"{kernel}_plan": to_json(Plan(slices=2).filled(NEUTRAL))})
    with pytest.raises(InputError) as error:
        resumed(path, 2)
    assert str(error.value) == (
        f"{path} continues with the plans that it keeps, and one does not work here: Plan(slices=2): only a GPU divides the "
        f"sources of one target; on a CPU slices is 1; start a new run from it with --ic {path}"
    )


DAMAGE: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "it is no JSON"),
    "a list": ("[1]", "wanted the fields of a plan, found '[1]'"),
    "an unknown field": ('{"speed": 2}', "a plan has no field 'speed'"),
    "another type": ('{"targets": "2"}', "its field 'targets' is '2'"),
    "a boolean": ('{"targets": true}', "its field 'targets' is True"),
    "nothing": ('{"targets": null}', "its field 'targets' is None"),
    "a number for a boolean": ('{"fma": 1}', "its field 'fma' is 1"),
    "another word": ('{"reciprocity": "on"}', "its field 'reciprocity' is 'on'"),
    "a list for a word": ('{"reciprocity": ["off"]}', "its field 'reciprocity' is ['off']"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_plan_is_refused(tmp_path: Path, name: str) -> None:
    text, message = DAMAGE[name]
    path = tmp_path / "a.h5"
    started(path, 1)
    change(path, force_plan=text)
    with pytest.raises(InputError) as error:
        read_checkpoint(path)
    assert str(error.value) == f"{path}: damaged checkpoint: force_plan: {message}"


def test_fields_of_later_versions_are_neutral() -> None:
    assert from_json('{"targets": 4}') == Plan(targets=4).filled(NEUTRAL)


@pytest.mark.parametrize("values", [{}, {"vector_bits": 256, "self_term": "drop", "fast_math": True}])
def test_a_plan_survives_json(values: dict[str, Any]) -> None:
    plan = dataclasses.replace(NEUTRAL, **values)
    assert from_json(to_json(plan)) == plan
