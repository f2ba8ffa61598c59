"""Calls over sites on a mesh: what each part runs, and what it gets of its neighbours before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from lanewise.language import types as t
from lanewise.launch.arguments import describe
from lanewise.patterns.sitewise.blocks import Block, Place, sites_of
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.halo import GhostExchange, array_exchange
from lanewise.patterns.sitewise.kinds import AXES
from lanewise.patterns.sitewise.split_ghosts import Bring, Send, SitesTouched
from lanewise.patterns.sitewise.split_sites import SplitSites
from lanewise.patterns.sitewise.values import Observed, SiteValues, shape_of
from lanewise.profiling.lanes import LaneSpan, WatchedWork, until_done
from lanewise.profiling.profile import clock
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import array_module, on, together
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError

Work = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class SplitCall:
    """What the parts of a mesh run, one work after the other; parts side by side.

    touched: of the populations of its sites; None: all of them. faces: whether it is the first half
    of a step, which updates the layers at faces before the others.
    """

    name: str
    stage: str
    sites: SplitSites
    works: tuple[Work, ...]
    touched: SitesTouched | None = None
    faces: bool = False

    def __call__(self) -> None:
        with together(self.sites.mesh.devices):
            self._run()

    def _run(self) -> None:
        self.sites.ghosts.wait_for(self.touched)
        for work in self.works:
            work()

    @property
    def sends(self) -> bool:
        """Whether it is copies during which what follows runs."""
        return any(isinstance(work, Send) for work in self.works)

    @property
    def beside(self) -> list[Beside]:
        """What they run."""
        return [work for work in self.works if isinstance(work, Beside)]

    @property
    def named(self) -> NamedLaunch:
        """Itself as a launch of its stage."""
        return NamedLaunch(self.stage, self.name, WatchedWork(self, self.watch))

    def watch(self) -> list[LaneSpan]:
        """Run it, and say when each device, or each part of a CPU, was at work."""
        devices = self.sites.mesh.devices
        if get_device(devices[0]).target.host_memory:
            return [
                span
                for work in self.works
                for span in (work.watch(self.sites) if isinstance(work, Beside) else _done(work))
            ]
        begin, ghosts = clock(), self.sites.ghosts
        with together(devices):
            self._run()
            if self.sends:
                return []  # seen with what runs meanwhile
            lanes = {d: get_device(d).is_busy for d in devices}
            return until_done({**lanes, **ghosts.lanes()}, begin)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Calls of different parts, none of which waits for another one's."""

    calls: tuple[SiteCall, ...]

    def __call__(self) -> None:
        for call in self.calls:
            with on(call.sites.device):
                call()

    def watch(self, sites: SplitSites) -> list[LaneSpan]:
        """Run it on a CPU, and say when each part was at work."""
        numbers = {id(part): n for n, part in zip(sites.mesh.own, sites.parts, strict=True)}
        spans: list[LaneSpan] = []
        for call in self.calls:
            begin = clock()
            call()
            lane = f"{call.sites.device}, part {numbers[id(call.sites)]}"
            spans.append(LaneSpan(lane, begin, clock()))
        return spans


def exchanges_made(
    calls: Sequence[SplitCall],
) -> list[tuple[SplitCall, GhostExchange, bool]]:
    """What parts get in calls that are made again and again, and whether it is what steps read:
    ghosts that are there are not brought again.
    """
    there: dict[int, GhostExchange | None] = {}
    found: list[tuple[SplitCall, GhostExchange, bool]] = []
    for _ in range(2):  # the first time nothing is there
        found.clear()
        for call in calls:
            ghosts = id(call.sites.ghosts)
            for work in call.works:
                if isinstance(work, Bring | Send):
                    if isinstance(work, Send) or there.get(ghosts) is not work.exchange:
                        found.append((call, work.exchange, True))
                    there[ghosts] = work.exchange
                elif isinstance(work, GhostExchange):
                    found.append((call, work, False))
                elif work == call.sites.ghosts.changed:
                    there[ghosts] = None
    return found


