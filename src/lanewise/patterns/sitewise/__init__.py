"""The update of a site of a lattice: `@lw.sitewise`, its sites, walls and edges."""
