"""A value of the host and what kernels take in its place: each is made when it is requested and the other one has changed, and at no other time."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import lanewise as lw


class Grain(lw.Record):
    mass: lw.f32
    speed: lw.f32


@lw.elementwise
def fatten(grain: Grain, more: lw.f32):
    grain.mass += more


@lw.elementwise
def weight(grain: Grain) -> lw.f32:
    return 2 * grain.mass


@lw.segmentwise
def total(grain: Grain) -> lw.f32:
    return grain.mass


Rows = list[list[float]]


def nested(device: str = "cpu", **more: Any) -> Any:
    """Lists of lists, as the host has them, and a ragged array."""

    def to_device(rows: Rows) -> lw.RaggedArray:
        flat = [x for row in rows for x in row]
        return lw.ragged(Grain.array(mass=flat, device=device, **more), counts=[len(r) for r in rows])

    def to_host(lists: lw.RaggedArray) -> Rows:
        return [[x["mass"] for x in row] for row in lists.tolist()]

    return lw.TwoForms([[1.0, 2.0], [], [3.0]], to_device=to_device, to_host=to_host)


@pytest.mark.parametrize("more", [{}, {"layout": lw.AoS(), "host_layout": lw.SoA()}])
def test_reading_turns_nothing_back(more: Any) -> None:
    forms = nested(**more)
    assert forms.conversions == {"to device": 0, "to host": 0}
    for _ in range(5):
        assert total(forms.device).tolist() == [3.0, 0.0, 3.0]
        assert weight(forms.device.data).tolist() == [2.0, 4.0, 6.0]
    assert forms.host == [[1.0, 2.0], [], [3.0]]
    assert forms.conversions == {"to device": 1, "to host": 0}
    bound = fatten.bind(forms.device.data, 1.0)
    assert forms.host == [[1.0, 2.0], [], [3.0]]
    assert forms.conversions == {"to device": 1, "to host": 0}  # nothing has run yet
    for _ in range(3):
        fatten(forms.device.data, 1.0)
        bound()
    for _ in range(3):
        assert forms.host == [[7.0, 8.0], [], [9.0]]
        assert total(forms.device).tolist() == [15.0, 0.0, 9.0]
    assert forms.conversions == {"to device": 1, "to host": 1}


@pytest.mark.parametrize("more", [{}, {"layout": lw.AoS(), "host_layout": lw.SoA()}])
def test_whatever_changes_the_device_form_is_noticed(more: Any) -> None:
    def assigned(d: Any) -> None:
        d.data.mass = np.full(3, 5.0)

    def row(d: Any) -> None:
        d.data[1].mass = 5.0

    def some(d: Any) -> None:
        d.data[1:2] = d.data[:1].copy()

    def lent(d: Any) -> None:
        d.data.mass[1] = 5.0

    def grown(d: Any) -> None:
        d.append([Grain.array(mass=[5.0])])

    def empty(d: Any) -> None:
        d.append(Grain.array(mass=[]), counts=[0])

    def on_the_host_side(d: Any) -> None:
        d.host.data.mass = np.full(3, 5.0)

    for change in (assigned, row, some, lent, grown, empty, on_the_host_side):
        forms = nested(**more)
        change(forms.device)
        gc.collect()
        assert forms.host == [[x["mass"] for x in row] for row in forms.device.tolist()]
        assert forms.conversions == {"to device": 1, "to host": 1}, change
        assert forms.host != [[1.0, 2.0], [], [3.0]]


def test_as_long_as_memory_is_lent_every_look_may_be_another() -> None:
    forms = nested()
    held = forms.device.data.mass
    for n in range(3):
        held[0] = 10.0 + n
        assert forms.host[0] == [10.0 + n, 2.0]
    del held
    gc.collect()
    for _ in range(3):
        assert forms.host[0] == [12.0, 2.0]
    assert forms.conversions["to host"] == 4  # once more after the loan has ended


def test_the_host_form_is_assigned_or_changed_in_place() -> None:
    forms = nested()
    assert total(forms.device).tolist() == [3.0, 0.0, 3.0]
    before = forms.device
    forms.host = [[4.0]]
    assert forms.device is not before
    assert forms.device is forms.device
    assert total(forms.device).tolist() == [4.0]
    with forms.changing() as rows:
        rows.append([8.0, 8.0])
    fatten(before.data, 1.0)  # nobody's form any more
    assert total(forms.device).tolist() == [4.0, 16.0]
    assert forms.conversions == {"to device": 3, "to host": 0}


def test_memory_is_free_when_nobody_has_the_forms() -> None:
    forms = nested()
    seen = weakref.ref(forms.device)
    gc.disable()
    try:
        del forms
        assert seen() is None
    finally:
        gc.enable()


def test_a_function_that_fails_changes_nothing() -> None:
    good: list[bool] = []

    def to_device(value: float) -> Any:
        if not good:
            raise OSError("no such thing")
        return {"one": Grain.array(mass=[value]), "several": [Grain.array(mass=[2.0])]}

    forms = lw.TwoForms(1.0, to_device=to_device, to_host=lambda d: float(d["one"].mass[0] + d["several"][0].mass[0]))
    with pytest.raises(OSError, match="no such thing"):
        _ = forms.device
    good.append(True)
    fatten(forms.device["several"][0], 1.0)
    assert forms.host == 4.0
    assert forms.conversions == {"to device": 1, "to host": 1}


@pytest.mark.parametrize(
    ("to_device", "text"),
    [
        (
            lambda v: np.ones(3),
            "TwoForms: to_device returns arrays of records, ragged arrays, or tuples, lists or dicts of them",
        ),
        (lambda v: [], "TwoForms: to_device returns arrays of records"),
        (3, "TwoForms(to_device=) is a function of one form that returns the other, found 3"),
    ],
)
def test_mistakes_are_explained(to_device: Any, text: str) -> None:
    with pytest.raises(lw.ArgumentError) as error:
        _ = lw.TwoForms(1.0, to_device=to_device, to_host=lambda d: 1.0).device
    assert text in str(error.value)


def test_an_array_is_the_form_of_one_value() -> None:
    kept = Grain.array(mass=[1.0])
    first = lw.TwoForms(1.0, to_device=lambda v: kept, to_host=lambda d: 1.0)
    second = lw.TwoForms(1.0, to_device=lambda v: kept, to_host=lambda d: 1.0)
    assert first.device is kept
    with pytest.raises(lw.ArgumentError, match="an array that another TwoForms has"):
        _ = second.device
    first.host = 2.0
    assert second.device is kept


TWO_SIDES = {"layout": lw.AoS(), "host_layout": lw.SoA()}


def flat(two_sides: bool, touched: bool = False) -> Any:
    """touched: there is a host's side before anybody follows the array."""

    def to_device(values: list[float]) -> Any:
        made = Grain.array(mass=values, **(TWO_SIDES if two_sides else {}))
        if touched:
            assert made.host.mass.tolist() == values
        return made

    return lw.TwoForms([1.0, 2.0], to_device=to_device, to_host=lambda d: d.mass.tolist())


