"""Who touched which element of a global array: two threads may not, when one of them writes and
nothing orders them.

Scatters of one element are no race among themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from lanewise.ir import nodes as ir
from lanewise.support.errors import NOWHERE, Location, VerificationError

Place = tuple[str, int]
Touch = Literal["reads", "writes", "scatters to"]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a kernel, and when it is: after how many barriers of its block.

    block: what tells it from threads that it never meets: the indices of parallel loops, or the
    numbers of the block. name: for people.
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
        return Thread(
            block, env["@id"], barriers, f"block {env['@block']}, thread {env['@thread']}"
        )
    names, values = ", ".join(n for n, _ in indices), ", ".join(str(i) for _, i in indices)
    text = f"({names}) = ({values})" if len(indices) != 1 else f"{names} = {values}"
    if "@id" in env:
        return Thread(indices[:-1], env["@id"], barriers, text)
    return Thread(indices, 0, 0, text)


@dataclass(slots=True)
class _Touched:
    """The last threads that wrote, read and scattered to an element."""

    writer: tuple[Thread, Location] | None = None
    readers: dict[Thread, Location] = field(default_factory=dict[Thread, Location])
    scatterers: dict[Thread, Location] = field(default_factory=dict[Thread, Location])


@dataclass(slots=True)
class Races:
    """The elements that were touched since a kernel began."""

    _touched: dict[Place, _Touched] = field(default_factory=dict[Place, _Touched])

    def forget(self) -> None:
        """A new launch: what came before it is over."""
        self._touched.clear()

    def touch(
        self, place: Place, thread: Thread, element: str, where: Location, touch: Touch
    ) -> None:
        """Note an access; raises `VerificationError` for one that may come before or after that of
        another thread.
        """
        seen = self._touched.setdefault(place, _Touched())
        now = ((thread, where), touch)
        if seen.writer is not None and seen.writer[0].meets(thread):
            raise _race(element, (seen.writer, "writes"), now)
        if touch != "reads":
            _refuse(element, seen.readers, "reads", now)
        if touch != "scatters to":
            _refuse(element, seen.scatterers, "scatters to", now)
        match touch:
            case "reads":
                seen.readers.setdefault(thread, where)
            case "scatters to":
                seen.scatterers.setdefault(thread, where)
            case "writes":
                seen.writer, seen.readers, seen.scatterers = (thread, where), {}, {}


def _refuse(
    element: str,
    others: Mapping[Thread, Location],
    verb: Touch,
    now: tuple[tuple[Thread, Location], Touch],
) -> None:
    for other in others.items():
        if other[0].meets(now[0][0]):
            raise _race(element, (other, verb), now)


def _race(element: str, *threads: tuple[tuple[Thread, Location], Touch]) -> VerificationError:
    sides = [f"{t.name} {verb} it{_line(where)}" for (t, where), verb in threads]
    hint = "; sums, minima and maxima that meet are lw.scatter_add, scatter_min and scatter_max"
    (one, other) = (where for (_, where), _ in threads)
    gathers = one != NOWHERE and one.line == other.line  # c[i] += 1
    return VerificationError(
        f"a race at {element}: {' and '.join(sides)}, and nothing orders "
        f"them{hint if gathers else ''}"
    )


def _line(where: Location) -> str:
    return "" if where == NOWHERE else f" in line {where.line}"


def element_place(s: ir.ElementAccess, indices: tuple[int, ...], lengths: tuple[int, ...]) -> int:
    """Where an element lies in its array; raises `VerificationError` for an index, or an early
    place, that is outside.
    """
    place = 0
    early = isinstance(s, ir.LoadElement) and s.early
    for d, (i, n) in enumerate(zip(indices, lengths, strict=True)):
        if not early and not 0 <= i < n:
            verb = "read" if isinstance(s, ir.LoadElement) else "written"
            whole = f", index {d} of {list(indices)}" if len(indices) > 1 else ""
            raise VerificationError(
                f"{s.array} is {verb} at {i}{whole}, outside of 0 to {n - 1}{_line(s.location)}"
                if n
                else f"{s.array} is {verb} at {i}{whole}, and has no elements "
                f"there{_line(s.location)}"
            )
        place = place * n + i
    if early and not 0 <= place < prod(lengths):
        raise VerificationError(
            f"{s.array} is read early at {list(indices)}, outside of the array{_line(s.location)}"
        )
    return place
