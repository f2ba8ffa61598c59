"""Wheel and sdist have all files, and what is installed from them in an empty environment works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


def run(*words: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    path = os.pathsep.join(sys.path)  # where hatchling is
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT, PYTHONPATH=path)
    return folder


def sources() -> set[str]:
    """The files of the package in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "src/lanewise"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    if not listed:
        pytest.skip("this is no checkout")
    return {name.removeprefix("src/") for name in listed}


def wheel_of(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_has_the_files_of_the_package_and_no_others(built: Path) -> None:
    names = set(zipfile.ZipFile(wheel_of(built)).namelist())
    package = {n for n in names if not re.match(r"lanewise-[\d.]+\.dist-info/", n)}
    assert package == sources()
    assert {
        "lanewise/py.typed",
        "lanewise/__init__.pyi",
        "lanewise/live/static/index.html",
        "lanewise/live/widget.js",
    } <= package
    assert any(n.endswith("dist-info/licenses/LICENSE") for n in names)


def test_the_sdist_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for name in (
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "constraints.txt",
        "Makefile",
        "docs",
        "examples",
        "tests",
        "bench",
    ):
        assert (folder / name).exists()
    path = os.pathsep.join(sys.path)
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "--directory",
        tmp_path / "dist",
        cwd=folder,
        PYTHONPATH=path,
    )
    again, first = zipfile.ZipFile(wheel_of(tmp_path / "dist")), zipfile.ZipFile(wheel_of(built))
    assert {n: again.getinfo(n).CRC for n in again.namelist()} == {n: first.getinfo(n).CRC for n in first.namelist()}


def test_an_installed_wheel_works(built: Path, tmp_path: Path) -> None:
    """In an environment of its own, which finds the packages that lanewise needs in that of the tests."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheel_of(built), cwd=tmp_path)
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    (site / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    places = {"LANEWISE_CACHE_DIR": str(tmp_path / "cache")}
    said = run(python, "-c", "import lanewise; print(lanewise.__file__, lanewise.__version__)", cwd=tmp_path, **places)
    assert said.startswith(str(site))
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "first.py").write_text(blocks[0][0])
    assert run(python, "first.py", cwd=tmp_path, **places) == blocks[0][1]
    words = ("gravity", "run", "--bodies", 50, "--steps", 2, "--out", "a.h5", "--plot", "a.png")
    said = run(tmp_path / "env/bin/lanewise", *words, cwd=tmp_path, **places)
    assert said.splitlines()[-2:] == ["written to a.h5", "written to a.png"]
