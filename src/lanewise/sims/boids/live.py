"""What a live view shows of a flock: its agents as arrows, coloured by speed or the angle of their
flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import lanewise as lw
from lanewise.io.columns import names_at_top
from lanewise.io.hdf5 import open_hdf5
from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.feed import FrameSet
from lanewise.live.frame import stamp
from lanewise.live.scenes import Asked, Scene, finished, tell
from lanewise.sims.boids.parameters import Parameters
from lanewise.sims.boids.settings import FLAT
from lanewise.sims.boids.state import REQUIRED, read_state
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock
    from lanewise.sims.boids.run import SimulatedFlock

AGENTS = Shown(
    position="e.position",
    heading="e.forward",
    values={"speed": "e.speed", "climb": "e.forward.z"},
)
LENGTH = 1.5  # of an arrow, in radii of an agent
ABOUT = {"title": "flock", "product": "boids", "up": [0, 0, 1], "flat": False}


def scene(flock: Flock) -> Scene:
    """The agents of a flock."""
    s = flock.settings
    high = [s.world, 0.0 if s.dimension == FLAT else s.world, s.world]
    about = {
        **ABOUT, "domain": [[-x for x in high], high],
        "arrow": LENGTH * s.parameters.agent_radius,
    }  # fmt: skip
    return CloudScene(
        flock.boids, AGENTS, about, lambda: (flock.step, flock.time), lambda: flock.places
    )


def scene_of(state: SimulatedFlock) -> Scene:
    """Those of a run."""
    return scene(state.flock)


def steps_of(state: SimulatedFlock) -> WholeSteps:
    """Between which it is looked at."""
    return state.flock.whole


class SeenAgent(lw.Record):
    """What a file keeps of an agent."""

    position: lw.vec3
    forward: lw.vec3
    speed: lw.f32


class Flight:
    """The trajectory of a file, as a recording that plays in the browser: one look a frame.

    asked: how frames are made.
    """

    whole = True

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """about: of the flock that the file continues with."""
        self._path = path
        with open_hdf5(path) as file:
            group = file["trajectory"]
            self._steps, self._times = group["step"][()], group["time"][()]
            count = group["position"].shape[1]
        self._frame = 0
        self._agents: Any = SeenAgent.array(
            position=np.zeros((count, 3)), forward=np.zeros((count, 3)), speed=np.zeros(count)
        )
        self._scene = CloudScene(self._agents, AGENTS, about, self._moment)
        self.about = self._scene.about
        self.asked = Asked(field="speed")
        self.looks = tuple((n + 1, ()) for n in range(len(self._steps)))

    def _moment(self) -> tuple[int, float]:
        return int(self._steps[self._frame]), float(self._times[self._frame])

    def frames(self, number: int) -> FrameSet:
        """Those of a look."""
        with open_hdf5(self._path) as file:
            for name in ("position", "forward", "speed"):
                values = file[f"trajectory/{name}"][number]
                setattr(self._agents, name, np.asarray(values, np.float32))
        self._frame, (sequence, _) = number, self.looks[number]
        made = finished(self._scene.frames(self.asked))
        made += tell({"field": self.asked.field})
        frames = tuple(stamp(f, sequence=sequence) for f in made)
        return FrameSet(sequence, int(self._steps[number]), frames)


def flight_of(path: Path, flock: Flock) -> Flight | None:
    """The trajectory in a flock's file; None where it has fewer than two frames."""
    with open_hdf5(path) as file:
        frames = len(file["trajectory/step"]) if "trajectory/step" in file else 0
    return Flight(path, scene(flock).about) if frames > 1 else None


def is_table(path: Path) -> bool:
    """Whether it is a table of agents: text with columns of these names."""
    return set(REQUIRED) <= names_at_top(path)


def scene_of_table(path: Path) -> Scene:
    """The agents of a table that `--final` has written."""
    state = read_state(path)
    agents = SeenAgent.array(position=state.position, forward=state.forward, speed=state.speed)
    about = {**ABOUT, "title": path.name, "arrow": LENGTH * Parameters().agent_radius}
    return CloudScene(agents, AGENTS, about, lambda: (0, 0.0))
