"""The same call for several architectures, side by side, and what copies from and to the host would
take as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.explanation.compiled import Offline
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.rendering import how_sure
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import loads, statements
from lanewise.models.devices import DeviceModel, table_archs
from lanewise.models.roofline import length_of
from lanewise.support.numerals import time_text

ALL = "all"
NOTABLE = 1.0  # copies that take so many times the kernel are reported in a separate line


@dataclass(frozen=True, slots=True)
class Transfers:
    """Bytes of the arrays that a call reads, and of those that it writes; the rate of the link to
    the host in bytes a second, 0 where both share one memory.
    """

    to_device: int
    to_host: int
    link: float

    @property
    def seconds(self) -> float:
        """Of both, one after the other."""
        return (self.to_device + self.to_host) / self.link if self.link else 0.0

    def as_dict(self) -> dict[str, float]:
        """Plain numbers."""
        return {
            "to_device_bytes": self.to_device, "to_host_bytes": self.to_host,
            "link_bytes_per_second": self.link, "seconds": self.seconds,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArchitectureRow:
    """A kernel on a typical device of an architecture. predicted, bound: seconds of a call. unit:
    the busiest. registers, occupancy, spills (bytes): of its main kernel. chosen: fields of the
    plan that are others than in the first row. sure: how far such predictions have been off.
    """

    arch: str
    machine: str
    kernel: str
    predicted: float | None
    bound: float | None
    unit: str
    registers: int | None
    occupancy: float | None
    spills: int
    transfers: Transfers | None
    chosen: Mapping[str, Any]
    sure: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        t = self.transfers
        return {
            "arch": self.arch, "machine": self.machine, "kernel": self.kernel,
            "predicted_seconds": self.predicted, "bound_seconds": self.bound, "unit": self.unit,
            "registers": self.registers, "occupancy": self.occupancy, "spills": self.spills,
            "transfers": None if t is None else t.as_dict(),
            "plan": dict(self.chosen), "sure": self.sure,
        }  # fmt: skip


def archs_of(text: str) -> tuple[str, ...]:
    """The architectures that `--arch` names, with commas or as `all`."""
    if text == ALL:
        return table_archs()
    return tuple(dict.fromkeys(a.strip() for a in text.split(",") if a.strip()))


def row_of(compiled: Offline, first: Offline | None = None) -> ArchitectureRow:
    """The row of a kernel that was compiled for an architecture. first: of the same kernel for the
    architecture that others are compared with.
    """
    s = compiled.subject
    model = s.model
    assert model is not None
    programs = BuiltPrograms(s.reference, s.kind)
    estimates = Estimates(s, programs, {s.plan: s.taken} if s.taken else {})
    found = estimates.own_estimate()
    before = s.plan if first is None else first.subject.plan
    return ArchitectureRow(
        model.arch,
        model.name,
        s.name,
        None if found is None else found.predicted_seconds,
        None if found is None else found.seconds,
        "" if found is None else found.unit,
        estimates.registers(s.plan),
        estimates.occupancy(s.plan),
        estimates.spilled(s.plan),
        None if s.traffic is not None else transfers(s.reference, s.environment, model),
        {n: v for n, v in s.plan.as_dict().items() if v != before.as_dict()[n]},
        "" if found is None else how_sure(found),
    )


def copies_of(compiled: Offline) -> tuple[Transfers | None, str]:
    """What a call would copy if its arrays lay on the host, and a line about it with the time of
    the kernel: "" where a length is not known, or where both share one memory.
    """
    row = row_of(compiled)
    t = row.transfers
    if t is None or not t.link or not row.predicted:
        return t, ""
    into, out = (time_text(n / t.link) for n in (t.to_device, t.to_host))
    advice = "; keep them on the device" if t.seconds >= NOTABLE * row.predicted else ""
    times = f"{t.seconds / row.predicted:.3g} times the kernel"
    return t, f"copies, if its arrays lay on the host: {into} in, {out} out, {times}{advice}"


def transfers(
    reference: ir.Kernel, environment: Mapping[str, Any], model: DeviceModel
) -> Transfers | None:
    """What a call would copy if its arrays lay on the host, each array once; None where the length
    of one is not known.
    """
    bodies = (reference.body, *(f.body for f in functions(reference.body)))
    read = {n for b in bodies for s in statements(b) for n in loads(s)}
    to_device = to_host = 0
    for n, array in enumerate(reference.arrays):
        length = length_of(reference, array, environment)
        if length is None:
            return None
        nbytes = array.arrangement.nbytes(int(length))
        again = reference.identical and n == 1  # targets and sources are one array
        to_device += nbytes if array.name in read and not again else 0
        to_host += nbytes if array.written else 0
    return Transfers(to_device, to_host, model.host_link)


TITLES = (
    "kernel", "arch", "typical device", "predicted", "bound", "busiest", "registers", "occupancy",
    "copy in", "copy out", "copies",
)  # fmt: skip


def as_lines(rows: Sequence[ArchitectureRow]) -> list[str]:
    """A table, how sure its predictions are, and a line for what the plans differ in and for copies
    that take longer.
    """
    cells = [list(TITLES), *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
    said = [*_sure(rows), *(text for row in rows if (text := _said(row)))]
    return [*table, *([""] if said else []), *said]


def _cells(row: ArchitectureRow) -> list[str]:
    t = row.transfers
    into, out, times = "", "", ""
    if t is not None and t.link:
        into, out = time_text(t.to_device / t.link), time_text(t.to_host / t.link)
        times = "" if not row.predicted else f"{t.seconds / row.predicted:.3g} x"
    elif t is not None:
        times = "none"
    return [
        row.kernel, row.arch, row.machine, *(_time(t) for t in (row.predicted, row.bound)),
        row.unit, "" if row.registers is None else str(row.registers),
        "" if row.occupancy is None else f"{row.occupancy:.0%}", into, out, times,
    ]  # fmt: skip


def _time(value: float | None) -> str:
    return "" if value is None else time_text(value)


def _sure(rows: Sequence[ArchitectureRow]) -> list[str]:
    """A line for all rows of which the same is known."""
    alike: dict[str, list[ArchitectureRow]] = {}
    for row in rows:
        if row.sure:
            alike.setdefault(row.sure, []).append(row)
    lines: list[str] = []
    for text, mine in alike.items():
        named = dict.fromkeys(f"{r.kernel} on {r.arch}" for r in mine)
        lines.append(text if len(mine) == len(rows) else f"{', '.join(named)}: {text}")
    return lines


def _said(row: ArchitectureRow) -> str:
    """What is notable of a row."""
    said: list[str] = []
    if row.chosen:
        said.append("by default " + ", ".join(f"{n}={v!r}" for n, v in row.chosen.items()))
    if row.spills:
        said.append(f"{row.spills:,} bytes of registers spill to memory")
    t = row.transfers
    if t is not None and row.predicted and t.seconds >= NOTABLE * row.predicted:
        said.append(
            f"copying takes {t.seconds / row.predicted:.3g} times the kernel: keep the arrays on "
            "the device"
        )
    return f"{row.kernel} on {row.arch}: {'; '.join(said)}" if said else ""
