"""Three bodies that chase each other along a figure eight, for one period, and a picture of their
path.

python examples/figure_eight.py [picture.png]
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import lanewise as lw

PERIOD, STEPS = 6.32591398, 2000
PICTURE = sys.argv[1] if len(sys.argv) > 1 else "figure_eight.png"


def main() -> None:
    gravity = lw.sims.gravity
    bodies = gravity.make_bodies(gravity.make_initial_conditions("figure-eight"), precision="f64")
    simulation = gravity.Simulation(bodies, integrator="yoshida4")
    start, start_energy = bodies.numpy()["position"], simulation.energy()

    path = [start]
    simulation.run(
        STEPS,
        PERIOD / STEPS,
        callback=lambda s: path.append(s.bodies.numpy()["position"]),
        every=20,
    )

    print(f"after one period, t = {simulation.time:.6f}:")
    print(f"  every body is back within {np.abs(path[-1] - start).max():.1e}")
    print(
        "  relative energy error     "
        f"{(simulation.energy() - start_energy) / abs(start_energy):+.1e}"
    )

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    for body in range(3):
        line = np.array([p[body] for p in path])
        (drawn,) = axes.plot(line[:, 0], line[:, 1], lw=1, alpha=0.6)
        axes.plot(*start[body, :2], "o", color=drawn.get_color())
    axes.set(
        aspect="equal", xlabel="x", ylabel="y", title="The figure eight of Chenciner and Montgomery"
    )
    figure.savefig(PICTURE, dpi=150)
    print(f"  picture: {PICTURE}")


if __name__ == "__main__":
    main()
