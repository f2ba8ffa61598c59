"""The disk cache: one folder a version, one file a content hash.

Files are written whole or not at all, so processes may share it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from lanewise._version import __version__


def cache_directory() -> Path:
    """`$LANEWISE_CACHE_DIR`, or `lanewise` in the user's cache folder; one sub-folder for each version of lanewise."""
    chosen = os.environ.get("LANEWISE_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lanewise"
    return base / __version__


def content_key(*parts: str) -> str:
    """A name for whatever these texts decide."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()[:32]


def write_once(path: Path, content: bytes) -> None:
    """Put a file in place unless it is there.

    A reader sees all of it or none, and an existing file keeps its time stamp.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cache_size() -> tuple[int, int]:
    """How many files the cache holds, and their bytes."""
    files = [p for p in cache_directory().rglob("*") if p.is_file()] if cache_directory().exists() else []
    return len(files), sum(p.stat().st_size for p in files)
