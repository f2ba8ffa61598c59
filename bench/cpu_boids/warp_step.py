# pyright: basic, reportInvalidTypeForm=false, reportMissingImports=false
# ruff: noqa: UP018, RUF046
"""A flock with the thesis's rules in NVIDIA Warp, written as its users write one: a HashGrid, a
kernel that steers, a kernel that moves.

Run by a Python of its own that has warp-lang (it is no dependency of lanewise): `python
warp_step.py`. It reads orders from its standard input and answers each with a line, both JSON:
{"load": file, "radius": r, "world": w} takes the agents of a NumPy archive; {"run": steps};
{"save": file}; {"version": 0}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import warp as wp

K = 7
CELLS = 128  # along each axis of the hash grid; positions beyond wrap around
wp.set_module_options({"enable_backward": False})
vecd = wp.types.vector(length=K, dtype=wp.float32)
veci = wp.types.vector(length=K, dtype=wp.int32)


@wp.func
def seen(d2: float, cosine: float, radius2: float, least: float):
    return d2 < 1.5 or (d2 <= radius2 and cosine > least)


@wp.kernel
def steer(
    grid: wp.uint64,
    position: wp.array(dtype=wp.vec3),
    forward: wp.array(dtype=wp.vec3),
    radius: float,
    radius2: float,
    urge: wp.array(dtype=wp.vec3),
):
    i = wp.hash_grid_point_id(grid, wp.tid())  # neighbouring threads, neighbouring places
    here, heading = position[i], forward[i]
    best_d2, best = vecd(), veci()
    for m in range(K):
        best_d2[m] = radius2
        best[m] = -1
    query = wp.hash_grid_query(grid, here, radius)
    j = int(0)
    while wp.hash_grid_query_next(query, j):
        if j != i:
            off = position[j] - here
            d2 = wp.dot(off, off)
            if d2 < best_d2[K - 1]:
                m = int(K - 1)
                while m > 0:
                    if best_d2[m - 1] <= d2:
                        break
                    best_d2[m] = best_d2[m - 1]
                    best[m] = best[m - 1]
                    m = m - 1
                best_d2[m] = d2
                best[m] = j
    separation, alignment, cohesion = wp.vec3(), wp.vec3(), wp.vec3()
    for m in range(K):
        other = best[m]
        if other >= 0:
            off = position[other] - here
            d2 = best_d2[m]
            cosine = float(-2.0)
            if d2 > 0.0:
                cosine = -wp.dot(heading, off) / wp.sqrt(d2)
            if d2 > 0.0 and seen(d2, cosine, 25.0, -0.707):
                separation = separation - off / d2
            if seen(d2, cosine, 56.25, 0.7):
                alignment = alignment + forward[other] - heading
            if seen(d2, cosine, 81.0, -0.15):
                cohesion = cohesion + off
    urge[i] = (
        12.0 * wp.normalize(separation)
        + 8.0 * wp.normalize(alignment)
        + 8.0 * wp.normalize(cohesion)
    )


@wp.func
def truncated(v: wp.vec3, most: float):
    size = wp.length(v)
    if size > most:
        return v * (most / size)
    return v


@wp.kernel
def move(
    position: wp.array(dtype=wp.vec3),
    forward: wp.array(dtype=wp.vec3),
    up: wp.array(dtype=wp.vec3),
    speed: wp.array(dtype=float),
    acceleration: wp.array(dtype=wp.vec3),
    urge: wp.array(dtype=wp.vec3),
    dt: float,
    smoothing: float,
    roll: float,
    world: float,
):
    i = wp.tid()
    heading, force = wp.vec3(forward[i]), wp.vec3(urge[i])
    size = wp.length(force)
    share = speed[i] / 1.8
    if share <= 1.0 and size > 0.0:
        least = 1.0 - 2.0 * wp.pow(share, 20.0)
        along = wp.dot(force, heading)
        if along < least * size:
            across = wp.normalize(force - along * heading)
            force = size * (least * heading + wp.sqrt(wp.max(0.0, 1.0 - least * least)) * across)
    force = truncated(force, 27.0)
    smooth = acceleration[i] + (force - acceleration[i]) * smoothing
    velocity = truncated(heading * speed[i] + smooth * dt, 9.0)
    fast = wp.length(velocity)
    place = position[i] + velocity * dt
    banked = wp.normalize(up[i] + (0.05 * smooth + wp.vec3(0.0, 0.2, 0.0) - up[i]) * roll)
    if fast > 0.0:
        heading = velocity / fast
    distance = wp.length(place)
    if distance > world:
        place = place - place * (2.0 * world / distance)
    position[i] = place
    forward[i] = heading
    up[i] = wp.cross(wp.cross(heading, banked), heading)
    speed[i] = fast
    acceleration[i] = smooth


class Flock:
    """The agents of an archive on Warp's CPU device."""

    def __init__(self, file: str, radius: float, world: float, dt: float) -> None:
        state = np.load(file)

        def vectors(name: str) -> Any:
            return wp.array(state[name].astype(np.float32), dtype=wp.vec3)

        self.position, self.forward, self.up, self.acceleration = map(
            vectors, ("position", "forward", "up", "acceleration")
        )
        self.speed = wp.array(state["speed"].astype(np.float32), dtype=float)
        self.urge = wp.zeros_like(self.position)
        self.grid = wp.HashGrid(CELLS, CELLS, CELLS)
        self.radius, self.world, self.dt = radius, world, dt
        self.smoothing, self.roll = min(max(9 * dt, 0.15), 0.4), min(3 * dt, 1.0)

    def run(self, steps: int) -> None:
        n = len(self.position)
        for _ in range(steps):
            self.grid.build(self.position, self.radius)
            near = [
                self.grid.id,
                self.position,
                self.forward,
                self.radius,
                self.radius**2,
                self.urge,
            ]
            wp.launch(steer, dim=n, inputs=near)
            agents = [
                self.position,
                self.forward,
                self.up,
                self.speed,
                self.acceleration,
                self.urge,
            ]
            wp.launch(move, dim=n, inputs=[*agents, self.dt, self.smoothing, self.roll, self.world])
        wp.synchronize()

    def save(self, file: str) -> None:
        names = ("position", "forward", "up", "speed", "acceleration")
        np.savez(file, **{name: getattr(self, name).numpy() for name in names})


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Warp prints goes to the error stream
    wp.init()
    flock: Flock | None = None
    with wp.ScopedDevice("cpu"):
        for line in sys.stdin:
            answer: dict[str, Any] = {}
            match json.loads(line):
                case {"load": file, "radius": radius, "world": world, "dt": dt}:
                    flock = Flock(file, radius, world, dt)
                case {"run": steps} if flock:
                    flock.run(steps)
                case {"save": file} if flock:
                    flock.save(file)
                case {"version": _}:
                    answer = {"version": wp.config.version}
                case order:
                    answer = {"error": f"unknown order {order}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
