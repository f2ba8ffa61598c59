"""Which ghosts of populations are there, and which are on their way.

Long steps of parts on GPUs update the layers at faces first. What others need of these is copied
while the rest of the same step runs, and is there before the next step begins: `Send`. Wherever it
is not there, as before the first step, after populations were set, or after what corrects them,
`Bring` does it before ghosts are read. So code that reads ghosts asks for them, and code that
changes populations says so: `Ghosts.changed`.

What runs during copies follows from what tasks read and write: a call waits for those under way
that write what it reads or writes, or read what it writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.blocks import Cut, Span
from lanewise.patterns.sitewise.halo import GhostExchange, leaves_needed
from lanewise.patterns.sitewise.streaming import Form, Phase
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import Landed, aside, together

LEAST_MOVED = 8 << 30
"""Bytes that a step of a part reads and writes, from which on it is cut in two on GPUs: shorter
steps lose more than the copies take (design/0062-lattices-on-a-mesh.md).
"""


def is_cut_in_two(cut: Cut, nbytes: int) -> bool:
    """Whether steps over a box that is cut so are. nbytes: that a site holds."""
    largest = math.prod(-(-n // parts) for n, parts in zip(cut.shape, cut.grid, strict=True))
    return cut.in_slabs and 2 * largest * nbytes >= LEAST_MOVED


Region = Literal["ghosts", "sent", "inner"]
"""Of the layers of a part: ghosts, those that it owns and sends to others, the rest."""

Place = tuple[Region, int]
"""A region of a copy of the populations."""


@dataclass(frozen=True, slots=True)
class SitesTouched:
    """What a task reads and writes of the populations of some sites."""

    reads: frozenset[Place]
    writes: frozenset[Place]

    def meets(self, other: SitesTouched) -> bool:
        """Whether one of them has to be done before the other one begins."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass(frozen=True, slots=True, eq=False)
class UnderWay:
    """Ghosts on their way, and the end of it."""

    touched: SitesTouched
    landed: Landed


class Ghosts:
    """Those of some sites. devices: of the parts. there: what has brought those that are there, or
    brings them now; None: there are none.
    """

    __slots__ = ("_under_way", "devices", "there")

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = tuple(devices)
        self.there: GhostExchange | None = None
        self._under_way: list[UnderWay] = []

    def changed(self) -> None:
        """Say that populations change from now on, of which ghosts are copies."""
        self.wait_for(None)
        self.there = None

    def wait_for(self, touched: SitesTouched | None) -> None:
        """Let what follows, which touches this, wait for what is under way. None: everything."""
        meeting = [u for u in self._under_way if touched is None or u.touched.meets(touched)]
        if not meeting:
            return
        with together(self.devices):
            for u in meeting:
                u.landed.wait()
        self._under_way = [u for u in self._under_way if u not in meeting]

    def lanes(self) -> dict[str, Callable[[], bool]]:
        """Of a profile: for each device, whether copies to it are under way."""
        return {
            f"{device}, copies": partial(u.landed.is_under_way, device)
            for u in self._under_way
            for device in u.landed.events
        }

    def send(self, exchange: GhostExchange, touched: SitesTouched) -> None:
        """Bring ghosts while what follows runs."""
        self.there = None
        landed = aside(self.devices, exchange)
        self._under_way.append(UnderWay(touched, landed))
        self.there = exchange

    def bring(self, exchange: GhostExchange) -> None:
        """Bring ghosts before what follows, unless they are there."""
        self.wait_for(None)
        if self.there is not exchange:
            self.there = None
            exchange()
            self.there = exchange

    @contextmanager
    def running(self, alone: bool) -> Generator[None]:
        """A context in which steps run, and after which the host has waited for all that was under
        way. alone: with nothing else but steps of sites, so that devices wait for each other only
        where they have to.
        """
        try:
            with ExitStack() as stack:
                if alone:
                    stack.enter_context(together(self.devices))
                try:
                    yield
                finally:
                    self.wait_for(None)
        finally:  # also for the last copies: what comes next may be on other streams
            get_device(self.devices[0]).synchronize()


@dataclass(frozen=True, slots=True, eq=False)
class Bring:
    """Ghosts before what follows, if they are not there."""

    ghosts: Ghosts
    exchange: GhostExchange

    def __call__(self) -> None:
        self.ghosts.bring(self.exchange)


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Ghosts of the next step, while what follows runs. touched: by that."""

    ghosts: Ghosts
    exchange: GhostExchange
    touched: SitesTouched

    def __call__(self) -> None:
        self.ghosts.send(self.exchange, self.touched)


# ------------------------------------------------------------ the halves of a step


@dataclass(frozen=True, slots=True)
class StepHalves:
    """Layers of a part, counted with ghosts: those of `faces` are updated before the `inner`
    ones.
    """

    faces: tuple[slice, ...]
    inner: slice


def halves_of(
    span: Span, lattice: Lattice, phase: Phase, following: Phase, thick: int
) -> StepHalves:
    """The layers that a step updates, of a part that is a slab. span: what it has along the slowest
    axis. thick: at least so many at a face.

    Where it puts along links, layers that are sent are complete when those behind them have put
    theirs, and the first ghosts are updated with them.
    """
    beside = (0,) * (lattice.dimension - 1)
    sent = [n for n in (1, 2) if leaves_needed(lattice, following, (n, *beside))]
    reach = max(sent, default=0)
    deep, ghosts = max(thick, reach + phase.put_links), int(phase.put_links)
    own = span.inner()
    below, above = span.below > 0, span.above > 0
    inner = slice(own.start + deep * below, own.stop - deep * above)
    faces: list[slice] = []
    if below:
        faces.append(slice(own.start - ghosts, inner.start))
    if above:
        faces.append(slice(inner.stop, own.stop + ghosts))
    return StepHalves(tuple(faces), inner)


def touched_by_halves(
    form: Form, phase: Phase, step: int
) -> tuple[SitesTouched, SitesTouched, SitesTouched]:
    """What the faces of a step, the copies behind them, and the other layers touch."""
    now, then = step % form.buffers, (step + 1) % form.buffers

    def places(copy: int, *regions: Region) -> frozenset[Place]:
        return frozenset((r, copy) for r in regions)

    written = places(then, "sent", "inner", *(("ghosts",) if phase.put_links else ()))
    return (
        SitesTouched(places(now, "ghosts", "sent", "inner"), written),
        SitesTouched(places(then, "sent"), places(then, "ghosts")),
        SitesTouched(
            places(now, "inner", *(("sent",) if phase.load_links else ())), places(then, "inner")
        ),
    )
