"""Which plan is fastest for direct gravity in float32 on this GPU?

Every variant is checked against float64 before it is timed.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.runtime.device import get_device


@lw.record
class Body:
    """A body of 28 bytes."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


def reference(position: Any, mass: Any, chosen: Any, softening2: float) -> Any:
    """Accelerations of the chosen bodies in float64."""
    result = []
    for i in chosen:
        d = position.astype(np.float64) - position[i].astype(np.float64)
        weight = mass / ((d * d).sum(axis=1) + softening2) ** 1.5
        result.append((weight[:, None] * d).sum(axis=0))
    return np.array(result)


def measure(
    n: int, plans: list[lw.Plan], rounds: int, layouts: tuple[lw.Layout, ...] = (lw.SoAoAS(),)
) -> list[tuple[float, str]]:
    """Pairs per second of every plan, best first."""
    rng = np.random.default_rng(1)
    position = rng.uniform(-0.5, 0.5, (n, 3)).astype(np.float32)
    mass = rng.uniform(0.5, 1.5, n).astype(np.float32) / n
    chosen = rng.integers(0, n, 64)
    truth = reference(position, mass, chosen, 1e-4)
    measured, calls = get_device("cuda").seconds, {}
    for layout, plan in itertools.product(layouts, plans):
        bodies = Body.array(position=position, mass=mass, layout=layout, device="cuda")
        try:
            call = gravity.bind(bodies, bodies, softening2=1e-4, plan=plan)
        except lw.LanewiseError as error:
            print("refused", plan, str(error).splitlines()[0])
            continue
        result = call().get()[chosen]
        error = np.linalg.norm(result - truth) / np.linalg.norm(truth)
        again = call().get()[chosen]
        assert (again == result).all(), plan
        assert error < 2e-5, (plan, error)
        r = call.compiled.resources
        taken = f"{r['registers']} registers, occupancy {r['occupancy']:.2f}, error {error:.1e}"
        calls[f"{layout} {call.compiled.plan} | {taken}"] = call
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(measured(call))
    return sorted(((n * n / statistics.median(t), name) for name, t in times.items()), reverse=True)


def main() -> None:
    large = [
        lw.Plan(targets=t, block=b, tile=b, unroll=u, slices=1)
        for t in (1, 2, 4, 8)
        for b in (128, 256, 512)
        for u in (4, 8, 16)
    ]
    large += [
        lw.Plan(targets=t, block=256, tile=256, unroll=u, slices=s)
        for t in (2, 4)
        for s in (2, 4)
        for u in (8, 16)
    ]
    small = [
        lw.Plan(targets=t, block=b, tile=b, unroll=u, slices=s, parts=1)
        for t in (1, 2, 4)
        for b, s in ((128, 4), (256, 4), (256, 8), (512, 8), (512, 16), (1024, 16))
        for u in (8, 16)
    ]
    for n, plans, rounds in ((524_288, large, 3), (16_384, small, 15)):
        print(
            f"N = {n:,}; default plan:",
            gravity.compile(*[Body.zeros(n, device="cuda")] * 2, softening2=1e-4).plan,
        )
        for rate, name in measure(n, [lw.Plan(), *plans], rounds)[
            : int(sys.argv[1]) if len(sys.argv) > 1 else 14
        ]:
            print(f"  {rate:.3e}  {name}")
    bound = 132 * 128 * 1.98e9 / 13
    print(f"bound: {bound:.3e} pairs/s (13 issue slots, 1.98 GHz)")


if __name__ == "__main__":
    main()
