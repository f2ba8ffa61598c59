"""What kernels over the sites of a lattice share, whether these hold populations or fields: kinds,
steps, what is compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, overload
from weakref import ref

import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.launch.steps.loop import StepLoop, check_steps, loop_of, take
from lanewise.launch.steps.task import States, Task
from lanewise.patterns.sitewise.call_kinds import SiteKinds
from lanewise.patterns.sitewise.calls import SiteCall, Step, run_calls
from lanewise.patterns.sitewise.index_tests import asks_for_tests, prove_all
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_calls import SplitCall, SplitValues, refuse_split
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.split_steps import (
    alone_on,
    split_observed,
    split_step,
    split_values,
)
from lanewise.patterns.sitewise.steppers import SiteStepper, around_steps, pieces_of
from lanewise.patterns.sitewise.values import SiteValues, is_unchanging, same_values
from lanewise.planning.plan import Plan, check_plan
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.attributes import settings_by_name
from lanewise.support.errors import LanewiseError, brief, shortened

if TYPE_CHECKING:
    from lanewise.patterns.sitewise.tuning import SiteJob
    from lanewise.tuning.report import Tuning


class LatticeKernel(ABC):
    """A lattice, the function of its sites of kind 0, and the other kinds.

    Calling it runs one step.
    """

    def __init__(self, kinds: SiteKinds) -> None:
        function = kinds.main.python
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._kinds, self._kernels = kinds, SiteKernels(kinds)

    @property
    def lattice(self) -> Lattice:
        """The lattice whose directions lead to the neighbours."""
        return self._kinds.lattice

    @property
    def python(self) -> Callable[..., Any]:
        """The function of the sites of kind 0, as it was written."""
        return self._kinds.main.python

    @property
    def kinds(self) -> SiteKinds:
        """The functions of all kinds, and the walls."""
        return self._kinds

    @property
    def kernels(self) -> SiteKernels:
        """The compiled kernels."""
        return self._kernels

    def __reduce__(self) -> str:
        # with the kinds that its module gave it: found by name, or not at all
        return self.__qualname__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # ------------------------------------------------------------ steps

    def __call__(
        self, sites: AnySites, *, plan: Plan | None = None, checks: bool = False, **values: Any
    ) -> None:
        """One step.

        plan: an `lw.Plan` for this call, instead of the tuned or the default one. checks: test
        before the step that every index into a table is inside, as far as nothing proves it; raises
        `VerificationError` for the first site with one that is not.
        """
        try:
            self._run(sites, 1, plan, checks, values)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)

    @brief
    def run(
        self,
        sites: AnySites,
        steps: int,
        *,
        plan: Plan | None = None,
        checks: bool = False,
        **values: Any,
    ) -> None:
        """Run this many steps, as graphs on a GPU; it returns when they are done.

        checks: test before each step that every index into a table is inside, unless this is
        proved; raises `VerificationError` with the first site whose index is not, before that step
        has changed anything.
        """
        self._run(sites, steps, plan, checks, values)

    def _run(
        self, sites: AnySites, steps: int, plan: Plan | None, checks: bool, values: dict[str, Any]
    ) -> None:
        if not asks_for_tests(self.kinds, sites, checks):
            self._take(sites, steps, plan, values)
            return
        check_steps(self.__name__, steps)
        for _ in range(steps):
            assert isinstance(sites, Sites)
            classified = self._proved(sites, values)
            sites.whole.check()
            run_calls(sites, self.kernels.step_tests(sites, classified, self.kinds.updates(sites)))
            self._take(sites, 1, plan, values)

    @brief
    def stepper(self, sites: AnySites, *, plan: Plan | None = None, **values: Any) -> SiteStepper:
        """The stepper of `run` for given values: bound once, to run repeatedly, or to be coupled
        (`lw.couple`).
        """
        return self._stepper(sites, plan, self._proved(sites, values))

    @brief
    def compile(self, sites: AnySites, *, plan: Plan | None = None, **values: Any) -> SiteCall:
        """The kernel of the next step, without running it: its plan, source, resources,
        explanation.
        """
        if isinstance(sites, SplitSites):
            raise refuse_split(self.__name__, sites, "a call is compiled")
        classified = self._proved(sites, values)
        step = self.kernels.step(sites, sites.step, sites.fresh, classified, plan)
        stepper = self._stepper(sites, plan, classified)
        tuned = None
        if plan is None and not sites.fresh and self.kernels.tuned_plan(sites, classified):
            tuned = self.kernels.key(sites, classified)
        return replace(step, step=Step(lambda: _of_one_device(stepper.calls_now()), plan, tuned))

    @brief
    @settings_by_name
    def tune(self, sites: AnySites, *, seconds: float | None = None, **values: Any) -> Tuning:
        """Measure plans of a step of these sites, for about so many seconds, and store the fastest:
        later steps like these use it.

        The populations and fields of the sites do not change. Plans that change a bit of the result
        are rejected. Raises `ArgumentError` for a time that is not positive and for values that do
        not fit, `DeviceError` for the interpreter, which has no plans.
        """
        from lanewise.patterns.sitewise.tuning import tune_sites

        return tune_sites(self.tuning_job(sites, **values), seconds)

    @brief
    def tuning_job(self, sites: AnySites, **values: Any) -> SiteJob:
        """The measurements of `tune`."""
        from lanewise.patterns.sitewise.tuning import SiteJob
        from lanewise.tuning.job import check_tunable

        if isinstance(sites, SplitSites):
            raise refuse_split(self.__name__, sites, "plans are tuned")
        classified = self._proved(sites, values)
        check_tunable(self.__name__, sites.device, {"sites": sites.count})
        kernels = self.kernels
        return SiteJob(
            self,
            sites,
            values,
            classified,
            kernels.key(sites, classified),
            kernels.default_plan(sites, classified),
            partial(kernels.adopt, sites, classified),
        )

    @abstractmethod
    def _change(
        self, sites: Sites, values: Mapping[str, Any], changed: Callable[[Any], Any]
    ) -> None:
        """Give sites what `changed` makes of an array of what they hold. values: of a call."""

    @abstractmethod
    def _held(self, sites: Sites, values: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
        """What sites hold: arrays whose last axes are those of the box. values: of a call."""

    @abstractmethod
    def _calls(
        self, sites: Sites, plan: Plan | None, values: SiteValues, step: int, fresh: bool
    ) -> list[SiteCall]:
        """What a step of these sites runs, in its order, with values that are checked."""

    def _stepper(
        self, sites: AnySites, plan: Plan | None, values: SiteValues | SplitValues
    ) -> SiteStepper:
        """What takes steps of these sites with values that are checked."""
        if isinstance(sites, SplitSites):
            assert isinstance(values, SplitValues)
            observed = split_observed(self.kernels, sites, values)
            calls = partial(split_step, self.kernels, sites, plan, values)
            return SiteStepper(self.__name__, ((sites, calls),), observed, values.copied)
        assert isinstance(values, SiteValues)
        observed = self.kernels.observed(sites, values)
        calls = partial(self._calls, sites, plan, values)
        return SiteStepper(self.__name__, ((sites, calls),), observed, values.copied)

    def _take(self, sites: AnySites, steps: int, plan: Plan | None, values: dict[str, Any]) -> None:
        """So many steps, by the loop of the run before if nothing has changed since: graphs and
        all.
        """
        check_plan(self.__name__, plan)
        versions = self.kinds.notice()
        if not isinstance(sites, Sites | SplitSites):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.kinds.check_sites(sites)
        fields, walls = tuple(self.kinds.fields), self.kinds.walls
        curved = sites.interpolations if isinstance(sites, SplitSites) else sites.interpolation
        made_of = (plan, self.kernels.tunings, versions, fields, walls, curved)
        kept = sites.kept.get(self)
        if kept is not None and kept[0] == made_of and same_values(kept[1], values):
            take(kept[2], steps)
            return
        classified = self._proved(sites, values)
        if all(map(is_unchanging, values.values())):
            loop = self._kept_loop(sites, plan, classified)
            sites.kept[self] = (made_of, values, loop)
            take(loop, steps)
        else:
            self._stepper(sites, plan, classified).run(steps)

    def _kept_loop(
        self, sites: AnySites, plan: Plan | None, values: SiteValues | SplitValues
    ) -> StepLoop:
        """A loop that the sites keep, and that keeps neither them nor this kernel."""
        kernel, stepped = ref(self), ref(sites)

        def launches(states: States) -> Sequence[NamedLaunch]:
            mine, theirs = kernel(), stepped()
            assert mine is not None
            assert theirs is not None
            return mine._stepper(theirs, plan, values).task.launches(states)

        name, device, around = self.__name__, sites.device, around_steps(sites)
        alone, pieces = alone_on((sites,)), pieces_of((sites,))
        return loop_of(
            Task(
                name, "sitewise", launches, device, (sites.state,), around=around, alone=alone,
                pieces=pieces,
            )
        )  # fmt: skip

    @overload
    def _proved(self, sites: Sites, values: Mapping[str, Any]) -> SiteValues: ...
    @overload
    def _proved(self, sites: AnySites, values: Mapping[str, Any]) -> SiteValues | SplitValues: ...
    def _proved(self, sites: AnySites, values: Mapping[str, Any]) -> SiteValues | SplitValues:
        """The values of a call, none of which surely leads out of a table."""
        if isinstance(sites, SplitSites):
            split = split_values(self.kernels, sites, values)
            self.kinds.check_motion(sites, split.environment)
            return split
        # which checks that the sites are of this kernel
        classified = self.kinds.values(sites, values)
        self.kinds.check_motion(sites, classified.environment)
        prove_all(self.kinds, sites, classified, self.kinds.updates(sites))
        return classified


def _of_one_device(calls: Sequence[SiteCall | SplitCall]) -> list[SiteCall]:
    return [call for call in calls if isinstance(call, SiteCall)]
