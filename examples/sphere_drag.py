"""Drag of a sphere in slow flow, by momentum exchange on its surface, against an exact solution.

The box is periodic: an endless cubic array of spheres, through which a body force drives the fluid.
Hasimoto (1959, J. Fluid Mech. 5, 317) has the drag F = K 6 pi mu a U for the mean velocity U, with
the share c of the solid volume: 1 / K = 1 - 1.7601 c^(1/3) + c - 1.5593 c^2. (Of Stokes' law, for a
single sphere, K is 1.)

    python examples/sphere_drag.py [sites along the box] [radius in sites]
"""

import sys

import numpy as np

import lanewise as lw
from lanewise.sims.lbm import obstacles

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 32
RADIUS = float(sys.argv[2]) if len(sys.argv) > 2 else 6.5
# with two relaxation times the result does not depend on the viscosity
VISCOSITY, FORCE = 0.5, 1e-6


def main() -> None:
    shape, middle = (SIZE, SIZE, SIZE), (SIZE - 1) / 2
    sphere = obstacles.sphere(shape, (middle, middle, middle), RADIUS)
    simulation = lw.sims.lbm.Simulation(
        shape=shape, viscosity=VISCOSITY, mask=sphere, force=(FORCE, 0.0, 0.0)
    )
    simulation.run(round(SIZE**2 / VISCOSITY))

    # The array feels the pressure that the body force stands for, too: on the whole box, not on the
    # fluid alone.
    felt = simulation.force_on("wall") * simulation.sites / simulation.fluid_sites
    mean = float(np.sum(simulation.velocity[..., 0], dtype=np.float64)) / simulation.sites
    volume = int(np.count_nonzero(sphere))
    radius, c = (volume * 3 / (4 * np.pi)) ** (1 / 3), volume / simulation.sites
    found = felt[0] / (6 * np.pi * VISCOSITY * radius * mean)
    exact = 1 / (1 - 1.7601 * c ** (1 / 3) + c - 1.5593 * c**2)
    print(
        f"sphere of {volume:,} sites, {c:.2%} of the box; Reynolds number "
        f"{2 * radius * mean / VISCOSITY:.4f}"
    )
    print(
        f"force {felt[0]:.5e}, of the driving force {felt[0] / (FORCE * simulation.sites):.4f}; "
        f"sideways {abs(felt[1:]).max():.0e}"
    )
    print(f"K = {found:.3f}, exact {exact:.3f}: {found / exact - 1:+.2%}")


if __name__ == "__main__":
    main()
