"""How much memory a search takes, before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.sims.common.devices import available_memory, resolve
from lanewise.sims.waves.device.buffers import MapShape
from lanewise.sims.waves.device.look import STATE_BYTES
from lanewise.sims.waves.device.spectra import VIEW_BYTES, table_bytes
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import SearchData
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

MIB = 2**20


@frozen
@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on a device.

    Attributes:
        data: of the bins, which grows with the loaded band
        vectors: F of the stacks, and what it is made of
        maps: of the parts of maps that are computed at a time
        device: which it is
    """

    data: int
    vectors: int
    maps: int
    device: str

    @property
    def total(self) -> int:
        return self.data + self.vectors + self.maps

    def less(self, there: Memory) -> Memory:
        """What is needed in addition to what is there."""
        data, vectors, maps = (
            max(0, x - y)
            for x, y in (
                (self.data, there.data),
                (self.vectors, there.vectors),
                (self.maps, there.maps),
            )
        )
        return Memory(data, vectors, maps, self.device)

    def __str__(self) -> str:
        parts = ", ".join(
            f"{name} {size / MIB:.1f}"
            for name, size in (("data", self.data), ("F", self.vectors), ("maps", self.maps))
        )
        return f"{self.total / MIB:.1f} MiB on {self.device} ({parts})"

    def check(self) -> None:
        """Raise InputError where it does not fit."""
        if self.total > (there := available_memory(self.device)):
            raise InputError(
                f"the search needs {self}, and {there / MIB:.1f} MiB are available: search a "
                "narrower band, fewer stacks or a smaller patch"
            )


def search_memory(
    data: SearchData, largest: MapShape, device: str, kernel: Method, buffers: int
) -> Memory:
    """Of maps of at most this size, computed in `buffers` sets."""
    views = largest.directions * len(data) * VIEW_BYTES
    return Memory(
        table_bytes(data, kernel) + len(data) * STATE_BYTES,
        buffers * (largest.vector_bytes + views),
        buffers * largest.map_bytes + largest.sorted_bytes,
        resolve(device),
    )
