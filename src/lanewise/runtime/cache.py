"""The disk cache of machine code: one folder a version, one file an entry, and nothing in it is
believed unseen.

An entry is read when its folders and its file belong to this user (or root) and no one else may
write them, and when its bytes fit the checksum that was written with them. Anything else is made
again. A cache that cannot be used is said once, and then machine code lasts as long as the process
(`design/0011-compile-cache.md`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

from lanewise._version import __version__
from lanewise.support.errors import LanewiseWarning
from lanewise.support.warned import warn_user

_MAGIC = b"lanewise entry 1\n"
_DIGEST = 32
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SAID: set[str] = set()  # what was said of a cache in this process


class CacheWarning(LanewiseWarning):
    """The cache of compiled kernels cannot be used, or not be written: kernels are compiled in
    every process.
    """


def cache_root() -> Path:
    """`$LANEWISE_CACHE_DIR`, or `lanewise` in the user's cache folder."""
    if chosen := os.environ.get("LANEWISE_CACHE_DIR"):
        return Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "lanewise"
    try:
        return Path.home() / ".cache" / "lanewise"
    except RuntimeError:  # a user whom the system does not know, as containers have them
        return Path(tempfile.gettempdir()) / f"lanewise-{os.getuid()}"


def cache_directory() -> Path:
    """The folder of this version of lanewise in `cache_root()`."""
    return cache_root() / __version__


def content_key(*parts: str) -> str:
    """A name for whatever these texts decide."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()[:32]


def sources_key(root: Path, without: Collection[str] = ()) -> str | None:
    """A hash of the Python files of a folder and of those in it, by their bytes; None if they
    cannot be read.

    Times and sizes satisfy Python for its own compiled files, but builds that give all files one
    time share a cache as well.
    without: folders directly in `root` to leave out.
    """
    texts: list[str] = []
    try:
        for folder, below, names in os.walk(root):
            below[:] = sorted(
                n for n in below if n != "__pycache__" and (folder != str(root) or n not in without)
            )
            for name in sorted(n for n in names if n.endswith(".py")):
                with open(os.path.join(folder, name), "rb", buffering=0) as file:
                    texts += [os.path.relpath(folder, root), name, file.read().decode("latin-1")]
    except OSError:
        return None
    return content_key(*texts) if texts else None


def read_entry(name: str) -> bytes | None:
    """The content of an entry, such as "cuda/gravity-0123.cubin"; None where there is none that can
    be believed.

    A damaged one is removed: emptied or cut short, as a power cut leaves files, or changed.
    """
    path = cache_directory() / name
    if not os.path.exists(path) or not _usable(path.parent):
        return None
    stored = read_own(path)
    if stored is None:
        return None
    start = len(_MAGIC) + _DIGEST
    content = stored[start:]
    if stored[:start] != _MAGIC + _digest(name, content):
        remove_entry(name)
        return None
    return content


def has_entry(name: str) -> bool:
    """Whether there is a file of this name, which may prove to be unusable when it is read."""
    return os.path.exists(cache_directory() / name)


def write_entry(name: str, content: bytes) -> None:
    """Replace the entry that may be there: a reader sees all of it or none.

    Where that fails it is said, once.
    """
    path = cache_directory() / name
    try:
        make_folders(path.parent)
        if _usable(path.parent):
            write_whole(path, _MAGIC + _digest(name, content) + content)
    except OSError as error:
        _say(f"cannot be written: {error.strerror or error}")


def remove_entry(name: str) -> None:
    """Take out an entry that proved to be wrong."""
    with contextlib.suppress(OSError):
        (cache_directory() / name).unlink(missing_ok=True)


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


# ------------------------------------------------------------ files and folders of this user alone


def read_own(path: Path) -> bytes | None:
    """The bytes of a plain file that none but this user (or root) can have written; None for any
    other.
    """
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_BINARY", 0)
    )
    try:
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            return file.read() if stat.S_ISREG(status.st_mode) and not _others(status) else None
    except OSError:
        return None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file of this user alone, whole or not at all. Raises `OSError`."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user alone. Raises `OSError`."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            with contextlib.suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)


def file_problem(path: Path) -> str | None:
    """Who else may have written this file, in words; raises `OSError`."""
    who = _others(path.stat())
    return f"it {who}" if who else None


def folder_problem(folder: Path, root: Path) -> str | None:
    """Who else may have put files into this folder, or into one above it up to the root, in
    words.
    """
    for each in [folder, *folder.parents]:
        try:
            status = each.stat()
        except OSError as error:
            return f"{each} cannot be read: {error.strerror or error}"
        if who := _others(status):
            return f"{each} {who}"
        if each == root:
            return None
    return None


def _others(status: os.stat_result) -> str | None:
    """Who else may write a file or folder, in words."""
    if not hasattr(os, "getuid"):  # Windows: the user's folders are the user's
        return None
    if status.st_uid not in (0, os.getuid()):
        return f"belongs to the user with the number {status.st_uid}"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return "may be written by other users (chmod go-w keeps them out)"
    return None


def _usable(folder: Path) -> bool:
    problem = folder_problem(folder, cache_root())
    if problem is not None:
        _say(f"is not used: {problem}")
    return problem is None


def _say(problem: str) -> None:
    """Warn once about the cache of this process."""
    text = f"the cache of compiled kernels {cache_root()} {problem}"
    if text not in _SAID:
        _SAID.add(text)
        remedy = "every process compiles its kernels anew; LANEWISE_CACHE_DIR names another folder"
        warn_user(f"{text}; {remedy}", CacheWarning)


def keeps() -> bool:
    """Whether what is compiled now is there for later processes, as far as this one knows."""
    return not _SAID


def cache_size() -> tuple[int, int]:
    """How many files the cache holds, and their bytes. Other processes may write to it and remove
    from it meanwhile: what is gone when its size is asked does not count.
    """
    sizes: list[int] = []
    for folder, _, names in os.walk(cache_directory()):  # folders that are gone are left out
        for name in names:
            with contextlib.suppress(OSError):
                sizes.append(os.stat(os.path.join(folder, name)).st_size)
    return len(sizes), sum(sizes)
