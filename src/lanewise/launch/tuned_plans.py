"""The tuned plans that a kernel knows: one look into the store for each kind of call and process."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lanewise.launch.tuned_key import Key
from lanewise.launch.tuned_store import read_entry, store_enabled
from lanewise.plan import Decisions, Plan
from lanewise.target import is_compiled

ANYTHING = Plan()


class TunedPlans:
    """What the store says for the calls of one kernel, remembered. Another process may tune meanwhile: this one goes on as it began."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Decisions | None] = {}

    def find(
        self, wish: Plan | None, device: str, specialisation: Hashable, key: Callable[[], Key]
    ) -> Decisions | None:
        """The tuned plan for calls of this specialisation with these fixed fields, or None.

        `key` is asked once: it takes some milliseconds, the specialisation only a few microseconds.
        """
        if not is_compiled(device) or not store_enabled():
            return None
        place = (wish or ANYTHING, specialisation)
        if place not in self._known:
            entry = None if _is_complete(place[0]) else read_entry(key())
            self._known[place] = entry.plan if entry is not None else None
        return self._known[place]

    def adopt(self, wish: Plan, specialisation: Hashable, plan: Decisions) -> None:
        """A plan that was tuned just now."""
        self._known[wish, specialisation] = plan


def _is_complete(plan: Plan) -> bool:
    return None not in plan.as_dict().values()
