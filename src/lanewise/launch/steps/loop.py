"""Steps of a rhythm, taken whole: what user loops, sites of lattices and couplings of them run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import numpy as np

from lanewise.launch.arguments import describe
from lanewise.launch.joined import Bound
from lanewise.launch.steps.rhythm import Key, Rhythm
from lanewise.launch.steps.runner import Runner
from lanewise.launch.steps.task import AHEAD, Clock, Task, Timed, has_graphs
from lanewise.profiling.profile import Profile
from lanewise.runtime.here import HERE
from lanewise.runtime.memory import on
from lanewise.support.errors import ArgumentError
from lanewise.support.whole_steps import LONG_GRAPH, WholeSteps, claim_under_way

MOST_STEPS = 10**12  # far more than anybody waits for
Counted = Callable[[int], object]


def check_steps(name: str, steps: int) -> None:
    """Refuse what is no number of steps. Raises `ArgumentError`."""
    number = cast(Any, steps)
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise ArgumentError(f"{name}: the number of steps is whole, found {describe(number)}")
    if steps < 0:
        raise ArgumentError(f"{name}: {steps} steps requested; wanted 0 or more")
    if steps > MOST_STEPS:
        raise ArgumentError(f"{name}: {steps} steps requested; wanted at most {MOST_STEPS:,}")


class StepLoop:
    """Takes the steps of a rhythm on a device, in pieces that end with whole steps.

    step: the number of the next one. within: whether functions of the user's run that are part of a
    step.
    """

    __slots__ = (
        "_around",
        "_checks",
        "_clock",
        "_device",
        "_loose",
        "_made",
        "_name",
        "_pieces",
        "_runner",
        "_whole",
        "rhythm",
        "step",
        "within",
    )

    def __init__(
        self,
        device: str,
        name: str,
        rhythm: Rhythm,
        whole: WholeSteps,
        profile: Profile | None = None,
        clock: Clock | None = None,
    ) -> None:
        """name: what its user calls it. whole: knows of steps that were stopped in the middle."""
        self._device, self._name, self.rhythm, self._whole = device, name, rhythm, whole
        self._clock = Clock() if clock is None else clock
        self._runner = Runner(device, rhythm, self._clock, profile)
        self._checks = tuple(dict.fromkeys(check for t in rhythm.tasks for check in t.checks))
        self._around = tuple(around for t in rhythm.tasks for around in t.around)
        among_such = all(t.pieces for t in rhythm.tasks)
        self._pieces = tuple(partial(p, among_such) for t in rhythm.tasks for p in t.pieces)
        # graphs hold all of a step, and the host has no part in it
        alone = any(t.alone or t.counted or t.divided is not None for t in rhythm.tasks)
        self._loose = has_graphs(device) and not (alone or rhythm.looks_ahead)
        self.step, self.within = 0, False
        # where the steps begin and end that were made last, and their schedule
        self._made: tuple[int, int, list[tuple[Key, int]]] = (0, 0, [])

    @property
    def checks(self) -> tuple[Callable[[], object], ...]:
        """What is asked before every piece of steps."""
        return self._checks

    def make(self, steps: int) -> None:
        """Compile what so many steps need, so that the first one costs no more than the others."""
        begin, end = self.step, self.step + steps
        schedule = self.rhythm.schedule(begin, end)
        self._runner.make(schedule)
        self._made = begin, end, schedule

    def prepare(self) -> None:
        """Make what a first run would make, and graphs on a GPU."""
        with on(self._device):
            ahead = 2 * max(self.rhythm.period, LONG_GRAPH)
            self._runner.prepare(self.rhythm.schedule(self.step, self.step + ahead))

    def advance(self, steps: int, counted: Counted | None = None) -> None:
        """Take so many steps, and wait for the result. `counted(n)`: called when n more are done.

        Ctrl-C ends it after whole steps, which are counted. Raises `StateError` after steps that
        were stopped in the middle.
        """
        self._whole.check()
        for state in self.rhythm.stepped:
            if state.whole is not self._whole:
                state.whole.check()
        if (elsewhere := on(self._device)) is HERE:
            self._advance(steps, counted)
        else:
            with elsewhere:
                self._advance(steps, counted)

    def _advance(self, steps: int, counted: Counted | None) -> None:
        """The same on the device."""
        if self.rhythm.stepped:  # compiles before anything has run
            self.make(min(steps, 2 * self.rhythm.period))
        if not self._around:
            self._take(steps, counted)
            return
        with ExitStack() as stack:
            for around in self._around:
                stack.enter_context(around(steps))
            self._take(steps, counted)

    # ------------------------------------------------------------ pieces of a run

    def _take(self, steps: int, counted: Counted | None) -> None:
        for check in self._checks:
            check()

        def run(count: int) -> None:
            self._piece(count)
            if counted is not None:
                counted(count)

        if not self.rhythm.looks_ahead:
            self._whole.take(self.step, steps, run)
            return
        while steps:
            ready, error = self._look_ahead(steps)
            self._whole.take(self.step, ready, run)
            if error is not None:
                raise error
            steps -= ready

    def _look_ahead(self, steps: int) -> tuple[int, Exception | None]:
        """Compute the values of steps to come: for how many there are any, and why for no more."""
        for task in self.rhythm.tasks:
            if task.ahead is not None:
                task.ahead.clear()
        self.within = True
        try:
            for n in range(self.step, self.step + min(steps, AHEAD)):
                try:
                    for ahead in self.rhythm.ahead_in(n):
                        ahead.add(n)
                except Exception as error:
                    return n - self.step, error
        finally:
            self.within = False
        return min(steps, AHEAD), None

    def _piece(self, steps: int) -> None:
        """Take these steps, wait for them or leave them under way, and count them."""
        begin, end, rhythm = self.step, self.step + steps, self.rhythm
        under_way = claim_under_way()
        if not self._loose:
            under_way = None
        self._clock.begin(begin)
        advanced = [(s, rhythm.count(s, begin, end)) for s in rhythm.stepped]
        for state, count in advanced:
            if state.whole is not self._whole:
                state.whole.begin(state.step, count)
        self.within = True
        try:
            first, last, made = self._made
            same = first == begin and last == end
            self._made = (0, 0, [])
            schedule = made if same else rhythm.schedule(begin, end)
            if not self._pieces:
                self._runner.run(schedule, under_way)
            else:
                with ExitStack() as stack:
                    for piece in self._pieces:
                        stack.enter_context(piece())
                    self._runner.run(schedule, under_way)
        except Exception as error:
            if rhythm.counted:
                error.add_note(f"raised in step {self._clock.step} of {self._name}")
            raise
        finally:
            self.within = False
            for state, _ in advanced:
                state.whole.stop()
        for flag in rhythm.flags:
            if under_way is None:
                flag.examine(begin, end)
            else:
                under_way.examine(flag.examine, begin, end)
        for state, count in advanced:
            state.step, state.fresh = state.step + count, state.fresh and not count
            if state.whole is not self._whole:
                state.whole.mended()
        self.step = end
        self._clock.begin(end)


def bound_in(rhythm: Rhythm, step: int, steps: int) -> list[Bound]:
    """What runs in steps of a rhythm, from one on."""
    stand = {id(s): (s.fresh, s.step) for s in rhythm.stepped}
    bound: list[Bound] = []
    for n in range(step, step + steps):
        for task in rhythm.tasks_of(rhythm.kinds[n % rhythm.steps]):
            bound += task.bound(stand)
            stand |= {id(s): (False, stand[id(s)][1] + 1) for s in task.stepped}
    return bound


def rhythm_of(task: Task) -> Rhythm:
    """One call in every step."""
    return Rhythm(((Timed(task),),))


def loop_of(task: Task, profile: Profile | None = None) -> StepLoop:
    """A loop of one call, whose steps are those of what it steps first."""
    assert task.device is not None
    return StepLoop(task.device, task.name, rhythm_of(task), task.stepped[0].whole, profile)


def take(loop: StepLoop, steps: int, counted: Counted | None = None) -> None:
    """So many steps of a loop of one call, which continues where that stands."""
    check_steps(loop.rhythm.tasks[0].name, steps)
    loop.step = loop.rhythm.stepped[0].step
    loop.advance(steps, counted)
