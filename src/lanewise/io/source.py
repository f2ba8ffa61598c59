"""Opening what the user names: every failure becomes an InputError that starts with the file's name."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from lanewise.errors import InputError

FilePath: TypeAlias = str | os.PathLike[str]


def existing_file(path: FilePath, wanted: str = "a particle file") -> Path:
    """`path` as a readable, non-empty, regular file; anything else is an InputError that says what is wanted."""
    file = Path(path)
    with reading(file, "file", ()):
        if file.is_dir():
            raise InputError(f"this is a folder; wanted {wanted}")
        if not file.exists():
            raise InputError("there is no such file")
        if not file.is_file():
            raise InputError(f"this is not a regular file; wanted {wanted}")
        if file.stat().st_size == 0:
            raise InputError(f"the file is empty; wanted {wanted}")
        file.open("rb").close()
    return file


@contextmanager
def reading(path: FilePath, kind: str, damage: tuple[type[Exception], ...]) -> Generator[None]:
    """Put the name of the file before every InputError; turn the exceptions `damage` of a parser into one.

    `kind` is what the file was taken for ("Gadget HDF5"). OSError and MemoryError are handled for everyone.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except damage as error:
        raise InputError(f"{path}: damaged {kind} file: {_reason(error)}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise InputError(f"{path}: not enough memory to read it, or damaged: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = str(error).strip().strip("'\"")
    return text.splitlines()[0] if text else type(error).__name__