def test_changes_stay_where_the_host_form_cannot_be_made() -> None:
    fails = [True]

    def to_host(array: Any) -> list[float]:
        if fails[0]:
            raise OSError("no room")
        return array.mass.tolist()

    forms = lw.TwoForms([1.0, 2.0], to_device=lambda v: Grain.array(mass=v), to_host=to_host)
    fatten(forms.device, 10.0)
    with pytest.raises(OSError, match="no room"), forms.changing() as values:
        values.append(3.0)
    fails[0] = False
    assert forms.host == [11.0, 12.0]
    assert weight(forms.device).tolist() == [22.0, 24.0]


@pytest.mark.parametrize("touched", [False, True], ids=["", "touched"])
def test_changes_of_either_side_are_noticed(touched: bool) -> None:
    forms = flat(True, touched)
    forms.device.host.mass = np.array([7.0, 8.0], np.float32)
    assert forms.host == [7.0, 8.0]
    forms.device.mass = np.array([5.0, 6.0], np.float32)
    assert forms.host == [5.0, 6.0]
    assert forms.device.host.mass.tolist() == [5.0, 6.0]
    fatten(forms.device.host, 1.0)
    assert forms.host == [6.0, 7.0]


@pytest.mark.parametrize("touched", [False, True], ids=["", "touched"])
@pytest.mark.parametrize("side", ["device", "host"])
def test_neither_side_of_an_old_array_is_followed(touched: bool, side: str) -> None:
    forms = flat(True, touched)
    sides = {"device": forms.device, "host": forms.device.host}
    forms.host = [40.0, 41.0]
    sides[side].mass = np.array([9.0, 9.0], np.float32)
    assert forms.host == [40.0, 41.0]
    assert forms.device.mass.tolist() == [40.0, 41.0]
    other = lw.TwoForms(0.0, to_device=lambda v: sides[side], to_host=lambda d: float(d.mass[0]))
    sides = {"host": sides["device"].host, "device": sides["device"]}
    other.device.mass = np.array([3.0, 3.0], np.float32)
    assert other.host == 3.0


def test_neither_side_of_an_old_ragged_array_is_followed() -> None:
    forms = nested(**TWO_SIDES)
    kept = forms.device.host
    forms.host = [[40.0]]
    kept.data.mass = np.full(3, 9.0)
    assert forms.host == [[40.0]]


