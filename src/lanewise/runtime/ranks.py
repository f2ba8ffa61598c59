"""The processes that run one program together: joining them, and ending them together.

All of them end where one fails, and rank 0 says why, once. See design 0063.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import psutil

from lanewise.runtime import devices
from lanewise.runtime.nccl import SWITCH, NcclTransport, card_of
from lanewise.runtime.transport import Alone, MpiTransport, Transport
from lanewise.support.errors import TRACE, DeviceError, LanewiseError, ProcessError, shortened
from lanewise.support.installation import install
from lanewise.support.interrupts import interrupts_wait
from lanewise.support.launchers import ALONE, MPICH, OPEN_MPI, Started, started

FAILED, ENDED = b"f", b"e"
SPINS = 200  # looks at a request before the processor is given to others
LONGEST = 1e-3  # seconds between two looks
PATIENCE = 5.0  # seconds for the rest of a call that a rank took part in before it ended
WATCH = 1.0  # seconds between two looks at the processes of this host
HEARD = 0.2  # seconds in which a launcher passes on what was said


@dataclass(frozen=True, slots=True)
class Member:
    """A process: its host, its number there, its start, and the cores that it may use."""

    host: str
    process: int
    started: float
    cores: frozenset[int]

    @classmethod
    def this(cls) -> Member:
        process = psutil.Process()
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        return cls(socket.gethostname(), process.pid, process.create_time(), frozenset(cores))

    @property
    def is_gone(self) -> bool:
        """Whether it is over, asked on its own host."""
        try:
            process = psutil.Process(self.process)
            over = process.status() == psutil.STATUS_ZOMBIE
            return over or abs(process.create_time() - self.started) > 1.0
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ends: its exit code, and what it has to say; nothing where another failed."""

    code: int = 0
    text: str = ""


