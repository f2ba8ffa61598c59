"""What tuning found, for people and for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from lanewise.launch.trial import Trial, changes, duration
from lanewise.planning.plan import CompletePlan
from lanewise.support.html_tables import html_table
from lanewise.tuning.race import SLOW_SHARE, Outcome

SHOWN = 8  # measured plans in the table
COLUMNS = ("time", "default / this", "predicted", "plan")


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning one kernel for one size on one device.

    plan: the fastest found; seconds: of one call with it; default, default_seconds: the same
    without tuning; trials: every plan that was looked at, the fastest first; refused: optimisations
    that the kernel does not allow, as (field, value, reason); exhaustive: all legal plans that the
    models do not rule out were measured; complete: none was left out for want of time; about:
    kernel, device, sizes, date and versions; path: of the entry in the store, if it could be
    written; note: what else might be worth doing; untried: how many plans were next when the time
    was up. structure, default_structure: that sources are found through, for a kernel over a
    search, as `search.tuning.Configuration` writes them.
    """

    plan: CompletePlan
    seconds: float
    default: CompletePlan
    default_seconds: float
    trials: tuple[Trial, ...]
    refused: tuple[tuple[str, Any, str], ...]
    exhaustive: bool
    complete: bool
    about: Mapping[str, Any]
    path: Path | None = None
    note: str = ""
    untried: int = 0
    structure: str = ""
    default_structure: str = ""

    @property
    def factor(self) -> float:
        """How many times as fast as the default plan."""
        return self.default_seconds / self.seconds

    @property
    def measured(self) -> tuple[Trial, ...]:
        """The plans that were timed, the fastest first."""
        return tuple(t for t in self.trials if t.status == "measured")

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The plans that were refused, with their reasons."""
        return tuple(t for t in self.trials if t.status != "measured")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.about,
            **(
                {"structure": self.structure, "default_structure": self.default_structure}
                if self.structure
                else {}
            ),
            "plan": self.plan.as_dict(),
            "seconds": self.seconds,
            "default": self.default.as_dict(),
            "default_seconds": self.default_seconds,
            "factor": self.factor,
            "exhaustive": self.exhaustive,
            "complete": self.complete,
            "note": self.note,
            "path": None if self.path is None else str(self.path),
            "tried": len(self.measured),
            "refused": [{"field": f, "value": v, "reason": r} for f, v, r in self.refused],
            "candidates": [
                {
                    "plan": changes(t.plan),
                    "status": t.status,
                    "reason": t.reason,
                    "predicted": t.predicted,
                    "seconds": t.seconds,
                    **({"structure": t.structure} if t.structure else {}),
                }
                for t in self.trials
            ],
        }

    def __repr__(self) -> str:
        return f"<tuning of {self._title()}: {self._verdict()[0]}>"

    def _repr_html_(self) -> str:
        rows = (
            (duration(t.seconds), self._share(t), duration(t.predicted), t.short())
            for t in self.measured[:SHOWN]
        )
        table = html_table(COLUMNS, rows, title=self._title())
        below = "<br>".join(escape(line) for line in [*self._verdict(), *self._refusals()])
        return f"<div>{table}<p>{below}</p></div>"

    def __str__(self) -> str:
        lines = [self._title(), *self._verdict(), "", "the fastest plans"]
        lines += [
            f"  {duration(t.seconds):>10}  {self._share(t):>6}  {t.short()}"
            for t in self.measured[:SHOWN]
        ]
        if self.failed or self.refused:
            lines += ["", "refused", *(f"  {text}" for text in self._refusals())]
        return "\n".join(lines)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table

        table = Table(*COLUMNS, title=self._title(), title_justify="left")
        for t in self.measured[:SHOWN]:
            table.add_row(duration(t.seconds), self._share(t), duration(t.predicted), t.short())
        return Group(table, *self._verdict(), *self._refusals())

    def _title(self) -> str:
        a = self.about
        return f"{a['kernel']} on {a['device']} ({a['machine']}), {a['elements']}"

    def _verdict(self) -> list[str]:
        how = (
            "all that the models do not rule out"
            if self.exhaustive
            else "a search along the axes of the space"
        )
        how = "structures, then plans over the fastest" if self.structure else how
        how = how if self.complete else self._out_of_time()
        default = (
            f"{self.default_structure} with the default plan"
            if self.structure
            else "the default plan"
        )
        best = (
            f"{default}, with which nothing was compared"
            if len(self.measured) == 1 and not self.complete
            else f"{default} is the best"
            if (self.plan, self.structure) == (self.default, self.default_structure)
            else f"{self.factor:.2f} times as fast as {default}: {self.trials[0].short()}"
        )
        kept = [f"kept in {self.path}"] if self.path is not None else []
        plans = "plan" if len(self.measured) == 1 else "plans"
        counts = f"{len(self.measured)} {plans} measured in {self.about['elapsed']:.1f} s ({how})"
        return [best, counts, *kept, *([self.note] if self.note else [])]

    def _out_of_time(self) -> str:
        tried = len(self.measured) + sum(t.status in ("failed", "wrong") for t in self.failed)
        left = f", {tried} of {tried + self.untried} plans tried" if self.untried else ""
        slow = self.default_seconds > SLOW_SHARE * self.about["elapsed"]
        launch = f"a launch takes {duration(self.default_seconds)}{left}: " if slow else ""
        return f"{launch}the time ran out: a larger seconds= tries more"

    def _share(self, trial: Trial) -> str:
        return "" if not trial.seconds else f"{self.default_seconds / trial.seconds:.2f}"

    def _refusals(self) -> list[str]:
        """Optimisations that do not apply, then how many plans were refused for each reason."""
        lines = [f"{f}={v!r}: {r}" for f, v, r in self.refused]
        # What was found differs from plan to plan; what is wrong with it does not.
        reasons = Counter(
            (t.status, _kind(t.reason)) for t in self.failed if t.status != "unpromising"
        )
        lines += [
            f"{n} {'plan' if n == 1 else 'plans'} {status}: {reason}"
            for (status, reason), n in reasons.items()
        ]
        hopeless = sum(t.status == "unpromising" for t in self.failed)
        return lines + ([f"{hopeless} unpromising by the model"] if hopeless else [])


def _kind(reason: str) -> str:
    """The first line of a reason, without the figures at its end that differ from plan to plan."""
    line = reason.partition("\n")[0]
    return re.sub(
        r"^(.*) spills \d+ bytes of registers to memory$",
        r"\1 spills registers to memory",
        line.partition(", found ")[0],
    )


def tuning_of(
    outcome: Outcome[CompletePlan], log: Mapping[str, Any], path: Path | None = None
) -> Tuning:
    """The report of a search; `log` is what the entry of the store says besides the plans."""
    order = sorted(
        outcome.trials.values(), key=lambda t: (t.status != "measured", t.seconds or 0.0)
    )
    first = [t for t in order if t.plan == outcome.best]
    trials = (*first, *(t for t in order if t.plan != outcome.best))
    refused = tuple((r["field"], r["value"], r["reason"]) for r in log["refused"])
    return Tuning(
        outcome.best,
        outcome.seconds(outcome.best),
        outcome.default,
        outcome.seconds(outcome.default),
        trials,
        refused,
        outcome.exhaustive,
        log.get("complete", outcome.complete),
        log["about"],
        path,
        log["note"],
        log.get("untried", 0),
    )
