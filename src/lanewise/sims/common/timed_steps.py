"""The steps of a product that has a time step: its clock, and the loop that takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import lanewise as lw
from lanewise.profiling.profile import Profile, span
from lanewise.profiling.progress import take_steps
from lanewise.sims.common.checks import check_every, check_steps
from lanewise.sims.common.clock import Clock
from lanewise.support.whole_steps import WholeSteps


class Advanced(Protocol):
    """What takes steps of a time step."""

    def advance(self, steps: int, dt: float) -> None: ...


A = TypeVar("A", bound=Advanced)


def run_steps(
    product: str,
    state: A,
    steps: int,
    dt: float,
    callback: Callable[[A], None] | None,
    every: int,
    *,
    progress: bool,
) -> A:
    """`steps` steps of `dt`; `callback(state)` after every `every` of them and after the last.

    product: for errors and the bar of `progress`.
    """
    check_steps(steps)
    check_every(every)
    look = None if callback is None else partial(callback, state)
    take_steps(product, steps, lambda n: state.advance(n, dt), look, every, shown=progress)
    return state


class TimedSteps:
    """Steps that end whole, by a loop that is made for one time step and kept until it ends.

    loop: of the steps that come next; None before they are prepared, and where they follow other
    settings. profile: records where the time goes; a loop has the one that it was made with.
    """

    __slots__ = ("clock", "loop", "profile", "whole")

    def __init__(self, clock: Clock, profile: Profile | None, what: str, remedy: str) -> None:
        """what, remedy: see `WholeSteps`."""
        self.clock, self.profile = clock, profile
        self.loop: lw.Steps | None = None
        self.whole = WholeSteps(what, remedy)

    def prepare(self, dt: float, make: Callable[[], lw.Steps]) -> lw.Steps:
        """The loop of steps of `dt`; `make` compiles it where there is none."""
        if dt != self.clock.dt:
            self.end()
            self.clock = self.clock.with_dt(dt)
        if self.loop is None:
            with span(self.profile, "setup", name="launches of a step"):
                self.loop = make()
        return self.loop

    def end(self) -> None:
        """The next steps have a separate loop."""
        self.loop = None

    def take(self, steps: int) -> None:
        """Take steps that are prepared, and wait for them; Ctrl-C ends it after whole ones, which
        are counted.
        """
        loop = self.loop
        assert loop is not None, "steps are prepared"

        def run(count: int) -> None:
            loop.run(count)
            self.clock = self.clock.after(count)

        self.whole.take(self.clock.step, steps, run)
