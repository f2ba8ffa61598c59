"""lanewise computes with arrays of a device on that device, whichever is the current one: tests of all folders, with
the host in its place.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.elsewhere import HOST_ALONE

ROOT = Path(__file__).parent.parent
QUICK = [
    "tests/sims/boids/test_flock_settings.py", "tests/search/test_queries.py", "-k",
    "cpu and (max_speed or k-5) or ragged or test_a_list_of_rows",
]  # fmt: skip
FOLDERS = [
    ["tests/sims/lbm"], ["tests/sims/gravity"], ["tests/sims/boids", "tests/boids"], ["tests/waves"], ["tests/sites", "tests/lbm"],
    ["tests/patterns"], ["tests/search"], ["tests/kernels"], ["tests/primitives", "tests/loops", "tests/test_ragged.py", "tests/test_population.py"],
]  # fmt: skip


def run(*words: str) -> str:
    """What pytest says of these tests on its last lines."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.elsewhere",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "-q",
        "--tb=short",
    ]
    marked = ["-m", "not cuda and not slow and not fuzz"]
    done = subprocess.run([*command, *marked, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def test_flocks_lists_and_queries() -> None:
    found = run(*QUICK, "tests/test_ragged.py")
    assert "outside of on(device)" not in found, found
    assert " passed" in found
    assert " failed" not in found, found


@pytest.mark.slow
@pytest.mark.parametrize("folders", FOLDERS, ids=" ".join)
def test_every_folder(folders: list[str]) -> None:
    """Tests that look for NumPy's own class, or at messages of its arrays, may fail for another reason."""
    found = run(*folders)
    assert "outside of on(device)" not in found, found
    assert " passed" in found


def test_what_is_named_exists() -> None:
    for name in (n for folders in FOLDERS for n in folders):
        assert (ROOT / name).exists(), name
    for name in HOST_ALONE:
        path = ROOT / "src" / name.rstrip(".").replace(".", "/")
        assert path.is_dir() if name.endswith(".") else path.with_suffix(".py").exists(), name


def test_what_is_computed_elsewhere_is_noted(tmp_path: Path) -> None:
    """A planted fault: a method of an array outside of `on(device)`."""
    file = tmp_path / "test_planted.py"
    file.write_text(
        "from lanewise.runtime.memory import array_module, on\n\n\n"
        "def test_planted():\n"
        "    array = array_module('cpu').arange(3.0)\n"
        "    with on('cpu'):\n"
        "        exec('array.sum()', {'__name__': 'lanewise.planted', 'array': array})\n"
        "    exec('array[1:]', {'__name__': 'lanewise.planted', 'array': array})\n"
        "    exec('array + 1', {'__name__': 'lanewise.planted', 'array': array})\n"
    )
    assert "lanewise.planted:1 computes add" in run(str(file))
