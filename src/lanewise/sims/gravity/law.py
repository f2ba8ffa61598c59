"""The gravity of the bodies of a simulation: the kernels of a softening, bound to their memory."""

from __future__ import annotations

import lanewise as lw
from lanewise.records.arrays import class_of
from lanewise.sims.common.meshes import values_in_one_place
from lanewise.sims.gravity.checks import self_force_vanishes
from lanewise.sims.gravity.physics import make_physics, pair_type, precision_of
from lanewise.sims.gravity.plans import Plans, wanted_force, wanted_potential
from lanewise.sims.gravity.trees import over


class BoundGravity:
    """gravity: has the accelerations of the bodies for G = 1 in its result, computed when it is
    made. plan, potential_plan: the fields that were requested.
    """

    __slots__ = (
        "_bodies", "_potential", "_search", "gravity", "physics", "plan", "potential_plan",
        "softening",
    )  # fmt: skip

    def __init__(
        self,
        bodies: lw.RecordArray,
        softening: float,
        search: lw.Tree | None,
        plan: lw.Plan,
        potential_plan: lw.Plan,
    ) -> None:
        self._bodies, self._search, self.softening = bodies, search, softening
        self.plan, self.potential_plan = plan, potential_plan
        pair = pair_type(precision_of(bodies.record))
        self.physics = make_physics(class_of(bodies), self_force_vanishes(softening, pair))
        self.gravity = over(search, self.physics.acceleration).bind(
            bodies, bodies, softening2=softening**2, plan=plan
        )
        self.gravity()
        self._potential: lw.Compiled | None = None  # compiled when it is requested

    def softened(self, softening: float) -> BoundGravity:
        """The same with another softening, for the bodies as they are now."""
        return BoundGravity(self._bodies, softening, self._search, self.plan, self.potential_plan)

    @property
    def is_measured(self) -> bool:
        """Whether the potential energy was requested before."""
        return self._potential is not None

    @property
    def plans(self) -> Plans:
        """Those that its kernels over pairs run with, every field decided."""
        return Plans(self.gravity.compiled.plan, self._compiled_potential().plan)

    def potential_energy(self, bodies: lw.RecordArray) -> float:
        """For G = 1. bodies: all of them on one device."""
        potential = self._compiled_potential()(
            self._bodies, self._bodies, softening2=self.softening**2
        )
        there = values_in_one_place(potential)
        return float(self.physics.potential_energy.sum(bodies, there))

    def _compiled_potential(self) -> lw.Compiled:
        if self._potential is None:
            self._potential = over(self._search, self.physics.potential).compile(
                self._bodies,
                self._bodies,
                softening2=self.softening**2,
                plan=self.potential_plan,
            )
        return self._potential


def wanted_plans(
    precision: str, plan: lw.Plan | None, potential_plan: lw.Plan | None, *, tree: bool
) -> tuple[lw.Plan, lw.Plan]:
    """Both plans that are requested, with the fields that a simulation fixes."""
    return (
        (plan or lw.Plan()).filled(wanted_force(precision, tree=tree)),
        (potential_plan or lw.Plan()).filled(wanted_potential(tree=tree)),
    )
