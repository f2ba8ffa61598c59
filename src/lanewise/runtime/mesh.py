"""A mesh: the devices that the rows of one array lie on, part by part.

The parts of a mesh on a CPU are virtual: each has its own memory. Everything that divides work
is so tested in one process without a GPU, and several parts may lie on one GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from lanewise.runtime.devices import (
    cuda_device_count,
    cuda_name,
    cuda_number,
    missing_for_cuda,
    resolve,
)
from lanewise.runtime.ranks import join_program, transport
from lanewise.runtime.transport import Alone, Transport
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief

MOST = 1024  # parts
OF_PROCESS = " of process "
_LIST = re.compile(r"cuda:(\*|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)")
_REPEATED = re.compile(r"(.+)\*(\d{1,9})")  # such as "cpu*4"


@dataclass(frozen=True, slots=True, init=False)
class Mesh:
    """Devices in the order of the rows that they hold.

    `Mesh("cuda:*")` is every GPU, `Mesh("cuda:0,2")` and `Mesh("cuda:0-3")` are some;
    `Mesh(["cuda:0", "cuda:0"])` has two parts on one GPU, and `Mesh("cpu", parts=4)` four virtual
    ones on the CPU; `Mesh("cuda:0*2")` and `Mesh("cpu*4")` are the same. Raises `ArgumentError` for
    a list without devices or with several kinds of them, `DeviceError` for a device that is not
    there.

    `Mesh.over_ranks("cpu")` has the devices of several processes: `devices` are those of this one,
    and `own` says which parts of all they are.
    """

    devices: tuple[str, ...]
    everywhere: tuple[tuple[str, ...], ...] = ()  # of every rank, where there are several
    rank: int = 0

    @brief
    def __init__(self, devices: str | Iterable[str], parts: int | None = None) -> None:
        names = _listed(devices) if isinstance(devices, str) else _named(devices)
        if parts is not None:
            if isinstance(parts, bool) or not isinstance(parts, int) or not 0 < parts <= MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(
                    f"the parts of a mesh are an integer from 1 to {MOST:,}, found {shown(parts)}"
                )
            if len(names) != 1:
                raise ArgumentError(
                    f"parts= divides one device, found {len(names)} of them: name each part in "
                    "the list instead"
                )
            names *= parts
        found = tuple(resolve(name) for name in names)
        if not found or len(found) > MOST:
            raise ArgumentError(f"a mesh has 1 to {MOST:,} parts, found {len(found):,}")
        if len(kinds := {name.partition(":")[0] for name in found}) > 1:
            raise ArgumentError(
                f"the devices of a mesh are of one kind, found {' and '.join(sorted(kinds))}"
            )
        self._set(found, (), 0)

    def _set(
        self, devices: tuple[str, ...], everywhere: tuple[tuple[str, ...], ...], rank: int
    ) -> None:
        for name, value in (("devices", devices), ("everywhere", everywhere), ("rank", rank)):
            object.__setattr__(self, name, value)

    @classmethod
    @brief
    def over_ranks(
        cls, devices: str | Iterable[str] | None = None, parts: int | None = None
    ) -> Mesh:
        """The devices of this process and of the others of `mpirun -n 4 python program.py`, in the
        order of the ranks. In a single process: its own devices.

        devices: as for `Mesh`; None takes one GPU for each process of a host, in their order, or
        the CPU if there is no GPU. All processes must make this call, and every other call on the
        mesh. If one ends with an exception, all end. Raises `DeviceError` if the processes cannot
        communicate.
        """
        ranks = join_program()
        number = 0 if ranks is None else ranks.number_here
        own = cls(device_of_rank(number) if devices is None else devices, parts)
        if ranks is None:
            return own
        everywhere = tuple(ranks.transport.agree(own.devices))
        if len(kinds := {d.partition(":")[0] for names in everywhere for d in names}) > 1:
            raise ArgumentError(
                "the devices of a mesh are of one kind, found "
                f"{' and '.join(sorted(kinds))} on its ranks"
            )
        if (count := sum(map(len, everywhere))) > MOST:
            raise ArgumentError(f"a mesh has 1 to {MOST:,} parts, found {count:,} on its ranks")
        ranks.connect(everywhere)
        own._set(own.devices, everywhere, ranks.rank)
        return own

    @property
    def transport(self) -> Transport:
        """What moves rows between the processes of the mesh."""
        return transport(self.everywhere) if self.everywhere else Alone()

    @property
    def own(self) -> range:
        """The numbers of the parts that this process holds."""
        before = sum(map(len, self.everywhere[: self.rank]))
        return range(before, before + len(self.devices))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of parts of every rank."""
        return tuple(map(len, self.everywhere or (self.devices,)))

    @property
    def parts(self) -> int:
        return sum(self.counts)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank that holds each part."""
        return tuple(rank for rank, count in enumerate(self.counts) for _ in range(count))

    @property
    def places(self) -> tuple[str, ...]:
        """The device of each part, with its process if there are several."""
        if not self.everywhere:
            return self.devices
        named = enumerate(self.everywhere)
        return tuple(f"{device}{OF_PROCESS}{rank}" for rank, own in named for device in own)

    def __len__(self) -> int:
        return self.parts

    def __str__(self) -> str:
        named = [d for names in self.everywhere or (self.devices,) for d in names]
        alike = len(set(named)) == 1
        text = f"{self.parts} x {named[0]}" if alike else " + ".join(named)
        return f"{text} on {len(self.everywhere)} processes" if self.everywhere else text

    @property
    def spelling(self) -> str:
        """The devices of all processes, as text for `Mesh`: "cpu*4", "cuda:0,2"."""
        named = [d for names in self.everywhere or (self.devices,) for d in names]
        if len(set(named)) == 1:
            return f"{named[0]}*{len(named)}"
        return "cuda:" + ",".join(str(cuda_number(name)) for name in named)

    def rows(self, count: int) -> tuple[range, ...]:
        """The rows of each part out of `count`: pieces of equal length, give or take one row.

        Raises `ArgumentError` if `count` is not a number of rows.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"the rows of a mesh are an integer from 0 on, found {shown(count)}"
            )
        ends = [count * part // self.parts for part in range(self.parts + 1)]
        return tuple(range(a, b) for a, b in pairwise(ends))

    def own_rows(self, lengths: Sequence[int]) -> tuple[range, ...]:
        """The rows of the parts of this process, if all parts have these lengths."""
        ends = list(accumulate(lengths, initial=0))
        return tuple(range(ends[part], ends[part + 1]) for part in self.own)

    def lengths_of_all(self, parts: Sequence[Any]) -> tuple[int, ...]:
        """The number of rows of every part, from those of this process."""
        own = tuple(map(len, parts))
        return tuple(n for lengths in self.transport.agree(own) for n in lengths)

    def gather(self, own: Any, lengths: Sequence[int]) -> Any:
        """Gather all rows from those of this process: on the host, or on its first device."""
        ends = list(accumulate(self.counts, initial=0))
        counts = [sum(lengths[a:b]) for a, b in pairwise(ends)]
        return self.transport.gather(own, counts)


def device_of_rank(number: int) -> str:
    """That of a process by its number on its host: a GPU, which are given out in turn, or the CPU
    where there is none.
    """
    gpus = 0 if missing_for_cuda() else cuda_device_count()
    return cuda_name(number % gpus) if gpus else "cpu"


def _named(devices: Iterable[str]) -> list[str]:
    """The names of a list; whatever is none is refused."""
    try:
        names = list(devices)
    except Exception:  # it has no elements, or does not give them
        names = [None]
    if any(not isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"the devices of a mesh are a name or a list of names, found {shown(devices)}; wanted "
            "'cuda:*', ['cuda:0', 'cuda:1'] or 'cpu' with parts="
        )
    return names  # pyright: ignore[reportReturnType]


def _listed(text: str) -> list[str]:
    """The devices of "cuda:*", "cuda:0,2", "cuda:0-3" and "cpu*4"; any other text names one."""
    if (repeated := _REPEATED.fullmatch(text)) is not None:
        if not 0 < (times := int(repeated[2])) <= MOST:
            raise ArgumentError(f"{text!r}: a mesh has 1 to {MOST:,} parts")
        return [repeated[1]] * times
    match = _LIST.fullmatch(text)
    if match is None:
        return [text]
    chosen = match[1]
    if chosen == "*":
        return [cuda_name(n) for n in range(cuda_device_count())] or ["cuda"]  # which is refused
    names: list[str] = []
    for piece in chosen.split(","):
        first, _, last = piece.partition("-")
        if last and int(last) < int(first):
            raise ArgumentError(f"{text!r}: GPUs are listed from the lower number to the higher")
        if last and int(last) - int(first) >= MOST:
            raise ArgumentError(f"{text!r}: a mesh has at most {MOST:,} parts")
        names += [cuda_name(n) for n in range(int(first), int(last or first) + 1)]
    return names


def listed(text: str) -> tuple[str, ...]:
    """The devices that the text of a mesh names, whether they are there or not; "cuda:*" are those
    that are there. Raises `ArgumentError` for a text that names none, and `DeviceError` for
    "cuda:*" without a GPU.
    """
    if text == "cuda:*":
        resolve("cuda")
    return tuple(_listed(text))


def place_of(device: str | Mesh | None) -> str | Mesh:
    """Where new arrays lie: a device by its canonical name, or a mesh, of which "cuda:*" and
    "cpu*4" are some.

    Raises `DeviceError` for what is not there.
    """
    if isinstance(device, Mesh):
        return device
    if isinstance(device, str) and is_mesh(device):
        return Mesh(device)
    return resolve(device)


def is_mesh(name: str) -> bool:
    """Whether this is the text of a mesh, and not the name of a device."""
    if _REPEATED.fullmatch(name):
        return True
    return _LIST.fullmatch(name) is not None and not name[5:].isdigit()


def first_of(place: str | Mesh) -> str:
    """A device, or the first one of a mesh."""
    return place.devices[0] if isinstance(place, Mesh) else place
