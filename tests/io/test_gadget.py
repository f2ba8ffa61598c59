"""Gadget HDF5: what is written, what is read, and what yt and pynbody make of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.io.gadget import read_gadget
from lanewise.io.gadget_writing import write_gadget
from lanewise.io.hdf5 import open_hdf5
from lanewise.io.particles import Particles
from lanewise.support.errors import InputError
from tests.io.samples import assert_same, mixed, renew_sums


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A small snapshot as other programs write it: two types, a MassTable, a box, no time unit, no ids."""
    path = tmp_path / "snapshot.hdf5"
    with h5py.File(path, "w") as file:
        header = file.create_group("Header").attrs
        header["NumPart_ThisFile"] = np.array([0, 2, 0, 0, 3, 0], np.int32)
        header["MassTable"] = np.array([0, 0.25, 0, 0, 0, 0])
        header["Time"] = np.array([1.5])
        header["BoxSize"] = 0.0
        for kind, count in ((1, 2), (4, 3)):
            group = file.create_group(f"PartType{kind}")
            group["Coordinates"] = np.full((count, 3), float(kind), np.float32)
            group["Velocities"] = np.full((count, 3), kind / 2, np.float32)
        file["PartType4/Masses"] = np.array([1, 2, 3], np.float32)
        file["PartType4/Density"] = np.zeros(3)
    return path


def test_reads_several_types_mass_table_and_what_is_missing(snapshot: Path) -> None:
    bodies = read_gadget(snapshot)
    assert bodies.mass.tolist() == [0.25, 0.25, 1.0, 2.0, 3.0]
    assert bodies.component.tolist() == [1, 1, 4, 4, 4]
    assert bodies.position[:, 0].tolist() == [1.0, 1.0, 4.0, 4.0, 4.0]
    assert bodies.velocity[:, 2].tolist() == [0.5, 0.5, 2.0, 2.0, 2.0]
    assert bodies.ids.tolist() == [0, 1, 2, 3, 4]
    assert (bodies.time, bodies.softening) == (1.5, None)


def change(edit: Callable[[Any], None], path: Path) -> None:
    with h5py.File(path, "r+") as file:
        edit(file)
        renew_sums(file)


def remove(name: str) -> Callable[[Any], None]:
    return lambda file: file.__delitem__(name)


def replace(name: str, value: Any) -> Callable[[Any], None]:
    def edit(file: Any) -> None:
        del file[name]
        file[name] = value

    return edit


def header(name: str, value: Any) -> Callable[[Any], None]:
    return lambda file: file["Header"].attrs.__setitem__(name, value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            remove("Header"),
            "this HDF5 file has no group Header (it has PartType1, PartType4); wanted a Gadget snapshot",
        ),
        (remove("PartType4/Masses"), "/PartType4 has no Masses (it has Coordinates, Density, Velocities)"),
        (remove("PartType1/Velocities"), "/PartType1 has no Velocities (it has Coordinates)"),
        (replace("PartType4/Masses", np.ones(2)), "/PartType4/Masses has shape (2,); wanted (3,)"),
        (replace("PartType4/Coordinates", np.ones((3, 2))), "/PartType4/Coordinates has shape (3, 2); wanted (3, 3)"),
        (replace("PartType4/Masses", [1.0, np.nan, 2.0]), "mass of body 3 is nan; wanted a finite number"),
        (replace("PartType4/Masses", [b"a", b"b", b"c"]), "PartType4/Masses holds object; wanted numbers"),
        (
            header("NumPart_ThisFile", np.array([0, 2, 0, 0, 5, 0])),
            "Header promises 5 bodies of PartType4; its Coordinates hold 3",
        ),
        (header("NumFilesPerSnapshot", 8), "this is one of 8 files of a snapshot; wanted a snapshot in a single file"),
        (header("Redshift", 2.0), "this is a comoving snapshot at redshift 2; wanted one without expansion"),
        (header("Time", np.nan), "time is nan; wanted a finite number"),
        (header("Time", "now"), "Time in Header is "),
        (header("Redshift", 1j), "Redshift in Header is "),
        (header("Redshift", np.zeros(3)), "Redshift in Header is <array of float64 with shape (3,)>; wanted a number"),
        (
            header("MassTable", np.full(6, 1j)),
            "MassTable in Header is <array of complex128 with shape (6,)>; wanted numbers",
        ),
        (
            lambda file: [*(file.__delitem__(f"PartType{k}") for k in (1, 4)), header("NumPart_ThisFile", [0])(file)],
            "there are no bodies in PartType0 to PartType5",
        ),
    ],
)
def test_refused(snapshot: Path, edit: Callable[[Any], None], message: str) -> None:
    change(edit, snapshot)
    with pytest.raises(InputError, match="^" + re.escape(f"{snapshot}: {message}")):
        read_gadget(snapshot)