@pytest.mark.parametrize("followed", ["device", "host"])
def test_of_sides_that_parted_the_one_that_is_the_form_is_followed(followed: str) -> None:
    made = Grain.array(mass=[1.0, 2.0], **TWO_SIDES)
    sides = {"device": made, "host": made.host}
    form, other = sides[followed], sides["host" if followed == "device" else "device"]
    forms = lw.TwoForms(0.0, to_device=lambda v: form, to_host=lambda d: d.mass.tolist())
    assert forms.device is form
    part = form[:1]
    with pytest.raises(lw.ArgumentError, match="an array that another TwoForms has"):
        _ = lw.TwoForms(0.0, to_device=lambda v: other, to_host=lambda d: 0.0).device
    del made.host
    other.mass = np.array([9.0, 9.0], np.float32)
    assert forms.host == 0.0
    part.mass = np.array([3.0], np.float32)
    assert forms.host == [3.0, 2.0]
    forms.host = 5.0
    for side in (form, other):
        side.mass = np.array([9.0, 9.0], np.float32)
    assert forms.host == 5.0


def test_who_held_memory_before_may_change_it() -> None:
    held: list[Any] = []

    def to_device(values: list[float]) -> Any:
        made = Grain.array(mass=values)
        held.append(made.mass)
        return made

    forms = lw.TwoForms([1.0, 2.0], to_device=to_device, to_host=lambda d: d.mass.tolist())
    assert weight(forms.device).tolist() == [2.0, 4.0]
    held[0][0] = 5.0
    assert forms.host == [5.0, 2.0]


class Forms(RuleBasedStateMachine):
    """Any order of changes and looks: both forms say the same, and no function is called in vain."""

    more: Mapping[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.forms, self.old = nested(**self.more), list[Any]()
        self.truth: Rows = [[1.0, 2.0], [], [3.0]]
        self.current, self.calls = [False, True], [0, 0]

    def look(self, form: int) -> Any:
        self.calls[form] += not self.current[form]
        self.current[form] = True
        return self.forms.device if form == 0 else self.forms.host

    @rule()
    def read_on_the_device(self) -> None:
        assert total(self.look(0)).tolist() == [sum(r) for r in self.truth]

    @rule()
    def read_on_the_host(self) -> None:
        assert self.look(1) == self.truth

    @rule(more=st.integers(1, 3))
    def change_on_the_device(self, more: int) -> None:
        fatten(self.look(0).data, float(more))
        self.truth = [[x + more for x in row] for row in self.truth]
        self.current = [True, False]

    @rule(more=st.integers(1, 3))
    def change_on_the_host_side(self, more: int) -> None:
        fatten(self.look(0).host.data, float(more))
        self.truth = [[x + more for x in row] for row in self.truth]
        self.current = [True, False]

    @rule()
    def read_on_the_host_side(self) -> None:
        assert self.look(0).host.tolist() == [[{"mass": x, "speed": 0.0} for x in row] for row in self.truth]

    @rule()
    def let_the_host_side_go(self) -> None:
        side = self.look(0).host
        del self.forms.device.host
        if side is not self.forms.device:  # on the host an array with one side is its own
            self.old.append(side)

    @rule(row=st.lists(st.integers(0, 9).map(float), max_size=3))
    def assign_the_host_form(self, row: list[float]) -> None:
        self.old += [self.look(0), self.forms.device.host]
        self.forms.host = self.truth = [row]
        self.current = [False, True]

    @precondition(lambda self: self.old)
    @rule(which=st.integers(0, 9))
    def change_what_is_no_form_any_more(self, which: int) -> None:
        old = self.old[which % len(self.old)].data
        old.mass = np.full(len(old), 77.0)

    @precondition(lambda self: len(self.truth) < 9)
    @rule(row=st.lists(st.integers(0, 9).map(float), min_size=1, max_size=3))
    def add(self, row: list[float]) -> None:
        self.look(0).append([Grain.array(mass=row)])
        self.truth = [*self.truth, row]
        self.current = [True, False]

    @rule(row=st.lists(st.integers(0, 9).map(float), max_size=3))
    def change_on_the_host(self, row: list[float]) -> None:
        self.look(1)
        with self.forms.changing() as rows:
            rows[0] = row
        self.truth = [row, *self.truth[1:]]
        self.current = [False, True]

    @invariant()
    def no_call_in_vain(self) -> None:
        assert self.forms.conversions == {"to device": self.calls[0], "to host": self.calls[1]}


class FormsOfTwoSides(Forms):
    """The same of arrays whose host's side has memory of its own."""

    more = TWO_SIDES


TestForms, TestFormsOfTwoSides = Forms.TestCase, FormsOfTwoSides.TestCase
TestForms.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
TestFormsOfTwoSides.settings = settings(max_examples=40, stateful_step_count=14, deadline=None)


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    forms = nested("cuda")
    fatten(forms.device.data, 1.0)
    assert forms.host == [[2.0, 3.0], [], [4.0]]
    assert total(forms.device).get().tolist() == [5.0, 0.0, 4.0]
    assert forms.conversions == {"to device": 1, "to host": 1}
