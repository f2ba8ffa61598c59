"""Who touched which element of a global array: two threads may not, when one of them writes and nothing orders them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lanewise.errors import NOWHERE, Location, VerificationError
from lanewise.ir import nodes as ir

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a kernel, and when it is: after how many barriers of its block.

    block: what tells it from threads that it never meets: the indices of parallel loops, or the numbers of the block. name: for people.
    """

    block: tuple[Any, ...]
    number: int
    barriers: int
    name: str

    def meets(self, other: Thread) -> bool:
        """Whether their accesses have no order."""
        if self.block != other.block:
            return True
        return self.number != other.number and self.barriers == other.barriers


def thread_of(env: Mapping[str, Any], barriers: int) -> Thread:
    """The thread whose variables these are."""
    indices: tuple[tuple[str, int], ...] = env.get("@indices", ())
    if "@block" in env:
        block = (env["@part"], env["@block"])
        return Thread(block, env["@id"], barriers, f"block {env['@block']}, thread {env['@thread']}")
    names, values = ", ".join(n for n, _ in indices), ", ".join(str(i) for _, i in indices)
    text = f"({names}) = ({values})" if len(indices) != 1 else f"{names} = {values}"
    if "@id" in env:
        return Thread(indices[:-1], env["@id"], barriers, text)
    return Thread(indices, 0, 0, text)


@dataclass(slots=True)
class _Touched:
    """The last threads that wrote and read an element."""

    writer: tuple[Thread, Location] | None = None
    readers: dict[Thread, Location] = field(default_factory=dict[Thread, Location])


@dataclass(slots=True)
class Races:
    """The elements that were touched since a kernel began."""

    _touched: dict[Place, _Touched] = field(default_factory=dict[Place, _Touched])

    def forget(self) -> None:
        """A new launch: what came before it is over."""
        self._touched.clear()

    def touch(self, place: Place, thread: Thread, element: str, where: Location, *, write: bool) -> None:
        """Note an access; raises `VerificationError` for one that may come before or after that of another thread."""
        seen = self._touched.setdefault(place, _Touched())
        if seen.writer is not None and seen.writer[0].meets(thread):
            raise _race(element, (seen.writer, "writes"), ((thread, where), "writes" if write else "reads"))
        if write:
            for reader in seen.readers.items():
                if reader[0].meets(thread):
                    raise _race(element, (reader, "reads"), ((thread, where), "writes"))
            seen.writer, seen.readers = (thread, where), {}
        else:
            seen.readers.setdefault(thread, where)


def _race(element: str, *threads: tuple[tuple[Thread, Location], str]) -> VerificationError:
    told = [f"{t.name} {verb} it{_line(where)}" for (t, where), verb in threads]
    return VerificationError(f"a race at {element}: {' and '.join(told)}, and nothing orders them")


def _line(where: Location) -> str:
    return "" if where == NOWHERE else f" in line {where.line}"


def element_place(s: ir.LoadElement | ir.StoreElement, indices: tuple[int, ...], lengths: tuple[int, ...]) -> int:
    """Where an element lies in its array; raises `VerificationError` for an index outside of its dimension."""
    place = 0
    for d, (i, n) in enumerate(zip(indices, lengths, strict=True)):
        if not 0 <= i < n:
            verb = "read" if isinstance(s, ir.LoadElement) else "written"
            whole = f", index {d} of {list(indices)}" if len(indices) > 1 else ""
            raise VerificationError(
                f"{s.array} is {verb} at {i}{whole}, outside of 0 to {n - 1}{_line(s.location)}"
                if n
                else f"{s.array} is {verb} at {i}{whole}, and has no elements there{_line(s.location)}"
            )
        place = place * n + i
    return place
