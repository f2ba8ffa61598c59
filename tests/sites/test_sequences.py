"""Steps over sites as data: tasks over named memory, sound for whatever sites and steps."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.joined import joined
from lanewise.launch.slabs import SlabLaunch
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Host, Role, Sequence, Task
from lanewise.patterns.sitewise.steppers import owned_by
from lanewise.runtime.prepared import Prepared
from lanewise.support.errors import VerificationError
from tests.kernels.test_sitewise import FLOW, VALUES
from tests.patterns.tables import on
from tests.sites.fields import ATTRACTION, density, two_phases
from tests.sites.test_couple import dye, wet
from tests.sites.test_fields import DEVICES
from tests.sites.test_fields_and_tables import RATES, mixed
from tests.sites.test_fields_and_tables import SHAPE as TABLED
from tests.sites.test_fractions import EAST

SHAPE = (6, 7)
MASKS = {
    "fluid": None,
    "walls": np.where(np.indices(SHAPE).sum(0) % 5 == 2, 2, 0),
    "kinds": np.resize([0, 0, 1, 0, 2, 0, 0, 1, 0], SHAPE),
}
EDGES: dict[str, dict[str, Any]] = {
    "periodic": {},
    "lid": {"y": ("wall", "lid")},
    "slip": {"x": "slip", "y": "slip"},
    "outflow": {"x": ("slip", "outflow"), "y": "wall"},
    "outflows": {"x": ("outflow", "outflow"), "y": ("slip", "outflow")},
}
FORMS = ("pull", "push", "in-place")


def shown(sequence: Sequence) -> list[tuple[str, dict[str, str]]]:
    """For people: of every task its name, and "r", "w" or "rw" for each buffer."""
    how = {(True, False): "r", (False, True): "w", (True, True): "rw"}
    return [(t.name, {a.buffer: how[a.reads, a.writes] for a in t.accesses}) for t in sequence.tasks]


def check(stepper: Any, sites: Any, *, form: str) -> None:
    """Steps from the first one on, alone and several at once."""
    for begin, steps in product((0, 1, 2), (1, 2, 3)):
        sites.step, sites.fresh = begin, begin == 0
        sequence = verify(stepper.sequence(steps))
        first = f"populations, copy {begin % len(sites.copies)}"
        assert sequence.buffers[first].role is Role.ARGUMENT
        assert {b.name for b in sequence.buffers.values() if b.role is Role.RESULT} == (
            set() if form == "in-place" or steps % 2 == 0 else {f"populations, copy {(begin + 1) % 2}"}
        )
        # one step of two copies leaves what it began with
        assert (first in sequence.changed) == (form == "in-place" or steps > 1)


@pytest.mark.grid(every=12)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("form", FORMS)
def test_steps_of_all_sites_are_sound(form: str, edges: str, mask: str, device: str) -> None:
    sites = FLOW.sites(SHAPE, mask=MASKS[mask], edges=EDGES[edges], streaming=form, device=device)
    values = VALUES | ({"outflow_speed": 0.1} if "outflow" in edges else {})
    check(FLOW.stepper(sites, **values), sites, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_walls_that_are_interpolated(form: str) -> None:
    links = np.full((1, 9), np.nan)
    links[0, EAST] = 0.3
    mask = np.zeros(SHAPE, int)
    mask[2, 3] = 2
    sites = FLOW.sites(
        SHAPE, mask=mask, streaming=form, device="cpu", fractions=lw.WallFractions(np.array([2 * 7 + 4]), links)
    )
    stepper = FLOW.stepper(sites, **VALUES)
    check(stepper, sites, form=form)
    assert "interpolated_walls" in [t.name for t in stepper.sequence().tasks]


@pytest.mark.parametrize("form", FORMS)
def test_fields_that_observers_write(form: str) -> None:
    sites = two_phases.sites((4, 8), streaming=form, device="cpu")
    stepper = two_phases.stepper(sites, attraction=ATTRACTION)
    check(stepper, sites, form=form)
    sequence = stepper.sequence()
    assert sequence.buffers["result of potential"].role is Role.TEMPORARY
    assert shown(sequence)[0][1]["result of potential"] == "w"


def test_stencils() -> None:
    cloth = wet.sites((4, 8), t=1.0, device="cpu")
    check(wet.stepper(cloth, rho=np.ones((4, 8))), cloth, form="two-copies")


def coupled(form: str = "pull") -> Any:
    fluid = two_phases.sites((4, 8), streaming=form, device="cpu")
    spot = dye.sites((4, 8), streaming=form, device="cpu")
    cloth = wet.sites((4, 8), t=1.0, device="cpu")
    seen = density.of(fluid)
    return lw.couple(
        two_phases.stepper(fluid, attraction=ATTRACTION), dye.stepper(spot, rho=seen), wet.stepper(cloth, rho=seen)
    )


@pytest.mark.parametrize("form", FORMS)
def test_couplings_observe_once_and_then_step(form: str) -> None:
    both = coupled(form)
    for steps in (1, 2, 3):
        sequence = verify(both.sequence(steps))
        names = [t.name.partition("_")[0] for t in sequence.tasks]
        looks = [n for n, name in enumerate(names) if name in ("potential", "density")]
        updates = [n for n, name in enumerate(names) if name in ("two", "dye", "wet")]
        # all looks of a step come before all of its updates
        turns = [n for n in updates if n - 1 in looks]
        assert len(turns) == steps
        assert looks[0] == 0
        assert sequence.buffers["result of density"].role is Role.TEMPORARY
    # both others read what was seen of the fluid before its step
    readers = [n for n, uses in shown(both.sequence()) if uses.get("result of density") == "r"]
    assert {n.partition("_")[0] for n in readers} == {"dye", "wet"}


def test_a_loop_explains_all_that_its_step_launches() -> None:
    both, counted = coupled(), []
    found = lw.steps([both, lambda: counted.append(1)]).explain()
    assert [row.name for row in found.launches] == [t.name for t in both.sequence().tasks]
    assert all(row.grid.endswith(" turns") and row.nbytes for row in found.launches)
    assert "% of the step" in str(found)
    assert json.loads(json.dumps(found.json()))["launches"][0]["nbytes"] == found.launches[0].nbytes
    # nine populations and a number for each of 32 sites
    assert found.launches[0].nbytes == 32 * 10 * 4
    assert not counted


# ---------------------------------------------------------------- refused


def refused(sequence: Sequence, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        verify(sequence)


def without(sequence: Sequence, name: str) -> Sequence:
    return replace(sequence, tasks=tuple(t for t in sequence.tasks if not t.name.startswith(name)))


def last(sequence: Sequence, name: str) -> Sequence:
    def behind(task: Task) -> bool:
        return task.name.startswith(name)

    return replace(sequence, tasks=tuple(sorted(sequence.tasks, key=behind)))


def test_a_look_that_is_forgotten_or_late() -> None:
    sequence = verify(coupled().sequence())
    refused(without(sequence, "density"), "reads 'result of density', which nothing has written before")
    refused(last(sequence, "density"), "reads 'result of density', which nothing has written before")
    refused(without(without(sequence, "dye"), "wet"), "density writes 'result of density', which nothing reads")


def test_a_step_that_is_forgotten() -> None:
    sites = FLOW.sites(SHAPE, streaming="pull", device="cpu")
    refused(
        without(FLOW.stepper(sites, **VALUES).sequence(), "flow"), "nothing writes the result 'populations, copy 1'"
    )


def test_a_correction_of_what_was_not_written_yet() -> None:
    sites = FLOW.sites(SHAPE, edges=EDGES["outflow"], streaming="pull", device="cpu")
    sequence = verify(FLOW.stepper(sites, outflow_speed=0.1, **VALUES).sequence())
    assert sequence.tasks[-1].name == "outflow"
    refused(last(sequence, "flow"), "outflow reads 'populations, copy 1', which nothing has written before")


def test_a_kernel_that_writes_where_it_reads() -> None:
    """Bound to one copy in place of two, a step would lose populations."""
    sites = FLOW.sites(SHAPE, streaming="pull", device="cpu")
    stepper = FLOW.stepper(sites, **VALUES)
    sites.copies[1] = sites.copies[0]
    refused(stepper.sequence(), "flow reads 'populations, copy 0', which nothing has written before")


def test_memory_that_nobody_said_is_written() -> None:
    """Two lattices by one kernel: what an observer of the other one writes is no argument of this step."""
    fluid = two_phases.sites((4, 8), streaming="pull", device="cpu")
    two_phases.stepper(fluid, attraction=ATTRACTION)
    foreign = dye.stepper(dye.sites((4, 8), device="cpu"), rho=density.of(fluid))
    with pytest.raises(lw.ArgumentError, match="density is observed of other sites"):
        foreign.sequence()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_indices_into_tables_are_tested_before_a_step_changes_anything(form: str, device: str) -> None:
    """The tests are tasks of the list: their memory is counted, and their gates come before all that writes."""
    bring, _ = on(device)
    sites = mixed.sites(TABLED, streaming=form, device=device)
    given = {"pull": 0.5, "rates": bring(RATES), "classes": bring(np.zeros((4, 4), np.float32))}
    values = mixed.kinds.values(sites, given)
    tests = mixed.kernels.step_tests(sites, values, mixed.kinds.updates(sites))
    kinds = [[*dict.fromkeys(type(t).__name__ for t in call.tasks.sequence.tasks)] for call in tests]
    assert kinds == [["Primitive", "Launch", "Host"], ["Launch"], ["Primitive", "Launch", "Host"]]
    assert [call.tasks.memory(call.environment) for call in tests] == [8 * sites.count, 0, 8 * sites.count]
    update = mixed.compile(sites, **given)
    sequence = verify(joined("a tested step", [call.bound for call in (*tests, update)], owned_by(sites, 1)))
    assert [t.name for t in sequence.tasks if isinstance(t, Host)] == ["test of indices"] * 2


def test_slabs_of_sites_are_a_launch_of_the_list() -> None:
    """The kernels of all sites and of those at walls run slab by slab; a kernel without sites does not take part."""
    few = np.zeros((20, 30), int)
    few[5, 5] = 2
    for mask, kernels in ((MASKS["walls"], 1), (few, 2)):
        sites = FLOW.sites(few.shape if mask is few else SHAPE, mask=mask, device="cpu")
        call = FLOW.compile(sites, plan=lw.Plan(branches="apart"), **VALUES)
        assert isinstance(call.launch, Prepared)
        (piece,) = call.launch.pieces
        assert isinstance(piece.run, SlabLaunch)
        assert len(call.tasks.sequence.launches) > 1
        assert len(piece.run.kernels) == kernels
