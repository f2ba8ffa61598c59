"""Obstacles: bool masks of shape (ny, nx) or (nz, ny, nx), x fastest, True where a site is
solid.
"""

from lanewise.sims.lbm.obstacles.arrays import as_kinds, as_solid
from lanewise.sims.lbm.obstacles.boxes import Placement
from lanewise.sims.lbm.obstacles.files import read_mask
from lanewise.sims.lbm.obstacles.image import image_mask
from lanewise.sims.lbm.obstacles.mesh import Mesh
from lanewise.sims.lbm.obstacles.stl import mesh_mask, mesh_solid, stl_mask, stl_solid
from lanewise.sims.lbm.obstacles.surfaces import (
    Round,
    SignedDistance,
    Solid,
    Surface,
    box,
    cylinder,
    disc,
    porous,
    sphere,
)

__all__ = [
    "Mesh",
    "Placement",
    "Round",
    "SignedDistance",
    "Solid",
    "Surface",
    "as_kinds",
    "as_solid",
    "box",
    "cylinder",
    "disc",
    "image_mask",
    "mesh_mask",
    "mesh_solid",
    "porous",
    "read_mask",
    "sphere",
    "stl_mask",
    "stl_solid",
]
