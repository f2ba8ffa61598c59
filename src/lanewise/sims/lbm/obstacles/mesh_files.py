"""Meshes from files, read by trimesh, which is imported at first use and needed for nothing else."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from logging import Logger
from pathlib import Path

from lanewise.errors import InputError
from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles.mesh import Mesh
from lanewise.sims.lbm.obstacles.sources import existing

SUFFIXES = (".stl", ".obj", ".ply", ".off")
TEXT = (".obj", ".off")
DAMAGE = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    EOFError,
    ArithmeticError,
    NotImplementedError,
    DeprecationWarning,
)
"""What trimesh raises on files with wrong bytes."""

HEADER, TRIANGLE = 84, 50
"""Bytes of a binary STL file: 80 of any text and the number of triangles; then these for each."""


def read_mesh(path: FilePath) -> Mesh:
    """The mesh in an STL (or OBJ, PLY, OFF) file; several bodies become one mesh.

    Raises InputError, naming the file, for what cannot be read, is cut off, holds no triangle, or when trimesh is not installed.
    """
    file = existing(path, "a mesh (STL)")
    kind = file.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(f"{path}: unknown suffix {file.suffix or '(none)'}; wanted a mesh ({' '.join(SUFFIXES)})")
    try:
        trimesh = import_module("trimesh")
    except ImportError as error:
        raise InputError(f'{path}: reading meshes needs trimesh; install it: pip install "lanewise[flow]"') from error
    with reading(path, "mesh", DAMAGE):
        with _strictly(trimesh.util.log):
            loaded = trimesh.load_mesh(BytesIO(_content(file, kind)), file_type=kind[1:], process=False)
        if len(loaded.faces) == 0:
            raise InputError("no triangle was found; wanted a mesh: the file may be cut off, or of another format")
        return Mesh.of(loaded.vertices, loaded.faces)


@contextmanager
def _strictly(log: Logger) -> Generator[None]:
    """Numbers that NumPy reads in part are damage, and what trimesh makes of broken normals, which nobody uses, is not told."""
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NaN and infinity are refused afterwards
            warnings.simplefilter("error", DeprecationWarning)
            yield
    finally:
        log.disabled = before


def _content(file: Path, kind: str) -> bytes:
    """The bytes for trimesh, text as UTF-8: names of bodies come in any encoding."""
    content = file.read_bytes()
    if kind in TEXT or (kind == ".stl" and not _is_binary_stl(content)):
        return content.decode("latin-1").encode()
    return content


def _is_binary_stl(content: bytes) -> bool:
    """Whether it is binary, for sure or (by a zero byte, which no text has) by intent; cut off files are refused."""
    if len(content) < HEADER:
        return False
    (triangles,) = struct.unpack_from("<I", content, HEADER - 4)
    if len(content) == (wanted := HEADER + TRIANGLE * triangles):
        return True
    if b"\0" in content[:HEADER]:
        raise InputError(
            f"damaged STL file: it has {len(content):,} bytes, and its {triangles:,} triangles need {wanted:,}: it may be cut off"
        )
    return False
