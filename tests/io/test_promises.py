"""What a header promises is read or refused by name: random headers against what is in the file."""

from __future__ import annotations

import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.io.formats import read_particles, write_particles
from lanewise.io.gadget import read_gadget
from lanewise.io.particles import Particles
from lanewise.support.errors import FileWarning, InputError
from tests.io.samples import particles

TYPES = 8


@dataclass(frozen=True)
class Snapshot:
    """A Gadget file: counts that it promises and holds, by type; where masses are; and what the whole snapshot holds."""

    promised: tuple[int, ...]
    held: tuple[int, ...]
    masses: tuple[str, ...]
    total: tuple[int, ...] | None
    high: tuple[int, ...] | None

    def write(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            header = file.create_group("Header").attrs
            header["NumPart_ThisFile"] = np.array(self.promised, np.int32)
            header["MassTable"] = np.array([k + 1.0 if m == "table" else 0.0 for k, m in enumerate(self.masses)])
            if self.total is not None:
                header["NumPart_Total"] = np.array(self.total, np.uint32)
            if self.high is not None:
                header["NumPart_Total_HighWord"] = np.array(self.high, np.uint32)
            for kind, count in enumerate(self.held):
                if count == 0:
                    continue
                group = file.create_group(f"PartType{kind}")
                group["Coordinates"] = np.full((count, 3), 10.0 * kind) + np.arange(count)[:, None]
                group["Velocities"] = np.full((count, 3), -1.0 * kind)
                if self.masses[kind] == "rows":
                    group["Masses"] = np.full(count, 5.0 + kind)

    @property
    def whole(self) -> bool:
        """Whether a reader of types 0 to 5 can give all that is promised."""
        promised = (*self.promised, *(0,) * (TYPES - len(self.promised)))
        total = self.promised if self.total is None else self.total
        same = promised == self.held and (*total, *(0,) * (TYPES - len(total))) == promised and not any(self.high or ())
        table = len(self.masses)
        named = all(not n or m != "none" for n, m in zip(self.held[:table], self.masses, strict=False))
        return same and named and not any(self.held[6:]) and any(self.held)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    length = draw(st.integers(1, TYPES))
    held = [draw(st.sampled_from((0, 0, 1, 3))) for _ in range(length)] + [0] * (TYPES - length)
    promised = [*held[:length]]
    if draw(st.booleans()):
        promised[draw(st.integers(0, length - 1))] += draw(st.integers(0, 2))
    if draw(st.integers(0, 5)) == 0:
        held[draw(st.integers(0, TYPES - 1))] = 0
    total = draw(st.none() | st.just(tuple(promised)) | st.tuples(*[st.integers(0, 3)] * length))
    high = draw(st.none() | st.just((0,) * length) | st.just((0,) * (length - 1) + (1,)))
    masses = tuple(draw(st.sampled_from(("rows", "rows", "table", "table", "none"))) for _ in range(TYPES))
    return Snapshot(tuple(promised), tuple(held), masses, total, high)


def check(snapshot: Snapshot) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.hdf5"
        snapshot.write(path)
        if not snapshot.whole:
            with pytest.raises(InputError, match="PartType"):
                read_gadget(path)
            return
        found = read_gadget(path)
        kinds = np.repeat(np.arange(TYPES), snapshot.held)
        assert found.component.tolist() == kinds.tolist()
        wanted = [k + 1.0 if snapshot.masses[k] == "table" else 5.0 + k for k in kinds]
        assert found.mass.tolist() == wanted
        assert found.velocity[:, 0].tolist() == (-1.0 * kinds).tolist()


@settings(max_examples=60)
@given(snapshots())
def test_a_header_is_met_or_refused(snapshot: Snapshot) -> None:
    check(snapshot)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(snapshots())
def test_many_headers_are_met_or_refused(snapshot: Snapshot) -> None:
    check(snapshot)


SIGNS: list[tuple[str, str, float]] = [
    ("Header", "Redshift", 2e-16), ("Header", "Omega0", 0.3), ("Header", "OmegaLambda", 0.7), ("Header", "OmegaBaryon", 0.04),
    ("Header", "HubbleParam", 0.7), ("Header", "ComovingIntegrationOn", 1), ("Parameters", "ComovingIntegrationOn", 1),
    ("Parameters", "Omega0", 0.31), ("Cosmology", "Cosmological run", 1), ("Header", "Redshift", np.nan), ("Header", "Dimension", 2),
]  # fmt: skip


def good(path: Path, edit: Callable[[Any], None] = lambda file: None) -> Path:
    with h5py.File(path, "w") as file:
        header = file.create_group("Header").attrs
        header["NumPart_ThisFile"] = [0, 3, 0, 0, 0, 0]
        header["Time"], header["HubbleParam"] = 1.0, 1.0
        group = file.create_group("PartType1")
        group["Coordinates"] = group["Velocities"] = np.eye(3)
        group["Masses"] = np.ones(3)
        edit(file)
    return path


@pytest.mark.parametrize(("group", "name", "value"), SIGNS)
def test_every_sign_of_expansion_is_refused_by_its_name(group: str, name: str, value: float, tmp_path: Path) -> None:
    path = good(tmp_path / "a.hdf5", lambda file: file.require_group(group).attrs.__setitem__(name, value))
    named = "redshift" if name == "Redshift" else f"{name} in {group}"
    with pytest.raises(InputError, match=named):
        read_particles(path)


def test_signs_of_none_are_read(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        file.create_group("Parameters").attrs["ComovingIntegrationOn"] = 0
        file["Header"].attrs.update({"Redshift": 0.0, "Omega0": 0.0, "OmegaLambda": 0.0, "BoxSize": 0.0})

    assert len(read_particles(good(tmp_path / "a.hdf5", edit))) == 3


OFF = [("Header", "ComovingIntegrationOn"), ("Parameters", "ComovingIntegrationOn"), ("Cosmology", "Cosmological run")]


@pytest.mark.parametrize("switch", OFF)
@pytest.mark.parametrize(("group", "name", "value"), SIGNS)
def test_a_run_that_says_it_does_not_expand_is_believed_or_refused_by_name(
    group: str, name: str, value: float, switch: tuple[str, str], tmp_path: Path
) -> None:
    """Its cosmology is one that it has not used; a redshift or another switch denies what it says."""

    def edit(file: Any) -> None:
        file.require_group(switch[0]).attrs[switch[1]] = 0
        file.require_group(group).attrs[name] = value

    path = good(tmp_path / "a.hdf5", edit)
    if name.startswith("Omega"):
        assert len(read_particles(path)) == 3
    elif name == "Redshift":
        denied = (
            f"{switch[1]} in {switch[0]} is 0, but the snapshot is at redshift {value:g}; wanted one without expansion"
        )
        with pytest.raises(InputError, match=re.escape(denied)):
            read_particles(path)
    else:
        with pytest.raises(InputError, match=f"{name} in {group}"):
            read_particles(path)


def test_a_box_is_said(tmp_path: Path) -> None:
    path = good(tmp_path / "a.hdf5", lambda file: file["Header"].attrs.__setitem__("BoxSize", 100.0))
    with pytest.warns(FileWarning, match="BoxSize in Header is 100, and is ignored: space is open"):
        assert len(read_particles(path)) == 3


def test_types_without_ids_are_said(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        file["Header"].attrs["NumPart_ThisFile"] = [0, 3, 0, 0, 1, 0]
        file["PartType1/ParticleIDs"] = [7, 8, 9]
        group = file.create_group("PartType4")
        group["Coordinates"] = group["Velocities"] = np.ones((1, 3))
        group["Masses"] = [1.0]

    with pytest.warns(FileWarning, match="PartType4 has no ParticleIDs, so all bodies are numbered anew from 0"):
        assert read_particles(good(tmp_path / "a.hdf5", edit)).ids.tolist() == [0, 1, 2, 3]


OTHERS: dict[str, tuple[Callable[[Any], None], str]] = {
    "no group": (lambda f: f["Header"].attrs.__setitem__("NumPart_ThisFile", [0, 3, 0, 0, 5, 0]), "Header promises 5 bodies of PartType4; there is no group PartType4"),
    "no coordinates": (lambda f: f.__delitem__("PartType1/Coordinates"), "/PartType1 has no Coordinates (it has Masses, Velocities)"),
    "a seventh type": (lambda f: f.copy("PartType1", "PartType6"), "there are 3 bodies of PartType6; wanted those of PartType0 to PartType5"),
    "more in the snapshot": (lambda f: f["Header"].attrs.__setitem__("NumPart_Total", [0, 8, 0, 0, 0, 0]), "Header promises 8 bodies of PartType1 in the whole snapshot (NumPart_Total), and this file holds 3"),
    "a high word alone": (lambda f: f["Header"].attrs.__setitem__("NumPart_Total_HighWord", [0, 1]), "Header promises 4294967299 bodies of PartType1 in the whole snapshot (NumPart_Total), and this file holds 3"),
    "half a body": (lambda f: f["Header"].attrs.__setitem__("NumPart_ThisFile", [0, 2.5]), "NumPart_ThisFile in Header is [0.0, 2.5]; wanted a number of bodies for each type"),
    "two masses": (lambda f: f["Header"].attrs.__setitem__("MassTable", [0, 2.0]), "/PartType1 has Masses, and MassTable in Header says 2 for each; wanted one of them"),
    "ids twice": (lambda f: f.__setitem__("PartType1/ParticleIDs", [7, 8, 7]), "ids of bodies 0 and 2 are both 7; wanted each once"),
    "a second group of a type": (lambda f: f.copy("PartType1", "PartType01"), "there is a group PartType01; wanted PartType0 to PartType5, written so"),
    "a type of many digits": (lambda f: f.copy("PartType1", "PartType12345"), "there is a group PartType12345; wanted PartType0 to PartType5, written so"),
    "a type that is a number": (lambda f: f.__setitem__("PartType0", 3.0), "/PartType0 is no group; wanted the datasets of a type"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_promises(name: str, tmp_path: Path) -> None:
    edit, message = OTHERS[name]
    path = good(tmp_path / "a.hdf5", edit)
    with pytest.raises(InputError, match=re.escape(message)):
        read_particles(path)


# ------------------------------------------------------------ what a format cannot hold


def bodies(draw: st.DrawFn) -> Particles:
    found = draw(particles())
    if draw(st.booleans()):
        found = replace(found, ids=np.arange(len(found)), component=np.sort(found.component), time=0.0, softening=None)
    if draw(st.booleans()):
        found = replace(found, component=np.ones(len(found), np.uint8))
    return found


def names(found: Particles) -> tuple[Any, ...]:
    """What tells bodies apart, with where they are."""
    return found.position.tolist(), found.ids.tolist(), found.component.tolist()


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".csv", ".tipsy"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_round_trip_that_changes_bodies_says_so(suffix: str, data: st.DataObject) -> None:
    """Ids, order, components, time and softening: the same, or a warning that names what is lost; never one without the other."""
    written = data.draw(st.composite(bodies)())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            write_particles(path, written)
        found = read_particles(path)
    said = [str(w.message) for w in said if w.category is FileWarning]
    same = names(found) == names(written)
    if suffix != ".tipsy":
        same = same and (found.time, found.softening) == (written.time, written.softening)
    assert same == (not said), said


def test_what_is_lost_is_named(tmp_path: Path) -> None:
    lost = Particles.of(np.eye(3), np.eye(3), 1.0, ids=[7, 8, 9], component=[4, 2, 1], time=2.5, softening=0.1)
    text = (
        "Tipsy has no place for the order of bodies, which come back as gas, dark and stars and ids, which come back as "
        "0 to n-1 and component 2, which comes back as 4"
    )
    with pytest.warns(FileWarning, match=text):
        write_particles(tmp_path / "a.tipsy", lost)
    with pytest.warns(FileWarning, match=r"a\.csv: CSV has no place for the time 2.5 and the softening 0.1"):
        write_particles(tmp_path / "a.csv", lost)


HEADER = "x,y,z,vx,vy,vz,mass"
TABLES = {
    "x;y;z;vx;vy;vz;mass\n1;2;3;4;5;6;7\n": "line 1: columns are separated by semicolons; wanted commas",
    "x y z vx vy vz mass\n1 2 3 4 5 6 7\n": "line 1: columns are separated by spaces; wanted commas",
    "x\ty\tz\tvx\tvy\tvz\tmass\n": "line 1: columns are separated by tabs; wanted commas",
    f"name,{HEADER}\na,1,2,3,4,5,6,7\n": "line 1, column 1: unknown column 'name'; leave it out, bodies are distinguished by",
    "x,y,z,vx,vy,vz,m\n1,2,3,4,5,6,7\n": "line 1, column 7: unknown column 'm'; did you mean 'mass'?",
    f"{HEADER}\n1_0,2,3,4,5,6,7\n": "line 2, column 1 (x): '1_0'; wanted a finite number",
    f"{HEADER}\n1,2,3,4,5,6,١٢\n": "line 2, column 7 (mass): '١٢'; wanted a finite number",
    f"{HEADER},id\n1,2,3,4,5,6,7,1_0\n": "line 2, column 8 (id): '1_0'; wanted an integer",
    f"{HEADER},id\n1,2,3,4,5,6,7,7\n1,2,3,4,5,6,7,7\n": "ids of bodies 0 and 1 are both 7; wanted each once",
}


@pytest.mark.parametrize("text", TABLES)
def test_tables_that_are_nearly_right(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(TABLES[text])):
        read_particles(tmp_path / "a.csv")


PLAIN = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


@settings(max_examples=80)
@given(st.text("0123456789.eE+-_ xnaif\u0661\u0662\u00b2", min_size=1, max_size=6))
def test_numbers_are_those_of_the_plain_grammar(cell: str) -> None:
    """Digits, a point and an exponent; what Python alone reads is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(f"{HEADER}\n{cell},2,3,4,5,6,7\n", encoding="utf-8")
        plain = PLAIN.fullmatch(cell) is not None and np.isfinite(float(cell))
        if plain:
            assert read_particles(path).position[0, 0] == float(cell)
        else:
            with pytest.raises(InputError, match=r"column 1 \(x\)|there are no bodies"):
                read_particles(path)


# ------------------------------------------------------------ arrays and archives that promise more than they hold


def grown_header(data: bytes) -> bytes:
    """An .npy member whose header promises 2^36 rows."""
    old = re.search(rb"'shape': \([^)]*\), }( *)", data)
    assert old is not None
    new = b"'shape': (68719476736, 3), }"
    return data.replace(old[0], new + b" " * (len(old[0]) - len(new)))


def test_an_archive_that_promises_more_than_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, position=np.eye(3), velocity=np.eye(3), mass=np.ones(3))
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members["position.npy"] = grown_header(members["position.npy"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(
        InputError,
        match=r"position is \(68719476736, 3\) of float64, which is 1,649,267,441,\d+ bytes, and the archive",
    ):
        read_particles(path)


def test_messages_hold_no_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, position=np.eye(3), velocity=np.eye(3), mass=np.ones(3))
    data = bytearray(path.read_bytes())
    for k in range(26, 28):
        data[k] = 0xFF  # the length of the first name: what follows is taken for it
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_particles(path)
    assert len(str(error.value)) < 260 + len(str(path))
    assert "\\x" not in str(error.value)


@pytest.mark.parametrize("options", [{"chunks": (2**20,)}, {}, {"chunks": (2**20,), "compression": "gzip"}], ids=str)
def test_a_dataset_of_which_nothing_is_stored_takes_no_memory(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    lw.save(path, np.zeros(4))
    with h5py.File(path, "r+") as file:
        del file["array/values"]
        file["array"].create_dataset("values", (2**28,), "f8", **options)
    with pytest.raises(InputError, match=r"array/values is .* which is 2,147,483,648 bytes, and 0 are stored"):
        lw.load(path)
