"""Opening what the user names: every failure becomes an InputError that starts with the file's
name.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from lanewise.support.errors import InputError

FilePath: TypeAlias = str | os.PathLike[str]

MOST_SHOWN = 160
"""Characters of another library's message that are passed on."""


def existing_file(path: FilePath, wanted: str = "a particle file") -> Path:
    """`path` as a readable, non-empty, regular file; anything else is an InputError that says what
    is wanted.
    """
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


def matching(pattern: FilePath) -> list[str]:
    """The file of this name, or those that match it, in the order of their names.

    Folders that are there under their names as they are written stand for themselves, whatever
    marks of a pattern are in them.
    """
    text = os.fspath(pattern)
    if Path(text).exists():
        return [text]
    parts = Path(text).parts
    known = 0
    while known < len(parts) and Path(*parts[: known + 1]).exists():
        known += 1
    folder = [glob.escape(str(Path(*parts[:known])))] if known else []
    return sorted(glob.glob(os.path.join(*folder, *parts[known:])))


def of_brackets(pattern: FilePath) -> str:
    """What to add to a message that nothing matches a pattern with brackets, or ""."""
    if "[" not in os.fspath(pattern):
        return ""
    return (
        "; brackets are part of a pattern where no folder of that name is there: [[] stands for one"
    )


@contextmanager
def reading(path: FilePath, kind: str, damage: tuple[type[Exception], ...]) -> Generator[None]:
    """Put the name of the file before every InputError; turn the exceptions `damage` of a parser
    into one.

    `kind` is what the file was taken for ("Gadget HDF5"). OSError and MemoryError are handled for
    everyone.
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
        raise InputError(
            f"{path}: not enough memory to read it, or damaged: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    text = str(error).strip().strip("'\"")
    if not text:
        return type(error).__name__
    # a parser may quote much of the file
    line = re.sub(r"""\bb(['"]).{12,}?\1""", "other bytes", text.splitlines()[0])
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} ..."
