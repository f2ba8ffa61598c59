"""An explanation as data: a row for each optimisation, what the kernel does, what bounds it.

Text, tables, JSON are views of it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from lanewise.models.deviations import Deviation
from lanewise.planning.decision import Place
from lanewise.planning.decisions import Decisions
from lanewise.planning.plan import CompletePlan


@dataclass(frozen=True, slots=True)
class Change:
    """A number without an optimisation and with it; None where it is not known."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One optimisation.

    value: of the plan, or the layout's name. applied: whether the kernel has it. reason: what it
    does here, or why it is not there. predicted, measured: times faster than without it, for what
    is not applied times faster than now; None when not known. best: for what is not applied, the
    value that was predicted. registers, occupancy (0 to 1): without and with what is applied.
    place: whether kernels of this pattern can have it "here", on this kind of device, only on a
    "gpu" or a "cpu", or "nowhere".
    """

    name: str
    field: str
    value: Any
    applied: bool
    reason: str
    predicted: float | None = None
    measured: float | None = None
    best: Any = None
    registers: Change | None = None
    occupancy: Change | None = None
    place: Place = "here"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The busiest unit, the least time that the device allows (`seconds`), and the time that the
    model predicts.

    `units` are the seconds that every unit of the device is expected to be busy; `share` is the
    bound over the prediction. `least_unit` takes the least time: another one where caches may do
    the work of the busiest. Where data tell how often loops run there is no least time; where
    nothing tells it, there is no prediction either, and no unit. `because` says so. deviation: how
    far predictions for such kernels have been off, where that was measured; unmeasured: of what it
    was not, where there is a prediction.
    """

    unit: str
    seconds: float | None
    predicted_seconds: float | None
    units: dict[str, float]
    because: str = ""
    least_unit: str = ""
    deviation: Deviation | None = None
    unmeasured: str = ""

    @property
    def share(self) -> float | None:
        if self.seconds is None or self.predicted_seconds is None:
            return None
        return self.seconds / self.predicted_seconds if self.predicted_seconds else 1.0


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the function does, each as lines of a title and a text: operations, accesses, reuse,
    symmetry.
    """

    lines: tuple[tuple[str, str], ...]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch of a call, or those of a kernel that takes turns with others.

    times: how often it is launched. grid: what it runs over, in words. nbytes: of the arrays that
    it
    touches, None where a length is not known. predicted, measured: seconds of all its launches,
    None where nothing says so: nothing is predicted of what is not generated.
    """

    name: str
    times: int = 1
    grid: str = ""
    nbytes: int | None = None
    predicted: float | None = None
    measured: float | None = None


