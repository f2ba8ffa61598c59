"""Particle files: one file a format, recognised by content, written atomically.

`read_particles` and `write_particles` are the whole of what most callers need. A new format is one
new module here that defines `FORMAT` (see `formats.Format`); nothing else has to be edited.
"""

from lanewise.io.formats import read_particles, write_particles
from lanewise.io.particles import Particles

__all__ = ["Particles", "read_particles", "write_particles"]
