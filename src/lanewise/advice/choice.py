"""What `choose_layout` answers: the layout, and a table of all candidates with what each would
cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.advice.cost import ArrayUse
from lanewise.language.types import COMPONENTS
from lanewise.layouts.base import Layout

if TYPE_CHECKING:
    from rich.table import Table

# the model is right within some per cent; a predicted gain below this is no reason to change
LEAST_GAIN = 0.05
NOTICEABLE = 0.0005


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout and its predicted cost.

    Attributes:
        layout: the candidate.
        seconds: predicted time of all accesses of one step.
        nbytes: bytes moved for one element in a step, whole sectors or cache lines.
        instructions: loads and stores of one element in a step.
        memory: bytes of the array.
        copies: fields that have no view: they read as copies.
        lines: lines of 128 bytes that the loads and stores of a warp touch, an element.
        limiters: what limits each access, in their order: "memory", "issue" or "arithmetic".
    """

    layout: Layout
    seconds: float
    nbytes: float
    instructions: float
    memory: int
    copies: int
    lines: float
    limiters: tuple[str, ...]

    def rank(self) -> tuple[float, int, float, float, float]:
        """Time first; of equal times the one that keeps fields as views, then fewer lines,
        instructions and bytes.
        """
        return (
            float(f"{self.seconds:.3e}"),
            self.copies,
            round(self.lines, 3),
            self.instructions,
            float(f"{self.memory:.3e}"),
        )


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The answer of `choose_layout`.

    It prints as text or as a rich table; `as_dict` makes it a dictionary.

    Attributes:
        record: the name of the record.
        device: "cpu" or "cuda".
        machine: the machine that the model describes.
        count: records of the array.
        accesses: what the kernels do with the records in a step.
        current: the layout before.
        reasons: every candidate with its cost, the best first.
    """

    record: str
    device: str
    machine: str
    count: int
    accesses: tuple[ArrayUse, ...]
    current: Layout
    reasons: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.reasons[0]

    @property
    def before(self) -> Candidate:
        """The candidate with the current layout."""
        return next(c for c in self.reasons if c.layout == self.current)

    @property
    def gain(self) -> float:
        """The predicted time of the current layout divided by that of the best one, minus one."""
        return self.relative(self.before) - 1

    def relative(self, candidate: Candidate) -> float:
        """The predicted time of a candidate divided by that of the best one; 1 if no layout takes
        any time.
        """
        best = self.best.seconds
        return candidate.seconds / best if best else math.inf if candidate.seconds else 1.0

    @property
    def worth_changing(self) -> bool:
        """Whether the best candidate is predicted to gain at least 5 %."""
        return self.gain >= LEAST_GAIN

    @property
    def layout(self) -> Layout:
        """The layout to use: the best one, or the current one when no change is worth making."""
        return self.best.layout if self.worth_changing else self.current

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.worth_changing:
            return (
                f"{self.layout} instead of {self.current}: {1 + self.gain:.2f} times as fast by "
                "the model"
            )
        if self.best.layout == self.current:
            return f"no change worth making: {self.current} is the best by the model"
        if self.gain < NOTICEABLE:
            return (
                f"no change worth making: {self.current} is as good as {self.best.layout}, the "
                "best by the model"
            )
        return (
            f"no change worth making: {self.best.layout} would gain {100 * self.gain:.1f} % over "
            f"{self.current}, "
            f"and below {100 * LEAST_GAIN:.0f} % the model decides nothing"
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "record": self.record,
            "device": self.device,
            "machine": self.machine,
            "count": self.count,
            "layout": str(self.layout),
            "current": str(self.current),
            "worth_changing": self.worth_changing,
            "gain": self.gain,
            "verdict": self.verdict,
            "accesses": [
                {
                    "kernel": a.kernel,
                    "pattern": a.role,
                    "read": list(a.read),
                    "written": list(a.written),
                    "weight": a.weight,
                }
                for a in self.accesses
            ],
            "candidates": [
                {
                    "layout": str(c.layout),
                    "seconds": c.seconds,
                    "relative": self.relative(c),
                    "bytes_per_element": c.nbytes,
                    "instructions_per_element": c.instructions,
                    "memory": c.memory,
                    "limiters": list(c.limiters),
                }
                for c in self.reasons
            ],
        }

    def __str__(self) -> str:
        names = [_row(c, self) for c in self.reasons]
        widths = [max(len(row[i]) for row in (_HEADINGS, *names)) for i in range(len(_HEADINGS))]
        table = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (_HEADINGS, *names)
        ]
        return "\n".join(
            [
                self._title(),
                *(f"  {_access(a)}" for a in self.accesses),
                "",
                *table,
                "",
                self.verdict,
            ]
        )

    def __rich__(self) -> Table:
        """The same as a table for a terminal or a notebook."""
        from rich.table import Table

        table = Table(
            title=self._title(), caption=self.verdict, title_justify="left", caption_justify="left"
        )
        for n, heading in enumerate(_HEADINGS):
            table.add_column(heading, justify="left" if n == 0 else "right")
        for c in self.reasons:
            table.add_row(*_row(c, self), style="bold" if c.layout == self.layout else None)
        return table

    def _title(self) -> str:
        return (
            f"{self.count:,} records of {self.record} on {self.device}, by the model of "
            f"{self.machine}"
        )


_HEADINGS = ("layout", "relative time", "bytes/element", "loads and stores", "memory", "limited by")


def _row(c: Candidate, choice: LayoutChoice) -> tuple[str, ...]:
    note = " (current)" if c.layout == choice.current else ""
    limits = ", ".join(dict.fromkeys(c.limiters))
    return (
        f"{c.layout}{note}",
        f"{choice.relative(c):.3f}",
        f"{c.nbytes:.1f}",
        f"{c.instructions:g}",
        f"{c.memory / 1e6:,.1f} MB",
        limits,
    )


def _access(a: ArrayUse) -> str:
    """One access in words."""
    parts = [f"reads {_leaves(a.read)}"] if a.read else []
    parts += [f"writes {_leaves(a.written)}"] if a.written else []
    return f"{a.kernel}: {a.role}, {', '.join(parts)}" + (
        f", {a.weight:g} times per step" if a.weight != 1 else ""
    )


def _leaves(names: tuple[str, ...]) -> str:
    """`position.xyz mass` for position.x, position.y, position.z, mass."""
    fields: dict[str, str] = {}
    for name in names:
        field, dot, component = name.rpartition(".")
        if not dot or component not in COMPONENTS:  # a scalar
            field, dot, component = name, "", ""
        fields[field] = fields.get(field, dot) + component
    return " ".join(field + components for field, components in fields.items())
