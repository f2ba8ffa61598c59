"""What a call on a mesh launches: rounds, each an exchange and what all parts do behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lanewise.launch.compiled import Call
from lanewise.launch.divided import Divided, DividedRound
from lanewise.launch.joined import Bound
from lanewise.launch.own_memory import nothing
from lanewise.launch.tasks import Exchange
from lanewise.profiling.lanes import LaneSpan, WatchedWork, until_done
from lanewise.profiling.profile import clock
from lanewise.runtime.device import get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.memory import together
from lanewise.runtime.mesh import Mesh


@dataclass(frozen=True, slots=True)
class Brought:
    """What parts get from each other. exchange: brings it. leases: of the memory that it fills."""

    exchange: Exchange
    bound: Bound
    leases: tuple[Lease, ...] = ()


@dataclass(frozen=True, slots=True)
class MeshRound:
    """What each part runs, behind what it gets before; None where that is nothing. name: of what
    they do, where it is not the call itself.
    """

    brought: Brought | None
    calls: tuple[Call, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class GroupRounds:
    """What a call runs whose parts have groups of targets, and not rows. compare: what is asked of
    the results of a first call of a kind, which `run` makes where it is not None.
    """

    rounds: tuple[MeshRound, ...]
    compare: Callable[[tuple[Any, ...], Callable[[], None] | None], None]


@dataclass(frozen=True, slots=True)
class MeshLaunch:
    """The launches of a call on a mesh. lengths: how many rows each part has."""

    mesh: Mesh
    lengths: tuple[int, ...]
    rounds: tuple[MeshRound, ...]

    @property
    def leases(self) -> tuple[Lease, ...]:
        """Of the memory that one run at a time writes."""
        return tuple(x for r in self.rounds if r.brought is not None for x in r.brought.leases)

    def works(self) -> list[tuple[str, Callable[[], object]]]:
        """Each launch by the name of what it does, for a profile that waits for each of them: parts
        that work at the same time are one. Each holds the leases for itself.
        """
        found: list[tuple[str, Callable[[], object], tuple[str, ...]]] = []
        devices = tuple(dict.fromkeys(self.mesh.devices))
        at_once = not get_device(self.mesh.devices[0]).target.host_memory
        for r in self.rounds:
            if r.brought is not None:
                lanes = devices if at_once else ()
                found.append((r.brought.exchange.name, r.brought.exchange.run, lanes))
            name = r.name or r.calls[0].compiled.name
            if at_once:
                found.append((name, partial(_run, (MeshRound(None, r.calls),)), devices))
            else:
                parts = zip(self.mesh.own, self.mesh.devices, r.calls, strict=True)
                found += [(f"{name}, part {n}", c, (f"{d}, part {n}",)) for n, d, c in parts]
        return [(name, self._watched(work, lanes)) for name, work, lanes in found]

    def _watched(self, work: Callable[[], object], lanes: tuple[str, ...]) -> Callable[[], object]:
        """The work, of which a profile sees when each lane is done."""
        run = partial(self._whole, work, self.leases)
        return WatchedWork(run, partial(self._watch, work, lanes)) if lanes else run

    def _watch(self, work: Callable[[], object], lanes: tuple[str, ...]) -> list[LaneSpan]:
        """Run it, and look at the devices until none has anything to do."""
        at_once = not get_device(self.mesh.devices[0]).target.host_memory
        busy = {lane: get_device(lane).is_busy if at_once else _never for lane in lanes}
        spans: list[LaneSpan] = []
        begin = clock()

        def watched() -> None:
            work()
            spans.extend(until_done(busy, begin))

        self._whole(watched, self.leases)
        return spans

    def __call__(self) -> None:
        """All of them, on several GPUs at the same time."""
        self._whole(partial(_run, self.rounds), self.leases)

    def first(self) -> None:
        """The run of a call that has what its first round needs, as one that was bound just now."""
        first, *others = self.rounds
        self._whole(partial(_run, (replace(first, brought=None), *others)), ())

    def _whole(self, work: Callable[[], object], leases: tuple[Lease, ...]) -> None:
        with together(self.mesh.devices):
            _held(work, leases)

    def divided(self) -> Divided:
        """What explanations say of it, without its memory."""
        rounds = tuple(
            DividedRound(
                None if r.brought is None else replace(r.brought.exchange, run=nothing),
                tuple(call.compiled for call in r.calls),
                r.name or r.calls[0].compiled.name,
            )
            for r in self.rounds
        )
        mesh = self.mesh
        return Divided(str(mesh), mesh.places, self.lengths, rounds)


def _never() -> bool:
    """Whether a part of a CPU is at work when its call has returned."""
    return False


def _held(work: Callable[[], object], leases: tuple[Lease, ...]) -> None:
    """Run something while these leases are held."""
    if not leases:
        work()
        return
    with leases[0]:
        _held(work, leases[1:])


def _run(rounds: Iterable[MeshRound]) -> None:
    for r in rounds:
        if r.brought is not None:
            r.brought.exchange.run()
        for call in r.calls:
            call()
