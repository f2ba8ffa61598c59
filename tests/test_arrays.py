"""Arrays of records: fields in and out in every layout, and what they refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language import types as t
from lanewise.language.record import Record, RecordValue
from lanewise.records.arrays import RecordArray
from tests.corpus_kernels import Body, Charge, Mixed, kick_drift
from tests.layouts.test_layouts import ALL, RECORDS


def filled(record: Record, count: int, layout: lw.Layout, seed: int = 0) -> tuple[RecordArray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    array = RecordArray.zeros(record, count, layout=layout, device="cpu", python_class=RecordValue)
    fields: dict[str, np.ndarray] = {}
    for f in record:
        shape = (count, f.type.length) if isinstance(f.type, t.Vector) else (count,)
        fields[f.name] = rng.integers(0, 2, shape).astype(t.scalar_of(f.type).dtype)
        setattr(array, f.name, fields[f.name])
    return array, fields


@given(record=RECORDS, layouts=st.tuples(st.sampled_from(ALL), st.sampled_from(ALL)), count=st.integers(1, 40))
def test_round_trip_and_conversion(record: Record, layouts: tuple[lw.Layout, lw.Layout], count: int) -> None:
    array, fields = filled(record, count, layouts[0])
    for a in (array, array.with_layout(layouts[1]), array.copy(), array.to("python"), copy.deepcopy(array)):
        for name, values in a.numpy().items():
            np.testing.assert_array_equal(values, fields[name])
            assert values.dtype == fields[name].dtype


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_views_write_through(layout: lw.Layout) -> None:
    bodies = Body.array(mass=np.arange(5.0), position=np.ones((5, 3)), layout=layout)
    if bodies.mass.flags.writeable:
        bodies.mass[2] = 7
        bodies.position[:, 1] = 3
    else:  # AoSoA: a read-only copy
        assert isinstance(layout, lw.AoSoA)
        advice = (
            f".mass is a copy, as the field lies in blocks of {layout.width} records; assign the whole field, array.mass = values, or "
            "records: array[i].mass = value, array[2:5] = records; array.contiguous('mass') is a copy to write to"
        )
        for write in (lambda: bodies.mass.__setitem__(2, 7), lambda: bodies.mass[1:].__setitem__(0, 7)):
            with pytest.raises(ValueError, match="read-only") as error:
                write()
            assert str(error.value) == f"assignment destination is read-only: {advice}"
        with pytest.raises(ValueError, match="read-only") as error:
            bodies.mass *= 2
        assert str(error.value) == f"output array is read-only: {advice}"
        assert type(bodies.mass * 2) is type(np.sqrt(bodies.mass)) is type(bodies.numpy()["mass"]) is np.ndarray
        bodies.mass = [0, 1, 7, 3, 4]
        bodies.position = (1, 3, 1)
    assert bodies.mass.tolist() == [0, 1, 7, 3, 4]
    assert bodies.position.tolist() == [[1, 3, 1]] * 5
    assert bodies.velocity.tolist() == [[0, 0, 0]] * 5


def test_inputs_of_many_kinds() -> None:
    wide = np.arange(24.0).reshape(8, 3)
    frozen = np.arange(4)
    frozen.flags.writeable = False
    bodies = Body.array(position=wide[::2], mass=frozen, velocity=[1, 2, 3])
    np.testing.assert_array_equal(bodies.position, wide[::2])
    assert bodies.mass.tolist() == [0, 1, 2, 3]
    assert bodies.velocity.tolist() == [[1, 2, 3]] * 4
    bodies.position = np.asfortranarray(wide[1::2])
    np.testing.assert_array_equal(bodies.position, wide[1::2])
    np.testing.assert_array_equal(np.from_dlpack(bodies.position), wide[1::2])
    one = bodies[-1]
    assert one.mass == 3
    assert tuple(one.velocity) == (1, 2, 3)
    assert len(list(bodies)) == len(bodies) == 4
    assert repr(bodies).startswith("<4 Body(position: vec3, mass: f32, velocity: vec3) as SoA on cpu")


def bodies(count: int = 4) -> Any:
    return Body.zeros(count)


REFUSED: dict[str, tuple[type[Exception], Callable[[], object], str]] = {
    "unknown field": (
        lw.ArgumentError,
        lambda: Body.array(speed=[1.0]),
        "Body has no field 'speed'; its fields are position, mass, velocity",
    ),
    "unknown field read": (
        AttributeError,
        lambda: bodies().speed,
        "Body has no field 'speed'; its fields are position, mass, velocity",
    ),
    "unknown field set": (AttributeError, lambda: setattr(bodies(), "speed", 1), "Body has no field 'speed'"),
    "shape": (
        lw.ArgumentError,
        lambda: Body.array(position=np.zeros((4, 2))),
        r"Body.position is a vec3: wanted shape \(n, 3\), or \(3,\) for all, found \(4, 2\)",
    ),
    "shape set": (
        lw.ArgumentError,
        lambda: setattr(bodies(), "mass", np.zeros(5)),
        r"Body.mass is an f32: wanted shape \(4,\), or \(\) for all, found \(5,\)",
    ),
    "lengths": (
        lw.ArgumentError,
        lambda: Body.array(mass=[1, 2], position=np.zeros((3, 3))),
        "the fields of Body differ in length: mass has 2, position has 3",
    ),
    "only single values": (
        lw.ArgumentError,
        lambda: Body.array(mass=1.0),
        "needs at least one field with one row for each record",
    ),
    "complex": (
        lw.ArgumentError,
        lambda: Body.array(mass=np.ones(3, complex)),
        "Body.mass: an array of numbers is needed, found ndarray with dtype complex128",
    ),
    "strings": (lw.ArgumentError, lambda: Body.array(mass=["a", "b"]), "Body.mass: an array of numbers is needed"),
    "ragged": (
        lw.ArgumentError,
        lambda: Body.array(position=[[1, 2], [3]]),
        "Body.position: list cannot be read as an array",
    ),
    "float for whole": (
        lw.ArgumentError,
        lambda: Charge.array(rank=[1.5]),
        "Charge.rank holds i32: float64 would lose information; convert it first",
    ),
    "whole too large": (
        lw.ArgumentError,
        lambda: Charge.array(rank=[2**40]),
        f"Charge.rank holds i32: {2**40} does not fit",
    ),
    "negative for u32": (
        lw.ArgumentError,
        lambda: Mixed.array(key=[-1]),
        "Mixed.key holds u32: -1 does not fit",
    ),
    "too large for f32": (
        lw.ArgumentError,
        lambda: Body.array(mass=[1e60]),
        r"Body.mass holds float32: float64 values up to 1e\+60 do not fit",
    ),
    "negative count": (lw.ArgumentError, lambda: Body.zeros(-3), "found -3"),
    "float count": (lw.ArgumentError, lambda: Body.zeros(2.5), "found 2.5"),  # type: ignore[arg-type]
    "layout class": (lw.ArgumentError, lambda: Body.zeros(2, layout=lw.SoA), r"a layout is lw.AoS\(\).*found SoA"),  # type: ignore[arg-type]
    "unknown device": (
        lw.DeviceError,
        lambda: Body.zeros(2, device="gpu"),
        "unknown device 'gpu'; wanted 'cpu', 'cuda'",
    ),
    "index": (IndexError, lambda: bodies()[4], "record 4 of 4"),
    "key": (TypeError, lambda: bodies()["mass"], r"fields are arrays: .position\[...\]"),
    "missing argument": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), dt=0.1),
        "kick_drift needs acceleration; its parameters are body, acceleration, dt",
    ),
    "unknown argument": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), [1, 2, 3], step=0.1),
        "kick_drift has no parameter 'step'",
    ),
    "argument twice": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), [1, 2, 3], 0.1, dt=0.1),
        "kick_drift got 'dt' twice",
    ),
    "too many arguments": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), 1, 2, 3),
        "kick_drift takes 3 arguments .* found 4",
    ),
    "another record": (
        lw.ArgumentError,
        lambda: kick_drift(Charge.zeros(4), [1, 2, 3], 0.1),
        "'body' must be an array of Body, found an array of Charge",
    ),
    "no record": (
        lw.ArgumentError,
        lambda: kick_drift(np.zeros(4), [1, 2, 3], 0.1),
        r"must be an array of Body, found an array of float64 with shape \(4,\)",
    ),
    "argument shape": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), np.zeros((4, 2)), 0.1),
        r"'acceleration' is a vec3: wanted shape \(n, 3\), found \(4, 2\)",
    ),
    "argument length": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), np.zeros((5, 3)), 0.1),
        "the arrays differ in length: body has 4, acceleration has 5",
    ),
    "argument dtype": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), np.zeros((4, 3), complex), 0.1),
        "an array of numbers is needed",
    ),
    "argument string": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), [1, 2, 3], "fast"),
        "'dt' must be one f32 for all, or an array of them, found str 'fast'",
    ),
    "argument missing value": (
        lw.ArgumentError,
        lambda: kick_drift(bodies(), [1, 2, 3], None),
        "'dt' must be an f32, found NoneType None",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    kind, act, text = REFUSED[what]
    with pytest.raises(kind, match=text):
        act()


def test_different_devices() -> None:
    @lw.pairwise
    def count(target: Body, source: Body) -> lw.f32:
        return source.mass

    with pytest.raises(
        lw.ArgumentError, match=r"the records lie on different devices \(cpu, python\); move them with .to"
    ):
        count(Body.zeros(3), Body.zeros(3, device="python"))


def test_out() -> None:
    @lw.elementwise
    def double(x: lw.f32) -> lw.f32:
        return 2 * x

    x = np.arange(4, dtype="f4")
    out = np.empty(4, "f4")
    with lw.device("python"):
        assert double(x, out=out) is out
        assert out.tolist() == [0, 2, 4, 6]
        for wrong in (np.empty(3, "f4"), np.empty(4), np.empty(8, "f4")[::2], [0] * 4):
            with pytest.raises(lw.ArgumentError, match="out must be a contiguous array of float32 with shape"):
                double(x, out=wrong)
