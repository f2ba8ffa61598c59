"""Everything that decides how a flow continues, but for its populations: what a checkpoint
keeps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.schema import record
from lanewise.sims.common.checks import readable
from lanewise.sims.lbm.kinds import Edge, Kind, Open, Wall
from lanewise.support.attributes import frozen


@frozen
@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers and names.

    omega: the relaxation rate of the viscosity; parameters: those of the collision operator besides
    it; smagorinsky: the constant of the turbulence model, 0 for none; force: empty for none;
    precision: that of the arithmetic, "f32" or "f64"; outflow_speed: at which outflow faces carry
    things out, in sites per step.
    """

    lattice: str
    shape: tuple[int, ...]
    omega: float
    collision: str
    parameters: Mapping[str, float]
    smagorinsky: float
    force: tuple[float, ...]
    precision: str
    storage: str
    streaming: str
    layout: str
    device: str
    outflow_speed: float = 1.0

    @property
    def viscosity(self) -> float:
        """Kinematic, in sites squared a step: (1 / omega - 1/2) / 3."""
        return (1 / self.omega - 0.5) / 3


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class SiteGeometry:
    """What the sites are: `mask` uint8 of the lattice's shape or None, the kinds by number, and the
    edges of the box.

    fractions: where walls cut links, if they are not all half-way.
    """

    mask: NDArray[np.uint8] | None
    kinds: Mapping[int, Kind]
    edges: Mapping[str, Edge]
    fractions: lw.WallFractions | None = None

    def __post_init__(self) -> None:
        """Kernels are made for it, so it is one's own and stays as it is."""
        if self.mask is not None and self.mask.flags.writeable:
            mask = self.mask.copy()
            mask.flags.writeable = False
            object.__setattr__(self, "mask", mask)
        for name in ("kinds", "edges"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def walls(self) -> dict[int, Wall]:
        return {number: kind for number, kind in self.kinds.items() if isinstance(kind, Wall)}

    @property
    def openings(self) -> dict[int, Open]:
        return {number: kind for number, kind in self.kinds.items() if isinstance(kind, Open)}

    @property
    def faces(self) -> set[str]:
        """What stands at the faces of the box: rules of edges, and names of walls."""
        return {
            face
            for edge in self.edges.values()
            for face in ((edge,) if isinstance(edge, str) else edge)
        }

    @property
    def closed(self) -> bool:
        """Whether nothing flows in or out: no site is of an opening, and no face is an outflow."""
        present = self.mask is not None and bool(np.isin(self.mask, list(self.openings)).any())
        return "outflow" not in self.faces and not present

    def absent_walls(self) -> frozenset[str]:
        """The names of walls that no site and no face has."""
        faces = self.faces
        return frozenset(
            wall.name
            for number, wall in self.walls.items()
            if wall.name not in faces and (self.mask is None or not (self.mask == number).any())
        )

    @property
    def holds_density(self) -> bool:
        """Whether sites are of an opening that sets a density."""
        setting = [n for n, kind in self.openings.items() if kind.density is not None]
        return self.mask is not None and bool(np.isin(self.mask, setting).any())

    def solid(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """The sites of walls."""
        if self.mask is None:
            return np.zeros(shape, np.bool_)
        return np.isin(self.mask, list(self.walls))


def settings_to_json(settings: Settings) -> str:
    """One line; floats read back exactly."""
    return json.dumps({**asdict(settings), "parameters": dict(settings.parameters)})


def settings_from_json(text: str) -> Settings:
    """What `settings_to_json` wrote; raises `InputError` for anything else."""
    with readable("settings"):
        return record(Settings, json.loads(text), "a flow")


@dataclass(frozen=True, slots=True)
class _Read:
    """A geometry as it is in JSON."""

    kinds: dict[str, dict[str, str | float | tuple[float, ...] | None]]
    edges: dict[str, str | tuple[str, str]]


def geometry_to_json(geometry: SiteGeometry) -> str:
    """Kinds and edges; the mask and profiles are arrays and go elsewhere."""
    kinds: dict[str, Any] = {}
    for number, kind in geometry.kinds.items():
        match kind:
            case Wall():
                kinds[str(number)] = {"wall": kind.name, "velocity": kind.velocity}
            case Open():
                kinds[str(number)] = {
                    "open": kind.name,
                    "boundary": kind.boundary,
                    "face": kind.face,
                    "velocity": kind.velocity,
                    "density": kind.density,
                }
    return json.dumps({"kinds": kinds, "edges": dict(geometry.edges)})


def geometry_from_json(
    text: str, mask: Any, profiles: Mapping[int, Any], fractions: lw.WallFractions | None = None
) -> SiteGeometry:
    """What `geometry_to_json` wrote, with the arrays; raises `InputError` for anything else."""
    with readable("kinds"):
        read = record(_Read, json.loads(text), "the geometry")
        kinds = {
            int(number): _kind(values, profiles.get(int(number)))
            for number, values in read.kinds.items()
        }
        return SiteGeometry(mask, kinds, read.edges, fractions)


def _kind(values: Mapping[str, Any], profile: Any) -> Kind:
    names = {"wall": "name", "open": "name"}
    arguments = {names.get(name, name): value for name, value in values.items()}
    if "wall" in values:
        return record(Wall, arguments, "a wall")
    return replace(record(Open, arguments, "an opening"), profile=profile)
