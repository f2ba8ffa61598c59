"""Moves between the devices of a mesh, in an order that no reader or writer can break.

Devices run their own streams, which do not wait for each other. A copy runs on the stream of its
target. It comes behind what the source's stream had to do, so that it reads what was written there,
and what the source's stream does after it comes after the copy, so that nothing is overwritten
before it was read. The target was read by its own stream alone. Events say so; the host waits for
nothing. Where the host takes part, the copies run one after the other.

GPUs that reach each other's memory may write to it instead (`Puts`): a source comes after what has
read there, and what the target does next comes after what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import bring, on


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A copy of a column. take: the column, or a copy of it, on the device `source`. to: an array
    of the same length and type on `target`, without gaps on a GPU.
    """

    source: str
    take: Callable[[], Any]
    target: str
    to: Any


@dataclass(frozen=True, slots=True)
class Gather:
    """Take the columns of a device that others want, and record an event behind that."""

    device: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Let a device's stream wait for the last event of another one."""

    device: str
    on: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Copy to a device all that comes there, and record an event behind that."""

    device: str


@dataclass(frozen=True, slots=True)
class Put:
    """Run what a device writes to the memory of others, and record an event behind that."""

    device: str


Act = Gather | Wait | Receive


def order_of_puts(routes: Iterable[tuple[str, str]]) -> tuple[Wait | Put, ...]:
    """What the host puts on the streams where sources write to targets, behind an event of each
    device: a source is behind those that read there before, and a target behind what was written.
    """
    known = list(dict.fromkeys(routes))
    sources = dict.fromkeys(s for s, _ in known)
    waits = [(s, t) for s, t in known if s != t]
    return (
        *(Wait(s, on=t) for s, t in waits),
        *(Put(s) for s in sources),
        *(Wait(t, on=s) for s, t in waits),
    )


def order_of(routes: Iterable[tuple[str, str]]) -> tuple[Act, ...]:
    """What the host puts on the streams for copies between these devices, each a source and a
    target.
    """
    known = list(dict.fromkeys(routes))
    sources, targets = (tuple(dict.fromkeys(r[n] for r in known)) for n in (0, 1))
    waits = [(s, t) for s, t in known if s != t]
    return (
        *(Gather(s) for s in sources),
        *(Wait(t, on=s) for s, t in waits),
        *(Receive(t) for t in targets),
        *(Wait(s, on=t) for s, t in waits),
    )


@dataclass(frozen=True)
class Moves:
    """Moves that belong together: every source is as it was before the first of them."""

    moves: tuple[Move, ...]

    @cached_property
    def _order(self) -> tuple[Act, ...]:
        return order_of((m.source, m.target) for m in self.moves)

    @cached_property
    def _devices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(d for m in self.moves for d in (m.source, m.target)))

    @property
    def nbytes(self) -> int:
        """What is written."""
        return sum(int(m.to.nbytes) for m in self.moves)

    def __call__(self) -> None:
        if not self._devices or any(get_device(d).target.host_memory for d in self._devices):
            for m in self.moves:
                with on(m.target):
                    m.to[...] = bring(m.take(), m.target)
            return
        taken: dict[int, Any] = {}  # held until the sources' streams have passed the copies
        events: dict[str, Any] = {}
        with cuda.together(self._devices):
            for act in self._order:
                with cuda.use(act.device):
                    match act:
                        case Gather(device):
                            mine = [m for m in self.moves if m.source == device]
                            _gather(mine, taken)
                            events[device] = cuda.passed()
                        case Wait(_, other):
                            cuda.wait_for(events[other])
                        case Receive(device):
                            for m in self.moves:
                                if m.target == device:
                                    cuda.receive(m.to, taken[id(m)])
                            events[device] = cuda.passed()
                        case _:
                            assert_never(act)


@dataclass(frozen=True, slots=True, eq=False)
class PeerWrite:
    """What a device writes to the memory of another one, or its own. run: puts it on the stream of
    `source`.
    """

    source: str
    target: str
    run: Callable[[], None]
    nbytes: int


@dataclass(frozen=True)
class Puts:
    """Writes that belong together, between GPUs that reach each other's memory. No source is
    written.
    """

    writes: tuple[PeerWrite, ...]

    @property
    def nbytes(self) -> int:
        """What is written."""
        return sum(w.nbytes for w in self.writes)

    @cached_property
    def _order(self) -> tuple[Wait | Put, ...]:
        return order_of_puts((w.source, w.target) for w in self.writes)

    @cached_property
    def _devices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(d for w in self.writes for d in (w.source, w.target)))

    def __call__(self) -> None:
        if not self.writes:
            return
        events: dict[str, Any] = {}
        with cuda.together(self._devices):
            for device in self._devices:
                with cuda.use(device):
                    events[device] = cuda.passed()
            for act in self._order:
                with cuda.use(act.device):
                    match act:
                        case Wait(_, other):
                            cuda.wait_for(events[other])
                        case Put(device):
                            for w in self.writes:
                                if w.source == device:
                                    w.run()
                            events[device] = cuda.passed()
                        case _:
                            assert_never(act)


def _gather(moves: Sequence[Move], taken: dict[int, Any]) -> None:
    """Columns of a device without gaps, each taken once, by the moves that want them."""
    columns: dict[int, Any] = {}
    for m in moves:
        if id(m.take) not in columns:
            columns[id(m.take)] = cuda.cupy().ascontiguousarray(m.take())
        taken[id(m)] = columns[id(m.take)]
