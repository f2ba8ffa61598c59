"""A tuning job over a search: one kernel, on arrays of one size, whose structure is also to be
chosen.

What was measured for the calls of a kernel is looked up in the store once for each kind of call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lanewise.compiler.optimisations import optimisation
from lanewise.language.target import target_of
from lanewise.launch.compiled import Call
from lanewise.launch.trial import duration
from lanewise.launch.tuned_plans import Entry, Key
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tuning.candidates import Configuration, candidates, configuration_from
from lanewise.planning.plan import CompletePlan, Plan

# What matters on a walk: how many threads share a block and a multiprocessor, how wide the
# registers are.
AXES = {"cuda": ("block", "min_blocks"), "cpu": ("vector_bits",)}


@dataclass(frozen=True, slots=True)
class SearchJob:
    """What is tuned.

    requested: what is searched for; sources: where; counts: elements by the names of the
    parameters; asked: the fields of the plan that the caller fixes; default: the complete plan
    without tuning. bind: a call of a choice, with its own memory; magnitudes: the same for the
    kernel that adds the magnitudes of what this one adds; adopt: called with what was chosen, so
    that later calls in this process use it.
    """

    name: str
    device: str
    requested: Search
    sources: Points
    counts: Mapping[str, int]
    asked: Plan
    default: CompletePlan
    key: Key
    bind: Callable[[Choice], Call]
    magnitudes: Callable[[Choice], Call]
    adopt: Callable[[Tuned], None]

    @property
    def kind(self) -> str:
        return target_of(self.device).name


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What is measured: structures, the automatic choice first, then values of the plan's fields
    over the fastest structure.

    refused: what is not, as (field, value, reason).
    """

    structures: tuple[Choice, ...]
    axes: Mapping[str, tuple[int, ...]]
    refused: tuple[tuple[str, str, str], ...] = ()


def space_of(job: SearchJob) -> SearchSpace:
    """The space of a job, by what its sources look like."""
    offered = candidates(job.requested, job.sources)
    free = (name for name in AXES[job.kind] if getattr(job.asked, name) is None)
    return SearchSpace(
        tuple(Choice(configuration, job.default) for configuration in offered.configurations),
        {name: optimisation(name).values(job.kind, SEARCH) for name in free},
        tuple(
            ("structure", str(configuration), reason) for configuration, reason in offered.refused
        ),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured: a structure and a complete plan."""

    configuration: Configuration
    plan: CompletePlan


@dataclass(frozen=True, slots=True)
class Tuned:
    """The fastest choice, and why it is that one."""

    choice: Choice
    why: str


def tuned_of(entry: Entry) -> Tuned:
    """What an entry of the store says; raises `ValueError` with what is wrong."""
    try:
        configuration = configuration_from(entry.log["structure"])
        default = configuration_from(entry.log["default_structure"])
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is missing") from error
    except TypeError as error:
        raise ValueError(f"it does not hold what an entry holds: {error}") from error
    choice = Choice(configuration, entry.plan)
    took = f"measured: {duration(entry.seconds)} for a call like this one"
    if choice == Choice(default, entry.default):
        return Tuned(choice, f"{took}, and nothing else was faster")
    faster = f"{entry.default_seconds / entry.seconds:.2f} times as fast as"
    if configuration == default:
        return Tuned(choice, f"{took}, {faster} with the default plan")
    return Tuned(choice, f"{took} through {configuration}, {faster} through {default}")
