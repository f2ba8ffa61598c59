"""`lw.steps`: a time loop of the user's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.joined import Owned, joined, memory_of
from lanewise.launch.steps.loop import MOST_STEPS, StepLoop, bound_in, check_steps
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Clock, has_graphs
from lanewise.launch.steps.unwritten import refuse_unwritten
from lanewise.launch.tasks import Role, Sequence
from lanewise.loops.every import whole
from lanewise.loops.explanation import LoopExplanation, explain_steps
from lanewise.loops.functions import end_called
from lanewise.loops.orders import KeptOrder, is_order
from lanewise.loops.reading import read_lists
from lanewise.loops.searches import Structures
from lanewise.profiling.profile import Profile
from lanewise.profiling.progress import take_steps
from lanewise.runtime.device import get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.programs import Work
from lanewise.support.attributes import sealed, settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps

LONGEST_CYCLE = 1024  # steps: each of them has a list of launches
OWN = "lw.steps"  # what made the loops of users' own
Callback = Callable[["Steps"], object]


@sealed()
class Steps:
    """A loop of bound calls, as `lw.steps` makes it. It counts its steps, and a second `run`
    continues after the first one.
    """

    def __init__(
        self, rhythm: Rhythm, device: str, clock: Clock, profile: Profile | None, of: str
    ) -> None:
        """Made by `lw.steps`, which checks what it is given. of: what its user has called, or
        holds.
        """
        self._rhythm, self._device, self._clock, self._of = rhythm, device, clock, of
        name = f"a loop of {OWN}" if of == OWN else f"the {of}"
        self._lease = Lease(name)
        # The thread that runs it. In a list: attributes are assigned by a function of Python, as
        # which begins Ctrl-C may come.
        self._running = [0]
        self._begun = False
        self._whole = WholeSteps(
            "the loop", "set its arrays anew, and say which step they are of with loop.step = n"
        )
        self._loop = StepLoop(device, name, rhythm, self._whole, profile, clock)
        wait: Work | None = get_device(device).synchronize if has_graphs(device) else None
        end_called(rhythm.tasks, self._loop.checks, wait)

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(t.name for t in self._rhythm.tasks))
        return f"<loop of {names} on {self._device}, step {self.step:,}>"

    def __reduce__(self) -> NoReturn:
        uncopied(
            "a loop of lw.steps",
            "save the arrays and loop.step, bind the calls anew, and set loop.step",
        )

    @property
    def step(self) -> int:
        """The number of steps so far, which is the number of the next step.

        Set it to an integer from 0 on to begin elsewhere, or to declare that the arrays belong to a
        step again after a run was stopped in the middle.
        """
        return self._clock.step if self._running[0] else self._loop.step

    @step.setter
    def step(self, value: int) -> None:
        number = whole("the step of a loop", value)
        if self._loop.within:
            raise ArgumentError(
                "a function of the list, or of lw.by_step, cannot set the step of its loop, which "
                "is within one; a callback can"
            )
        if not 0 <= number <= MOST_STEPS:
            raise ArgumentError(f"the step of a loop is from 0 to {MOST_STEPS:,}, found {number:,}")
        self._loop.step = number
        self._clock.begin(number)
        self._whole.mended()

    @property
    def orders(self) -> tuple[NDArray[np.int32], ...]:
        """The orders of elements that this loop keeps between steps, copied to the host. Each call
        over `lw.Tree` has one of shape (n,), in the order of the calls, and a second one for
        targets that are not the sources. Other calls have none.

        A checkpoint of a loop consists of its arrays, `step` and these orders; a loop that is given
        them continues with the same bits. You can set them to as many arrays, each with every index
        once.
        """
        return tuple(order.on_host() for order in self._orders)

    @orders.setter
    def orders(self, values: Any) -> None:
        if self._loop.within:
            raise ArgumentError(
                "a function of the list, or of lw.by_step, cannot set the orders of its loop, "
                "which is within a step; a callback can"
            )
        given = [np.asarray(v) for v in values]
        lengths = [len(order) for order in self._orders]
        shapes = [(n,) for n in lengths]
        if [o.shape for o in given] != shapes or not all(map(is_order, given, lengths)):
            wanted = " and ".join(f"each of {n:,} indices once" for n in lengths) or "none"
            found = ", ".join(str(o.shape) for o in given) or "none"
            raise ArgumentError(
                f"the orders of a loop: found arrays of shape {found}; wanted {wanted}, as "
                "loop.orders gives them"
            )
        for order, there in zip(given, self._orders, strict=True):
            there.fill(np.ascontiguousarray(order, np.int32))

    @property
    def _orders(self) -> list[KeptOrder]:
        return [order for task in self._rhythm.tasks for order in task.orders]

    @property
    def cycle(self) -> int:
        """The number of steps after which the launches repeat."""
        return self._rhythm.period

    @settings_by_name
    def run(
        self,
        steps: int,
        callback: Callback | None = None,
        every: int = 1,
        *,
        progress: bool = False,
    ) -> Steps:
        """Run this many steps; it returns when they are done.

        The bits do not depend on how runs are divided, and equal those of a Python loop of the same
        calls (except for calls over `lw.Tree`, which keep an order for 32 steps). On a GPU the
        steps are graphs. callback: called with this loop after every `every` steps and after the
        last one; it sees whole steps, and may write to arrays and raise. progress: with a bar.

        Ctrl-C ends it after whole steps. Raises `StateError` after steps that were stopped in the
        middle, `ArgumentError` for arrays whose length was changed, and for positions that a search
        cannot use.
        """
        count, often = whole("lw.steps: steps", steps), whole("lw.steps: every", every)
        if not 0 <= count <= MOST_STEPS:
            raise ArgumentError(
                f"lw.steps: {count:,} steps requested; wanted from 0 to {MOST_STEPS:,}"
            )
        if often < 1:
            raise ArgumentError(f"lw.steps: every is at least 1, found {often}")
        if callback is not None and not callable(callback):
            raise ArgumentError(f"lw.steps: callback is a function, found {shown(callback)}")
        if self._running[0] == threading.get_ident():
            raise ArgumentError(
                "this loop is running: a callback or a function of its list cannot run it once more"
            )
        with self._lease:
            if count and not self._begun:
                refuse_unwritten(self._of, self._rhythm, self.step)
                self._begun = True
            self._clock.begin(self._loop.step)
            self._running[0] = threading.get_ident()
            try:
                if callback is None and not progress:
                    self._loop.advance(count)
                else:
                    look = None if callback is None else partial(callback, self)
                    take_steps(
                        "steps", count, self._loop.advance, look, often, shown=bool(progress)
                    )
            finally:
                self._running[0] = 0
        return self

    @brief
    def prepare(self) -> None:
        """Compile and capture what the first run would: phases of sites, and graphs on a GPU."""
        self._whole.check_idle()
        self._loop.prepare()

    @settings_by_name
    @brief
    def sequence(
        self,
        steps: int = 1,
        *,
        changed: Mapping[str, Any] | None = None,
        kept: Mapping[str, Any] = MappingProxyType({}),
    ) -> Sequence:
        """The next steps as tasks over named buffers, without Python functions.

        Arrays by name: those that steps may change, and those of the loop that steps read before
        they write them. changed: None if they may change all.
        """
        check_steps("sequence", steps)
        name = ", ".join(dict.fromkeys(t.name for t in self._rhythm.tasks))
        owned = [Owned(n, memory_of(a), Role.KEPT) for n, a in kept.items()]
        for n, array in (changed or {}).items():
            owned.append(Owned(n, memory_of(array), Role.ARGUMENT, changed=True))
        bound = bound_in(self._rhythm, self.step, steps)
        return joined(name, bound, owned, free=changed is None)

    def explain(self) -> LoopExplanation:
        """How each call runs, what it costs beyond a launch, and all launches of the next step; on
        a mesh also the copies between its parts, their links, and the predicted speed of 2, 4 and 8
        parts. Print it. On several GPUs it measures the rates of links, which takes some
        milliseconds.
        """
        return explain_steps(self._rhythm, self.step, self._device)


@settings_by_name
@brief
def steps(
    calls: Any,
    *,
    cycle: int | None = None,
    structures: Structures = "follow",
    profile: Profile | None = None,
) -> Steps:
    """A time loop: bound calls in order, step after step, as fast as the simulations of lanewise.

    `lw.steps([kick_drift.bind(bodies, force.results[0], 1e-3), force]).run(1000)`

    calls: the calls of a step: bound calls (`kernel.bind(...)`, whose values may be
    `lw.by_step(...)`), steppers of lattices (`flow.stepper(...)`, `lw.couple(...)`), Python
    functions without arguments, and `lw.every(k, ...)` of these. cycle: with cycle=m, `calls` are m
    lists, one for each step of a cycle. structures: "follow" checks in each step whether a plain
    call over a search would choose another structure or other cells; "keep" keeps those of `bind`.
    profile: records where the time goes.

    Nothing is fused, dropped or moved. Raises `ArgumentError` for kernels that are not bound,
    several devices, loops within loops, lists without calls, and cycles of more than 1,024 steps.
    """
    if structures not in ("follow", "keep"):
        raise ArgumentError(
            f'lw.steps: structures is "follow" or "keep", found {shown(structures)}'
        )
    if profile is not None and not isinstance(profile, Profile):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"lw.steps: profile is an lw.Profile(), found {shown(profile)}")
    return make_loop(calls, cycle, structures, profile, LONGEST_CYCLE)


def make_loop(
    calls: Any,
    cycle: int | None,
    structures: Structures,
    profile: Profile | None,
    longest: int = MOST_STEPS,
    of: str = OWN,
) -> Steps:
    """The loop of `steps`. longest: the cycle that it may have at most, in steps. of: what has it,
    where that is not its user: a word for errors.
    """
    clock = Clock()
    rhythm, device = read_lists(
        calls, cycle, structures, clock, apart=profile is not None, longest=LONGEST_CYCLE
    )
    cycle_of_all = rhythm.steps  # sites may lengthen it, which takes a look at each of its steps
    if cycle_of_all <= longest:
        cycle_of_all = rhythm.period
    if cycle_of_all > longest:
        raise ArgumentError(
            f"lw.steps: the same launches come again after {cycle_of_all:,} steps only, and each "
            f"of these has its own list; wanted at most {longest:,}: let the numbers of "
            "lw.every have common factors, or call a function that looks at loop.step itself"
        )
    return Steps(rhythm, device, clock, profile, of)
