"""Boundary conditions of open faces, as sitewise functions of sites at them.

Populations are deviations g = f - w.

Not among them, because it needs the neighbour and the step before: the convective outflow, d_t f +
U d_n f = 0 along the outward normal n. With implicit differences an unknown population at the face
site x_b is f_q(x_b, t + 1) = [f_q(x_b, t) + U f_q(x_b - n, t + 1)] / (1 + U), U the speed of the
flow there or its mean over the face (Lou, Guo & Shi 2013, Phys. Rev. E 87, 063301, eq. 22).
"""

from lanewise.sims.lbm.boundaries.registry import BOUNDARIES, Boundary, find_boundary

__all__ = ["BOUNDARIES", "Boundary", "find_boundary"]
