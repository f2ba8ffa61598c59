"""Obstacles from meshes: an STL file, or arrays of vertices and faces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise.io.source import FilePath
from lanewise.sims.lbm.obstacles.arrays import Report, percent
from lanewise.sims.lbm.obstacles.bodies import check_orientation
from lanewise.sims.lbm.obstacles.boxes import (
    AXES,
    Mask,
    Placement,
    check_point,
    check_shape,
    sites_text,
)
from lanewise.sims.lbm.obstacles.mesh import Mesh, check_closed, read_mesh
from lanewise.sims.lbm.obstacles.surfaces import Solid, rounding
from lanewise.sims.lbm.obstacles.voxels import MeshSurface, Rule, voxelise, windings
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

FRACTION = 0.5
"""Of the box, without another size."""


@checked(InputError)
def stl_mask(
    path: FilePath,
    shape: Sequence[int],
    *,
    placement: Placement | None = None,
    rotate: Sequence[float] = (0, 0, 0),
    rule: Rule = "winding",
    report: Report | None = None,
) -> Mask:
    """Sites of a box (nz, ny, nx) whose centres lie inside the mesh of an STL file (or OBJ, PLY,
    OFF); needs trimesh.

    Args:
        path: the file. Its bodies may be several, and may overlap.
        shape: (nz, ny, nx).
        placement: size and place; without it, half of the box, in its middle. The mesh may reach
        out of the box.
        rotate: degrees about x, then y, then z, before scaling. Mesh axes are those of the box
        otherwise.
        rule: "winding" unites bodies that overlap; "parity" needs no consistent orientation (see
        `voxelise`).
        report: called with a sentence that says what was done.

    Raises InputError for a file that is no mesh, a surface that is not closed (with the number of
    open edges and where they are), triangles turned inside out, a body that is inside out and
    overlaps others without lying in them, a mesh outside of the box or so small that no site lies
    inside.
    """
    return stl_solid(path, shape, placement=placement, rotate=rotate, rule=rule, report=report).mask


@checked(InputError)
def stl_solid(
    path: FilePath,
    shape: Sequence[int],
    *,
    placement: Placement | None = None,
    rotate: Sequence[float] = (0, 0, 0),
    rule: Rule = "winding",
    report: Report | None = None,
) -> Solid:
    """`stl_mask` with the surface of the mesh, which determines where it cuts links."""
    return mesh_solid(
        read_mesh(path),
        shape,
        placement=placement,
        rotate=rotate,
        rule=rule,
        report=report,
        name=str(path),
    )


@checked(InputError)
def mesh_mask(
    mesh: Mesh,
    shape: Sequence[int],
    *,
    placement: Placement | None = None,
    rotate: Sequence[float] = (0, 0, 0),
    rule: Rule = "winding",
    report: Report | None = None,
    name: str = "mesh",
) -> Mask:
    """`stl_mask` for a mesh in memory, `Mesh.of(vertices, faces)`; needs no trimesh."""
    return mesh_solid(
        mesh, shape, placement=placement, rotate=rotate, rule=rule, report=report, name=name
    ).mask


@checked(InputError)
def mesh_solid(
    mesh: Mesh,
    shape: Sequence[int],
    *,
    placement: Placement | None = None,
    rotate: Sequence[float] = (0, 0, 0),
    rule: Rule = "winding",
    report: Report | None = None,
    name: str = "mesh",
) -> Solid:
    """`mesh_mask` with the surface of the mesh."""
    sizes = check_shape(shape)
    if len(sizes) != 3:
        raise InputError(f"{name}: a mesh needs a box of shape (nz, ny, nx), found {sizes}")
    check_closed(mesh, name, oriented=rule == "winding")
    placed, scale = _placed(mesh, sizes, placement or Placement(), rotate, name)
    _check_inside(placed, sizes, name)
    mask = _inside(placed, sizes, rule, mesh, name)
    if not (solid := int(np.count_nonzero(mask))):
        raise InputError(
            f"{name}: no site lies inside the mesh, which is {_edges(placed)} sites in the box; "
            "make it larger, or take more sites"
        )
    if report is not None:
        report(
            f"{Path(name).name}: {len(mesh.faces):,} triangles scaled by {scale:.4g} to "
            f"{_edges(placed)} sites, from "
            f"{_point(placed.low)} to {_point(placed.high)}, in {sites_text(sizes)}; "
            f"{percent(solid, mask.size)}"
        )
    return Solid(mask, MeshSurface(placed))


def _inside(placed: Mesh, shape: tuple[int, ...], rule: Rule, mesh: Mesh, name: str) -> Mask:
    if rule == "parity":
        return voxelise(placed.vertices, placed.faces, shape, rule)
    signs = windings(placed.vertices, placed.faces, shape)
    check_orientation(placed, signs, mesh, name)
    return signs != 0


def _placed(
    mesh: Mesh, shape: tuple[int, ...], placement: Placement, rotate: Sequence[float], name: str
) -> tuple[Mesh, float]:
    """The mesh in site coordinates, and the sites a unit of the mesh."""
    turned = (
        mesh.vertices @ _rotation(check_point("rotation", rotate, AXES)).T
        if any(rotate)
        else mesh.vertices
    )
    mesh = Mesh(turned, mesh.faces)
    low, high = mesh.low, mesh.high
    if not (high > low).any():
        raise InputError(f"{name}: all vertices of the mesh are one point; wanted a body")
    scale = placement.sites_per_unit((high - low).tolist(), shape, FRACTION)
    moved = (mesh.vertices - (low + high) / 2) * scale + np.array(placement.middle(shape))
    return Mesh(_snapped(moved), mesh.faces), scale


def _snapped(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates that are integers but for rounding as such: a flat face through sites has
    all of them on one side.
    """
    near = np.rint(vertices)
    return np.where(
        np.abs(vertices - near) <= rounding(float(np.abs(vertices).max())), near, vertices
    )


def _rotation(degrees: Sequence[float]) -> NDArray[np.float64]:
    """Rz Ry Rx: about x first."""
    result = np.eye(3)
    for axis, angle in enumerate(degrees):
        # Quarter turns are exact: what lies on the axes stays there.
        c, s = (round(f(math.radians(angle)), 15) for f in (math.cos, math.sin))
        j, k = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[j, j], turn[j, k], turn[k, j], turn[k, k] = c, -s, s, c
        result = turn @ result
    return result


def _check_inside(mesh: Mesh, shape: tuple[int, ...], name: str) -> None:
    """Refuse a mesh of which nothing is in the box: a wrong unit or a wrong place."""
    top = np.array(shape[::-1]) - 0.5
    if (mesh.high < -0.5).any() or (mesh.low > top).any():
        raise InputError(
            f"{name}: the mesh lies outside of the box: from {_point(mesh.low)} to "
            f"{_point(mesh.high)}, "
            f"and the box is from (-0.5, -0.5, -0.5) to {_point(top)}; choose another place"
        )


def _edges(mesh: Mesh) -> str:
    return " x ".join(f"{float(v):.4g}" for v in mesh.high - mesh.low)


def _point(values: NDArray[np.float64]) -> str:
    return f"({', '.join(f'{float(v):.4g}' for v in values)})"
