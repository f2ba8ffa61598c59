"""What the models and the compiler say of the plans of one kernel. The one place that asks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lanewise.explanation.report import Bound
from lanewise.explanation.subject import Subject
from lanewise.models.occupancy import occupancy
from lanewise.optimisations import Programs
from lanewise.pipeline import Program
from lanewise.plan import Plan
from lanewise.runtime.executable import build_executable
from lanewise.runtime.nvrtc import Resources


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the plans of one subject, each made once.

    With `compiles` the plans that are compared are compiled for their registers (CUDA; some tenths of a second each the
    first time, from the cache of kernels afterwards). Otherwise only the plan itself is.
    """

    subject: Subject
    programs: Programs
    compiles: bool
    _bounds: dict[Plan, Bound | None] = field(default_factory=dict[Plan, "Bound | None"], repr=False)
    _resources: dict[Plan, tuple[Resources, ...] | None] = field(
        default_factory=dict[Plan, "tuple[Resources, ...] | None"], repr=False
    )

    def program(self, plan: Plan) -> Program:
        """The program of a legal plan."""
        program = self.programs.get(plan)
        assert not isinstance(program, str), program
        return program

    def seconds(self, plan: Plan) -> float | None:
        """The time that the model predicts; None when it cannot."""
        found = self.bound(plan)
        return None if found is None else found.predicted_seconds

    def factor(self, slow: Plan, fast: Plan) -> float | None:
        """How many times faster the second plan is than the first."""
        before, after = self.seconds(slow), self.seconds(fast)
        return before / after if before and after else None

    def fastest(self, plans: Mapping[Any, Plan]) -> Any:
        """The key of the plan that should be fastest, found without compiling any of them; the first if nothing is known."""
        times = {k: _predict(self.subject, self.program(p), None) for k, p in plans.items()}
        known = {k: b.predicted_seconds for k, b in times.items() if b is not None}
        return min(known, key=lambda k: known[k]) if known else next(iter(plans))

    def bound(self, plan: Plan) -> Bound | None:
        """The bound and the prediction of a legal plan."""
        if plan not in self._bounds:
            self._bounds[plan] = _predict(self.subject, self.program(plan), self.resources(plan))
        return self._bounds[plan]

    def resources(self, plan: Plan) -> tuple[Resources, ...] | None:
        """What the compiler says of each kernel; None for a CPU, and for other plans when nothing is to be compiled."""
        model = self.subject.model
        if model is None or model.kind != "cuda" or not (self.compiles or plan == self.subject.plan):
            return None
        if plan not in self._resources:
            executable = build_executable(self.program(plan), self.subject.device, model.arch)
            self._resources[plan] = tuple(c.resources for c in executable.cubins)
        return self._resources[plan]

    def registers(self, plan: Plan) -> int | None:
        """Registers of a thread of the main kernel."""
        found = self.resources(plan)
        return found[0].registers if found else None

    def occupancy(self, plan: Plan) -> float | None:
        """The share of the warps of a multiprocessor that the main kernel can have resident."""
        found, model = self.resources(plan), self.subject.model
        grid = self.program(plan).kernels[0].grid
        if not found or grid is None or model is None or model.limits is None:
            return None
        return occupancy(model.arch, grid.threads, found[0].registers, found[0].shared_bytes)


def _predict(subject: Subject, program: Program, resources: tuple[Resources, ...] | None) -> Bound | None:
    del subject, program, resources
    return None
