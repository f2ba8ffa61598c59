"""A step on a mesh, before it runs: what its parts bring each other, over which links, and how fast
so many parts are by the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanewise.explanation.compiled import Offline
from lanewise.explanation.launches import rows_predicted
from lanewise.explanation.meshes import PREDICTED
from lanewise.language.target import target_of
from lanewise.launch.divided import MOST_LISTED
from lanewise.primitives.copying import copy_bandwidth
from lanewise.runtime.devices import resolve
from lanewise.runtime.links import BETWEEN_PROCESSES, NVLINK, RATES, copy_rate, link_between
from lanewise.support.errors import DeviceError
from lanewise.support.numerals import counted

NOTHING_HIDDEN = "nothing: copies wait for the step before, and the step waits for them"
OF_PROCESS = " of process "
UNKNOWN, NOT_HERE, MEASURED = "unknown link", "not in this machine", "measured now"


@dataclass(frozen=True, slots=True)
class Sent:
    """What parts bring each other in every `every`-th step. nbytes: from one part to another one,
    by their numbers. shared: parts on one device have it once; parts then also send to themselves.
    """

    name: str
    nbytes: Mapping[tuple[int, int], int]
    every: int = 1
    shared: bool = False

    def between(self, devices: Sequence[str]) -> Iterator[tuple[str, str, int]]:
        """The copies when parts lie on these devices."""
        for (p, q), nbytes in self.nbytes.items():
            if nbytes and not (self.shared and devices.index(devices[q]) != q):
                yield devices[p], devices[q], nbytes

    def total(self, devices: Sequence[str]) -> int:
        """Bytes that are copied."""
        return sum(nbytes for _, _, nbytes in self.between(devices))


@dataclass(frozen=True, slots=True)
class DividedStep:
    """rows: of every part. worked: over which it runs, with those of others that are near."""

    rows: tuple[int, ...]
    worked: tuple[int, ...]
    sent: tuple[Sent, ...]


@dataclass(frozen=True, slots=True)
class RowsTime:
    """Predicted seconds of a kernel over all rows on one device. least: of them, however few rows
    there are. near: whether parts also run it over near rows of others.
    """

    seconds: float
    least: float
    near: bool

    def of(self, rows: int, worked: int, all_rows: int) -> float:
        """The same of a part."""
        share = (worked if self.near else rows) / max(1, all_rows)
        return self.least + max(0.0, self.seconds - self.least) * share


def kernel_time(call: Offline, *, near: bool) -> RowsTime | None:
    """Of the launches of a call over all rows, but for what is not generated; None: unknown."""
    model = call.subject.model
    found = rows_predicted(call.executable.program, call.subject.environment, model)
    if model is None or any(r.predicted is None for r in found):
        return None
    times = [(r.predicted, r.times) for r in call.launches(found) if r.predicted is not None]
    each = model.loop_launch_seconds
    return RowsTime(sum(t for t, _ in times), each * sum(n for _, n in times), near)


@dataclass(frozen=True, slots=True)
class LinkOfStep:
    """Copies from one device to another one. nbytes: a step, on average. rate: bytes a second;
    None: unknown. known: how it is known, or why it is not.
    """

    source: str
    target: str
    link: str
    nbytes: float
    rate: float | None
    known: str

    @property
    def where(self) -> str:
        """The devices, in words."""
        if self.source == self.target:
            return f"on {self.source}"
        return f"{self.source} to {self.target}"


def assumed(link: LinkOfStep) -> float:
    """What predictions take for a rate that is unknown, bytes a second."""
    return RATES.get(link.link, RATES[NVLINK])


def lines_of_links(links: Sequence[LinkOfStep]) -> list[str]:
    """Each link with its rate; those whose rate is unknown for one reason stand in one line."""
    found: dict[tuple[str, str, float | None, str], list[LinkOfStep]] = {}
    for link in links:
        alone = "" if link.rate is None else link.where
        found.setdefault((link.link, alone, link.rate, link.known), []).append(link)
    lines: list[str] = []
    for (name, _, rate, known), some in found.items():
        nbytes = sum(link.nbytes for link in some)
        speed = "rate unknown" if rate is None else f"{rate / 1e9:,.1f} GB/s"
        where = ", ".join(link.where for link in some)
        together = " together" if len(some) > 1 else ""
        lines.append(f"{where}: {nbytes:,.0f} bytes a step{together}, {name}, {speed} ({known})")
    return lines


@dataclass(frozen=True, slots=True)
class MeshStep:
    """A step on a mesh. Print it, or take `.json()`.

    kind: what rows are. hidden: which copies cost no time. efficiency: by numbers of parts, of one
    device times their number, or, where parts share a device, of that device; empty where no model
    says it.
    """

    mesh: str
    devices: tuple[str, ...]
    kind: str
    step: DividedStep
    links: tuple[LinkOfStep, ...]
    hidden: str
    efficiency: Mapping[int, float]

    @property
    def nbytes(self) -> float:
        """Copied in a step, on average."""
        return sum(s.total(self.devices) / s.every for s in self.step.sent)

    def json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "mesh": self.mesh,
            "devices": list(self.devices),
            "rows": list(self.step.rows),
            "bytes_a_step": self.nbytes,
            "sent": [
                {"name": s.name, "every": s.every, "bytes": s.total(self.devices)}
                for s in self.step.sent
            ],
            "links": [asdict(link) for link in self.links],
            "hidden": self.hidden,
            "efficiency": dict(self.efficiency),
        }

    def lines(self) -> list[str]:
        """The same in words."""
        found = [f"mesh: {counted(len(self.devices), 'part', 'parts')} ({self.mesh}), {self._rows}"]
        found += [f"  {self._sent(s)}" for s in self.step.sent if s.total(self.devices)]
        found += [f"  {line}" for line in lines_of_links(self.links)]
        if not self.links:
            return [*found, "  nothing goes between them", *self._predicted()]
        return [*found, f"  hidden behind computation: {self.hidden}", *self._predicted()]

    def _sent(self, s: Sent) -> str:
        when = "in every step" if s.every == 1 else f"once in {s.every} steps"
        return f"{s.name}, {when}: {s.total(self.devices):,} bytes"

    @property
    def _rows(self) -> str:
        rows = self.step.rows
        if len(set(rows)) == 1:
            return f"{rows[0]:,} {self.kind} each"
        if len(rows) > MOST_LISTED:
            return f"{min(rows):,} to {max(rows):,} {self.kind}"
        return f"{', '.join(map('{:,}'.format, rows))} {self.kind}"

    def _predicted(self) -> list[str]:
        if not self.efficiency:
            return ["  predicted efficiency: unknown, as no model knows the time of its kernels"]
        shares = ", ".join(f"{share:.0%} on {parts}" for parts, share in self.efficiency.items())
        if at_once(self.devices):
            kind = "processes" if OF_PROCESS in self.devices[0] else "GPUs"
            of = f"{kind}, of one of them times their number"
        else:
            of = "parts, one after the other, of one part"
        unknown = [assumed(link) for link in self.links if link.rate is None]
        rate = f", with {min(unknown) / 1e9:,.0f} GB/s where a rate is unknown" if unknown else ""
        return [f"  predicted efficiency: {shares} {of}; by kernels and copies alone{rate}"]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def of_process(device: str, rank: int) -> str:
    """The name of a device among those of several processes."""
    return f"{device}{OF_PROCESS}{rank}"


def at_once(devices: Sequence[str]) -> bool:
    """Whether parts run at the same time: on GPUs or in processes, each on its own."""
    alone = len(set(devices)) == len(devices) > 1
    return alone and (OF_PROCESS in devices[0] or not target_of(devices[0]).host_memory)


def explain_mesh(
    mesh: str,
    devices: tuple[str, ...],
    kind: str,
    divide: Callable[[int], DividedStep],
    times: Iterable[RowsTime | None],
) -> MeshStep:
    """A step on these devices, which need not be there. divide: the step on so many parts. times:
    of its kernels; None: unknown.
    """
    step = divide(len(devices))
    links = tuple(_links(step, devices))
    every = list(times)
    known = [t for t in every if t is not None]
    whole = len(known) == len(every)
    efficiency = _efficiency(step, devices, links, divide, known) if whole else {}
    return MeshStep(mesh, devices, kind, step, links, NOTHING_HIDDEN, efficiency)


def _links(step: DividedStep, devices: tuple[str, ...]) -> Iterator[LinkOfStep]:
    """Each that a step copies over."""
    nbytes: dict[tuple[str, str], float] = {}
    for s in step.sent:
        for source, target, some in s.between(devices):
            nbytes[source, target] = nbytes.get((source, target), 0) + some / s.every
    for (source, target), some in nbytes.items():
        yield _link(source, target, some)


def _link(source: str, target: str, nbytes: float) -> LinkOfStep:
    """What so many bytes go over. The rate is measured where both devices are there."""
    if source != target and OF_PROCESS in source:
        return LinkOfStep(source, target, BETWEEN_PROCESSES, nbytes, None, "not measured")
    if OF_PROCESS in source:
        source = target = source.partition(OF_PROCESS)[0]
    if not (_is_here(source) and _is_here(target)):
        return LinkOfStep(source, target, UNKNOWN, nbytes, None, NOT_HERE)
    link = link_between(source, target)
    if source != target:
        return LinkOfStep(source, target, link, nbytes, copy_rate(source, target), MEASURED)
    both = copy_bandwidth(source)  # reads and writes
    if both is None:
        return LinkOfStep(source, target, link, nbytes, None, "no room to measure it")
    return LinkOfStep(source, target, link, nbytes, both / 2, MEASURED)


def _is_here(device: str) -> bool:
    try:
        resolve(device)
    except DeviceError:
        return False
    return True


def _efficiency(
    step: DividedStep,
    devices: tuple[str, ...],
    links: tuple[LinkOfStep, ...],
    divide: Callable[[int], DividedStep],
    times: Sequence[RowsTime],
) -> dict[int, float]:
    """See `MeshStep`. A rate that is unknown counts as what such links reach."""
    count = sum(step.rows)
    alone = sum(t.seconds for t in times)
    if not count or not alone:
        return {}
    rate = min((link.rate or assumed(link) for link in links), default=RATES[NVLINK])
    found: dict[int, float] = {}
    for parts in PREDICTED:
        one = step if parts == len(devices) else divide(parts)
        kernels = [
            sum(t.of(rows, worked, count) for t in times)
            for rows, worked in zip(one.rows, one.worked, strict=True)
        ]
        if at_once(devices):
            longest = max(_received(one, part) for part in range(parts))
            found[parts] = alone / (parts * (max(kernels) + longest / rate))
        else:
            there = (devices[0],) * parts
            copied = sum(s.total(there) / s.every for s in one.sent)
            found[parts] = alone / (sum(kernels) + copied / rate)
    return found


def _received(step: DividedStep, part: int) -> float:
    """Bytes that come to a part from others in a step, on average."""
    return sum(
        nbytes / s.every for s in step.sent for (p, q), nbytes in s.nbytes.items() if q == part != p
    )
