"""The boundary conditions of open faces by name, and what each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import lanewise as lw
from lanewise.sims.common.checks import known
from lanewise.sims.lbm.boundaries.faces import make_face
from lanewise.sims.lbm.boundaries.far_field import make_far_field
from lanewise.sims.lbm.boundaries.nodes import make_node_observer
from lanewise.sims.lbm.boundaries.regularised import make_regular_node
from lanewise.sims.lbm.boundaries.zou_he import make_zou_he
from lanewise.sims.lbm.operators.assembly import in_sequence, renamed
from lanewise.sims.lbm.operators.moments import make_macroscopic

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary condition of sites that lie at a face of the box, the last ones of the fluid.

    Attributes:
        maker: (lattice, precision, face, forced) -> a sitewise function of f and the parameters
        parameters: "velocity" (a vector, in sites per step) and "profile" (a number that multiplies
          it), "density", or all
        collides: whether the collision follows
    """

    name: str
    description: str
    maker: Callable[[lw.Lattice, str, str, bool], Function]
    parameters: tuple[str, ...]
    collides: bool = True

    def make(
        self,
        lattice: lw.Lattice,
        precision: str,
        face: str,
        collide: Function,
        *,
        forced: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> Function:
        """The function of sites at `face` ("x-" is the low one of x): the boundary, then the
        collision `collide`.

        `names` says how its parameters are called instead: those of one name are one value in all
        kinds of a flow. Any parameter may be given one value, or an array with one per site.
        `forced` tells that `collide` takes `force`. Raises `InputError` for a face that the box
        does not have.
        """
        make_face(lattice, face)
        function = renamed(self.maker(lattice, precision, face, forced), names or {})
        return in_sequence(function, collide) if self.collides else function

    def observer(
        self,
        lattice: lw.Lattice,
        precision: str,
        face: str,
        *,
        forced: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> Function:
        """An observer of its sites: the density less one, and the velocity.

        For a far field that of all other sites.
        """
        if not self.collides:
            return make_macroscopic(lattice, precision, forced)
        function = make_node_observer(
            lattice, precision, face, "density" in self.parameters, forced
        )
        return renamed(function, names or {})


def _regularised(
    pressure: bool, lattice: lw.Lattice, precision: str, face: str, forced: bool
) -> Function:
    return make_regular_node(lattice, precision, face, pressure, forced)


def _zou_he(
    pressure: bool, lattice: lw.Lattice, precision: str, face: str, forced: bool
) -> Function:
    return make_zou_he(lattice, precision, face, pressure, forced)


def _far_field(lattice: lw.Lattice, precision: str, face: str, forced: bool) -> Function:
    del face
    return make_far_field(lattice, precision, forced)


def _by_name(*boundaries: Boundary) -> Mapping[str, Boundary]:
    return MappingProxyType({b.name: b for b in boundaries})


VELOCITY, PRESSURE = ("velocity", "profile"), ("density",)

BOUNDARIES = _by_name(
    Boundary("velocity", "a velocity, regularised", partial(_regularised, False), VELOCITY),
    Boundary("pressure", "a density, regularised", partial(_regularised, True), PRESSURE),
    Boundary("velocity-zou-he", "a velocity, after Zou and He", partial(_zou_he, False), VELOCITY),
    Boundary("pressure-zou-he", "a density, after Zou and He", partial(_zou_he, True), PRESSURE),
    Boundary(
        "far-field",
        "the equilibrium of a density and a velocity",
        _far_field,
        (*VELOCITY, *PRESSURE),
        False,
    ),
)


def find_boundary(name: str) -> Boundary:
    """The boundary condition of a name; raises `InputError` for an unknown one."""
    return known("boundary", name, BOUNDARIES)