def _done(work: Work) -> tuple[()]:
    """Run what belongs to no part."""
    work()
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class SplitValues:
    """The values of a call on a mesh, for each part. observed: of the whole."""

    parts: tuple[SiteValues, ...]
    observed: tuple[Observed, ...] = ()
    copied: tuple[str, ...] = ()

    @property
    def environment(self) -> Mapping[str, Any]:
        """The scalars of values that are the same for all sites."""
        return self.parts[0].environment


def refuse_split(name: str, sites: SplitSites, what: str) -> ArgumentError:
    """Of what is for sites on one device."""
    return ArgumentError(
        f"{name}: {what} where sites lie on one device, and these lie on a mesh ({sites.mesh}); "
        "flow.sites(..., device=...) makes others"
    )


def check_functions(name: str, sites: SplitSites, functions: Sequence[SiteFunction]) -> None:
    """Refuse functions that ask for what no part has. Raises `ArgumentError`."""
    for f in functions:
        if tables := list(f.tables):
            raise refuse_split(name, sites, f"tables ({', '.join(tables)}) are read")
        if f.update.lowered.numbered:
            raise refuse_split(name, sites, "lw.index_of, which parts would count anew, is asked")


def part_arguments(
    kernel: str,
    sites: SplitSites,
    arguments: Mapping[str, Any],
    kinds: Mapping[str, t.ValueType],
) -> tuple[list[dict[str, Any]], tuple[Observed, ...], tuple[str, ...]]:
    """What each part gets of the values of a call, what is observed among them, and the names of
    those that are arrays, of which parts have copies. kinds: the types of the values that may vary.

    Raises `ArgumentError` for arrays of other shapes.
    """
    parts: list[dict[str, Any]] = [dict(arguments) for _ in sites.parts]
    observed: list[Observed] = []
    copied: list[str] = []
    for name, kind in kinds.items():
        if (value := arguments.get(name)) is None:
            continue
        if isinstance(value, Observed):
            own = _observed_of(kernel, name, value, sites)
            observed.append(value)
        elif (shape := shape_of(value)) in (None, row := t.shape_of(kind)):
            continue
        elif shape not in ((sites.count, *row), (*sites.shape, *row)):
            raise ArgumentError(
                f"{kernel}: {name!r} must be {an(kind)}, or an array of shape "
                f"{(*sites.shape, *row)} with one per site; found {describe(value)}"
            )
        else:
            own = sites.cut(value)
            copied.append(name)
        for part, piece in zip(parts, own, strict=True):
            part[name] = piece
    return parts, tuple(observed), tuple(copied)


# ------------------------------------------------------------ what is observed


