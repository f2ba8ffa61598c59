"""The links that the parts of a mesh copy over, whether their devices are there or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lanewise.launch.sent import Sent
from lanewise.primitives.copying import copy_bandwidth
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import resolve
from lanewise.runtime.links import BETWEEN_PROCESSES, NVLINK, RATES, copy_rate, link_between
from lanewise.runtime.mesh import OF_PROCESS
from lanewise.support.errors import DeviceError

UNKNOWN, NOT_HERE, MEASURED = "unknown link", "not in this machine", "measured now"


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


def slowest(links: Iterable[LinkOfStep]) -> float:
    """The rate of the slowest link. One that is unknown counts as what such links reach."""
    return min((link.rate or assumed(link) for link in links), default=RATES[NVLINK])


def lines_of_links(links: Sequence[LinkOfStep], of: str = "step") -> list[str]:
    """Each link with its rate; those whose rate is unknown for one reason stand in one line."""
    found: dict[tuple[str, str, float | None, str], list[LinkOfStep]] = {}
    for link in links:
        alone = "" if link.rate is None else link.where
        found.setdefault((link.link, alone, link.rate, link.known), []).append(link)
    lines: list[str] = []
    for (name, _, rate, known), some in found.items():
        nbytes = sum(link.nbytes for link in some)
        speed = "rate unknown" if rate is None else f"{rate / 1e9:,.1f} GB/s"
        where = some[0].where if len(some) == 1 else f"{some[0].where} and {len(some) - 1} more"
        together = " together" if len(some) > 1 else ""
        lines.append(f"{where}: {nbytes:,.0f} bytes per {of}{together}, {name}, {speed} ({known})")
    return lines


def links_of_step(sent: Iterable[Sent], devices: tuple[str, ...]) -> Iterator[LinkOfStep]:
    """Each that a step copies over."""
    nbytes: dict[tuple[str, str], float] = {}
    for s in sent:
        for source, target, some in s.between(devices):
            nbytes[source, target] = nbytes.get((source, target), 0) + some * s.a_step
    for (source, target), some in nbytes.items():
        yield link_of_step(source, target, some)


def link_of_step(source: str, target: str, nbytes: float) -> LinkOfStep:
    """What so many bytes go over. The rate is measured where both devices are there."""
    if source != target and OF_PROCESS in source:
        return LinkOfStep(source, target, BETWEEN_PROCESSES, nbytes, None, "not measured")
    if OF_PROCESS in source:
        source = target = source.partition(OF_PROCESS)[0]
    if not (is_here(source) and is_here(target)):
        return LinkOfStep(source, target, UNKNOWN, nbytes, None, NOT_HERE)
    link = link_between(source, target)
    on_host = all(get_device(d).target.host_memory for d in (source, target))
    if source != target and not on_host:
        return LinkOfStep(source, target, link, nbytes, copy_rate(source, target), MEASURED)
    both = copy_bandwidth(source)  # reads and writes
    if both is None:
        return LinkOfStep(source, target, link, nbytes, None, "no room to measure it")
    return LinkOfStep(source, target, link, nbytes, both / 2, MEASURED)


def is_here(device: str) -> bool:
    """Whether this machine has a device."""
    try:
        resolve(device)
    except DeviceError:
        return False
    return True
