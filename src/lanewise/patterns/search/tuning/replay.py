"""A search over structures, done again in what an entry of the store has recorded."""

from __future__ import annotations

from lanewise.launch.trial import Trial, trial_from
from lanewise.launch.tuned_store import Entry
from lanewise.patterns.search.tuning.configurations import configuration_from
from lanewise.patterns.search.tuning.job import SearchSpace
from lanewise.patterns.search.tuning.lookup import Choice
from lanewise.patterns.search.tuning.tune import find, search_report
from lanewise.tuning.recording import RecordedMeasurer
from lanewise.tuning.report import Tuning


def replay_search(entry: Entry) -> Tuning:
    """The search of an entry, without the device: a choice that was not looked at then does not exist."""
    space, recording = recorded_space(entry), recorded_trials(entry)
    found = find(space, RecordedMeasurer(recording), float("inf"), recording.__contains__)
    return search_report(found, entry.log)


def recorded_space(entry: Entry) -> SearchSpace:
    """The space of an entry; raises `KeyError` or `ValueError` for one that is damaged."""
    structures = tuple(Choice(configuration_from(text), entry.default) for text in entry.log["structures"])
    return SearchSpace(structures, {name: tuple(values) for name, values in entry.log["axes"].items()})


def recorded_trials(entry: Entry) -> dict[Choice, Trial]:
    """The trials of an entry by choice."""
    return {Choice(configuration_from(t.structure), t.plan): t for t in map(trial_from, entry.log["trials"])}
