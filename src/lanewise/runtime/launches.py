"""Launches with names: which stage of a step they belong to, and what runs.

A simulation hands `make_stepper` or `make_program` its launches in order, each as a `NamedLaunch`; that is all it has to do for
`--profile`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class NamedLaunch:
    """A launch whose memory and numbers are bound.

    stage: what it does in a step, a word of the table of a profile ("forces", "build", "search"). name: what runs, usually
    the kernel's name; launches of one stage and name are added up.
    """

    stage: str
    name: str
    call: Work

    def __call__(self) -> object:
        return self.call()


def names_of(calls: Iterable[Work]) -> tuple[tuple[str, str], ...]:
    """Stage and name of every launch; one without a name is the stage "steps"."""
    return tuple((c.stage, c.name) if isinstance(c, NamedLaunch) else ("steps", "unnamed") for c in calls)


def bare(calls: Iterable[Work]) -> tuple[Work, ...]:
    """What the launches run, without the wrapping: a call less in loops of short steps."""
    return tuple(c.call if isinstance(c, NamedLaunch) else c for c in calls)
