"""What a flock does in a step, in words and as data: how it finds flockmates, what it launches, and
on a mesh what its parts bring each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import lanewise as lw
from lanewise.sims.boids.division import division_of
from lanewise.sims.boids.options import DT
from lanewise.sims.boids.parameters import move_values, pair_values
from lanewise.sims.boids.semantics import URGES, rules_of
from lanewise.sims.common.devices import target_of
from lanewise.sims.common.meshes import mesh_of
from lanewise.sims.common.shown import (
    LoopExplanation,
    MeshStep,
    ShownCall,
    explain_mesh,
    work_of,
)

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock


@dataclass(frozen=True, slots=True)
class FlockExplanation:
    """Print it, or take `.json()`. search: what finds flockmates, and why. mesh: None on one
    device. loop: the calls of a step.
    """

    search: str
    mesh: MeshStep | None
    loop: LoopExplanation

    def json(self) -> dict[str, Any]:
        """Plain data."""
        mesh = {} if self.mesh is None else {"mesh": self.mesh.json()}
        return {"search": self.search, **mesh, "loop": self.loop.json()}

    def __str__(self) -> str:
        mesh = [] if self.mesh is None else [*self.mesh.lines(), ""]
        return "\n".join([f"search: {self.search}", "", *mesh, str(self.loop)])


def shown_calls(flock: Flock) -> tuple[ShownCall, ShownCall]:
    """The steering and the update of agents that lie on the host."""
    s, rules, boids = flock.settings, rules_of(flock.settings), flock.boids.to("cpu")
    steer = ShownCall(rules.steer.using(flock.search), (boids, boids), pair_values(s.parameters))
    values_of_move: dict[str, Any] = {**move_values(s.parameters, DT), "world": s.world}
    urges = [np.zeros((len(boids), 3), boids.position.dtype) for _ in URGES]
    return steer, ShownCall(rules.move, (boids, *urges), values_of_move)


def explain(flock: Flock, loop: lw.Steps, dt: float) -> FlockExplanation:
    """See `Flock.explain`."""
    search = f"{flock.describe_search()} ({flock.search_reason})"
    return FlockExplanation(search, _mesh(flock, dt), replace(loop.explain(), mesh=None))


def _mesh(flock: Flock, dt: float) -> MeshStep | None:
    mesh = mesh_of(flock.boids)
    if mesh is None:
        return None
    kind = target_of(mesh.devices[0]).name
    works = [
        work_of(call, kind, near=near)
        for call, near in zip(shown_calls(flock), NEAR_OF_CALLS, strict=True)
    ]
    division = division_of(flock, dt, mesh.parts)
    return explain_mesh(str(mesh), mesh.places, "agents", division, works, division.grow)


NEAR_OF_CALLS = (True, False)
"""Of the steering and the update: whether a part also makes it over near agents of others."""
