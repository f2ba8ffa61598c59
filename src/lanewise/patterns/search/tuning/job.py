"""A tuning job over a search: one kernel, on arrays of one size, whose structure is to be chosen, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lanewise.launch.compiled import Call
from lanewise.launch.tuned_key import Key
from lanewise.optimisations import optimisation
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.pattern import SEARCH
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tuning.candidates import candidates
from lanewise.patterns.search.tuning.lookup import Choice, Tuned
from lanewise.plan import Decisions, Plan
from lanewise.target import target_of

# What matters on a walk: how many threads share a block and a multiprocessor, how wide the registers are.
AXES = {"cuda": ("block", "min_blocks"), "cpu": ("vector_bits",)}


@dataclass(frozen=True, slots=True)
class SearchJob:
    """What is tuned.

    wish: what is searched for; sources: where; counts: elements by the names of the parameters; wanted: the fields of the plan
    that the caller fixes; default: the complete plan without tuning. bind: a call of a choice, with memory of its own; adopt: told
    what was chosen, so that later calls in this process use it.
    """

    name: str
    device: str
    wish: Search
    sources: Points
    counts: Mapping[str, int]
    wanted: Plan
    default: Decisions
    key: Key
    bind: Callable[[Choice], Call]
    adopt: Callable[[Tuned], None]

    @property
    def kind(self) -> str:
        return target_of(self.device).name


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What is measured: structures, the automatic choice first, then values of the plan's fields over the fastest structure.

    refused: what is not, as (field, value, reason).
    """

    structures: tuple[Choice, ...]
    axes: Mapping[str, tuple[int, ...]]
    refused: tuple[tuple[str, str, str], ...] = ()


def space_of(job: SearchJob) -> SearchSpace:
    """The space of a job, by what its sources look like."""
    found = candidates(job.wish, job.sources)
    free = (name for name in AXES[job.kind] if getattr(job.wanted, name) is None)
    return SearchSpace(
        tuple(Choice(configuration, job.default) for configuration in found.configurations),
        {name: optimisation(name).values(job.kind, SEARCH) for name in free},
        tuple(("structure", str(configuration), reason) for configuration, reason in found.refused),
    )
