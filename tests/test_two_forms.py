"""A value of the host and what kernels take in its place: each is made when it is requested and the other one has changed, and at no other time."""

from __future__ import annotations

import gc
import weakref
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


class Forms(RuleBasedStateMachine):
    """Any order of changes and looks: both forms say the same, and no function is called in vain."""

    def __init__(self) -> None:
        super().__init__()
        self.forms = nested()
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


TestForms = Forms.TestCase
TestForms.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    forms = nested("cuda")
    fatten(forms.device.data, 1.0)
    assert forms.host == [[2.0, 3.0], [], [4.0]]
    assert total(forms.device).get().tolist() == [5.0, 0.0, 4.0]
    assert forms.conversions == {"to device": 1, "to host": 1}
