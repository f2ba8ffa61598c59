"""Rows of arrays of records: what is assigned to their fields is written to the array, in every layout."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import ArgumentError

LAYOUTS = (lw.SoA(), lw.AoS(), lw.AoSoA(4), lw.AoAS(), lw.SoAoAS())


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    count: lw.i32
    where: lw.dvec2


@lw.record
class Other:
    mass: lw.f32


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=LAYOUTS, ids=str)
def bodies(request: pytest.FixtureRequest, device: str) -> Any:
    n = np.arange(6)
    position = np.stack([n, n + 0.25, n + 0.5], axis=1)
    return Body.array(  # type: ignore[attr-defined]
        position=position, mass=n + 1.0, count=n, where=position[:, :2], layout=request.param, device=device
    )


def expected(**changed: Any) -> dict[str, Any]:
    n = np.arange(6)
    position = np.stack([n, n + 0.25, n + 0.5], axis=1).astype(np.float32)
    fields = {"position": position, "mass": n + 1.0, "count": n, "where": position[:, :2].astype(np.float64)}
    for name, (row, value) in changed.items():
        fields[name] = fields[name].copy()
        fields[name][row] = value
    return fields


def assert_holds(bodies: Any, **changed: Any) -> None:
    found = bodies.numpy()
    for name, values in expected(**changed).items():
        np.testing.assert_array_equal(found[name], values)


def test_fields_write_through(bodies: Any) -> None:
    bodies[1].mass = 0.5
    assert_holds(bodies, mass=(1, 0.5))
    bodies[-1].count += 3
    assert_holds(bodies, mass=(1, 0.5), count=(5, 8))
    row = bodies[2]
    row.position = (7, 8, 9)
    row.where = lw.dvec2(1.5, 2.5)
    assert repr(row).startswith("Body(position=vec3(7.0, 8.0, 9.0), mass=")
    assert_holds(bodies, mass=(1, 0.5), count=(5, 8), position=(2, (7, 8, 9)), where=(2, (1.5, 2.5)))


def test_components_write_through(bodies: Any) -> None:
    bodies[3].position[0] = -1
    bodies[3].position[-1] = -3
    bodies[3].where.y = 0.125
    assert_holds(bodies, position=(3, (-1, 3.25, -3)), where=(3, (3, 0.125)))
    bodies[3].position += lw.vec3(1, 0, 0)
    assert_holds(bodies, position=(3, (0, 3.25, -3)), where=(3, (3, 0.125)))
    with pytest.raises(IndexError):
        bodies[3].position[3] = 1.0


def test_rows_show_what_the_array_holds_now(bodies: Any) -> None:
    row = bodies[4]
    before = row.position
    bodies.position = bodies.position * 2
    assert [*row.position] == [8, 8.5, 9]
    assert [*before] == [4, 4.25, 4.5]  # what was read is a value
    assert [*(before + row.position)] == [12, 12.75, 13.5]


def test_loops_over_rows_write_through(bodies: Any) -> None:
    for row in bodies:
        row.mass *= 2
    assert bodies.numpy()["mass"].tolist() == [2, 4, 6, 8, 10, 12]


def test_a_row_is_replaced_by_a_record(bodies: Any) -> None:
    bodies[0] = bodies[5]
    assert_holds(bodies, position=(0, (5, 5.25, 5.5)), mass=(0, 6), count=(0, 5), where=(0, (5, 5.25)))
    bodies[0] = Body(mass=2)
    assert_holds(bodies, position=(0, (0, 0, 0)), mass=(0, 2), count=(0, 0), where=(0, (0, 0)))
    with pytest.raises(ArgumentError) as error:
        bodies[1] = Other(mass=1)
    assert (
        str(error.value)
        == "a row of Body is replaced by a Body(...), found Other; fields are arrays: .position[1] = ..."
    )
    with pytest.raises(IndexError, match="record 6 of 6"):
        bodies[6] = Body()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("count", 2.5, "Body.count holds i32: float64 would lose information; convert it first"),
        ("count", 2**40, "Body.count holds i32: 1099511627776 does not fit"),
        ("mass", 1e300, "Body.mass holds float32: float64 values up to 1e+300 do not fit"),
        ("mass", (1, 2), "Body.mass is an f32: wanted shape () for a row, found (2,)"),
        ("position", (1, 2), "Body.position is a vec3: wanted shape (3,) for a row, found (2,)"),
    ],
)
def test_what_does_not_fit_changes_nothing(bodies: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        setattr(bodies[1], name, value)
    assert str(error.value) == message
    assert_holds(bodies)


def test_misspelt_names_are_refused(bodies: Any) -> None:
    for use in (lambda: bodies[1].masss, lambda: setattr(bodies[1], "masss", 1)):
        with pytest.raises(
            AttributeError, match="Body has no field 'masss'; its fields are position, mass, count, where"
        ):
            use()
    with pytest.raises(AttributeError, match="vec3 has no component 'w' that can be assigned"):
        bodies[1].position.w = 1
    assert_holds(bodies)


def test_vectors_of_records_of_their_own_are_values() -> None:
    """Nothing is behind them that could be written to."""
    body = Body(position=(1, 2, 3))
    with pytest.raises(TypeError, match=r"a vec3 is a value and cannot be changed; make another one, vec3\(...\)"):
        body.position[0] = 5
    with pytest.raises(AttributeError, match="a vec3 is a value: its 'x' cannot be assigned; make another one"):
        body.position.x = 5
    body.position = (5, 2, 3)
    assert [*body.position] == [5, 2, 3]


def test_copies_of_rows_hold_their_own_values(bodies: Any) -> None:
    row = copy.copy(bodies[1])
    row.mass = 9
    assert_holds(bodies)
    assert (float(row.mass), [*row.position]) == (9, [1, 1.25, 1.5])
    vector = copy.copy(bodies[1].position)
    assert type(vector) is type(lw.vec3(0))
