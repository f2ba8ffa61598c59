"""Record classes: their fields, their values, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.support.articles import an
from tests.corpus_kernels import Body, Mixed


class Held(lw.Record):
    serial: lw.i64
    kind: lw.i32
    mass: lw.f32
    at: lw.vec2
    alive: lw.bool


def test_fields_and_leaves() -> None:
    assert str(Body.__record__) == "Body(position: vec3, mass: f32, velocity: vec3)"
    leaves = [(leaf.name, str(leaf.type), leaf.field) for leaf in Mixed.__record__.leaves]
    assert leaves[0] == ("alive", "bool", "alive")
    assert leaves[4:7] == [("cell.x", "i32", "cell"), ("cell.y", "i32", "cell"), ("cell.z", "i32", "cell")]


def test_values() -> None:
    body = Body(mass=2, position=(1, 2, 3))
    assert isinstance(body.mass, np.float32)
    assert tuple(body.position) == (1, 2, 3)
    assert tuple(body.velocity) == (0, 0, 0)
    body.velocity += lw.vec3(1, 0, 0)
    assert body.velocity.x == 1
    with pytest.raises(AttributeError, match="Body has no field 'speed'; its fields are position, mass, velocity"):
        Body(speed=1)
    with pytest.raises(lw.ArgumentError, match=r"Body.position is a vec3, found"):
        body.position = (1, 2)


@given(values=st.lists(st.one_of(st.floats(), st.integers(), st.just(np.zeros((3, 3)))), min_size=1, max_size=4))
def test_values_without_names_are_refused(values: list[Any]) -> None:
    fields = r"position=\.\.\., mass=\.\.\., velocity=\.\.\."
    many = f"{len(values)} value{'s' * (len(values) > 1)} without a name"
    with pytest.raises(
        lw.ArgumentError, match=rf"^Body takes fields by their names, {fields}; found {many}$"
    ) as caught:
        Body(*values)  # type: ignore[misc]
    assert isinstance(caught.value, TypeError)
    if len(values) > 1:  # one is a table
        with pytest.raises(
            lw.ArgumentError, match=rf"^Body\.array takes fields by their names, {fields}; found {many}$"
        ):
            Body.array(*values)  # type: ignore[misc]


def no_fields() -> object:
    class Empty:
        pass

    return lw.record(Empty)


def python_float() -> object:
    class Bad:
        mass: float

    return lw.record(Bad)


def unknown_annotation() -> object:
    class Bad:
        mass: lw.vec9  # type: ignore[name-defined]

    return lw.record(Bad)


def default() -> object:
    class Bad:
        mass: lw.f32 = 1.0

    return lw.record(Bad)


def method() -> object:
    class Bad:
        mass: lw.f32

        def weight(self) -> float:
            return 1.0

    return lw.record(Bad)


def inherits() -> object:
    class Base:
        pass

    class Bad(Base):
        mass: lw.f32

    return lw.record(Bad)


def reserved() -> object:
    class Bad:
        layout: lw.f32

    return lw.record(Bad)


def underscore() -> object:
    class Bad:
        _mass: lw.f32

    return lw.record(Bad)


@pytest.mark.parametrize(("make", "text"), [
    (no_fields, "Empty has no fields; write them as annotations, for example `mass: lw.f32`"),
    (python_float, "Bad.mass is annotated with <class 'float'>; a record holds lanewise types"),
    (python_float, "i8 or i16, or another record; write lw.f32 or lw.f64"),
    (unknown_annotation, "an annotation of Bad cannot be evaluated"),
    (default, "Bad.mass = 1.0: fields have no default values"),
    (method, "Bad.weight: a record holds fields only"),
    (inherits, "Bad inherits from Base; a record names all of its fields itself"),
    (reserved, "Bad.layout: arrays of records use the name 'layout' themselves"),
    (underscore, "Bad._mass: the name of a field cannot start with an underscore"),
    (lambda: lw.record(3), "@lw.record stands above a class, found 3"),  # type: ignore[arg-type]
])  # fmt: skip
def test_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(lw.RecordError, match=text):
        make()


@pytest.mark.parametrize(
    ("field", "value", "held"),
    [
        ("serial", 2.5, "i64, which cannot hold 2.5"),
        ("serial", float("nan"), "i64, which cannot hold nan"),
        ("serial", 2**63, "i64, which cannot hold 9223372036854775808"),
        ("kind", 2**31, "i32, which cannot hold 2147483648"),
        ("mass", 1e300, "f32, which cannot hold 1e+300"),
        ("mass", None, "f32, which cannot hold None"),
        ("at", (1, 1e300), "vec2, which cannot hold (1, 1e+300)"),
        ("at", 1e300, "vec2, which cannot hold 1e+300"),
        ("alive", 2, "bool, which cannot hold 2"),
    ],
)
def test_a_record_refuses_what_its_fields_cannot_hold(field: str, value: object, held: str) -> None:
    given: dict[str, object] = {field: value}
    for act in (lambda: Held(**given), lambda: setattr(Held(), field, value)):
        with pytest.raises(lw.ArgumentError) as error:
            act()
        assert str(error.value) == f"Held.{field} is {an(held)}; convert it first"


def test_a_record_holds_what_does_fit() -> None:
    made = Held(serial=2.0, kind=np.int64(-3), mass=float("inf"), at=np.array([0.1, np.nan]), alive=1)
    assert (made.serial, made.kind, made.mass, made.alive) == (2, -3, np.inf, True)
    assert made.at.x == np.float32(0.1)
    assert np.isnan(made.at.y)
