"""One run a file: who writes results claims their names first, so that two runs never write one
file.

A claim on NAME is the file `.NAME.lock` next to it: JSON that says which process of which machine
holds it, and since when. It appears whole and only where there is none (a hard link; where the file
system has none, exclusive creation), which also holds on network file systems; advisory locks
(flock) do not on all of them. The claim ends with the run, also with one that SIGTERM ends. What a
killed process leaves is taken over: on its own machine one can see that it is gone. On another
machine one cannot, so the message says what to delete.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from lanewise.io.atomic import unwritable, writable_target
from lanewise.support.errors import InputError

# seconds between two readings of one process's start; a reused number started at another time
SAME_START = 1.0
ATTEMPTS, PATIENCE = 8, 0.02  # seconds


@dataclass(frozen=True, slots=True)
class Owner:
    """A process: its machine, its number, its start in seconds after that of the machine (clocks
    may be set), and since when it owns.
    """

    host: str
    process: int
    started: float
    since: str

    @property
    def is_gone(self) -> bool:
        """Whether it is surely over: of this machine, with no such process any more, or another one
        of its number.
        """
        if self.host != socket.gethostname():
            return False
        started = _start_of(self.process)
        return started is None or abs(started - self.started) > SAME_START

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that this process holds."""

    lock: Path
    owner: Owner

    def release(self) -> None:
        """Give the name back.

        One that was taken away in the meantime, or that a forked process inherited, stays as it is.
        """
        if self.owner.process == os.getpid() and _read(self.lock) == self.owner:
            with suppress(OSError):
                self.lock.unlink()


@contextmanager
def claimed(paths: Iterable[Path | None]) -> Generator[list[str]]:
    """Hold the names of these files within the block, and clear away what killed runs have left of
    their writing.

    Yields notes for the user: which claims of processes that are gone were taken over. Raises
    `InputError` that names the process that holds one of the names, and as `atomic.writable_target`
    for a folder that cannot be written.
    """
    claims: list[Claim] = []
    notes: list[str] = []
    with _released_at_termination(claims):
        try:
            for path, target in _distinct(paths).items():
                claims.append(_claim(path, target, notes))
                _clear_leftovers(target)
            yield notes
        finally:
            for claim in claims:
                claim.release()


def holder_of(path: Path) -> Owner | None:
    """Who holds a file; None if it is free, or the process is gone."""
    owner = _read(lock_of(path.resolve()))
    return None if owner is None or owner.is_gone else owner


def lock_of(target: Path) -> Path:
    """The claim on a file."""
    return target.with_name(f".{target.name}.lock")


def _distinct(paths: Iterable[Path | None]) -> dict[Path, Path]:
    """The real files by the name that the user gave, each once."""
    files: dict[Path, Path] = {}
    for path in paths:
        if (
            path is not None
            and (target := writable_target(path, overwrite=True)) not in files.values()
        ):
            files[path] = target
    return files


def _claim(path: Path, target: Path, notes: list[str]) -> Claim:
    owner = Owner(
        socket.gethostname(),
        os.getpid(),
        _start_of(os.getpid()) or 0.0,
        datetime.now().isoformat(" ", "seconds"),
    )
    lock = lock_of(target)
    # a process that finds a claim of the dead may be overtaken by another one that does
    for attempt in range(ATTEMPTS):
        try:
            if _create(lock, owner):
                return Claim(lock, owner)
        except OSError as error:
            raise unwritable(path, target.parent, error) from error
        holder = _read(lock)
        if holder is not None and not holder.is_gone:
            raise InputError(_held(path, lock, holder))
        # gone, or just being written where there are no hard links
        if holder is None and attempt < ATTEMPTS // 2:
            time.sleep(PATIENCE)
        elif _take_away(lock, holder):
            notes.append(
                f"{path}: the run that wrote it is gone ({holder or 'an empty claim'}); this one "
                "takes over"
            )
    raise InputError(
        f"{path}: its claim {lock} cannot be taken; delete it if no other run writes this file"
    )


def _held(path: Path, lock: Path, holder: Owner) -> str:
    text = (
        f"{path}: another run writes this file ({holder}); wait for its end, or choose another file"
    )
    return text if holder.host == socket.gethostname() else f"{text}; if it is gone, delete {lock}"


def _create(lock: Path, owner: Owner) -> bool:
    """Make the claim, unless there is one."""
    text = json.dumps(asdict(owner)).encode()
    whole = lock.with_name(f"{lock.name}.{secrets.token_hex(4)}.tmp")
    try:
        _write_new(whole, text)
        try:
            os.link(whole, lock)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            with suppress(FileExistsError):
                _write_new(lock, text)
                return True
            return False
    finally:
        with suppress(OSError):
            whole.unlink(missing_ok=True)
    return True


def _write_new(path: Path, text: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        os.write(handle, text)
    finally:
        os.close(handle)


def _take_away(lock: Path, holder: Owner | None) -> bool:
    """Remove the claim of a process that is gone; False when another process did, or has claimed
    since.

    Renaming is what only one can do: whose name it then has may be looked at in peace.
    """
    aside = lock.with_name(f"{lock.name}.{secrets.token_hex(4)}.tmp")
    try:
        lock.rename(aside)
    except OSError:
        return False
    owner = _read(aside)
    if owner != holder:  # a living claim that came in between: put it back
        with suppress(OSError):
            os.link(aside, lock)
    with suppress(OSError):
        aside.unlink()
    return owner == holder


def _read(lock: Path) -> Owner | None:
    """Who holds a claim; None for one that is not there, or says nothing."""
    try:
        values: Any = json.loads(lock.read_bytes())
        return Owner(
            str(values["host"]),
            int(values["process"]),
            float(values["started"]),
            str(values["since"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _start_of(process: int) -> float | None:
    """Seconds from the start of the machine to that of a process; None for one that is not there,
    or has ended.
    """
    try:
        running = psutil.Process(process)
        return (
            None
            if running.status() == psutil.STATUS_ZOMBIE
            else running.create_time() - psutil.boot_time()
        )
    except psutil.Error:
        return None


def _clear_leftovers(target: Path) -> None:
    """Remove what killed runs have left of writing this file and the numbered ones next to it (see
    `atomic.atomic_path`).
    """
    stem, suffix = re.escape(target.stem), re.escape(target.suffix)
    ours = re.compile(rf"\.{stem}(_\d{{8,}})?{suffix}(\.lock)?\.[0-9a-f]{{8}}\.tmp")
    for entry in os.scandir(target.parent):
        if ours.fullmatch(entry.name):
            with suppress(OSError):
                os.unlink(entry.path)


@contextmanager
def _released_at_termination(claims: list[Claim]) -> Generator[None]:
    """Within the block SIGTERM ends the process as ever, but gives its claims back first.

    Handlers of a host program stay.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        for claim in claims:
            claim.release()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
