"""`lw.save` and `lw.load`: what comes back, what is refused, and what is said of files that are damaged or of another
kind.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import InputError
from tests.io.samples import renew_sums
from tests.layouts.test_layouts import ALL
from tests.pickled_kernels import Grain

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]


def grains(layout: Any = None, count: int = 5, device: str | None = None) -> Any:
    rng = np.random.default_rng(0)
    return Grain.array(
        position=rng.random((count, 3), "f4"), mass=rng.random(count), kind=np.arange(count), alive=np.arange(count) % 2 == 0,
        layout=layout, device=device,
    )  # fmt: skip


def assert_same(a: Any, b: Any) -> None:
    assert (a.record, a.layout, len(a)) == (b.record, b.layout, len(b))
    for name, values in a.numpy().items():
        assert values.tobytes() == b.numpy()[name].tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", [*ALL, lw.SoAoAS((("position.x", "kind"), ("mass",)))], ids=str)
def test_records_in_every_layout(layout: lw.Layout, device: str, tmp_path: Path) -> None:
    array = grains(layout, device=device)
    array.mass = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\x7f" * 5)  # NaN with a payload
    lw.save(tmp_path / "a.h5", array)
    back = lw.load(tmp_path / "a.h5", device=device)
    assert_same(array, back)
    assert (type(back[0]), back.device) == (Grain, device)
    lw.save(tmp_path / "b.hdf5", array[1::2], overwrite=True)
    assert_same(array[1::2].copy(), lw.load(tmp_path / "b.hdf5"))
    assert lw.load(tmp_path / "a.h5", layout=lw.AoSoA(2), device="cpu").layout == lw.AoSoA(2)
    lw.save(tmp_path / "a.h5", array[:0], overwrite=True)
    assert_same(array[:0].copy(), lw.load(tmp_path / "a.h5"))


@pytest.mark.parametrize("device", DEVICES)
def test_several_arrays_of_several_kinds(device: str, tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "zeta": grains(lw.AoSoA(4), device=device),
        "forces": np.arange(12, dtype="f4").reshape(4, 3).T,
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3)),
        "half": np.ones((2, 1, 2), "f2"),
        "lists": lw.ragged([[1.5, 2.5], [], [3.5]], device=device),
        "nested": lw.ragged([[[1, 2], []], []], kind=lw.i32, device=device),
        "vectors": lw.ragged(np.arange(6.0).reshape(3, 2), counts=[1, 0, 2], kind=lw.vec2, device=device),
        "grains": lw.ragged(grains(lw.AoS(), device=device), counts=[2, 0, 3]),
        "nobody": lw.ragged(grains(count=2, device=device)[:0].copy(), counts=[0, 0]),
    }
    lw.save(tmp_path / "all.h5", **parts)
    back = lw.load(tmp_path / "all.h5", device=device)
    assert list(back) == list(parts)
    for name in ("forces", "flags", "empty", "half"):
        assert (back[name].dtype, back[name].shape) == (parts[name].dtype, parts[name].shape)
        assert back[name].tolist() == parts[name].tolist()
    assert_same(back["zeta"], parts["zeta"])
    for name in ("lists", "nested", "vectors", "grains", "nobody"):
        assert back[name].tolist() == parts[name].tolist()
        assert (back[name].kind, back[name].levels, back[name].device) == (parts[name].kind, parts[name].levels, device)
    assert back["grains"].data.layout == lw.AoS()
    lw.save(tmp_path / "one.h5", parts["nested"][0])
    assert lw.load(tmp_path / "one.h5").tolist() == [[1, 2], []]


def test_arrays_of_other_libraries(tmp_path: Path) -> None:
    class OnlyDLPack:
        def __init__(self) -> None:
            self.array = np.arange(3.0)

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    lw.save(tmp_path / "a.h5", OnlyDLPack())
    assert lw.load(tmp_path / "a.h5").tolist() == [0, 1, 2]
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5") as file:  # plain HDF5: any reader sees what is there
        assert file["array/values"][:].tolist() == [0, 1, 2]


# ------------------------------------------------------------ what is not written


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((tmp_path / "a.npz", grains()), {}, "a.npz: the ending is .npz; wanted .h5 or .hdf5"),
        ((tmp_path / "a", grains()), {}, "a: the ending is missing; wanted .h5 or .hdf5"),
        ((tmp_path / "no" / "a.h5", grains()), {}, "the folder "),
        ((path,), {}, "lw.save takes one array, or arrays by their names, found none"),
        ((path, grains()), {"b": grains()}, "found both"),
        ((path, [1.0, "a"]), {}, "lw.save: 'array': an array of numbers is needed"),
        ((path,), {"x": 3.0}, "lw.save: 'x' is a single value, found 3.0; wanted an array"),
        ((path,), {"x": Grain()}, "lw.save: 'x'"),
    ]
    for arguments, named, text in cases:
        with pytest.raises(InputError) as error:
            lw.save(*arguments, **named)
        assert text in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    lw.save(path, grains())
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"a.h5: the file exists already; overwrite=True replaces it"):
        lw.save(path, grains(count=2))
    with pytest.raises(InputError):
        lw.save(path, good=grains(), bad="text", overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]
    lw.save(path, grains(count=2), overwrite=True)
    assert len(lw.load(path)) == 2


class Odd(lw.SoA):
    """A layout without a name that files know."""

    def __str__(self) -> str:
        return "Odd"


def test_a_layout_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no file has a name for the layout Odd; save it \.with_layout\(lw\.SoA\(\)\)"
    ):
        lw.save(tmp_path / "a.h5", grains(Odd()))


# ------------------------------------------------------------ the classes of records


def test_the_class_that_is_asked_for(tmp_path: Path) -> None:
    class Speck(lw.Record):
        mass: lw.f64
        position: lw.vec3
        kind: lw.i32
        alive: lw.bool

    class Other(lw.Record):
        position: lw.vec2
        mass: lw.f64
        charge: lw.f32
        alive: lw.bool

    path = tmp_path / "a.h5"
    lw.save(path, a=grains(), b=lw.ragged(grains(), counts=[5]))
    back = lw.load(path, record=Speck)  # the same fields, in another order
    assert (type(back["a"][0]), type(back["b"].data[0])) == (Speck, Speck)
    assert back["a"].mass.tolist() == grains().mass.tolist()
    assert type(lw.load(path, record={"b": Speck})["a"][0]) is Grain
    with pytest.raises(InputError) as error:
        lw.load(path, record=Other)
    assert str(error.value) == (
        f"{path}: the records of 'a' are no Other of tests.test_array_files: 'position' is vec3 in the file and vec2 in the class; only the "
        "file has 'kind' (i32); only the class has 'charge' (f32)"
    )
    with pytest.raises(InputError, match="there is no array 'c'; the file has a, b"):
        lw.load(path, record={"c": Speck})
    with pytest.raises(InputError, match="record is a record class, or a mapping from arrays to them, found 3"):
        lw.load(path, record=3)


def test_a_class_that_has_changed_and_one_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", module)

    def body(**types: Any) -> Any:
        made = type("Body", (), {"__annotations__": types, "__module__": "only_here", "__qualname__": "Body"})
        module.Body = lw.record(made)  # type: ignore[attr-defined]
        return module.Body  # type: ignore[attr-defined]

    path = tmp_path / "a.h5"
    lw.save(path, body(mass=lw.f32).array(mass=[1, 2]))
    changed = body(mass=lw.f32, id=lw.i64)
    with pytest.raises(InputError) as error:
        lw.load(path)
    assert str(error.value).endswith(
        "the records of 'array' are no Body of only_here: only the class has 'id' (i64); give record=, a class of Body(mass: f32)"
    )
    del module.Body
    back = lw.load(path)
    assert (str(back.record), back.mass.tolist()) == ("Body(mass: f32)", [1, 2])
    assert type(back[0]) is not changed


# ------------------------------------------------------------ files that are wrong


def test_files_of_other_kinds(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    cases: list[tuple[Any, str]] = [
        (lambda: path.unlink(missing_ok=True), "there is no such file"),
        (path.touch, "the file is empty; wanted a file that lw.save has written"),
        (lambda: path.write_bytes(b"text"), "this is no HDF5 file; wanted a file that lw.save has written"),
        (lambda: h5py.File(path, "w").close(), "this is another HDF5 file; wanted a file that lw.save has written"),
    ]
    for make, text in cases:
        make()
        with pytest.raises(InputError) as error:
            lw.load(path)
        assert str(error.value) == f"{path}: {text}"
    with pytest.raises(InputError, match=r"this is a folder; wanted a file that lw.save has written"):
        lw.load(tmp_path)


def test_contents_that_do_not_fit(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"

    def replace(place: str, values: Any) -> Any:
        def change(file: Any) -> None:
            del file[place]
            file[place] = values

        return change

    def attribute(group: str, name: str, value: Any) -> Any:
        return lambda file: file[group].attrs.__setitem__(name, value)

    cases: list[tuple[Any, str]] = [
        (lambda file: file.attrs.__setitem__("version", 9), "version 9 of the format; this lanewise reads up to 2"),
        (lambda file: file.attrs.__setitem__("names", "3"), "damaged file: its list of arrays is none"),
        (lambda file: file.attrs.__setitem__("names", "{"), "damaged HDF5 file"),
        (lambda file: file.__delitem__("g"), "damaged file: there is no array 'g'"),
        (lambda file: file.__delitem__("g/fields/mass"), "damaged file: there is no array g/fields/mass"),
        (attribute("/", "alone", 1), "damaged file: its list of arrays is ['g', 'r'], and alone is 1"),
        (attribute("/", "alone", np.zeros(3)), "damaged file: alone of the file is <array of float64"),
        (attribute("/", "names", '["g", "g"]'), "damaged file: its list of arrays is ['g', 'g'], and alone is 0"),
        (attribute("/", "version", "x"), "damaged file: version of the file is 'x'; wanted 0 to 2,147,483,648"),
        (attribute("g", "record", "x: import os"), "the record of 'g' has the name 'x: import os'"),
        (
            attribute("g", "fields", '[["mass", "f64"], ["mass", "f64"]]'),
            "has the name 'mass'; wanted names, each once",
        ),
        (attribute("g", "layout", f"aosoa({2**40})"), "the width must be a power of two from 1 to 1024"),
        (attribute("g", "count", 2.5), "damaged file: count of 'g' is 2.5; wanted 0 to 281,474,976,710,656"),
        (attribute("r", "levels", 10**9), "damaged file: levels of 'r' is 1000000000; wanted 0 to 64"),
        (attribute("g", "kind", np.arange(3)), "damaged file: kind of 'g' is no text"),
        (replace("g/fields/mass", np.zeros(3)), "damaged file: g.mass is (3,) of float64; wanted (5,) of float64"),
        (replace("g/fields/kind", np.zeros(5)), "damaged file: g.kind is (5,) of float64; wanted (5,) of int32"),
        (attribute("g", "kind", "tree"), "damaged file: 'g' is of the unknown kind 'tree'"),
        (attribute("g", "fields", "[]"), "damaged file: the fields of 'g' are no names and types"),
        (attribute("g", "fields", '[["mass", "f128"]]'), "damaged file: 'g' holds values of the unknown type 'f128'"),
        (attribute("g", "layout", "hexagons"), "unknown layout 'hexagons'"),
        (attribute("g", "count", 4), "damaged file: g.position is (5, 3) of float32; wanted (4, 3) of float32"),
        (
            replace("r/offsets/0", np.array([0, 3, 2, 3])),
            "damaged file: the offsets of level 0 of r do not go from 0 to 3",
        ),
        (
            replace("r/offsets/0", np.array([0, 3, 3, 4])),
            "damaged file: the offsets of level 0 of r do not go from 0 to 3",
        ),
        (replace("r/values", np.zeros(3, "f4")), "damaged file: r is (3,) of float32; wanted values of f64"),
        (attribute("r", "levels", 0), "damaged file: r has no offsets"),
    ]
    for change, text in cases:
        lw.save(path, g=grains(), r=lw.ragged([[1.5, 2.5], [], [3.5]]), overwrite=True)
        with h5py.File(path, "r+") as file:
            change(file)
            renew_sums(file)
        with pytest.raises(InputError) as error:
            lw.load(path)
        assert str(error.value).startswith(f"{path}: ")
        assert text in str(error.value)


def test_no_wrong_byte_becomes_another_number(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    array = grains()
    lw.save(path, array)
    content = path.read_bytes()
    refused: list[str] = []
    for place in range(0, len(content), 23):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            back = lw.load(path)
        except InputError as error:
            refused.append(str(error))
        else:
            assert_same(array, back)
    assert len(refused) > 50
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in refused)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    lw.save(path, grains(count=5000))
    content = path.read_bytes()
    for length in (9, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="damaged HDF5 file"):
            lw.load(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "/a", "a//b", "a/../b", "a\0b"])
def test_names_that_no_group_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        lw.save(tmp_path / "a.h5", **{name: np.zeros(3)})
    assert str(error.value) == f"lw.save: an array cannot be called {name!r}; wanted a name such as 'bodies'"
    assert not (tmp_path / "a.h5").exists()


def test_names_that_lead_into_another_array(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with pytest.raises(InputError, match="the name 'a/fields' leads into the array 'a'"):
        lw.save(path, **{"a/fields": np.zeros(3), "a": grains()})
    lw.save(path, **{"one/a": grains(), "one/b": np.zeros(3)})
    assert sorted(lw.load(path)) == ["one/a", "one/b"]


def test_a_class_for_what_holds_no_records(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    lw.save(path, bodies=grains(), energy=np.zeros(3), lists=lw.ragged([[1.0], []]))
    assert type(lw.load(path, record=Grain)["bodies"][0]) is Grain
    for name in ("energy", "lists"):
        with pytest.raises(
            InputError, match=f"the array '{name}' holds numbers and no records; leave record= out for it"
        ):
            lw.load(path, record={name: Grain})
    lw.save(path, np.zeros(3), overwrite=True)
    with pytest.raises(InputError, match="holds numbers and no records"):
        lw.load(path, record=Grain)


def test_a_layout_for_nothing_but_numbers_is_refused(tmp_path: Path) -> None:
    values = np.arange(3.0)
    lw.save(tmp_path / "numbers.h5", values=values, lists=lw.ragged(values, counts=[1, 2]))
    with pytest.raises(InputError, match=r"holds numbers and no records.*leave layout= out"):
        lw.load(tmp_path / "numbers.h5", layout=lw.AoS())
    lw.save(tmp_path / "both.h5", values=values, bodies=Grain.zeros(2))
    assert lw.load(tmp_path / "both.h5", layout=lw.AoS())["bodies"].layout == lw.AoS()