def shares_of(launches: tuple[LaunchRow, ...]) -> tuple[float | None, ...]:
    """See `Explanation.shares`."""
    measured = [row.measured for row in launches]
    times = [row.predicted for row in launches] if None in measured else measured
    whole = sum(t for t in times if t is not None)
    return tuple(None if t is None or not whole else t / whole for t in times)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known of a kernel before, or after, it ran.

    origin: of the plan: "default", "tune()" or "given". bound: None for the interpreter.
    measured_seconds: of one call, None where nothing was measured; measured_by: "tune()" or "now".
    invented, shapes: values and sizes that were not given. launches: of one call, in their order.
    layout_reasons: why records lie as they do, by parameter, where kernels chose (layout="auto").

    `str()` is a table of at most 120 columns, a notebook and a rich console show one, `json()` is
    for programs. The table has the optimisations that such a kernel can have on this kind of
    device; the names of the others stand below it. `text(all=True)` is the table of all of them.
    """

    kernel: str
    pattern: str
    device: str
    machine: str
    counts: dict[str, int]
    layouts: dict[str, str]
    drawings: dict[str, str]
    decisions: Decisions
    origin: str
    rows: tuple[Row, ...]
    analysis: Analysis
    bound: Bottleneck | None
    measured_seconds: float | None
    measured_by: str
    resources: dict[str, Any]
    invented: dict[str, Any] = field(default_factory=dict[str, Any])
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    warnings: tuple[str, ...] = ()
    launches: tuple[LaunchRow, ...] = ()
    layout_reasons: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def plan(self) -> CompletePlan:
        """Every field, none left open; `decisions` has the reasons."""
        return self.decisions.plan

    def __repr__(self) -> str:
        applied = sum(r.applied for r in self.rows)
        return (
            f"<explanation of {self.kernel} on {self.device}: {applied} of {len(self.rows)} "
            "optimisations applied; print it>"
        )

    def __str__(self) -> str:
        from lanewise.facade import as_text

        return as_text(self)

    def text(self, *, all: bool = False, width: int = 120) -> str:
        """As `str()`, of so many columns, if it shall be with a row for every optimisation."""
        from lanewise.facade import as_text

        return as_text(self, width, every=all)

    def __rich__(self) -> Any:
        from lanewise.facade import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from lanewise.facade import as_html

        return as_html(self)

    def row(self, name: str) -> Row:
        """The row of a field of the plan (or "layout"), or of the name of an optimisation."""
        for r in self.rows:
            if name in (r.field, r.name):
                return r
        raise KeyError(
            f"no optimisation {name!r}; there are {', '.join(r.field for r in self.rows)}"
        )

    def shares(self) -> tuple[float | None, ...]:
        """The share of each launch in the time of a call: of what was measured, else of what is
        predicted.
        """
        return shares_of(self.launches)

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, strings and finite numbers."""
        bound = self.bound
        return {
            "kernel": self.kernel,
            "pattern": self.pattern,
            "device": self.device,
            "machine": self.machine,
            "counts": dict(self.counts),
            "layout": dict(self.layouts),
            "drawing": dict(self.drawings),
            **({"layout_reasons": dict(self.layout_reasons)} if self.layout_reasons else {}),
            "plan": self.plan.as_dict(),
            "plan_origin": self.origin,
            "plan_reasons": dict(self.decisions.reasons),
            "optimisations": [_row(r) for r in self.rows],
            "bound": {
                "unit": bound.unit,
                "seconds": _finite(bound.seconds),
                "predicted_seconds": _finite(bound.predicted_seconds),
                "share": _finite(bound.share),
                "units": {n: _finite(s) for n, s in bound.units.items()},
                **({"deviation": _deviation(bound.deviation)} if bound.deviation else {}),
                **({"unmeasured": bound.unmeasured} if bound.unmeasured else {}),
            }
            if bound
            else {},
            "measured": {"seconds": _finite(self.measured_seconds), "by": self.measured_by}
            if self.measured_by
            else {},
            "analysis": dict(self.analysis.facts),
            "resources": dict(self.resources),
            "invented": dict(self.invented),
            "invented_shapes": {n: list(shape) for n, shape in self.shapes.items()},
            "warnings": list(self.warnings),
            "launches": [
                _launch(r, share) for r, share in zip(self.launches, self.shares(), strict=True)
            ],
        }

    def json(self) -> str:
        """`as_dict` as one line of JSON."""
        return json.dumps(self.as_dict(), allow_nan=False)


def _row(r: Row) -> dict[str, Any]:
    return {
        "name": r.name,
        "field": r.field,
        "value": r.value,
        "applied": r.applied,
        "reason": r.reason,
        "predicted": _finite(r.predicted),
        "measured": _finite(r.measured),
        "best": r.best,
        "registers": _change(r.registers),
        "occupancy": _change(r.occupancy),
        "place": r.place,
    }


def _deviation(d: Deviation) -> dict[str, Any]:
    return {
        "family": d.family,
        "kernels": d.kernels,
        "device": d.device,
        "measured_over_predicted": [d.shortest, d.longest],
    }


def _launch(r: LaunchRow, share: float | None) -> dict[str, Any]:
    return {
        "name": r.name,
        "times": r.times,
        "grid": r.grid,
        "bytes": r.nbytes,
        "predicted_seconds": _finite(r.predicted),
        "measured_seconds": _finite(r.measured),
        "share": _finite(share),
    }


def _change(change: Change | None) -> dict[str, float | None] | None:
    return (
        None
        if change is None
        else {"before": _finite(change.before), "after": _finite(change.after)}
    )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