class Ranks:
    """The processes, of which this is one.

    transport: moves rows between them. members: by rank.
    """

    def __init__(self, mpi: Any) -> None:
        world = mpi.COMM_WORLD
        self._mpi = mpi
        self._signals, self._last = world.Dup(), world.Dup()
        self.transport = MpiTransport(world.Dup(), self._wait)
        self.rank, self.size = self.transport.rank, self.transport.size
        self._between: dict[tuple[tuple[str, ...], ...], Transport] = {}
        self._devices: tuple[tuple[str, ...], ...] = ()  # of all ranks, where a mesh has them
        self._failed: set[int] = set()
        self._ended: dict[int, float] = {}  # ranks, and when that was known
        self._end = Ending()
        self._voice = os.dup(2)
        self._over = self._met = False  # begun to end; and all have come to it
        self._unfinished: list[Any] = []  # requests that may write to memory yet
        self.members: list[Member] = self.transport.agree(Member.this())
        own = self.members[self.rank]
        self.beside = [r for r, m in enumerate(self.members) if m.host == own.host]
        devices.share_cores(sum(self.members[r].cores == own.cores for r in self.beside))
        # besides, no process is forked where there are threads, which MPI does not bear
        threading.Thread(target=self._watch, daemon=True, name="lanewise ranks").start()

    def connect(self, everywhere: Sequence[Sequence[str]]) -> None:
        """Let rows of GPUs go between the devices of all ranks by NCCL, where that is requested.

        All ranks call it. Raises `DeviceError` on all of them where NCCL cannot serve: it wants one
        GPU of each process, and none twice.
        """
        key = self._devices = tuple(map(tuple, everywhere))
        if key in self._between:
            return
        cards = self.transport.agree(card_of(everywhere[self.rank]))
        if None in cards and any(cards):
            raise DeviceError(
                f"{SWITCH}=1: {self.named(cards.index(None))} is without it; set it for all "
                "processes, or for none"
            )
        for rank, card in enumerate(cards):
            first = cards.index(card)
            if isinstance(card, str):
                raise DeviceError(f"{SWITCH}=1: {self.named(rank)}: {card}")
            if card and first < rank:
                raise DeviceError(
                    f"{SWITCH}=1: {self.named(rank)} has the GPU of rank {first}, and NCCL wants "
                    "another one for each process"
                )
        self._between[key] = (
            self.transport
            if None in cards
            else NcclTransport(self.transport, everywhere[self.rank][0], self._until)
        )

    def between(self, everywhere: Sequence[Sequence[str]]) -> Transport:
        """What moves rows between these devices of all ranks."""
        return self._between.get(tuple(map(tuple, everywhere)), self.transport)

    def describe(self) -> str:
        """How many processes these are, and how the rows of their last mesh go between them."""
        return f"{self.size} processes; rows go {self.between(self._devices).way}"

    @property
    def number_here(self) -> int:
        """This process among those of its host."""
        return self.beside.index(self.rank)

    @property
    def has_heard(self) -> bool:
        """Whether another rank has failed, which says why."""
        return bool(self._failed)

    def named(self, rank: int) -> str:
        devices = dict.fromkeys(self._devices[rank]) if self._devices else ()
        return f"rank {rank} ({', '.join((self.members[rank].host, *devices))})"

    # ------------------------------------------------------------ waiting

    def _wait(self, requests: list[Any]) -> None:
        try:
            self._until(lambda: bool(self._mpi.Request.Testall(requests)))
        except ProcessError:
            self._unfinished += requests  # which keep the memory that they are about
            raise

    def _until(self, done: Callable[[], bool]) -> None:
        looks, pause = 0, 1e-5
        while not done():
            looks += 1
            self._look()
            if looks > SPINS:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST)

    def _look(self) -> None:
        """Raise `ProcessError` where this call will never be over."""
        self._hear()
        if self._failed:
            raise ProcessError(f"{self.named(min(self._failed))} has failed")
        now = time.monotonic()
        for rank, since in self._ended.items():
            if now - since > PATIENCE:
                raise ProcessError(
                    f"{self.named(rank)} has ended, and this process waits for its rows: calls "
                    "over a mesh of several processes, .numpy() among them, are made by all"
                )

    def _hear(self) -> None:
        """What other ranks have sent of their end."""
        status = self._mpi.Status()
        while self._signals.Iprobe(self._mpi.ANY_SOURCE, 0, status):
            word, rank = bytearray(1), status.Get_source()
            self._signals.Recv(word, rank, 0)
            if bytes(word) == FAILED:
                self._failed.add(rank)
            else:
                self._ended.setdefault(rank, time.monotonic())

    # ------------------------------------------------------------ ending

    def report(self, text: str, code: int) -> None:
        """Note how this process ends, and what is to be said: nothing, where another rank's end
        was first. The first note counts.
        """
        if self._end == Ending():
            self._end = Ending(code, "" if self.has_heard and code in (1, 2) else text)

    def mute(self) -> None:
        """Let the first rank alone speak, of what all of them would say alike.

        LANEWISE_TRACE=1 lets all speak.
        """
        if self.rank == 0 or os.environ.get(TRACE, "0") not in ("", "0"):
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)

    def end(self, code: int = 0) -> int:
        """Meet the other ranks at the end of the program. Rank 0 says what went wrong, if so.

        Returns the exit code of all: that of the first rank that failed.
        """
        if self._over:
            return code
        self._over = True
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what it ends is at its end
        self.report("", code)
        ended = self._end
        word = FAILED if ended.code else ENDED
        sent = [self._signals.Isend(word, r, 0) for r in range(self.size) if r != self.rank]
        meeting = MpiTransport(self._last, self._wait_at_end)
        ends = meeting.agree(ended)
        self._met = True  # from here on a rank that is gone has ended as it should
        if self.rank == 0 and (text := self._said(ends)):
            self._say(text)
        meeting.barrier()
        failed = [e for e in ends if e.code]
        if failed:  # calls that were never over may keep MPI from its end
            late = threading.Timer(PATIENCE, os._exit, [failed[0].code])
            late.daemon = True
            late.start()
        else:
            self._hear()
            self._mpi.Request.Waitall(sent)
        self._mpi.Finalize()
        spoken = [e for e in failed if e.text]
        return (spoken or failed or [Ending()])[0].code

    @staticmethod
    def leave(code: int) -> None:
        """End a process that has met the others, without taking apart what lies in memory.

        Launchers end all processes at once where one leaves without what the library does last.
        """
        ctypes.CDLL(None).exit(code)

    def _wait_at_end(self, requests: list[Any]) -> None:
        while not self._mpi.Request.Testall(requests):
            self._hear()
            time.sleep(LONGEST)

    def _said(self, ends: list[Ending]) -> str:
        """What went wrong on the first rank that has a word for it; on all of them, no rank's."""
        spoken = [(rank, e.text) for rank, e in enumerate(ends) if e.text]
        if not spoken:
            return ""
        rank, text = spoken[0]
        if len(spoken) == self.size and len({t for _, t in spoken}) == 1:
            return text
        kind = "error: " if text.startswith("error: ") else ""
        return f"{kind}{self.named(rank)}: {text.removeprefix(kind)}"

    def _say(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._voice, f"{text}\n".encode(errors="backslashreplace"))

    def _watch(self) -> None:
        """Ending this process where one of its host is gone, which MPI may wait for in vain."""
        while not self._met:
            time.sleep(WATCH)
            gone = [r for r in self.beside if self.members[r].is_gone]
            if not gone or self._met:
                continue
            speaker = next(r for r in self.beside if r not in gone)
            if speaker == self.rank:
                text = f"error: {self.named(gone[0])} is gone; the other processes end"
                self._say(text)
                time.sleep(HEARD)
            else:  # launchers end all with the first, and what it said
                until = time.monotonic() + PATIENCE
                while time.monotonic() < until and not self.members[speaker].is_gone:
                    time.sleep(HEARD)
            os._exit(2)


