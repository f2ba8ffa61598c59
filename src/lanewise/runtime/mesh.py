"""A mesh: the devices that the rows of one array lie on, part by part.

The parts of a mesh on a CPU are virtual: each has memory of its own. Everything that divides work
is so tested in one process without a GPU, and several parts may lie on one GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from lanewise.runtime.devices import cuda_device_count, cuda_name, resolve
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

MOST = 1024  # parts
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
    """

    devices: tuple[str, ...]

    def __init__(self, devices: str | Iterable[str], parts: int | None = None) -> None:
        names = _listed(devices) if isinstance(devices, str) else list(devices)
        if parts is not None:
            if isinstance(parts, bool) or not isinstance(parts, int) or not 0 < parts <= MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(
                    f"the parts of a mesh are a whole number from 1 to {MOST:,}, found "
                    f"{shown(parts)}"
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
        object.__setattr__(self, "devices", found)

    @property
    def parts(self) -> int:
        return len(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def __str__(self) -> str:
        first = self.devices[0]
        if len(set(self.devices)) == 1:
            return f"{self.parts} x {first}"
        return " + ".join(self.devices)

    def rows(self, count: int) -> tuple[range, ...]:
        """Which of so many rows each part holds: pieces of equal length, to one row.

        Raises `ArgumentError` for what is no number of rows.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"the rows of a mesh are a whole number from 0 on, found {shown(count)}"
            )
        ends = [count * part // self.parts for part in range(self.parts + 1)]
        return tuple(range(a, b) for a, b in pairwise(ends))


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


def place_of(device: str | Mesh | None) -> str | Mesh:
    """Where new arrays lie: a device by its canonical name, or a mesh, of which "cuda:*" and
    "cpu*4" are some.

    Raises `DeviceError` for what is not there.
    """
    if isinstance(device, Mesh):
        return device
    if isinstance(device, str) and (
        _REPEATED.fullmatch(device) or (_LIST.fullmatch(device) and not device[5:].isdigit())
    ):
        return Mesh(device)
    return resolve(device)


def first_of(place: str | Mesh) -> str:
    """A device, or the first one of a mesh."""
    return place.devices[0] if isinstance(place, Mesh) else place
