"""HDF5 files of ours: a damaged byte is noticed, other files are never read, and a full disk is an error and not a
crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.io import hdf5
from lanewise.io.hdf5 import (
    add_dataset,
    add_rows,
    chunk_of,
    open_hdf5,
    read_text,
    set_attributes,
    text_of,
    write_hdf5,
)
from lanewise.support.errors import InputError

LONG = "".join(f"{k}é" for k in range(9000))
VALUES = np.random.default_rng(1).random((300, 3))


def fill(file: Any) -> None:
    """Some of everything: few and many attributes, long text, groups in groups, growing and compressed datasets."""
    set_attributes(file, {"name": "a flöck", "empty": "", "long": LONG, "number": 1.5, "few": np.arange(3)})
    group = file.create_group("a/b")
    set_attributes(group, {f"setting{k}": f"value {k}" for k in range(20)})
    add_dataset(group, "values", VALUES)
    add_dataset(group, "packed", VALUES, compression="gzip")
    add_dataset(file, "nothing", np.empty((0, 3)))
    pieces = (VALUES[:111], VALUES[111:])
    add_rows(file, "grown", VALUES.shape, np.float64, pieces, maxshape=(None, 3), chunks=(7, 3))


def content(path: Path) -> dict[str, Any]:
    """Everything that is in a file."""
    found: dict[str, Any] = {}
    with open_hdf5(path) as file:

        def visit(name: str, held: Any) -> None:
            found.update({f"{name}@{n}": np.asarray(v).tobytes() for n, v in held.attrs.items()})
            if isinstance(held, h5py.Dataset):
                found[name] = (held.dtype, held.shape, held[()].tobytes())

        visit("/", file)
        file.visititems(visit)
    return found


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    write_hdf5(tmp_path / "a.h5", fill)
    with open_hdf5(tmp_path / "a.h5") as file:
        assert [text_of(file.attrs[n]) for n in ("name", "empty")] == ["a flöck", ""]
        assert read_text(file.attrs, "long") == LONG
        for name in ("a/b/values", "a/b/packed", "grown"):
            assert np.array_equal(file[name], VALUES)
            assert file[name].fletcher32
        assert file["nothing"].shape == (0, 3)


def test_no_flipped_bit_is_read_as_other_content(tmp_path: Path) -> None:
    """Of 300, those that are not refused lie where nothing is."""
    write_hdf5(tmp_path / "a.h5", fill)
    whole, good = (tmp_path / "a.h5").read_bytes(), content(tmp_path / "a.h5")
    random, path = Random(5), tmp_path / "b.h5"
    refused: list[str] = []
    for _ in range(300):
        place = random.randrange(8 * len(whole))
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        try:
            found = content(path)
        except InputError as error:
            refused.append(str(error))
        else:
            assert found == good, place
    assert len(refused) > 100
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in refused)


@pytest.mark.parametrize("maxshape", [(20, 40_000), (None, 40_000)])
def test_bytes_do_not_tell_the_pieces(maxshape: Any, tmp_path: Path) -> None:
    """Of several chunks a dataset, and several pieces a chunk."""
    values = np.random.default_rng(2).random((20, 40_000))
    written: set[bytes] = set()
    for number, cuts in enumerate(((), (1,), (7, 8, 19), range(1, 20))):
        pieces = np.split(values, list(cuts))

        def fill(file: Any, pieces: Any = pieces) -> None:
            for name in "ab":
                add_rows(file, name, values.shape, np.float64, pieces, maxshape=maxshape)

        write_hdf5(tmp_path / f"{number}.h5", fill)
        written.add((tmp_path / f"{number}.h5").read_bytes())
        assert content(tmp_path / f"{number}.h5")["b"][2] == values.tobytes()
    assert len(written) == 1


@pytest.mark.parametrize(
    ("shape", "chunk"),
    [((5,), (5,)), ((10**6, 3), (31250, 3)), ((2, 10**6), (1, 125000)), ((7, 3, 2), (7, 3, 2)), ((1,), (1,))],
)
def test_chunks_are_rows(shape: tuple[int, ...], chunk: tuple[int, ...]) -> None:
    assert chunk_of(shape, 8) == chunk
    assert int(np.prod(chunk)) * 8 <= hdf5.CHUNK


def test_other_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(np.arange(30.0).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = VALUES
    cases: dict[str, Any] = {
        "link": lambda f: f.__setitem__("g/x", h5py.ExternalLink("other.h5", "x")),
        "external": lambda f: f.create_dataset("g/x", (10, 3), "f8", external=[(str(tmp_path / "secret"), 0, 240)]),
        "virtual": lambda f: f.create_virtual_dataset("g/x", _virtual()),
    }
    for name, make in cases.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_group("g")
            make(file)
        with (
            pytest.raises(InputError, match=r"g/x.* file; wanted a file that holds its data itself"),
            open_hdf5(tmp_path / f"{name}.h5"),
        ):
            raise AssertionError("not reached")
    with h5py.File(tmp_path / "soft.h5", "w") as file:
        file["x"] = VALUES
        file["y"] = h5py.SoftLink("/x")
        file["loop"] = h5py.SoftLink("/loop")
    with open_hdf5(tmp_path / "soft.h5") as file:
        assert np.array_equal(file["y"], VALUES)


def _virtual() -> Any:
    layout = h5py.VirtualLayout((300, 3), "f8")
    layout[...] = h5py.VirtualSource("other.h5", "x", (300, 3))
    return layout


LIMITED = """
import resource, sys
import numpy as np
from pathlib import Path
from lanewise.support.errors import InputError
from lanewise.io.hdf5 import write_hdf5
from tests.io.test_hdf5 import fill
path, limit = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    write_hdf5(path, fill, overwrite=True)
except InputError as error:
    sys.stderr.write(str(error))
    sys.exit(2)
"""


@pytest.mark.quick("0", "3000")
@pytest.mark.parametrize("limit", [0, 10, 3_000, 20_000, 80_000])
def test_a_limit_of_file_sizes_is_an_error_and_no_crash(tmp_path: Path, limit: int) -> None:
    write_hdf5(tmp_path / "a.h5", lambda file: set_attributes(file, {"old": 1}))
    before = (tmp_path / "a.h5").read_bytes()
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "a.h5"), str(limit)], capture_output=True, text=True, cwd=root, check=False,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    wanted = f"{tmp_path / 'a.h5'}: cannot be written into the folder {tmp_path}: File too large"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", wanted)
    assert os.listdir(tmp_path) == ["a.h5"]
    assert (tmp_path / "a.h5").read_bytes() == before
