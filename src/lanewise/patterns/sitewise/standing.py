"""Where sites stand in a cycle of steps, whether they lie on one device or on a mesh."""

from __future__ import annotations

from abc import ABC
from typing import NoReturn

from lanewise.launch.steps.task import StepState
from lanewise.patterns.sitewise.streaming import Form, Phase
from lanewise.support.uncopied import uncopied
from lanewise.support.whole_steps import WholeSteps


class Standing(ABC):
    """What is asked of sites that step. state: kept by steps."""

    form: Form
    state: StepState

    def __reduce__(self) -> NoReturn:
        uncopied(
            "an array of sites",
            "make others of the same kind, and set their populations or fields to those of these",
        )

    @property
    def phase(self) -> Phase:
        """How the next step streams."""
        return self.form.phase(self.step, fresh=self.fresh)

    @property
    def step(self) -> int:
        """How many steps were run."""
        return self.state.step

    @step.setter
    def step(self, value: int) -> None:
        self.state.step = value

    @property
    def fresh(self) -> bool:
        """Whether none has run since the populations were set."""
        return self.state.fresh

    @fresh.setter
    def fresh(self, value: bool) -> None:
        self.state.fresh = value

    @property
    def whole(self) -> WholeSteps:
        """Knows of steps that were stopped in the middle."""
        return self.state.whole

    @property
    def cycle(self) -> int:
        """Steps after which the same kernels run on the same memory again."""
        return self.state.cycle
