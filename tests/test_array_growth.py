"""Arrays that grow and shrink, beside structured arrays of NumPy; and what was bound or taken before."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lanewise as lw
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.sims import gravity
from lanewise.support.errors import ArgumentError, InputError
from tests.runtime.stepper import make_stepper
from tests.test_array_views import LAYOUTS, Grain, assert_equal, attract, grains, host, near, push, pushed

FIELDS = ("position", "mass", "serial", "alive")
KIND = np.dtype([("position", "f4", 3), ("mass", "f4"), ("serial", "i8"), ("alive", "?")])


def made(n: int, first: int) -> np.ndarray:
    rows = np.zeros(n, KIND)
    rows["serial"] = np.arange(first, first + n)
    rows["mass"] = rows["serial"] % 7
    rows["position"] = rows["serial"][:, None] % [2, 3, 5]
    rows["alive"] = rows["serial"] % 2 == 0
    return rows


def array_of(rows: np.ndarray, layout: lw.Layout, device: str) -> RecordArray:
    array = Grain.zeros(len(rows), layout=layout, device=device)
    for name in FIELDS:
        setattr(array, name, rows[name])
    return array


class Growing(RuleBasedStateMachine):
    """An array of records and a structured array, changed alike."""

    device = "cpu"

    @initialize(layout=st.sampled_from(LAYOUTS), n=st.integers(0, 9))
    def begin(self, layout: lw.Layout, n: int) -> None:
        self.layout, self.next = layout, n
        self.rows = made(n, 0)
        self.array = array_of(self.rows, layout, self.device)

    @rule(n=st.integers(0, 12))
    def append(self, n: int) -> None:
        rows = made(n, self.next)
        self.next += n
        self.array.append(array_of(rows, self.layout, self.device))
        self.rows = np.concatenate([self.rows, rows])

    @rule()
    def append_one(self) -> None:
        row = made(1, self.next)[0]
        self.next += 1
        self.array.append(Grain(**{n: row[n] for n in FIELDS}))
        self.rows = np.append(self.rows, row)

    @rule(step=st.integers(1, 3))
    def append_a_part_of_itself(self, step: int) -> None:
        if len(self.rows) < 60:
            self.array.append(self.array[::step])
            self.rows = np.concatenate([self.rows, self.rows[::step]])

    @rule(data=st.data())
    def compact(self, data: Any) -> None:
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(self.rows), max_size=len(self.rows))), bool)
        capacity = self.array.capacity
        assert self.array.compact(mask) == mask.sum()
        assert self.array.capacity == capacity
        self.rows = self.rows[mask]

    @rule(start=st.integers(-12, 12), stop=st.integers(-12, 30), step=st.integers(1, 4))
    def assign_a_slice(self, start: int, stop: int, step: int) -> None:
        part = slice(start, stop, step)
        n = len(self.rows[part])
        self.rows[part] = made(n, self.next)
        self.array[part] = array_of(made(n, self.next), self.layout, self.device)
        self.next += n

    @rule(start=st.integers(0, 12), stop=st.integers(0, 30), step=st.integers(1, 4))
    def write_through_a_view(self, start: int, stop: int, step: int) -> None:
        view = self.array[start:stop:step]
        view.mass = self.rows["mass"][start:stop:step] + 1
        self.rows["mass"][start:stop:step] += 1
        if len(view):
            view[-1].position = (7, 8, 9)
            self.rows["position"][start:stop:step][-1] = (7, 8, 9)

    @rule(data=st.data())
    def take_and_put(self, data: Any) -> None:
        if len(self.rows):
            places = data.draw(st.lists(st.integers(0, len(self.rows) - 1), max_size=6, unique=True))
            self.array[places] = self.array[places[::-1]]
            self.rows[places] = self.rows[places[::-1]]

    @rule(more=st.integers(0, 20))
    def reserve(self, more: int) -> None:
        self.array.reserve(len(self.rows) + more)
        assert self.array.capacity >= len(self.rows) + more

    @rule(start=st.sampled_from([0, 8, 16]))
    def run_a_kernel(self, start: int) -> None:
        push(self.array[start:], 1.0)
        self.rows["position"][start:] += self.rows["mass"][start:, None] * np.float32([1, 2, 3])
        self.rows["serial"][start:] += 1

    @rule()
    def join(self) -> None:
        if len(self.rows) < 60:
            joined = lw.concatenate([self.array, self.array[:2], self.array[1::2]])
            wanted = np.concatenate([self.rows, self.rows[:2], self.rows[1::2]])
            assert_equal(joined, {n: wanted[n] for n in FIELDS})

    @rule()
    def move(self) -> None:
        self.array = self.array.copy() if self.next % 2 else pickle.loads(pickle.dumps(self.array))

    @invariant()
    def holds_the_same(self) -> None:
        if hasattr(self, "array"):
            assert len(self.array) == len(self.rows) <= self.array.capacity
            assert_equal(self.array, {n: self.rows[n] for n in FIELDS})


class TestGrowing(Growing.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


@pytest.mark.cuda
def test_growing_on_a_gpu() -> None:
    rng = np.random.default_rng(1)
    for layout in LAYOUTS:
        machine = Growing()
        machine.device = "cuda"
        machine.begin(layout, 5)
        for _ in range(12):
            machine.append(int(rng.integers(0, 9)))
            machine.append_one()
            machine.append_a_part_of_itself(2)
            mask = rng.random(len(machine.rows)) < 0.7
            assert machine.array.compact(mask) == mask.sum()
            machine.rows = machine.rows[mask]
            machine.assign_a_slice(1, 9, 2)
            machine.write_through_a_view(2, 11, 3)
            machine.run_a_kernel(8)
            machine.join()
            machine.holds_the_same()


def test_growth_is_amortised() -> None:
    array, moves = Grain.zeros(0), 0
    for i in range(2000):
        before = array.data
        array.append(Grain(serial=i))
        moves += array.data is not before
    assert array.serial.tolist() == list(range(2000))
    assert moves < 25
    assert array.capacity < 1.6 * 2000
    array.reserve(5000)
    data = array.data
    array.append(array[:3000])
    assert array.data is data


CHANGES = {
    "append": lambda a: a.append(Grain(mass=1)),
    "append within": lambda a: (a.reserve(1000), a.append(Grain(mass=1))),
    "compact": lambda a: a.compact(np.arange(len(a)) > 2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_bound_calls_notice(change: str, device: str) -> None:
    array = grains(lw.SoA(), device)
    calls = [push.bind(array, 1.0), attract.bind(array, array), near.bind(array, array)]
    for call in calls:
        call()
    CHANGES[change](array)
    for call in calls:
        with pytest.raises(ArgumentError) as error:
            call()
        assert str(error.value) == (
            f"an array of Grain had 37 records when a call was bound to it, and was changed in length since (now {len(array)}); bind the "
            "call again"
        )
    push.bind(array, 1.0)()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(4)], ids=str)
def test_repeated_calls_notice(change: str, device: str, layout: lw.Layout) -> None:
    array = grains(layout, device)
    for _ in range(3):
        before = array.numpy()
        push(array, 1.0)
        after = pushed(before, slice(None))
        assert_equal(array, after)
        apart = after["position"][None] - after["position"][:, None]
        np.testing.assert_array_equal(host(attract(array, array)), (after["mass"] * (apart**2).sum(-1)).sum(1))
        wanted = (((apart**2).sum(-1) <= 2.5**2) * after["mass"]).sum(1)
        for _ in range(2):
            np.testing.assert_array_equal(host(near(array, array)), wanted)
        CHANGES[change](array)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_steppers_notice(device: str) -> None:
    """A graph on a GPU calls no Python of the launches that it holds: its stepper asks them."""
    array = grains(lw.SoA(), device)
    call = push.bind(array, 1.0)
    stepper = make_stepper(device, [call.launch])
    before = array.numpy()
    stepper.run(40)
    np.testing.assert_array_equal(array.numpy()["serial"], before["serial"] + 40)
    array.append(Grain())
    with pytest.raises(ArgumentError, match="bind the call again"):
        stepper.run(40)


def test_nothing_holds_the_memory_of_before() -> None:
    """A search that is remembered lets go of it at the next call."""
    array = grains(lw.SoA(), "cpu", 300)
    near(array, array)
    near(array, array)
    before = weakref.ref(places_of(array))
    array.append(Grain())
    near(array, array)
    gc.collect()
    assert before() is None


def test_records_of_lists_keep_their_number() -> None:
    lists = lw.ragged(grains(lw.SoA(), "cpu"), counts=[30, 7])
    with pytest.raises(ArgumentError) as error:
        lists.data.append(Grain())
    assert str(error.value) == (
        "append changes the length of an array of Grain, and those of a ragged array are as many as its lists have"
    )


def test_views_and_rows_of_before_say_so() -> None:
    array = grains(lw.SoA(), "cpu")
    view, part, row = array[3:9], array[3:9][::2], array[4]
    array.append(Grain())
    for use in (
        lambda: view.mass,
        lambda: setattr(part, "mass", 1),
        lambda: push(view, 1.0),
        lambda: view.copy(),
        lambda: view[0],
    ):
        with pytest.raises(ArgumentError) as error:
            use()
        assert str(error.value) == (
            "this view was taken when its array of Grain had 37 records, and the array was changed in length since; take the view again"
        )
    for use in (lambda: row.mass, lambda: setattr(row, "mass", 1), lambda: row.copy()):
        with pytest.raises(
            ArgumentError, match=r"this row of Grain was taken when its array had 37 records.*take it again: \[4\]"
        ):
            use()
    assert (len(view), array[4].serial) == (6, 4)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_simulation_notices(device: str) -> None:
    bodies = gravity.Body.array(position=np.eye(3), mass=np.ones(3), device=device)
    simulation = gravity.Simulation(bodies, softening=0.1)
    simulation.run(2, dt=0.01)
    bodies.append(bodies[0])
    with pytest.raises(
        InputError,
        match=r"the bodies were 3 when the simulation was made, and are 4 now; make a new Simulation of them",
    ):
        simulation.run(1, dt=0.01)
    again = gravity.Simulation(bodies[:3], softening=0.1)
    again.run(2, dt=0.01)


def test_a_loop_notices_a_change_in_length() -> None:
    for change in (lambda a: a.append(a[:1]), lambda a: a.compact(a.serial < 1)):
        array = array_of(made(3, 0), lw.SoA(), "cpu")
        rows = iter(array)
        next(rows)
        change(array)
        with pytest.raises(ArgumentError) as error:
            next(rows)
        assert str(error.value) == (
            "an array of Grain was changed in length while a loop ran over its 3 rows; loop over a .copy() of it, or change it after the loop"
        )
    array = array_of(made(3, 0), lw.SoA(), "cpu")
    assert [int(row.serial) for row in array] == [0, 1, 2]


def test_a_record_of_the_same_name_is_told_by_its_fields() -> None:
    other = lw.record(type("Grain", (), {"__annotations__": {"mass": lw.f32}}))
    array = array_of(made(3, 0), lw.SoA(), "cpu")
    with pytest.raises(ArgumentError) as error:
        array.append(other(mass=1))
    assert str(error.value) == f"append takes records of {array.record}, found one of Grain(mass: f32) at place 0"


def test_fields_are_not_deleted() -> None:
    array = array_of(made(3, 0), lw.SoA(), "cpu")
    with pytest.raises(AttributeError, match="every Grain has the field 'mass', which cannot be deleted"):
        del array.mass
    with pytest.raises(AttributeError, match="Grain has no field 'weight'"):
        del array.weight


@pytest.mark.parametrize("copy", [None, "no", 0, 1])
def test_copy_is_true_or_false(copy: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"Grain.array: copy is .*; wanted True, or False for an array in the memory"
    ):
        Grain.array(made(3, 0), copy=copy)
