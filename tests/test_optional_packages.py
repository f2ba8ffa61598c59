"""Tests are collected wherever pytest runs: a package that only some tests need is imported by those that need it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent
OPTIONAL = {
    "trimesh",
    "scipy",
    "yt",
    "pynbody",
    "vtk",
    "vtkmodules",
    "imageio_ffmpeg",
    "cupy",
    "cuda",
    "torch",
    "jax",
    "pandas",
    "dask",
    "distributed",
    "mpi4py",
    "playwright",
    "websockets",
    "anywidget",
    "pytreegrav",
    "rebound",
    "fmm3dpy",
    "jzfmm",
}


def _imported(path: Path) -> set[str]:
    """The packages that a module imports as a whole, when it is collected."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import(names):
                found |= {n.name.split(".")[0] for n in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.split(".")[0])
            case _:
                pass
    return found


def test_no_module_needs_an_optional_package_to_be_collected() -> None:
    needed = {str(p.relative_to(ROOT)): sorted(_imported(p) & OPTIONAL) for p in ROOT.rglob("*.py")}
    assert {p: n for p, n in needed.items() if n} == {}, "use pytest.importorskip, or import it in the test"