def test_order_of_mixed_types_survives_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_gadget(path, mixed())
    assert_same(read_gadget(path), mixed())
    change(replace("PartType1/LanewiseOrder", np.zeros(7, np.int64)), path)
    with pytest.raises(InputError, match="the datasets LanewiseOrder do not number the bodies from 0 to 39"):
        read_gadget(path)


def test_no_order_is_stored_when_bodies_are_sorted(tmp_path: Path) -> None:
    write_gadget(tmp_path / "a.h5", Particles.of(np.zeros((3, 3)), np.zeros((3, 3)), 1.0, component=[1, 1, 4]))
    with h5py.File(tmp_path / "a.h5") as file:
        assert sorted(file["PartType1"]) == ["Coordinates", "Masses", "ParticleIDs", "Velocities"]


@pytest.mark.parametrize(("precision", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_precision(tmp_path: Path, precision: Any, dtype: type) -> None:
    write_gadget(tmp_path / "a.h5", mixed(), precision=precision)
    with h5py.File(tmp_path / "a.h5") as file:
        assert {file["PartType0"][name].dtype for name in ("Coordinates", "Velocities", "Masses")} == {np.dtype(dtype)}
        assert file["Header"].attrs["Flag_DoublePrecision"] == (precision == "f64")
    assert_same(read_gadget(tmp_path / "a.h5"), mixed())


def test_too_large_for_float32(tmp_path: Path) -> None:
    huge = Particles.of(np.zeros((2, 3)), np.zeros((2, 3)), [1.0, 1e40])
    with pytest.raises(InputError, match="mass of body 1 does not fit into float32"):
        write_gadget(tmp_path / "a.h5", huge, precision="f32")
    assert list(tmp_path.iterdir()) == []


def test_extra_group_goes_into_the_same_file(tmp_path: Path) -> None:
    write_gadget(tmp_path / "a.h5", mixed(), extra=lambda file: file.create_group("lanewise").attrs.update(step=7))
    assert_same(read_gadget(tmp_path / "a.h5"), mixed())
    with open_hdf5(tmp_path / "a.h5") as file:
        assert file["lanewise"].attrs["step"] == 7


def test_failing_extra_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_gadget(path, mixed())
    with pytest.raises(ZeroDivisionError):
        write_gadget(path, mixed(3), overwrite=True, extra=lambda file: 1 / 0)
    assert_same(read_gadget(path), mixed())
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def three_types(tmp_path: Path) -> tuple[Path, Particles]:
    """Halo, disc and stars around the origin, with negative coordinates and a body far out."""
    random = np.random.default_rng(5)
    position = random.standard_normal((60, 3))
    position[17] *= 50.0
    kinds = np.repeat([1, 2, 4], 20)
    bodies = Particles.of(position, random.standard_normal((60, 3)), random.random(60) + 1, component=kinds, time=0.5)
    path = tmp_path / "snapshot.hdf5"
    write_gadget(path, bodies, extra=lambda file: file.create_group("lanewise"))
    return path, bodies


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_yt_reads_it(three_types: tuple[Path, Particles]) -> None:
    yt = pytest.importorskip("yt")
    path, bodies = three_types
    yt.set_log_level(50)
    data = yt.load(str(path)).all_data()
    for kind in (1, 2, 4):
        chosen = bodies.component == kind
        order = np.argsort(data[f"PartType{kind}", "ParticleIDs"].v)
        for name, values in (
            ("particle_position", bodies.position),
            ("particle_velocity", bodies.velocity),
            ("particle_mass", bodies.mass),
        ):
            found = data[f"PartType{kind}", name].to(f"code_{name.partition('_')[2]}".replace("position", "length"))
            np.testing.assert_allclose(found.v[order], values[chosen], rtol=1e-6)


def test_pynbody_reads_it(three_types: tuple[Path, Particles]) -> None:
    pynbody = pytest.importorskip("pynbody")
    path, bodies = three_types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        snap = pynbody.load(str(path))
        assert (len(snap.dm), len(snap.star)) == (40, 20)
        order = np.argsort(np.asarray(snap["iord"]))
        for name, values in (("pos", bodies.position), ("vel", bodies.velocity), ("mass", bodies.mass)):
            np.testing.assert_array_equal(np.asarray(snap[name])[order], values)
