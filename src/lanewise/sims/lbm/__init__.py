"""Flow by the lattice Boltzmann method: channels, cavities, bodies in a stream."""
