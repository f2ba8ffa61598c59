"""Files that are there whole or not at all: written under another name next to the target, then
renamed.

A reader, a crash or `kill -9` at any moment sees the old file or the new one, never a part. What a
killed process leaves behind is a hidden `.NAME.XXXXXXXX.tmp` next to the target, safe to delete;
the next run that claims NAME does (see `claims`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from lanewise.io.source import FilePath
from lanewise.support.errors import InputError, LanewiseError


def writable_target(path: FilePath, overwrite: bool) -> Path:
    """The real file behind `path`, once it is sure that a file may be written there.

    Raises InputError for an existing file without `overwrite`, a folder or device, and a parent
    folder that is missing or closed. Long runs call it before they start: finding out at the end
    would lose the run.
    """
    # A link is followed, so that overwriting replaces the file that it names and not the link.
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise InputError(
            f"{path}: exists and is not a regular file; wanted the name of a file to write"
        )
    if target.exists() and not overwrite:
        raise InputError(f"{path}: the file exists already; give --overwrite to replace it")
    if not target.parent.is_dir():
        raise InputError(f"{path}: the folder {Path(path).parent} does not exist; create it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to write into the folder {Path(path).parent}")
    return target


@contextmanager
def writable_folder(path: FilePath) -> Generator[Path]:
    """The folder of this name, made if it is not there; the folder around it has to be.

    One that was made is gone again where the block leaves nothing in it. Raises InputError for a
    folder that cannot be made.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{path}: exists and is not a folder; wanted the name of a folder to write into"
        )
    if not folder.resolve().parent.is_dir():
        raise InputError(f"{path}: the folder {folder.parent} does not exist; create it first")
    new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(path, folder.parent, error) from error
    try:
        yield folder
    finally:
        if new:
            with suppress(OSError):  # something is in it
                folder.rmdir()


@contextmanager
def taken_back(path: Path) -> Generator[None]:
    """A file that says what is begun in its folder: it goes again where the block refuses that
    before anything else is written there.
    """
    there = set(os.listdir(path.parent))
    try:
        yield
    except LanewiseError:
        if set(os.listdir(path.parent)) == there:
            path.unlink()
        raise


@contextmanager
def atomic_path(path: FilePath, overwrite: bool) -> Generator[Path]:
    """Yield a new, empty file in the same folder to fill; at the end it takes the place of `path`
    in one step.

    When the body raises, the file is removed and `path` stays as it was. Raises InputError as
    `writable_target`.
    """
    target = writable_target(path, overwrite)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        # O_EXCL: never anybody else's file. Mode 666 less the umask: the same rights as a file made
        # by open().
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _flush(temporary)
        temporary.replace(target)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            _flush(target.parent)
    except OSError as error:  # a full disk, a quota, a limit of file sizes, a name that is too long
        raise unwritable(path, target.parent, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritable(path: FilePath, folder: Path, error: OSError) -> InputError:
    """What to raise where the system does not let `path` be written: one line with the folder and
    the system's reason.
    """
    reason = error.strerror or str(error).partition("\n")[0]
    return InputError(f"{path}: cannot be written into the folder {folder}: {reason}")


@contextmanager
def writing(path: FilePath) -> Generator[None]:
    """What the system refuses within the block, of whatever file next to `path`, is an InputError
    that says so of `path`.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(path, Path(path).resolve().parent, error) from error


def _flush(path: Path) -> None:
    """Wait until the file (or, for a folder, the list of its files) is on the disk: a rename may
    overtake the data.
    """
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
