"""A step on a mesh, before it runs: what its parts bring each other and launch, over which links,
and how fast so many parts are by the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from lanewise.explanation.mesh_links import (
    LinkOfStep,
    assumed,
    lines_of_links,
    link_of_step,
    links_of_step,
    slowest,
)
from lanewise.explanation.mesh_scaling import (
    PREDICTED,
    Divide,
    DividedStep,
    PartWork,
    Scaling,
    at_once,
    copy_seconds,
    scaling,
)
from lanewise.launch.divided import parts_text
from lanewise.launch.sent import Sent, rhythm_text
from lanewise.runtime.mesh import OF_PROCESS
from lanewise.support.numerals import time_text

HIDDEN = {
    "step": "nothing: copies wait for the step before, and the step waits for them",
    "call": "nothing: kernels wait for the copies before them",
}
BESIDE = "{}: copied while layers that are not at faces are updated"
MOST_STEPS = 64  # in which something is counted
TITLES = ("", "when", "bytes", "over", "time", "share")


@dataclass(frozen=True, slots=True)
class MeshRow:
    """Copies or launches of a step. times: in a step, on average. nbytes: of once, of all parts.
    seconds: predicted, a step, of the part that takes longest, or of all parts where one device
    makes them one after the other; None: unknown. share: of all whose time is known.
    """

    name: str
    when: str
    nbytes: int | None
    over: str
    times: float
    seconds: float | None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class MeshStep:
    """A step on a mesh. Print it, or take `.json()`.

    kind: what rows are. table: its copies and launches. hidden: which copies cost no time. strong,
    weak: the efficiency with as many rows in all, and with as many in each part; None where no
    model says it. not_counted: whose time no model knows. of: what is a step here.
    """

    mesh: str
    devices: tuple[str, ...]
    kind: str
    step: DividedStep
    links: tuple[LinkOfStep, ...]
    hidden: str
    table: tuple[MeshRow, ...]
    strong: Scaling | None
    weak: Scaling | None
    not_counted: tuple[str, ...] = ()
    of: str = "step"

    @property
    def nbytes(self) -> float:
        """Copied in a step, on average."""
        return sum(s.total(self.devices) * s.a_step for s in self.step.sent)

    @property
    def efficiency(self) -> Mapping[int, float]:
        """That with as many rows in all, by numbers of parts; empty where no model says it."""
        return _shares(self.strong)

    def json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "mesh": self.mesh,
            "devices": list(self.devices),
            "rows": list(self.step.rows),
            "grid": list(self.step.grid),
            "bytes_a_step": self.nbytes,
            "sent": [
                {"name": s.name, "every": s.every, "times": s.times, "bytes": s.total(self.devices)}
                for s in self.step.sent
            ],
            "table": [asdict(row) for row in self.table],
            "links": [asdict(link) for link in self.links],
            "hidden": self.hidden,
            "efficiency": dict(self.efficiency),
            "weak_efficiency": _shares(self.weak),
            "lost": {
                n: dict(e.lost) for n, e in (self.strong.found if self.strong else {}).items()
            },
            "not_counted": list(self.not_counted),
        }

    def lines(self) -> list[str]:
        """The same in words."""
        grid = self.step.grid
        blocks = f"{' x '.join(map(str, grid))} blocks" if grid else ""
        found = [f"mesh: {parts_text(self.mesh, self.step.rows, self.kind, blocks)}"]
        found += [f"  {line}" for line in _table(self.table)]
        if self.links:
            found += [f"  {line}" for line in lines_of_links(self.links, self.of)]
            found.append(f"  hidden behind computation: {self.hidden}")
        else:
            found.append("  nothing goes between them")
        return [*found, *(f"  {line}" for line in self._predicted())]

    def _predicted(self) -> list[str]:
        if self.strong is None or self.weak is None:
            why = ", ".join(self.not_counted) or "its kernels"
            return [f"predicted efficiency: unknown, as no model knows the time of {why}"]
        together, one = at_once(self.devices), OF_PROCESS in self.devices[0]
        kind = ("processes" if one else "GPUs") if together else "parts"
        lines = [
            f"predicted efficiency of {n} {kind}: strong {self.strong.text(n)}, weak "
            f"{self.weak.text(n)}"
            for n in PREDICTED
        ]
        rows = self.step.rows
        sizes = f"strong: {sum(rows):,} {self.kind} in all, weak: {max(rows, default=0):,} per part"
        of = "of one with all of them, times their number"
        if not together:
            of = "of one device with all of them, which runs one part after the other"
        unknown = [assumed(link) for link in self.links if link.rate is None]
        rate = f", with {min(unknown) / 1e9:,.0f} GB/s where a rate is unknown" if unknown else ""
        without = f"; without {', '.join(self.not_counted)}" if self.not_counted else ""
        by = "kernels and copies alone"
        if self.step.waits and together:
            by = "kernels, copies, and waits for the host as two NVIDIA H200 had them"
        return [*lines, f"{sizes}; {of}", f"by {by}{rate}{without}"]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _shares(found: Scaling | None) -> dict[int, float]:
    return {} if found is None else {n: e.share for n, e in found.found.items()}


def _table(rows: Sequence[MeshRow]) -> list[str]:
    """A line for each row, below their titles."""
    cells: list[tuple[str, ...]] = [TITLES]
    for r in rows:
        nbytes = "" if r.nbytes is None else f"{r.nbytes:,}"
        time = "" if r.seconds is None else time_text(r.seconds)
        share = "" if r.share is None else f"{r.share:.0%}"
        cells.append((r.name, r.when, nbytes, r.over, time, share))
    widths = [max(len(c[n]) for c in cells) for n in range(len(TITLES))]
    right = (2, 4, 5)
    sides = [">" if n in right else "<" for n in range(len(TITLES))]
    return [
        "  ".join(f"{x:{s}{w}}" for x, s, w in zip(c, sides, widths, strict=True)).rstrip()
        for c in cells
    ]


def explain_mesh(
    mesh: str,
    devices: tuple[str, ...],
    kind: str,
    divide: Divide,
    works: Sequence[PartWork],
    grow: Divide,
    order: Sequence[str] = (),
    of: str = "step",
) -> MeshStep:
    """A step on these devices, which need not be there. divide: the step on so many parts; grow:
    the same where each has as many rows as now. works: what parts launch. order: of names in the
    table; copies come first by default. of: what is a step here.
    """
    step = divide(len(devices))
    assert isinstance(step, DividedStep), step
    links = tuple(links_of_step(step.sent, devices))
    rate = slowest(links or (link_of_step(devices[0], devices[0], 0),))
    strong = scaling(divide, devices, works, rate)
    weak = scaling(grow, devices, works, rate)
    rows = [*(_copies(s, devices, links, rate, of) for s in step.sent if s.total(devices))]
    rows += [_launches(w, step, devices, of) for w in works]
    places = {name: n for n, name in enumerate(order)}
    rows.sort(key=lambda r: places.get(r.name, -1))
    if step.waits and at_once(devices):
        rows.append(MeshRow("wait for the host", f"in every {of}", None, "", 1, step.waits))
    beside = {f"bring {s.name}" for s in step.sent if s.hidden and at_once(devices)}
    counted = [r for r in rows if r.name not in beside]  # the others take no time besides
    whole = sum(r.seconds for r in counted if r.seconds is not None)
    table = tuple(
        replace(r, share=r.seconds / whole)
        if r in counted and r.seconds is not None and whole
        else r
        for r in rows
    )
    not_counted = tuple(dict.fromkeys(n for w in works for n in w.unknown))
    return MeshStep(
        mesh, devices, kind, step, links, _hidden(step, of), table, strong, weak, not_counted, of
    )


def _hidden(step: DividedStep, of: str) -> str:
    names = list(dict.fromkeys(s.name for s in step.sent if s.hidden))
    if not names:
        return HIDDEN[of]
    more = "" if all(s.hidden for s in step.sent) else "; nothing else"
    return BESIDE.format(", ".join(names)) + more


def _copies(
    s: Sent, devices: tuple[str, ...], links: Sequence[LinkOfStep], rate: float, of: str
) -> MeshRow:
    routes = {(a, b) for a, b, _ in s.between(devices)}
    own = [link for link in links if (link.source, link.target) in routes] or list(links)
    speed = slowest(own)
    known = "" if all(link.rate for link in own) else " assumed"
    names = " and ".join(dict.fromkeys(link.link for link in own))
    time = copy_seconds((s,), devices, len(devices), rate)
    over = f"{names}, {speed / 1e9:,.1f} GB/s{known}"
    return MeshRow(f"bring {s.name}", s.when(of), s.total(devices), over, s.a_step, time)


def _launches(work: PartWork, step: DividedStep, devices: tuple[str, ...], of: str) -> MeshRow:
    each = [work.cost(step, part) for part in range(len(step.rows))]
    known = [work.times * c.seconds for c in each if c is not None]
    whole = max(known, default=0.0) if at_once(devices) else sum(known)
    often = Fraction(work.times).limit_denominator(MOST_STEPS)
    when = rhythm_text(often.numerator, often.denominator, of)
    time = None if len(known) < len(each) else whole
    return MeshRow(work.name, when, work.nbytes, "", work.times, time)