# ------------------------------------------------------------ joining

_JOINED: list[Ranks] = []  # at most one


def joined() -> Ranks | None:
    """The processes of this program, where they have been joined and are several."""
    return _JOINED[0] if _JOINED else None


def writes() -> bool:
    """Whether this process writes files: of several the first one does, the others take part in
    gathering what is written.
    """
    ranks = joined()
    return ranks is None or ranks.rank == 0


def transport(everywhere: Sequence[Sequence[str]] = ()) -> Transport:
    """What moves values between the processes of this program, and rows between these devices of
    all of them.
    """
    ranks = joined()
    return Alone() if ranks is None else ranks.between(everywhere)


def join() -> Ranks | None:
    """The processes that were started together, of which this is one; None where it stands alone.

    Raises `DeviceError` where they cannot speak with each other, on the first of them; the others
    end with code 2.
    """
    found = started()
    if found is None or _JOINED:
        return joined()
    try:
        mpi = _library(found)
    except DeviceError:
        if not found.speaks:
            raise SystemExit(2) from None
        raise
    _JOINED.append(Ranks(mpi))
    return _JOINED[0]


@interrupts_wait()
def _library(found: Started) -> Any:
    """MPI, begun. Raises `DeviceError` with what is missing."""
    if chosen := os.environ.get(ALONE):
        raise DeviceError(f"{ALONE}={chosen!r}: wanted alone, for processes that stand alone")
    copies = found.copies_of("this program")
    if not found.size:
        raise DeviceError(
            f"{copies}, which does not say how many, and would write the same files: start them by "
            f"mpiexec or mpirun, or set {ALONE}=alone if each has its own files"
        )
    try:
        mpi = _loaded()
    except ModuleNotFoundError:
        raise DeviceError(
            f"{copies}, which would write the same files: to work together they need mpi4py and "
            f"a library of MPI, {install('mpi')}"
        ) from None
    except (ImportError, RuntimeError) as error:
        first = str(error).partition("\n")[0]
        raise DeviceError(
            f"{copies}, and mpi4py finds no library of MPI ({first}): {install('mpi')}, or the "
            f"MPI of {found.by}"
        ) from None
    library = str(mpi.Get_library_version())
    family = OPEN_MPI if library.startswith(OPEN_MPI) else MPICH
    if found.family in ("", family):
        if not mpi.Is_initialized():
            mpi.Init_thread(mpi.THREAD_MULTIPLE)
        if mpi.COMM_WORLD.Get_size() == found.size:
            return mpi
    name = " ".join(re.split(r"[\n,]", library, maxsplit=1)[0].split())
    raise DeviceError(
        f"{copies}, and mpi4py uses another MPI ({name}), in which each of them stands alone: "
        f"start them by the mpiexec of that one, or install mpi4py for the MPI of {found.by}"
    )


def _loaded() -> Any:
    """The module of mpi4py, which has not begun: a library that belongs to another launcher may end
    the process when it does.
    """
    import mpi4py  # pyright: ignore[reportMissingImports]

    before, mpi4py.rc.initialize = mpi4py.rc.initialize, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of other launchers, once a process
            from mpi4py import MPI  # pyright: ignore[reportMissingImports]

        return MPI
    finally:
        mpi4py.rc.initialize = before


# ------------------------------------------------------------ programs of users


def join_program() -> Ranks | None:
    """Join the processes of your program: all end where one ends by an exception, which
    is said once.
    """
    before = joined()
    ranks = join()
    if ranks is None or before is not None:
        return ranks
    sys.excepthook = _noting(ranks)
    atexit.register(_end_program, ranks)
    return ranks


def _noting(
    ranks: Ranks,
) -> Callable[[type[BaseException], BaseException, TracebackType | None], Any]:
    """Instead of the text of an exception that ends a program: it is kept for the end."""

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            ranks.report("interrupted", 130)
        else:
            if isinstance(error, LanewiseError):
                trace = shortened(error).__traceback__
            text = "".join(traceback.format_exception(kind, error, trace)).rstrip()
            ranks.report(text, 1)

    return note


def _end_program(ranks: Ranks) -> None:
    if code := ranks.end():
        sys.stdout.flush()
        sys.stderr.flush()
        ranks.leave(code)
