"""Your own force: Lennard-Jones with a cut-off, as one pairwise function that returns force
and energy.

Argon in reduced units (epsilon = sigma = m = 1), started on a cubic lattice in open space. Leapfrog
keeps the energy.

    python examples/own_force.py [atoms along an edge] [steps]
"""

import sys

import numpy as np

import lanewise as lw

EDGE = int(sys.argv[1]) if len(sys.argv) > 1 else 8
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 200


@lw.record
class Atom:
    """An atom of mass 1."""

    position: lw.vec3
    velocity: lw.vec3


@lw.function
def pair_energy(inv2):
    inv6 = inv2**3
    return 4 * (inv6 * inv6 - inv6)


@lw.pairwise
def lennard_jones(target: Atom, source: Atom, cutoff: lw.f32) -> tuple[lw.vec3, lw.f32]:
    """Force on the target, and its half of the energy (shifted, so that it is 0 at the cut-off)."""
    d = target.position - source.position
    r2 = lw.dot(d, d)
    if lw.same(target, source) or r2 > cutoff * cutoff:
        return lw.vec3(0), 0.0
    inv2 = 1 / r2
    inv6 = inv2**3
    force = (48 * inv6 * inv6 - 24 * inv6) * inv2 * d
    return force, 0.5 * (pair_energy(inv2) - pair_energy(1 / (cutoff * cutoff)))


@lw.elementwise
def kick(atom: Atom, force: lw.vec3, time: lw.f32):
    atom.velocity += force * time


@lw.elementwise
def drift(atom: Atom, time: lw.f32):
    atom.position += atom.velocity * time


@lw.elementwise
def kinetic(atom: Atom) -> lw.f32:
    return 0.5 * lw.dot(atom.velocity, atom.velocity)


def main() -> None:
    lattice = np.stack(np.meshgrid(*[np.arange(EDGE) * 1.12] * 3), axis=-1).reshape(-1, 3)
    velocity = 0.5 * np.random.default_rng(3).normal(size=lattice.shape)
    atoms = Atom.array(position=lattice, velocity=velocity - velocity.mean(axis=0))

    cutoff, dt = 2.5, 0.004
    force, energy = lennard_jones(atoms, atoms, cutoff)
    start = kinetic.sum(atoms) + lw.sum(energy)
    for step in range(1, STEPS + 1):
        kick(atoms, force, dt / 2)
        drift(atoms, dt)
        force, energy = lennard_jones(atoms, atoms, cutoff)
        kick(atoms, force, dt / 2)
        if step % max(1, STEPS // 4) == 0:
            total = kinetic.sum(atoms) + lw.sum(energy)
            temperature = 2 / 3 * kinetic.sum(atoms) / len(atoms)
            drift_of_energy = (total - start) / abs(start)
            print(
                f"step {step:4}: temperature {temperature:.3f}, energy per atom "
                f"{total / len(atoms):.4f}, "
                f"drift {drift_of_energy:+.1e}"
            )


if __name__ == "__main__":
    main()
