"""How fast so many parts are, by the models: of one device times their number, and what is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lanewise.ir.interpret import BeyondTypeError
from lanewise.language.target import target_of
from lanewise.launch.sent import Grown, Sent, even
from lanewise.runtime.mesh import OF_PROCESS

PREDICTED = (2, 4, 8)  # parts
LEAST_LOSS = 0.005  # that is worth a word


@dataclass(frozen=True, slots=True)
class DividedStep:
    """rows: of every part. worked: over which it runs, with those of others that are near. waits:
    seconds in which all parts on GPUs wait for the host, however few rows there are; measured.
    grid: the parts along each axis of a box, the slowest one first, if they are blocks of it.
    """

    rows: tuple[int, ...]
    worked: tuple[int, ...]
    sent: tuple[Sent, ...]
    waits: float = 0.0
    grid: tuple[int, ...] = ()

    @classmethod
    def alone(cls, rows: int) -> DividedStep:
        """On one device, which gets nothing."""
        return cls((rows,), (rows,), ())


Divide = Callable[[int], DividedStep | str]
"""The step on so many parts, or why there is none."""


@dataclass(frozen=True, slots=True)
class RowsDivided:
    """Steps whose copies follow from how many rows each part has. sent: those copies. now: the rows
    of the parts that there are; other numbers of parts have equal ones.
    """

    now: tuple[int, ...]
    sent: Grown

    def _of(self, rows: tuple[int, ...]) -> DividedStep:
        return DividedStep(rows, rows, self.sent(rows))

    def divide(self, parts: int) -> DividedStep:
        """As many rows in all."""
        return self._of(self.now if parts == len(self.now) else even(sum(self.now), parts))

    def grow(self, parts: int) -> DividedStep:
        """As many rows in each part."""
        return self._of((max(self.now, default=0),) * parts)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of launches: those at work, and those that they would take however few rows there
    are.
    """

    busy: float
    least: float

    @classmethod
    def of(cls, seconds: float, least: float) -> Cost:
        """So many in all; small kernels of a CPU, which one thread runs, are launched faster."""
        own = min(seconds, least)
        return cls(seconds - own, own)

    @property
    def seconds(self) -> float:
        """Both."""
        return self.busy + self.least


class PartWork(Protocol):
    """What each part launches behind what it gets. name: in a table. nbytes: that all parts touch
    together; None: unknown. times: in a step, on average. unknown: what no model knows the time
    of, which is not counted.
    """

    @property
    def name(self) -> str: ...
    @property
    def nbytes(self) -> int | None: ...
    @property
    def times(self) -> float: ...
    @property
    def unknown(self) -> tuple[str, ...]: ...

    def cost(self, step: DividedStep, part: int) -> Cost | None:
        """Of a part, predicted; None: unknown."""
        ...


@dataclass(frozen=True, slots=True)
class RowsTime:
    """Predicted seconds of launches over so many rows on one device, of which each row takes as
    much as any other. least: of them, however few rows there are. near: whether parts also run them
    over near rows of others.
    """

    name: str
    rows: int
    seconds: float
    least: float
    near: bool = False
    nbytes: int | None = None
    times: float = 1
    unknown: tuple[str, ...] = ()

    def cost(self, step: DividedStep, part: int) -> Cost:
        """See `PartWork`."""
        whole = Cost.of(self.seconds, self.least)
        own = (step.worked if self.near else step.rows)[part]
        return Cost(whole.busy * own / max(1, self.rows), whole.least)


@dataclass(frozen=True, slots=True)
class UnknownTime:
    """Launches whose time no model knows."""

    name: str
    nbytes: int | None = None
    times: float = 1

    @property
    def unknown(self) -> tuple[str, ...]:
        """Itself."""
        return (self.name,)

    def cost(self, step: DividedStep, part: int) -> None:
        """See `PartWork`."""
        del step, part


@dataclass(frozen=True, slots=True)
class Efficiency:
    """share: the speed of so many parts, of that of one times their number. lost: the rest, by what
    takes it, largest first.
    """

    share: float
    lost: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """In words."""
        lost = ", ".join(f"{what} {share:.0%}" for what, share in self.lost)
        return f"{self.share:.0%}" + (f" ({lost})" if lost else "")


