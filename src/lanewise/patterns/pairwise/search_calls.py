"""The calls of a pairwise function over a search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lanewise.errors import ArgumentError
from lanewise.launch.arguments import Arguments
from lanewise.launch.compiled import Call, Compiled
from lanewise.patterns.calls import Calls
from lanewise.patterns.search import Search
from lanewise.patterns.search.searched import Searched
from lanewise.plan import Plan

if TYPE_CHECKING:
    from lanewise.tuning.job import Job
    from lanewise.tuning.report import Tuning


class SearchCalls:
    """An `Engine` that finds the sources of a target with a search. `calls` are those of the function."""

    def __init__(self, calls: Calls, search: Search) -> None:
        self._calls, self._search = calls, search

    @property
    def searched(self) -> Searched:
        """What compiles and binds calls; the same until the function or what it uses stands for something else."""
        calls, kept = self._calls, self._calls.kept
        if "searched" not in kept:
            kept["searched"] = Searched(calls.name, calls.signature, calls.lowered, self._search, calls.kernel)
        return kept["searched"]

    def call(self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> tuple[Any, ...]:
        calls = self._calls
        calls.notice()
        bind = partial(calls.bound_by, plan=None)
        return self.searched.call(arguments, named, out, lambda: calls.given(arguments, named), bind)

    def compile(self, arguments: Arguments, plan: Plan | None) -> Compiled:
        return self.searched.compile(arguments, plan, partial(self._calls.bound_by, plan=plan))

    def bind(self, arguments: Arguments, out: Any, plan: Plan | None) -> Call:
        return self.searched.bind(arguments, out, plan, partial(self._calls.bound_by, plan=plan))

    def tune(self, arguments: Arguments, plan: Plan | None, seconds: float | None) -> Tuning:
        """Measure structures together with plans."""
        from lanewise.patterns.search.tuning.tune import tune_search

        return tune_search(self.searched.tuning_job(arguments, plan, partial(self._calls.bound_by, plan=plan)), seconds)

    def job(self, arguments: Arguments, plan: Plan | None) -> Job:
        raise ArgumentError(
            f"{self._calls.name} runs over {self._search.describe()}: plans are measured together with structures, by "
            f"{self._calls.name}.tune()"
        )
