"""The structures that were measured for the calls of one kernel over a search: one look into the store for each kind of call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from lanewise.launch.trial import duration
from lanewise.launch.tuned_key import Key
from lanewise.launch.tuned_store import Entry, read_entry, store_enabled
from lanewise.patterns.search.tuning.configurations import Configuration, configuration_from
from lanewise.plan import Decisions
from lanewise.target import is_compiled


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured: a structure and a complete plan."""

    configuration: Configuration
    plan: Decisions


@dataclass(frozen=True, slots=True)
class Tuned:
    """The fastest choice, and why it is that one."""

    choice: Choice
    why: str


class TunedSearches:
    """What the store says, remembered. Another process may tune meanwhile: this one goes on as it began."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Tuned | None] = {}

    def find(self, device: str, specialisation: Hashable, key: Callable[[], Key]) -> Tuned | None:
        """What was measured for calls of this specialisation, or None. `key` is asked once: it builds a kernel."""
        if not is_compiled(device) or not store_enabled():
            return None
        if specialisation not in self._known:
            entry = read_entry(key(), tuned_of)
            self._known[specialisation] = None if entry is None else tuned_of(entry)
        return self._known[specialisation]

    def adopt(self, specialisation: Hashable, tuned: Tuned) -> None:
        """What was measured just now."""
        self._known[specialisation] = tuned


def tuned_of(entry: Entry) -> Tuned:
    """What an entry of the store says; raises `ValueError` with what is wrong."""
    try:
        configuration, default = (
            configuration_from(entry.log["structure"]),
            configuration_from(entry.log["default_structure"]),
        )
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
