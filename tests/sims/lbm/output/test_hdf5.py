"""Flow fields as HDF5: read back with h5py alone, and with lanewise."""

from __future__ import annotations

import enum
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.common.attributes import MOST_VALUES, attributes
from lanewise.sims.lbm.files import read_flow, write_flow
from lanewise.support.errors import ArgumentError, InputError


class Streaming(enum.Enum):
    PULL = 0


@dataclass(frozen=True)
class Collision:
    name: str
    magic: float


def flow(shape: tuple[int, ...], dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.normal(size=shape).astype(dtype), random.normal(size=(*shape, len(shape))).astype(dtype)


PARAMETERS: dict[str, Any] = {
    "case": "karman",
    "reynolds": 150.0,
    "steps": 20_000,
    "periodic": True,
    "collision": Collision("trt", 3 / 16),
    "boundaries": {"x": {"low": "inlet", "high": "outlet"}, "speed": np.float32(0.1)},
    "force": (1e-6, 0.0),
    "kinds": ["wall", "lid"],
    "mask": Path("wing.png"),
    "streaming": Streaming.PULL,
    "stl": None,
}

FLAT = {
    "case": "karman", "reynolds": 150.0, "steps": 20_000, "periodic": True, "collision.name": "trt", "collision.magic": 3 / 16,
    "boundaries.x.low": "inlet", "boundaries.x.high": "outlet", "boundaries.speed": np.float32(0.1), "kinds": "wall,lid",
    "mask": "wing.png", "streaming": "PULL", "stl": "none",
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6)], ids=str)
def test_h5py_reads_the_fields(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    density, velocity = flow(shape, dtype)
    solid = density > 0.5
    write_flow(tmp_path / "run.h5", density, velocity, PARAMETERS, solid=solid)
    with h5py.File(tmp_path / "run.h5") as file:
        assert set(file) == {"density", "velocity", "solid"}
        assert file["density"].dtype == file["velocity"].dtype == dtype
        assert np.array_equal(file["density"][()], density)
        assert np.array_equal(file["velocity"][()], velocity)
        assert file["velocity"].shape == (*shape, len(shape))
        assert file["solid"].dtype == np.uint8
        assert np.array_equal(file["solid"][()], solid)
        assert file["velocity"].attrs["axes"] == (b"z,y,x,component" if len(shape) == 3 else b"y,x,component")


def test_every_parameter_is_an_attribute(tmp_path: Path) -> None:
    write_flow(tmp_path / "run.h5", *flow((4, 6)), PARAMETERS)
    with h5py.File(tmp_path / "run.h5") as file:
        found = {n: v.decode() if isinstance(v, bytes) else v for n, v in file.attrs.items()}
        assert {name: found[name] for name in FLAT} == FLAT
        assert found["force"].tolist() == [1e-6, 0.0]
        assert set(found) - set(FLAT) == {"force", "format", "lanewise_version", "lanewise_sums", "field_units"}
        assert found["field_units"] == "lattice"


def test_reading_returns_what_was_written(tmp_path: Path) -> None:
    density, velocity = flow((4, 6))
    history = {"step": [1, 2], "drag_coefficient": np.array([3.25, 3.22])}
    write_flow(tmp_path / "run.h5", density, velocity, {"steps": 7}, solid=density < 0, history=history)
    read = read_flow(tmp_path / "run.h5")
    assert np.array_equal(read.density, density)
    assert np.array_equal(read.velocity, velocity)
    assert read.solid is not None
    assert read.solid.dtype == np.bool_
    assert np.array_equal(read.solid, density < 0)
    assert read.history["step"].tolist() == [1, 2]
    assert read.history["drag_coefficient"].tolist() == [3.25, 3.22]
    assert read.parameters["steps"] == 7
    assert json.dumps(read.parameters["steps"]) == "7"


def test_without_solid_and_history(tmp_path: Path) -> None:
    write_flow(tmp_path / "run.h5", *flow((4, 6)), {})
    read = read_flow(tmp_path / "run.h5")
    assert read.solid is None
    assert read.history == {}


def test_a_checkpoint_may_add_its_own_group(tmp_path: Path) -> None:
    def add(file: Any) -> None:
        file.create_group("lanewise").attrs["step"] = 12

    write_flow(tmp_path / "run.h5", *flow((4, 6)), {}, extra=add)
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["lanewise"].attrs["step"] == 12
    assert read_flow(tmp_path / "run.h5").density.shape == (4, 6)


def test_existing_files_are_kept_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    write_flow(path, *flow((4, 6)), {"steps": 1})
    with pytest.raises(InputError, match=r"run\.h5: the file exists already; give --overwrite to replace it"):
        write_flow(path, *flow((4, 6)), {"steps": 2})

    def fail(file: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_flow(path, *flow((4, 6)), {"steps": 3}, extra=fail, overwrite=True)
    assert read_flow(path).parameters["steps"] == 1
    write_flow(path, *flow((4, 6)), {"steps": 4}, overwrite=True)
    assert read_flow(path).parameters["steps"] == 4
    assert os.listdir(tmp_path) == ["run.h5"]


def test_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file["density"] = 1.0
    message = f"{path}: no flow field: its attribute format is None; wanted 'lanewise flow 1'"
    with pytest.raises(InputError, match=re.escape(message)):
        read_flow(path)
    with h5py.File(path, "a") as file:
        file.attrs["format"] = "lanewise flow 1"
        file.attrs["lanewise_sums"] = "crc32"
    with pytest.raises(InputError, match=r"other\.h5: damaged file: density has no sum"):
        read_flow(path)


F, V = flow((2, 3))
REFUSED = [
    (np.ones(3, "f4"), V, None, "density has shape (3,); wanted (ny, nx) or (nz, ny, nx)"),
    (np.ones((2, 3), int), V, None, "density has dtype int64; wanted float32 or float64"),
    (F, V[..., :1], None, "velocity has shape (2, 3, 1) of float32; wanted (2, 3, 2) of float32, as density"),
    (F, V.astype("f8"), None, "velocity has shape (2, 3, 2) of float64; wanted (2, 3, 2) of float32, as density"),
    (F, V, np.ones((2, 3), "u1"), "solid has shape (2, 3) of uint8; wanted (2, 3) of bool"),
    (F, V, np.ones((3, 3), bool), "solid has shape (3, 3) of bool; wanted (2, 3) of bool"),
]


@pytest.mark.parametrize(("density", "velocity", "solid", "message"), REFUSED, ids=[row[3][:24] for row in REFUSED])
def test_fields_that_do_not_fit(tmp_path: Path, density: Any, velocity: Any, solid: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        write_flow(tmp_path / "run.h5", density, velocity, {}, solid=solid)
    assert os.listdir(tmp_path) == []


BAD_PARAMETERS = [
    ({"a": {"b": object()}}, "parameter a.b is an object; wanted a number, text, or a few of them"),
    ({"mask": np.zeros(2000)}, f"parameter mask has 2,000 values; wanted at most {MOST_VALUES:,}"),
    ({"a": [1j]}, "parameter a holds complex128; wanted numbers or text"),
    ({"a": [[1], [1, 2]]}, "parameter a is no array of numbers: "),
    ({"format": 3}, "the parameter format has the name of an attribute of the file itself; rename it"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=[row[1][:24] for row in BAD_PARAMETERS])
def test_parameters_that_do_not_fit(tmp_path: Path, parameters: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        write_flow(tmp_path / "run.h5", F, V, parameters)


def test_history_columns_of_unequal_length(tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=re.escape("history drag has shape (1,); wanted (2,), as the other columns")
    ):
        write_flow(tmp_path / "run.h5", F, V, {}, history={"step": [1, 2], "drag": [0.5]})


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans(), st.text(alphabet="aä ,.€")
)


@given(st.recursive(VALUES, lambda inner: st.dictionaries(st.text("abc", min_size=1), inner, max_size=3), max_leaves=8))
def test_any_nesting_survives_the_file(tmp_path_factory: Any, tree: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "nested.h5"
    write_flow(path, F, V, {"tree": tree}, overwrite=True)
    read = read_flow(path).parameters
    assert {name: read[name] for name in dict(attributes({"tree": tree}))} == dict(attributes({"tree": tree}))