@dataclass(frozen=True, slots=True, eq=False)
class SplitRoom:
    """Arrays with a row for each site of a part, with as many ghosts as any sites of the box have:
    what is observed of some is read by others.

    narrow: of blocks, whose own sites do not lie together, arrays for sites with fewer ghosts.
    """

    sites: SplitSites
    arrays: tuple[Any, ...]
    narrow: dict[tuple[Block, ...], tuple[Any, ...]]

    @staticmethod
    def of(sites: SplitSites, kind: t.ValueType) -> SplitRoom:
        row, dtype = t.shape_of(kind), t.scalar_of(kind).dtype
        blocks = [wide(block) for block in sites.box_cut.own]
        return SplitRoom(sites, _zeros(sites, blocks, row, dtype), {})

    def views(self, of: SplitSites) -> Sequence[Any]:
        """Those rows that sites of the same box have."""
        blocks = of.box_cut.own
        if all(block == wide(block) for block in blocks):
            return self.arrays
        if of.box_cut.in_slabs:
            pairs = zip(self.arrays, blocks, strict=True)
            return [array[sites_of(wide(b).shape, _within(b))] for array, b in pairs]
        if blocks not in self.narrow:
            first = self.arrays[0]
            self.narrow[blocks] = _zeros(of, blocks, first.shape[1:], first.dtype)
        return self.narrow[blocks]

    def works(self) -> tuple[Work, ...]:
        """What brings all ghosts, and gives sites with fewer of them theirs."""
        box_cut = self.sites.box_cut
        all_blocks = tuple(wide(block) for block in box_cut.blocks)
        ghosts = array_exchange(
            "what is observed", self.arrays, replace(box_cut, blocks=all_blocks)
        )
        return (ghosts,) if box_cut.in_slabs else (self._take, ghosts, self._give)

    def _take(self) -> None:
        """What was written with fewer ghosts."""
        own = self.sites.box_cut.own
        for (device, place, whole), written in self._narrow(own):
            with on(device):
                whole[place] = written

    def _give(self) -> None:
        for own in self.narrow:
            for (device, place, whole), read in self._narrow(own):
                with on(device):
                    read[...] = whole[place]

    def _narrow(self, blocks: tuple[Block, ...]) -> Iterator[tuple[tuple[str, Place, Any], Any]]:
        """Arrays with fewer ghosts as boxes, each with its device and where it lies in one with all
        of them.
        """
        devices = self.sites.mesh.devices
        some = zip(blocks, devices, self.arrays, self.narrow.get(blocks, ()), strict=False)
        for block, device, array, other in some:
            row = array.shape[1:]
            whole = array.reshape(*wide(block).shape, *row)
            yield (device, _within(block), whole), other.reshape(*block.shape, *row)


def _zeros(
    sites: SplitSites, blocks: Sequence[Block], row: tuple[int, ...], dtype: Any
) -> tuple[Any, ...]:
    """An array for each part of this process."""
    places = zip(blocks, sites.mesh.devices, strict=True)
    return tuple(array_module(d).zeros((prod(b.shape), *row), dtype) for b, d in places)


MOST_GHOSTS = 2


def wide(block: Block) -> Block:
    """The same sites, with as many ghosts as a part of any sites of the box has."""
    spans = (
        replace(s, below=MOST_GHOSTS if s.below else 0, above=MOST_GHOSTS if s.above else 0)
        for s in block.spans
    )
    return replace(block, spans=tuple(spans))


def _within(block: Block) -> Place:
    """Where its sites lie in the same block with most ghosts."""
    firsts = ((MOST_GHOSTS - s.below if s.below else 0, s.count) for s in block.spans)
    return tuple(slice(first, first + count) for first, count in firsts)


def _observed_of(kernel: str, name: str, value: Observed, sites: SplitSites) -> list[Observed]:
    """What is observed, for each part of its reader."""
    other: Any = value.sites
    wanted = ""
    if not isinstance(other, SplitSites) or (other.mesh, other.shape) != (sites.mesh, sites.shape):
        wanted = f"a box of shape {sites.shape} on a mesh ({sites.mesh})"
    elif wanted := _other_cut(other, sites):
        wanted = f"edges along {wanted} that are both periodic, or both not"
    if wanted:
        raise ArgumentError(
            f"{kernel}: {name!r} is observed of {other!r}; wanted {wanted}, as its reader has"
        )
    room: SplitRoom = value.array
    return [
        replace(value, sites=part, array=view)
        for part, view in zip(sites.parts, room.views(sites), strict=True)
    ]


def _other_cut(one: SplitSites, other: SplitSites) -> str:
    """Along which axes boxes of one shape are cut and only one of them wraps around, or else along
    which ones it was decided to cut them otherwise; "" where they share the cut.
    """
    cuts = one.box_cut, other.box_cut
    differ = [a != b for a, b in zip(*(c.periodic for c in cuts), strict=True)]
    grids = [c.cut.grid for c in cuts]
    if grids[0] == grids[1]:
        differ = [d and parts > 1 for d, parts in zip(differ, grids[0], strict=True)]
        if one.box_cut.in_slabs:
            return "the slowest axis" if differ[0] else ""
    axes = AXES[: len(differ)][::-1]
    return " and ".join(axis for axis, d in zip(axes, differ, strict=True) if d)
