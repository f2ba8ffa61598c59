"""How much memory a search takes, before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.attributes import frozen
from lanewise.errors import InputError
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import available_memory
from lanewise.sims.waves.device.spectra import table_bytes
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import SearchData

MIB = 2**20
PIXEL, FOUND, SORTED = (
    12,
    16,
    40,
)  # bytes of a cell of a map: what it is, what it gets, and what choosing the best takes


@frozen
@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on a device.

    data      of the bins, which grows with the loaded band
    vectors   F of the stacks, and what it is made of
    maps      of the parts of maps that are computed at a time
    device    which it is
    """

    data: int
    vectors: int
    maps: int
    device: str

    @property
    def total(self) -> int:
        return self.data + self.vectors + self.maps

    def __str__(self) -> str:
        parts = ", ".join(
            f"{name} {size / MIB:.1f}" for name, size in (("data", self.data), ("F", self.vectors), ("maps", self.maps))
        )
        return f"{self.total / MIB:.1f} MiB on {self.device} ({parts})"

    def check(self) -> None:
        """Raise InputError where it does not fit."""
        if self.total > (there := available_memory(self.device)):
            raise InputError(
                f"the search needs {self}, and {there / MIB:.1f} MiB are available: search a narrower band, fewer stacks or a smaller patch"
            )


def search_memory(
    data: SearchData, frequencies: int, pixels: int, cells: int, device: str, kernel: Method, buffers: int
) -> Memory:
    """Of F at so many frequencies, pixels of a patch, and cells of a map at a time, in `buffers` sets."""
    vectors = frequencies * (16 + 8) * data.stacks + 24 * frequencies + 4 * pixels * data.stacks
    return Memory(
        table_bytes(data, kernel),
        buffers * vectors,
        buffers * cells * (PIXEL + FOUND) + cells * SORTED,
        resolve(device),
    )
