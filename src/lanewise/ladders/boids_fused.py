"""Parts of one fused kernel: the search of a flock's neighbours runs with the steering by them in
one kernel, which no stage of a profile can divide.

A second kernel tells them apart: it walks through the same structure, meets the same neighbours,
and does nothing with them but count. What the whole takes above that is steering.
"""

# Kernels read their annotations where they are defined.

from typing import Any

import lanewise as lw
from lanewise.profiling.profile import Profile
from lanewise.sims.boids import Boid, Flock


@lw.pairwise
def neighbours(target: Boid, source: Boid) -> lw.i32:
    """How many agents the search finds: the search alone."""
    return lw.i32(0) if lw.same(target, source) else lw.i32(1)


def search_alone(flock: Flock, steps: int) -> float:
    """Seconds of the search of a step without the steering, over the flock as it is."""
    profile, search = Profile(most_events=0), flock.search
    call: Any = neighbours.using(search).bind(flock.boids, flock.boids)
    lw.steps([call]).run(1)  # compiles
    lw.steps([call], profile=profile).run(steps)
    summary = profile.summary()
    stages: list[Any] = [stage["parts"] for stage in summary["stages"].values()]
    seconds = sum(parts["neighbours"]["seconds"] for parts in stages if "neighbours" in parts)
    return float(seconds) / summary["steps"]["count"]
