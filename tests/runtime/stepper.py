"""A program of one part, for tests that run one sequence of launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.profiling.profile import Profile
from lanewise.runtime.programs import ProgramPart, ScheduleRunner, Work
from lanewise.runtime.stepping import make_program


@dataclass(frozen=True, slots=True)
class Stepper:
    program: ScheduleRunner

    def run(self, steps: int) -> None:
        """Run the launches so often, and wait for the result."""
        self.program.run([(None, steps)])


def make_stepper(device: str, calls: Sequence[Work], profile: Profile | None = None) -> Stepper:
    return Stepper(make_program(device, {None: ProgramPart(calls)}, profile))
