"""Structured arrays: what goes out is a view of AoS and AoAS and else says that it is a copy; what comes in is copied,
or lain over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.memory import array_module
from lanewise.support.errors import ArgumentError, DeviceError
from tests.layouts.test_layouts import ALL

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]


class Grain(lw.Record):
    position: lw.vec3
    alive: lw.bool
    mass: lw.f64
    kind: lw.i32


class Spot(lw.Record):
    at: lw.vec2


class Pair(lw.Record):
    mass: lw.f32
    kind: lw.i32


class Scalar(lw.Record):
    mass: lw.f64


@lw.elementwise
def grow(grain: Grain, by: lw.f64):
    grain.mass += by


@lw.elementwise
def follow(one: Grain, other: Grain):
    one.mass = other.mass


COUNT = 6


def values() -> np.ndarray[Any, Any]:
    rng, made = np.random.default_rng(0), np.zeros(COUNT, Grain.dtype)
    made["position"], made["alive"] = rng.random((COUNT, 3)), np.arange(COUNT) % 2 == 0
    made["mass"], made["kind"] = rng.random(COUNT), np.arange(COUNT)
    return made


def assert_equal(a: Any, b: Any) -> None:
    assert a.dtype.names == b.dtype.names
    for name in a.dtype.names:
        assert a[name].dtype == b[name].dtype
        assert a[name].tolist() == b[name].tolist()


def test_the_dtype_is_that_of_aos() -> None:
    assert Grain.dtype.names == ("position", "alive", "mass", "kind")
    assert Grain.dtype["position"] == np.dtype(("<f4", (3,)))
    assert Grain.dtype.itemsize == 32
    assert Grain.zeros(1).dtype == Grain.zeros(1, layout=lw.AoS())[::1].dtype == Grain.dtype
    assert Spot.zeros(1, layout=lw.AoAS(16)).dtype.itemsize == 16
    with pytest.raises(AttributeError, match="Grain has no field 'dtype'"):
        _ = Grain().dtype


@pytest.mark.parametrize("layout", ALL, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_a_view_where_records_are_structures(layout: lw.Layout, device: str) -> None:
    array = Grain.array(values(), layout=layout, device=device)
    for part, wanted in ((array, values()), (array[1:5], values()[1:5]), (array[::2], values()[::2])):
        structured = part.to_structured()
        assert_equal(structured, wanted)
        assert structured.dtype == part.dtype
        own = part.to_structured(copy=True)
        assert_equal(own, wanted)
        own["mass"] = 0
        assert_equal(part.to_structured(), wanted)
        if device == "cpu" and (isinstance(layout, (lw.AoS, lw.AoAS)) or layout == lw.AoSoA(1)):
            structured["mass"][1] = 9
            assert part.mass[1] == 9
            part.mass[1] = wanted["mass"][1]
            part.to_structured(copy=False)["kind"][0] = -4
            assert part[0].kind == -4
            part[0].kind = wanted["kind"][0]
        else:
            with pytest.raises(
                ValueError, match=r"read-only: to_structured\(\) is a copy here, as .*; assign fields of the array"
            ) as e:
                structured["mass"][1] = 9
            assert "to_structured(copy=True), which is yours" in str(e.value)
            with pytest.raises(
                ArgumentError, match=r"copy=False\): .* is a copy; that of .*\.with_layout\(lw\.AoS\(\)\) is a view"
            ):
                part.to_structured(copy=False)


@pytest.mark.parametrize("record", [Grain, Pair, Scalar], ids=lambda r: r.__name__)
@pytest.mark.parametrize("layout", ALL, ids=str)
def test_a_write_reaches_the_array_or_raises(layout: lw.Layout, record: type[Any]) -> None:
    """A view where each record is one piece: a pair of SoAoAS is one group, and one scalar is so in SoA as well."""
    whole: tuple[type[lw.Layout], ...] = {
        Grain: (lw.AoS, lw.AoAS), Pair: (lw.AoS, lw.AoAS, lw.SoAoAS), Scalar: (lw.AoS, lw.AoAS, lw.SoAoAS, lw.SoA)
    }[record]  # fmt: skip
    array = record.zeros(5, layout=layout)
    structured = array.to_structured()
    if isinstance(layout, whole) or layout == lw.AoSoA(1):
        structured["mass"][2] = 7
        assert array.mass.tolist() == [0, 0, 7, 0, 0]
    else:
        with pytest.raises(ValueError, match="read-only"):
            structured["mass"][2] = 7
        with pytest.raises(ArgumentError, match="is a copy"):
            array.to_structured(copy=False)


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_no_records(layout: lw.Layout) -> None:
    empty = Grain.zeros(0, layout=layout)
    assert empty.to_structured().shape == (0,)
    assert len(Grain.array(empty.to_structured(), layout=layout)) == 0
    assert Grain.array(np.zeros(0, Grain.dtype)[::2]).record == empty.record


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_columns_of_any_origin(layout: lw.Layout) -> None:
    wanted = Grain.array(values(), layout=layout)
    fields = wanted.numpy()
    parts = {f"position_{c}": fields["position"][:, n] for n, c in enumerate("xyz")}
    other = [
        ("kind", "i8"),
        ("position_z", "f8"),
        ("position_x", "f4"),
        ("position_y", ">f8"),
        ("alive", "?"),
        ("mass", "f4"),
    ]
    loose = np.zeros(COUNT, other)
    for name in loose.dtype.names or ():
        loose[name] = parts[name] if name in parts else fields[name]
    for array in (
        Grain.array(fields), Grain.array(parts, **{n: v for n, v in fields.items() if n != "position"}),
        Grain.array(values().view(np.recarray)), Grain.array(np.repeat(values(), 2)[::2]),
    ):  # fmt: skip
        assert_equal(array.to_structured(), wanted.to_structured())
    assert Grain.array(loose).position.tolist() == wanted.position.tolist()
    assert Grain.array({"kind": [1, 2]}).mass.tolist() == [0, 0]


@pytest.mark.parametrize("layout", ALL, ids=str)
def test_records_within_records_of_a_table_are_laid_flat(layout: lw.Layout) -> None:
    class Body(lw.Record):
        shape_axis: lw.vec3
        shape_skin_width: lw.f64
        mass: lw.f32

    skin = np.dtype([("width", "f8")])
    shape = np.dtype([("axis", "f4", 3), ("skin", skin)])
    table = np.zeros(5, np.dtype([("mass", "f4"), ("shape", shape)]))
    table["shape"]["axis"] = np.arange(15).reshape(5, 3)
    table["shape"]["skin"]["width"], table["mass"] = np.arange(5) / 3, np.arange(5)
    bodies = Body.array(table[::-1], layout=layout)
    assert bodies.shape_axis.tolist() == table["shape"]["axis"][::-1].tolist()
    assert bodies.shape_skin_width.tolist() == table["shape"]["skin"]["width"][::-1].tolist()
    assert bodies.mass.tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([("kind", [("of", "i4")])], "Grain.kind: an array of numbers is needed, found ndarray with dtype [('of', '<i4')]; give one of its columns, 'of'"),
        ([("shape", [("of", "i4")])], "Grain has no column 'shape_of'; wanted position"),
        ([("a", [("x", "f4")]), ("a_x", "f4")], "Grain.array: the table has two columns 'a_x', one of them in a record within its records"),
    ],
    ids=range(3),
)  # fmt: skip
def test_records_within_records_that_do_not_fit(columns: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        Grain.array(np.zeros(2, np.dtype(columns)))
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"mas": [1]}, "Grain has no column 'mas'; did you mean 'mass'? wanted position, alive, mass, kind, position_x, position_y, position_z"),
        ({"position_w": [1]}, "Grain has no column 'position_w'; did you mean 'position"),
        ({3: [1]}, "Grain has no column 3; wanted position"),
        ({"position_x": [1.0], "position_z": [1.0]}, "Grain.position is a vec3: the table has position_x, position_z, and no position_y"),
        ({"mass": ["a"]}, "Grain.mass: an array of numbers is needed, found list with dtype <U1"),
        ({"kind": [0.5]}, "Grain.kind holds i32: float64 would lose information; convert it first"),
        ({"position_x": ["a"], "position_y": [1], "position_z": [1]}, "the column 'position_x' of Grain: an array of numbers"),
        ({}, "Grain.array needs at least one field"),
        (np.zeros((2, 2), Grain.dtype), "a structured array of shape (n,), found shape (2, 2)"),
        (np.zeros(3), "Grain.array takes fields by their names, position=..., a structured array, a DataFrame or a mapping of columns, "
         "found <array of float64 with shape (3,)>"),
        ([Grain()], "found [Grain("),
        (Grain.zeros(2), "found an array of records; .copy() is another one"),
    ],
    ids=range(12),
)  # fmt: skip
def test_tables_that_do_not_fit(table: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        Grain.array(table)
    assert text in str(error.value)


def test_a_field_twice_and_a_column_twice() -> None:
    with pytest.raises(ArgumentError, match="got 'mass' twice, in the table and by its name"):
        Grain.array(values(), mass=1)

    class Both(lw.Record):
        a: lw.vec2
        a_x: lw.f32

    with pytest.raises(ArgumentError, match="two columns of a table would be called 'a_x'"):
        Both.array({"a_y": [1.0]})
    assert Both.array(Both.zeros(2).to_structured()).a_x.tolist() == [0, 0]


# ------------------------------------------------------------ over the memory of others


def test_an_array_over_a_structured_array() -> None:
    memory = values()
    array = Grain.array(memory, copy=False)
    assert (array.layout, len(array)) == (lw.AoS(), COUNT)
    grow(array, 1.0)
    assert memory["mass"].tolist() == (values()["mass"] + 1).tolist()
    memory["kind"] = 7
    assert array[::2].kind.tolist() == [7, 7, 7]
    with pytest.raises(ArgumentError, match="its memory belongs to another array"):
        array.append(Grain())
    own = array.copy()
    own.append(Grain())
    assert (len(own), len(memory)) == (COUNT + 1, COUNT)
    wide = np.zeros(4, Spot.zeros(1, layout=lw.AoAS(16)).dtype)
    assert Spot.array(wide, copy=False, layout=lw.AoAS(16)).layout == lw.AoAS(16)
    assert len(Grain.array(np.zeros(0, Grain.dtype), copy=False)) == 0


def test_arrays_over_the_same_memory_are_known_to_share_it() -> None:
    memory = values()
    one, other = Grain.array(memory, copy=False), Grain.array(memory[2:], copy=False)
    with pytest.raises(ArgumentError, match="'one' is updated, and 'other' has some of the same records"):
        follow(one[1:4], other[:3])
    follow(one[:2], other[:2])
    assert memory["mass"][:2].tolist() == memory["mass"][2:4].tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_over_its_only_field(device: str) -> None:
    memory = array_module(device).zeros((5, 2), np.float32)
    array = Spot.array(at=memory, copy=False, device=device)
    array.at = (1, 2)
    assert memory.tolist() == [[1, 2]] * 5
    memory[3, 0] = 8
    assert array[3].at.x == 8


class WithoutMemory:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros((2, 2), np.float32)


def read_only() -> Any:
    memory = values()
    memory.flags.writeable = False
    return memory


@pytest.mark.parametrize(
    ("arguments", "fields", "text"),
    [
        ((np.zeros(2, [("mass", "f8")]),), {}, "a structured array of [('mass', '<f8')] does not lie as records of Grain("),
        ((values(),), {"layout": lw.SoA()}, "the memory lies as AoS, and SoA is requested"),
        ((values()[::2],), {}, "the array is not contiguous"),
        ((read_only(),), {}, "the array is read-only; kernels run over contiguous memory that they may write to"),
        ((np.zeros((2, 2), Grain.dtype),), {}, "wanted a structured array of shape (n,), found (2, 2)"),
        ((), {"mass": np.zeros(3)}, "there is no way round a copy but for a structured array of Grain.dtype, and for records of one field"),
        ((np.ndarray(2, Grain.dtype, np.zeros(100, "u1"), 8),), {}, "wanted a multiple of 16"),
    ],
    ids=range(7),
)  # fmt: skip
def test_memory_that_cannot_be_used(arguments: Any, fields: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        Grain.array(*arguments, copy=False, **fields)
    assert text in str(error.value)
    assert str(error.value).startswith("Grain.array(copy=False): ")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ([[1.0, 2.0]], "shows no memory to share; leave copy=False out"),
        (WithoutMemory(), "shows no memory to share; leave copy=False out"),
        (np.zeros((2, 2)), "'at' is a vec2: wanted (n, 2) of float32, found (2, 2) of float64"),
        (np.zeros((2, 3), "f4"), "'at' is a vec2: wanted (n, 2) of float32, found (2, 3) of float32"),
        (np.zeros((2, 2), "f4", order="F"), "the array is not contiguous"),
    ],
    ids=range(5),
)
def test_fields_that_cannot_be_shared(field: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        Spot.array(at=field, copy=False)
    assert text in str(error.value)


@pytest.mark.cuda
def test_memory_elsewhere() -> None:
    import cupy

    for memory, device in ((np.zeros((2, 2), "f4"), "cuda"), (cupy.zeros((2, 2), "f4"), "cpu")):
        with pytest.raises(DeviceError, match=r"the memory lies on '(cpu|cuda)', and the array would be on"):
            Spot.array(at=memory, device=device, copy=False)
    with pytest.raises(DeviceError, match="the memory lies on 'cpu', and the array would be on 'cuda'"):
        Grain.array(values(), device="cuda", copy=False)


# ------------------------------------------------------------ fields in one piece


@pytest.mark.parametrize("layout", ALL, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_a_contiguous_copy_of_a_field(layout: lw.Layout, device: str) -> None:
    array = Grain.array(values(), layout=layout, device=device)
    for name in ("position", "mass"):
        copy = array.contiguous(name)
        assert copy.flags.c_contiguous
        assert type(copy).__name__ == "ndarray"
        assert copy.tolist() == getattr(array, name).tolist()
        copy[...] = -1
        assert getattr(array, name).min() > -1
    with pytest.raises(ArgumentError, match="Grain has no field 'posiiton'; did you mean 'position'"):
        array.contiguous("posiiton")


@pytest.mark.parametrize("copy", ["yes", 1, np.ones(2)])
def test_a_copy_is_asked_for_by_a_truth_value(copy: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^to_structured: copy is .*; wanted True, False or None"):
        Grain.array(values()).to_structured(copy)
