"""Files that hold obstacles: found or refused, told apart by suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from lanewise.errors import InputError
from lanewise.io.source import FilePath, reading

Report: TypeAlias = Callable[[str], object]
"""Called with one sentence on what was read, how it was scaled and where it lies; `print` and loggers fit."""


def existing(path: FilePath, wanted: str) -> Path:
    """`path` as a readable, non-empty, regular file; anything else is an InputError that says what was `wanted`."""
    file = Path(path)
    with reading(path, wanted, ()):
        if not file.exists():
            raise InputError(f"there is no such file; wanted {wanted}")
        if not file.is_file():
            raise InputError(f"this is {'a folder' if file.is_dir() else 'not a regular file'}; wanted {wanted}")
        if file.stat().st_size == 0:
            raise InputError(f"the file is empty; wanted {wanted}")
        file.open("rb").close()
    return file


def percent(solid: int, sites: int) -> str:
    """`12.3 % of the sites are solid`."""
    return f"{100 * solid / sites:.3g} % of the sites are solid"
