"""Records that tests of views look at."""

from typing import Any

import numpy as np

import lanewise as lw


@lw.record
class Spark:
    position: lw.vec3
    heat: lw.f32
    velocity: lw.vec3


def sparks(count: int = 40) -> Any:
    rng = np.random.default_rng(1)
    heat = np.arange(count, dtype=np.float32)
    return Spark.array(position=rng.normal(size=(count, 3)), heat=heat, velocity=rng.normal(size=(count, 3)))
