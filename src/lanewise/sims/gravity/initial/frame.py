"""The frame of reference of the centre of mass."""

from __future__ import annotations

from dataclasses import replace

from lanewise.io.particles import Particles


def at_rest(particles: Particles) -> Particles:
    """The same bodies with the centre of mass at the origin and at rest. The total mass must not be 0."""
    weight = particles.mass / particles.mass.sum()
    return replace(
        particles,
        position=particles.position - weight @ particles.position,
        velocity=particles.velocity - weight @ particles.velocity,
    )
