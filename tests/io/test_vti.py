"""VTK ImageData files, read back with VTK itself."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lanewise.io.vti import CHUNK, write_vti
from lanewise.support.errors import ArgumentError, InputError

SHAPES = [(3, 5), (2, 3, 5), (1, 1), (1, 4, 1)]


@pytest.fixture(scope="module")
def vtk_image() -> Any:
    """A function that reads a file: vtkImageData."""
    reason = "needs the vtk package (pip install vtk)"
    io: ModuleType = pytest.importorskip("vtkmodules.vtkIOXML", reason=reason)

    def read(path: Path) -> Any:
        reader = io.vtkXMLImageDataReader()
        assert reader.CanReadFile(str(path))
        reader.SetFileName(str(path))
        reader.Update()
        assert reader.GetErrorCode() == 0
        return reader.GetOutput()

    return read


def values(image: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    support = importlib.import_module("vtkmodules.util.numpy_support")
    return support.vtk_to_numpy(image.GetPointData().GetArray(name)).reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_vtk_reads_what_was_written(tmp_path: Path, vtk_image: Any, shape: tuple[int, ...], dtype: str) -> None:
    random, dimension = np.random.default_rng(1), len(shape)
    density = random.normal(size=shape).astype(dtype)
    velocity = random.normal(size=(*shape, dimension)).astype(dtype)
    solid = random.random(shape) < 0.5
    write_vti(tmp_path / "a.vti", {"density": density, "velocity": velocity, "solid": solid}, time=1.25)
    image = vtk_image(tmp_path / "a.vti")
    assert image.GetDimensions() == (*shape[::-1], 1)[:3]
    assert values(image, "density", shape).dtype == dtype
    assert np.array_equal(values(image, "density", shape), density)
    read = values(image, "velocity", (*shape, 3))
    assert read.dtype == dtype
    assert np.array_equal(read[..., :dimension], velocity)
    assert not read[..., dimension:].any()
    assert values(image, "solid", shape).dtype == np.uint8
    assert np.array_equal(values(image, "solid", shape), solid)
    assert image.GetFieldData().GetArray("TimeValue").GetValue(0) == 1.25
    assert image.GetPointData().GetScalars().GetName() == "density"
    assert image.GetPointData().GetVectors().GetName() == "velocity"


def test_a_value_lies_where_its_site_is(tmp_path: Path, vtk_image: Any) -> None:
    density = np.arange(24.0).reshape(2, 3, 4)
    write_vti(tmp_path / "a.vti", {"density": density}, spacing=0.5)
    image = vtk_image(tmp_path / "a.vti")
    number = image.FindPoint(1.70, 0.80, 0.20)  # nearest to the site x = 3, y = 1, z = 0 in sites of 0.5
    assert image.GetPoint(number) == (1.75, 0.75, 0.25)
    assert values(image, "density", (-1,))[number] == density[0, 1, 3]
    assert image.GetBounds() == (0.25, 1.75, 0.25, 1.25, 0.25, 0.75)


def test_a_plane_lies_at_zero_and_an_origin_is_kept(tmp_path: Path, vtk_image: Any) -> None:
    write_vti(tmp_path / "a.vti", {"density": np.ones((3, 4))})
    assert vtk_image(tmp_path / "a.vti").GetBounds() == (0.5, 3.5, 0.5, 2.5, 0.0, 0.0)
    write_vti(tmp_path / "b.vti", {"density": np.ones((3, 4))}, origin=(1e-3, -2.0, 7.0), spacing=1e-3)
    image = vtk_image(tmp_path / "b.vti")
    assert image.GetOrigin() == (1e-3, -2.0, 7.0)
    assert image.GetSpacing() == (1e-3, 1e-3, 1e-3)


@given(
    hnp.arrays(
        st.sampled_from(["f4", "f8", ">f8", "u1", "i2", "u4", "i8", "?"]), hnp.array_shapes(min_dims=2, max_dims=3)
    )
)
def test_every_value_of_every_type_survives(tmp_path_factory: Any, vtk_image: Any, array: np.ndarray) -> None:
    path = tmp_path_factory.getbasetemp() / "any.vti"
    write_vti(path, {"a <&\"'> b": array}, overwrite=True)
    assert np.array_equal(values(vtk_image(path), "a <&\"'> b", array.shape), array, equal_nan=array.dtype.kind == "f")


def test_large_fields_are_written_in_chunks(tmp_path: Path, vtk_image: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.io.vti.CHUNK", 50)
    velocity = np.random.default_rng(2).normal(size=(23, 7, 2))
    write_vti(tmp_path / "a.vti", {"density": velocity[..., 0], "velocity": velocity})
    image = vtk_image(tmp_path / "a.vti")
    assert np.array_equal(values(image, "velocity", (23, 7, 3))[..., :2], velocity)
    assert np.array_equal(values(image, "density", (23, 7)), velocity[..., 0])  # not contiguous
    assert CHUNK > 50


def test_the_header_is_text_before_the_underscore(tmp_path: Path) -> None:
    write_vti(tmp_path / "a.vti", {"density": np.ones((2, 3), np.float32)})
    head, _, rest = (tmp_path / "a.vti").read_bytes().partition(b'<AppendedData encoding="raw">\n_')
    assert b'WholeExtent="0 2 0 1 0 0"' in head
    assert rest[:8] == (24).to_bytes(8, "little")
    assert rest[8:32] == np.ones(6, "<f4").tobytes()
    assert rest[32:] == b"\n</AppendedData>\n</VTKFile>\n"


REFUSED = [
    ({}, {}, "found no field; wanted at least one scalar field of shape (ny, nx) or (nz, ny, nx)"),
    (
        {"velocity": np.ones((2, 2, 2, 3))},
        {},
        "found velocity (2, 2, 2, 3); wanted at least one scalar field of shape (ny, nx) or (nz, ny, nx)",
    ),
    ({"density": np.ones((0, 3))}, {}, "a lattice of shape (0, 3) has no site"),
    ({"density": np.ones((2, 3), np.float16)}, {}, "density has dtype float16; wanted one of float32, float64, bool, "),
    (
        {"density": np.ones((2, 3)), "velocity": np.ones((2, 4, 2))},
        {},
        "velocity has shape (2, 4, 2); wanted (2, 3), or that with a last axis of 2 or 3",
    ),
    (
        {"density": np.ones((2, 3)), "stress": np.ones((2, 3, 6))},
        {},
        "stress has shape (2, 3, 6); wanted (2, 3), or that with a last axis of 2 or 3",
    ),
    ({"density": np.ones((2, 3))}, {"spacing": 0.0}, "spacing is 0.0; wanted a positive number"),
    ({"density": np.ones((2, 3))}, {"spacing": np.nan}, "spacing is nan; wanted a positive number"),
    ({"density": np.ones((2, 3))}, {"origin": (0, 0)}, "origin has 2 values; wanted 3, of x, y, z"),
]


@pytest.mark.parametrize(("fields", "options", "message"), REFUSED, ids=[row[2][:30] for row in REFUSED])
def test_refusals(tmp_path: Path, fields: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        write_vti(tmp_path / "a.vti", fields, **options)
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.vti").write_text("old")
    with pytest.raises(InputError, match=r"a\.vti: the file exists already; give --overwrite to replace it"):
        write_vti(tmp_path / "a.vti", {"density": np.ones((2, 3))})
    assert (tmp_path / "a.vti").read_text() == "old"
    write_vti(tmp_path / "a.vti", {"density": np.ones((2, 3))}, overwrite=True)
    assert os.listdir(tmp_path) == ["a.vti"]


def test_writing_needs_no_vtk(tmp_path: Path) -> None:
    import subprocess

    code = "import sys, lanewise.io.vti; sys.exit(any(name.startswith('vtk') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
