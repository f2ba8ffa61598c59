"""Records within records: single records, arrays, views, files, copies; all of it as with the fields spelled out."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.record import Record
from tests.layouts.test_layouts import ALL

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]
COUNT = 21


class Skin(lw.Record):
    width: lw.f64
    cells: lw.ivec2


class Shape(lw.Record):
    radius: lw.f32
    axis: lw.vec3
    skin: Skin


class Body(lw.Record):
    number: lw.i64
    shape: Shape
    alive: lw.bool
    mass: lw.f32


class Beside(lw.Record):
    skin: Skin
    skin_width: lw.f64


class Flat(lw.Record):
    number: lw.i64
    shape_radius: lw.f32
    shape_axis: lw.vec3
    shape_skin_width: lw.f64
    shape_skin_cells: lw.ivec2
    alive: lw.bool
    mass: lw.f32


FIELDS = ("number", "shape.radius", "shape.axis", "shape.skin.width", "shape.skin.cells", "alive", "mass")


def flat_name(name: str) -> str:
    return name.replace(".", "_")


def values(count: int = COUNT, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """By the names of the fields."""
    rng = np.random.default_rng(seed)
    return {
        "number": np.arange(count) * 10**10,
        "shape.radius": rng.random(count, np.float32),
        "shape.axis": rng.random((count, 3), np.float32),
        "shape.skin.width": rng.random(count),
        "shape.skin.cells": rng.integers(-9, 9, (count, 2), np.int32),
        "alive": rng.random(count) < 0.5,
        "mass": rng.random(count, np.float32),
    }


def both(layout: lw.Layout | None = None, device: str = "cpu", **options: Any) -> tuple[Any, Any]:
    """The same records, nested and flat."""
    given = values()
    nested: Any = Body.array(None, layout=layout, device=device, **given, **options)
    flat: Any = Flat.array(None, layout=layout, device=device, **{flat_name(n): v for n, v in given.items()}, **options)
    return nested, flat


def assert_same(nested: Any, flat: Any) -> None:
    """Every field has the bytes of the flat one."""
    here, there = nested.numpy(), flat.numpy()
    assert list(here) == list(FIELDS)
    for name, found in here.items():
        assert found.dtype == there[flat_name(name)].dtype
        assert found.tobytes() == there[flat_name(name)].tobytes(), name


# ------------------------------------------------------------ single records


def test_a_record_is_laid_flat() -> None:
    record = Body.__record__
    assert tuple(f.name for f in record) == FIELDS
    assert record.names == ("number", "shape", "alive", "mass")
    assert record.part("shape") == Shape.__record__
    assert record.part("shape.skin") == Skin.__record__
    assert record.part("mass") is record.part("shape.radius") is None
    assert {x.field for x in record.leaves} == set(FIELDS)
    assert [(x.name, x.field) for x in record.leaves][2:7:4] == [
        ("shape.axis.x", "shape.axis"),
        ("shape.skin.cells.x", "shape.skin.cells"),
    ]
    assert str(record) == (
        "Body(number: i64, shape: Shape(radius: f32, axis: vec3, skin: Skin(width: f64, cells: ivec2)), alive: bool, "
        "mass: f32)"
    )


def test_a_record_pickled_before_there_were_records_within_it() -> None:
    fields = Skin.__record__.fields
    old = Record.__new__(Record)
    old.__setstate__(["Skin", fields])
    assert old == Skin.__record__
    assert pickle.loads(pickle.dumps(Body.__record__)) == Body.__record__


def test_values() -> None:
    body = Body(shape=Shape(radius=2, axis=(1, 2, 3), skin=Skin(width=0.5)), mass=3)
    assert (body.shape.radius, tuple(body.shape.axis), body.shape.skin.width, body.mass) == (2, (1, 2, 3), 0.5, 3)
    assert isinstance(body.shape, Shape)
    assert isinstance(body.shape.skin.width, np.float64)
    part = body.shape
    part.radius = 7
    body.shape.skin.cells = (4, 5)
    assert (body.shape.radius, part.skin.cells.y) == (7, 5)
    other = Body(shape=part)
    part.radius = 8
    assert (other.shape.radius, body.shape.radius) == (7, 8)
    other.shape = Shape(axis=1)
    assert (other.shape.radius, other.shape.axis.z) == (0, 1)
    other.shape.skin = body.shape.skin
    assert other.shape.skin.cells.x == 4
    assert repr(Body(number=1).shape) == repr(Shape())
    assert repr(Body()).startswith("Body(number=np.int64(0), shape=Shape(radius=np.float32(0.0), axis=vec3(0.0")


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_apart(made: Callable[[Any], Any]) -> None:
    body = Body(shape=Shape(radius=2), mass=3)
    for one in (body, Body.array(shape=Shape(radius=2), mass=[3.0])[0]):
        other, part = made(one), made(one.shape)
        assert repr(other) == repr(body)
        assert repr(part) == repr(body.shape)
        other.shape.radius = part.radius = 9
        assert one.shape.radius == 2


class Deepest(lw.Record):
    x: lw.f32


for _ in range(8):
    Deepest = lw.record(type(f"{Deepest.__name__}_", (), {"__annotations__": {"a": Deepest}, "__module__": __name__}))


def itself() -> object:
    class Node(lw.Record):
        next: Node

    return Node


def itself_again() -> object:
    def made(annotation: Any) -> Any:
        return lw.record(type("Node", (), {"__annotations__": {"next": annotation}, "__module__": __name__}))

    holder = type("Holder", (), {"__annotations__": {"node": made(lw.f32)}, "__module__": __name__})
    return made(lw.record(holder))


def annotated(**fields: Any) -> Callable[[], object]:
    return lambda: lw.record(type("Bad", (), {"__annotations__": fields, "__module__": __name__}))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (itself, "Node has a Node within it, which would have no end; keep the index of another record in a field"),
        (itself_again, "Node has a Node within it"),
        (annotated(layout=Shape), "Bad.layout: arrays of records use the name 'layout' themselves"),
        (annotated(_shape=Shape), "Bad._shape: the name of a field cannot start with an underscore"),
        (annotated(a=Deepest), "Bad.a: 9 records lie one within the other; at most 8 do"),
        (annotated(shape=lw.Record), "Bad.shape is annotated with <class 'lanewise.*Record.*'>; a record holds"),
    ],
)
def test_refused_classes(make: Callable[[], object], text: str) -> None:
    with pytest.raises(lw.RecordError, match=text):
        make()


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda b: Body(shap=1), "Body has no field 'shap'; its fields are number, shape, alive, mass"),
        (lambda b: b.shape.rad, "Shape has no field 'rad'; its fields are radius, axis, skin"),
        (lambda b: setattr(b.shape, "rad", 1), "Shape has no field 'rad'"),
        (lambda b: setattr(b, "shape", 3), r"Body.shape is a Shape, found 3; wanted Shape\(radius=..., axis=..., "),
        (lambda b: setattr(b, "shape", Skin()), r"Body.shape is a Shape, found Skin\("),
        (lambda b: setattr(b.shape, "radius", "a"), "Body.shape.radius is an f32, found 'a'"),
        (
            lambda b: Body(**{"shape.radius": 2, "shape": Shape()}),
            "Body got 'shape.radius' twice, in 'shape' and by its",
        ),
        (
            lambda b: Body(**{"shape.skin": Skin(), "shape.skin.width": 2}),
            "Body got 'shape.skin.width' twice, in 'shape.skin' and by its name",
        ),
        (lambda b: setattr(b.shape.skin, "cells", (0.5, 1)), "Body.shape.skin.cells is an ivec2, which cannot hold"),
    ],
)
def test_refused_values(act: Callable[[Any], object], text: str) -> None:
    with pytest.raises((lw.ArgumentError, AttributeError), match=text):
        act(Body())


# ------------------------------------------------------------ arrays


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ALL, ids=str)
def test_arrays_are_those_of_the_fields_spelled_out(layout: lw.Layout, device: str) -> None:
    nested, flat = both(layout, device)
    assert_same(nested, flat)
    assert nested.nbytes == flat.nbytes
    assert bytes(np.asarray(nested.to("cpu").data)) == bytes(np.asarray(flat.to("cpu").data))
    assert_same(nested.with_layout(lw.AoS())[3:9], flat.with_layout(lw.AoS())[3:9])
    chosen = np.array([4, 2, 2])
    assert_same(nested[chosen], flat[chosen])
    assert_same(copy.deepcopy(nested), flat)
    assert_same(pickle.loads(pickle.dumps(nested)), flat)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ALL, ids=str)
def test_fields_rows_and_slices_are_read_and_assigned(layout: lw.Layout, device: str) -> None:
    nested, flat = both(layout, device)
    nested.shape.radius, flat.shape_radius = 3, 3
    nested.shape.skin.width, flat.shape_skin_width = nested.shape.skin.width * 2, flat.shape_skin_width * 2
    nested.shape[4].axis, flat[4].shape_axis = (1, 2, 3), (1, 2, 3)
    nested[5].shape.axis.y, flat[5].shape_axis.y = 9, 9
    nested[2:5].shape.radius, flat[2:5].shape_radius = 6, 6
    nested.shape[::2][1:3].skin.cells, flat[::2][1:3].shape_skin_cells = (7, 8), (7, 8)
    assert_same(nested, flat)
    assert nested.shape[4].axis.z == flat[4].shape_axis.z == 3
    assert len(nested.shape) == COUNT
    assert [row.radius for row in nested.shape] == nested.shape.radius.tolist()
    first, nested[1] = nested[0].copy(), nested[0]
    assert repr(nested[1]) == repr(first)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ALL, ids=str)
def test_records_within_records_are_replaced(layout: lw.Layout, device: str) -> None:
    bodies, _ = both(layout, device)
    old = bodies.numpy()
    alone = bodies.shape.copy()
    assert (alone.record, alone.device) == (Shape.__record__, bodies.device)
    assert {f"shape.{n}": v.tobytes() for n, v in alone.numpy().items()} == {n: old[n].tobytes() for n in FIELDS[1:5]}
    bodies.shape = Shape(radius=2, axis=(1, 2, 3))
    assert set(bodies.shape.radius.tolist()) == {2}
    assert not bodies.shape.skin.width.any()
    bodies.shape = alone
    assert {n: v.tobytes() for n, v in bodies.numpy().items()} == {n: v.tobytes() for n, v in old.items()}
    bodies.shape.skin = Skin(width=1)
    bodies.shape[3:5] = alone[6:8]
    bodies.shape[[8, 9]] = alone[[0, 1]]
    bodies.shape[bodies.number == 0] = Shape(radius=-1)
    bodies.shape[1] = bodies.shape[3]
    wanted = old["shape.skin.width"]
    kept = {3: wanted[6], 4: wanted[7], 8: wanted[0], 9: wanted[1], 0: 0, 1: wanted[6]}
    assert bodies.shape.skin.width.tolist() == [kept.get(n, 1) for n in range(COUNT)]
    assert (bodies.number.tolist(), bodies.mass.tolist()) == (old["number"].tolist(), old["mass"].tolist())


def test_arrays_are_made_of_parts() -> None:
    wanted = values()
    shape = {"radius": wanted["shape.radius"], "axis": wanted["shape.axis"],
             "skin": {"width": wanted["shape.skin.width"], "cells": wanted["shape.skin.cells"]}}  # fmt: skip
    rest = {n: wanted[n] for n in ("number", "alive", "mass")}
    arrays = (
        Body.array(shape=shape, **rest),
        Body.array({"shape": shape, **rest}),
        Body.array({"shape": shape}, **rest),
        Body.array(shape=Shape.array(**shape), **rest),
        Body.array(shape=Body.array(shape=shape).shape, **rest),
        Body.array(shape=Shape.array(**shape).to_structured(), **rest),
    )
    for array in arrays:
        assert_same(array, both()[1])
    some: Any = Body.array(shape={"radius": [1, 2]}, mass=3)
    assert (some.shape.radius.tolist(), some.mass.tolist(), some.shape.axis.any()) == ([1, 2], [3, 3], False)


def test_a_column_with_the_name_of_a_field_is_that_field() -> None:
    made: Any = Beside.array({"skin_width": [1.0, 2.0]})
    assert (made.skin_width.tolist(), made.skin.width.tolist()) == ([1, 2], [0, 0])
    both: Any = Beside.array({"skin_width": [1.0, 2.0], "skin.width": [3.0, 4.0]})
    assert (both.skin_width.tolist(), both.skin.width.tolist()) == ([1, 2], [3, 4])


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda b: b.shap, "Body has no field 'shap'; its fields are number, shape, alive, mass"),
        (lambda b: b.shape.rad, "Shape has no field 'rad'; its fields are radius, axis, skin"),
        (lambda b: setattr(b.shape, "rad", 1), "Shape has no field 'rad'"),
        (lambda b: setattr(b, "shape", 1), r"Body.shape is a Shape: wanted Shape\(...\) for all, or an array of Shape"),
        (lambda b: setattr(b, "shape", Shape.zeros(3)), "Body.shape: 21 records are replaced by as many, found 3"),
        (lambda b: setattr(b.shape, "skin", Shape.zeros(21)), "Body.shape.skin is a Skin: wanted Skin"),
        (lambda b: b.shape.__setitem__(slice(0, 2), Shape.zeros(3)), "Body.shape: 2 records are replaced by as many"),
        (lambda b: delattr(b, "shape"), "every Body has the field 'shape', which cannot be deleted"),
        (lambda b: delattr(b.shape, "radius"), "every Body has the field 'shape.radius', which cannot be deleted"),
        (lambda b: np.asarray(b.shape), r"records Shape.* are no array of numbers; take a field, for example .shape.radius"),
        (lambda b: b.contiguous("shape"), "Body has no field 'shape'.* wanted number, shape.radius"),
        (lambda b: Body.array(shape=3, mass=[1]), "Shape.array takes fields by their names, radius=..., .* found 3"),
        (lambda b: Body.array(shape={"rad": [1]}), "Shape has no column 'rad'"),
        (lambda b: Body.array(shape=Skin.zeros(2)), "Body.shape is a Shape: wanted"),
        (lambda b: Body.array(shape={"radius": [1, 2]}, mass=[1]), "the fields of Body differ in length"),
        (lambda b: Body.array({"shape.radius": [1]}, shape={"radius": [1]}), "Body.array got 'shape.radius' twice"),
    ],
)  # fmt: skip
def test_refused_of_arrays(act: Callable[[Any], object], text: str) -> None:
    with pytest.raises((lw.ArgumentError, AttributeError, TypeError), match=text):
        act(both()[0])


def test_arrays_show_themselves() -> None:
    bodies = Body.zeros(2)
    assert repr(bodies).startswith("<2 Body(number: i64, shape: Shape(radius: f32, axis: vec3, skin: Skin(")
    assert repr(bodies.shape) == f"<.shape: Shape of {bodies!r}>"
    assert "shape.skin.width" in bodies._repr_html_()  # pyright: ignore[reportPrivateUsage]


# ------------------------------------------------------------ other libraries, files


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_structured_arrays_nest_and_come_back(layout: lw.Layout) -> None:
    nested, flat = both(layout)
    table = nested.to_structured()
    assert table.dtype.names == ("number", "shape", "alive", "mass")
    assert table.dtype["shape"].names == ("radius", "axis", "skin")
    assert table["shape"]["skin"]["cells"].tolist() == flat.shape_skin_cells.tolist()
    assert table.dtype.itemsize == flat.dtype.itemsize
    assert_same(Body.array(table, layout=layout), flat)
    assert_same(Body.array(flat.to_structured()), flat)
    assert_same(Body.array(table[::-1][::-1]), flat)
    loose = np.zeros(COUNT, [("mass", "f8"), ("shape", [("skin", [("width", "f4")]), ("radius", "f8")])])
    loose["shape"]["skin"]["width"] = np.arange(COUNT)
    assert Body.array(loose).shape.skin.width.tolist() == list(range(COUNT))


@pytest.mark.parametrize("layout", [lw.AoS(), lw.AoAS(16)], ids=str)
def test_structured_arrays_share_the_memory(layout: lw.Layout) -> None:
    nested: Any = both(layout)[0]
    table = nested.to_structured(copy=False)
    table["shape"]["skin"]["width"][3] = 5
    assert nested.shape.skin.width[3] == 5
    if layout == lw.AoS():
        assert table.dtype == Body.dtype
    over: Any = Body.array(np.zeros(4, nested.dtype), copy=False)
    over.shape.axis[2] = (1, 2, 3)
    assert over.to_structured()["shape"]["axis"][2].tolist() == [1, 2, 3]
    with pytest.raises(lw.ArgumentError, match="does not lie as records of Body"):
        Body.array(
            np.zeros(4, np.dtype([("number", "i8"), ("shape", Shape.dtype), ("alive", "?"), ("mass", "f4")])),
            copy=False,
        )


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    nested, flat = both()
    table = nested.dataframe()
    assert list(table.columns) == list(flat.dataframe().columns)
    assert_same(Body.array(table), flat)
    dotted = pandas.DataFrame({n: v for n, v in values().items() if v.ndim == 1})
    assert Body.array(dotted).shape.skin.width.tolist() == flat.shape_skin_width.tolist()


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_files_keep_records_within_records(layout: lw.Layout, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    nested, flat = both(layout)
    lists = lw.ragged(nested, counts=[5, 0, COUNT - 5])
    lw.save(tmp_path / "both.h5", bodies=nested, lists=lists, flat=flat)
    found = lw.load(tmp_path / "both.h5")
    for array in (found["bodies"], found["lists"].data):
        assert_same(array, flat)
        assert array.record == Body.__record__
        assert isinstance(array[0].shape, Shape)
    assert found["bodies"].layout == nested.layout
    lw.save(tmp_path / "one.h5", nested)
    assert_same(lw.load(tmp_path / "one.h5", Body, layout=lw.AoS()), flat)


def test_files_make_classes_that_are_not_there(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    gone = lw.record(type("Gone", (), {"__annotations__": {"shape": Shape, "mass": lw.f32}, "__module__": "elsewhere"}))
    array: Any = gone.array(shape={"skin": {"width": [1, 2]}}, mass=3)
    lw.save(tmp_path / "gone.h5", array)
    found = lw.load(tmp_path / "gone.h5")
    assert found.record == array.record
    assert found.shape.skin[1].width == 2
    with pytest.raises(lw.InputError, match=r"only the file has 'shape\.radius'"):
        lw.load(tmp_path / "gone.h5", Skin)
    assert_same_bytes(pickle.loads(pickle.dumps(array)), array)


def assert_same_bytes(a: Any, b: Any) -> None:
    assert {n: v.tobytes() for n, v in a.numpy().items()} == {n: v.tobytes() for n, v in b.numpy().items()}


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("records", "[]", "'array' has fields of 'shape', which is no record within it"),
        ("records", '[["shape", "Shape"]]', "'array' has fields of 'skin', which is no record within it"),
        ("records", '[["shape", "a b"], ["shape.skin", "Skin"]]', "has the name 'a b'; wanted names"),
        ("records", '[["shape", "Shape"], ["shape.skin", "Skin"], ["other", "Skin"]]', "the record 'other' within"),
        ("records", '[["shape", "Shape"], ["shape.skin", "Skin"], ["mass", "Skin"]]', "has the name 'mass'"),
        ("records", '["shape"]', "the records within 'array' are no names"),
        ("fields", '[["shape..radius", "f32"]]', "has the name 'shape..radius'"),
        ("fields", f'[["{"a." * 4000}x", "f32"]]', "has the name '"),
    ],
)
def test_damaged_files(attribute: str, value: str, text: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    lw.save(tmp_path / "a.h5", both()[0])
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["array"].attrs[attribute] = value
    with pytest.raises(lw.InputError, match=text):
        lw.load(tmp_path / "a.h5")


def test_a_file_of_flat_records_is_what_it_was(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    nested, flat = both()
    for name, array, version in (("nested", nested, 2), ("flat", flat, 1)):
        lw.save(tmp_path / f"{name}.h5", array)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            assert file.attrs["version"] == version
            assert ("records" in file["array"].attrs) == (version == 2)


# ------------------------------------------------------------ growth, populations, lists


def test_arrays_grow_and_shrink() -> None:
    nested, flat = both()
    nested.append(Body(shape=Shape(radius=2)))
    flat.append(Flat(shape_radius=2))
    nested.append([nested[0], nested[1]])
    flat.append([flat[0], flat[1]])
    nested.append(nested[:4].copy())
    flat.append(flat[:4].copy())
    assert nested.compact(nested.shape.radius > 0.4) == flat.compact(flat.shape_radius > 0.4)
    assert_same(nested, flat)
    view = nested.shape
    nested.append(Body())
    assert len(view) == len(nested)  # it is a name of the array, not a copy


def test_populations() -> None:
    nested, flat = both()
    given = nested.number
    fates = np.arange(COUNT, dtype=np.int32) % 3
    pair = lw.Population(nested, ids="number"), lw.Population(flat, ids="number")
    assert pair[0].apply(fates) == pair[1].apply(fates)
    assert_same(nested, flat)
    del given

    class Held(lw.Record):
        name: Skin2

    held: Any = Held.array(name={"id": np.arange(4)})
    people = lw.Population(held, ids="name.id")
    people.apply(np.array([1, 2, 0, 1], np.int32))
    assert held.name.id.tolist() == [0, 1, 3, 4]


class Skin2(lw.Record):
    id: lw.i64


@pytest.mark.parametrize("host", [lw.AoS(), lw.AoSoA(8)], ids=str)
def test_two_sides(host: lw.Layout) -> None:
    nested, flat = both(lw.SoA(), host_layout=host)
    nested.shape.radius, flat.shape_radius = 2, 2
    assert_same(nested.host, flat.host)
    nested.host.shape.skin.width, flat.host.shape_skin_width = 3, 3
    nested.host.shape[4], flat.host[4].shape_axis = Shape(axis=(1, 2, 3)), (1, 2, 3)
    flat.host[4].shape_radius, flat.host[4].shape_skin_width, flat.host[4].shape_skin_cells = 0, 0, 0
    assert_same(nested, flat)
    assert_same(pickle.loads(pickle.dumps(nested)), flat)


def test_only_what_is_read_of_a_part_is_copied() -> None:
    nested, _ = both(lw.SoA(), host_layout=lw.AoS())
    profile = lw.Profile()
    with profile.span("reading"):
        nested.shape.radius = 2
        nested.host.shape.radius.sum()
    copied = profile.summary()["copies"]["to host"]["fields"]
    assert list(copied) == ["Body.shape.radius"]


def test_ragged_arrays() -> None:
    nested, flat = both()
    lists = lw.ragged([nested[:3], nested[3:4]]), lw.ragged([flat[:3], flat[3:4]])
    for one, array in zip(lists, (nested, flat), strict=True):
        one.append([array[4:]])
    assert_same(lists[0].data, lists[1].data)
    assert lists[0][1]["shape.radius"].tolist() == lists[1][1]["shape_radius"].tolist()
