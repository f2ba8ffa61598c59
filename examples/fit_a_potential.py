"""Fit the parameters of a pair potential to energies: gradient descent with momentum on what
`kernel.gradient` gives.

python examples/fit_a_potential.py [steps] [device]
"""

import sys

import numpy as np

import lanewise as lw

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"


@lw.record
class Atom:
    """Where an atom is."""

    position: lw.dvec3


@lw.pairwise
def energy(target: Atom, source: Atom, depth: lw.f64, width: lw.f64) -> lw.f64:
    """A Morse potential whose minimum is at a distance of 1."""
    if lw.same(target, source):
        return 0.0
    r = lw.length(source.position - target.position)
    return 0.5 * depth * ((1.0 - lw.exp(-width * (r - 1.0))) ** 2 - 1.0)


def main() -> None:
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), -1).reshape(-1, 3)
    atoms = Atom.array(position=grid + rng.uniform(-0.1, 0.1, grid.shape), device=DEVICE)
    # what an experiment gave: an energy for each atom
    measured = energy(atoms, atoms, depth=1.3, width=1.7)

    slope = energy.gradient(wrt=("depth", "width"))
    parameters, velocity = np.array([0.5, 1.0]), np.zeros(2)
    for step in range(STEPS + 1):
        depth, width = parameters
        error = energy(atoms, atoms, depth, width) - measured
        if step % 100 == 0:
            print(
                f"step {step:3}: depth {depth:.4f}, width {width:.4f}, mean squared error "
                f"{float((error**2).mean()):.2e}"
            )
        velocity = 0.9 * velocity - 0.001 * np.array(
            slope(atoms, atoms, depth, width, cotangent=2 * error / len(atoms))
        )
        parameters += velocity

    force = -energy.gradient(wrt="position")(atoms, atoms, *parameters)
    print(f"largest force with the fitted potential {float(abs(force).max()):.3f}")


if __name__ == "__main__":
    main()