@dataclass(frozen=True, slots=True)
class Scaling:
    """found: the efficiency of numbers of parts. without: why others have none."""

    found: dict[int, Efficiency]
    without: dict[int, str]

    def text(self, parts: int) -> str:
        """What is said of so many parts."""
        if (e := self.found.get(parts)) is not None:
            return e.text
        return f"none ({self.without[parts]})"


def at_once(devices: Sequence[str]) -> bool:
    """Whether parts run at the same time: on GPUs or in processes, each on its own."""
    alone = len(set(devices)) == len(devices) > 1
    return alone and (OF_PROCESS in devices[0] or not target_of(devices[0]).host_memory)


def scaling(
    divide: Divide, devices: Sequence[str], works: Sequence[PartWork], rate: float
) -> Scaling | None:
    """The efficiency of numbers of parts; None where no model says it. rate: of links, bytes a
    second.
    """
    found: dict[int, Efficiency] = {}
    without: dict[int, str] = {}
    for parts in PREDICTED:
        step = divide(parts)
        if isinstance(step, str):
            without[parts] = step
            continue
        try:
            efficiency = _efficiency(step, devices, works, rate)
        except BeyondTypeError:  # an index of a launch
            without[parts] = f"this plan cannot count {sum(step.rows):,} rows"
            continue
        if efficiency is None:
            return None
        found[parts] = efficiency
    return Scaling(found, without)


def _efficiency(
    step: DividedStep, devices: Sequence[str], works: Sequence[PartWork], rate: float
) -> Efficiency | None:
    """Of one device with the rows of all parts. None where no model says it."""
    parts = len(step.rows)
    alone = costs(works, DividedStep.alone(sum(step.rows)), 0)
    each = [costs(works, step, part) for part in range(parts)]
    own = [c for c in each if c is not None]
    if alone is None or len(own) < parts or not alone.seconds:
        return None
    busy, copies = sum(c.busy for c in own), _waited_for(step.sent, devices, rate, own)
    uneven, waits, launches = 0.0, 0.0, sum(c.least for c in own)
    if at_once(devices):
        longest = max(own, key=lambda c: c.seconds)
        uneven, launches = parts * longest.busy - busy, parts * longest.least
        copies, waits = copies * parts, step.waits * parts
    total = busy + uneven + launches + copies + waits
    lost = {"copies": copies, "launches": launches - alone.least, "uneven parts": uneven}
    lost["the host"] = waits
    # kernels of few rows are slower a row, and so are those that share pairs
    more = "kernels" if step.rows == step.worked else "rows of others"
    lost[more] = lost.get(more, 0.0) + busy - alone.busy
    said = [(what, t / total) for what, t in lost.items() if t / total >= LEAST_LOSS]
    said.sort(key=lambda x: -x[1])
    return Efficiency(alone.seconds / total, tuple(said))


def _waited_for(
    sent: Sequence[Sent], devices: Sequence[str], rate: float, own: Sequence[Cost]
) -> float:
    """Seconds of copies in which parts compute nothing. own: what they compute in a step."""
    parts = len(own)
    whole = copy_seconds(sent, devices, parts, rate)
    if not at_once(devices):
        return whole
    alone = copy_seconds([s for s in sent if not s.hidden], devices, parts, rate)
    return alone + max(0.0, whole - alone - min(c.busy for c in own))


def costs(works: Sequence[PartWork], step: DividedStep, part: int) -> Cost | None:
    """Of all launches of a part; None where one is unknown."""
    found = [(w.times, w.cost(step, part)) for w in works]
    known = [(times, c) for times, c in found if c is not None]
    if len(known) < len(found) or not found:
        return None
    return Cost(sum(n * c.busy for n, c in known), sum(n * c.least for n, c in known))


def copy_seconds(sent: Sequence[Sent], devices: Sequence[str], parts: int, rate: float) -> float:
    """Of the copies of a step: of the part that gets most, or of all where one device makes
    them.
    """
    if at_once(devices):
        return max(sum(s.received(part) for s in sent) for part in range(parts)) / rate
    there = (devices[0],) * parts
    return sum(s.total(there) * s.a_step for s in sent) / rate
