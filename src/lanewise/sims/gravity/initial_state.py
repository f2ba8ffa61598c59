"""The bodies that a run starts from: those of a named initial condition, or of a file."""

from __future__ import annotations

from pathlib import Path

from lanewise.errors import InputError
from lanewise.io.formats import read_particles
from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions


def load_particles(ic: str, bodies: int | None, seed: int) -> Particles:
    """Particles of a named initial condition or of a file."""
    if ic in INITIAL_CONDITIONS:
        return make_initial_conditions(ic, bodies, seed)
    if not Path(ic).exists() and "." not in ic and "/" not in ic:
        raise InputError(
            f"unknown initial condition {ic!r}; wanted one of {', '.join(INITIAL_CONDITIONS)}, or a file (Gadget HDF5, Tipsy, NPZ, CSV)"
        )
    particles = read_particles(ic)
    if bodies is not None and bodies != len(particles):
        raise InputError(f"{ic} holds {len(particles)} bodies, not {bodies}; leave --bodies out")
    return particles
