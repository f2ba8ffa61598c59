"""The engine of a simulation: a `lw.sitewise` function of its collision operator, with walls and openings as kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError
from lanewise.kernels.sitewise import Observer, SiteStepper, Sitewise, sitewise
from lanewise.lattices import Lattice
from lanewise.layouts import layout_by_name
from lanewise.profiling.profile import Profile
from lanewise.runtime.memory import bring, to_host
from lanewise.sims.lbm.kinds import Open
from lanewise.sims.lbm.openings import opening_function, opening_observer, opening_values
from lanewise.sims.lbm.operators import find_operator, make_macroscopic
from lanewise.sims.lbm.settings import Geometry, Settings


def make_engine(
    lattice: Lattice, settings: Settings, geometry: Geometry, profile: Profile | None = None
) -> CompiledEngine:
    """Compile what the settings say, and allocate populations at rest."""
    return CompiledEngine(lattice, settings, geometry, profile)


@dataclass(frozen=True, slots=True, eq=False)
class _Opening:
    """What shows the flow at an opening: its sites, the values of its parameters, and the observer of its boundary.

    look: None where the flow is what the opening says.
    """

    kind: Open
    look: Observer | None
    sites: Any
    values: dict[str, Any]


class CompiledEngine:
    """See `Engine`."""

    def __init__(
        self, lattice: Lattice, settings: Settings, geometry: Geometry, profile: Profile | None = None
    ) -> None:
        self._lattice, self._settings, self._geometry, self._profile = lattice, settings, geometry, profile
        self._flow = make_flow(lattice, settings, geometry)
        self._sites = self._flow.sites(
            settings.shape, mask=geometry.mask, edges=dict(geometry.edges), storage=settings.storage,
            streaming=settings.streaming, layout=layout_by_name(settings.layout) if settings.layout else None,
            device=settings.device, fractions=geometry.fractions,
        )  # fmt: skip
        self._forced: dict[str, Any] = {"force": settings.force} if settings.force else {}
        self._walls: dict[str, Any] = {
            velocity_of(n): w.velocity for n, w in geometry.walls.items() if w.velocity is not None
        }
        self._openings = [self._opening(number, kind) for number, kind in geometry.openings.items()]
        self._values: dict[str, Any] = {**collision_values(settings), **self._walls}
        for opening in self._openings:
            self._values |= opening.values
        self._look = self._flow.observer(make_macroscopic(lattice, settings.precision, bool(settings.force)))
        self._stepper: SiteStepper | None = None

    @property
    def layout(self) -> str:
        return str(self._sites.layout).lower()

    @property
    def bytes_per_site(self) -> float:
        """Every population is read and written once; beside them a bit, or in place the word of every second step."""
        known = 1 / 8 if self._sites.marks is not None else 2 if len(self._sites.copies) == 1 else 4
        return 2 * len(self._lattice) * self._sites.storage.size + known

    @property
    def interpolated_links(self) -> int:
        """Links on which bounce-back is interpolated."""
        return 0 if self._sites.interpolation is None else self._sites.interpolation.links

    def prepare(self) -> None:
        sites = self._sites
        step, fresh = sites.step, sites.fresh
        for sites.step, sites.fresh in ((0, True), (1, False), (2, False)):  # all phases of every streaming form
            self._flow.compile(sites, **self._values)
        for following in (1, 2):
            self._flow.compile_between(
                sites, step=following, outflow_speed=self._settings.outflow_speed, **self._values
            )
        sites.step, sites.fresh = step, fresh

    def run(self, steps: int) -> None:
        if self._stepper is None:
            speed = self._settings.outflow_speed
            stepper = self._flow.stepper(self._sites, outflow_speed=speed, **self._values)
            self._stepper = stepper.profiled(self._profile)
        self._stepper.run(steps)

    def moments(self) -> tuple[Any, Any]:
        excess, velocity = self._look(self._sites, **self._forced, **self._walls)
        for opening in self._openings:
            there = self._at(opening)
            excess[opening.sites], velocity[opening.sites] = (values[opening.sites] for values in there)
        return excess, velocity

    def _at(self, opening: _Opening) -> tuple[Any, Any]:
        """Density less 1 and velocity of all sites, as they are at those of an opening."""
        if opening.look is not None:
            return opening.look(self._sites, **self._forced, **self._walls, **opening.values)
        density, wanted = opening.kind.density, np.array(opening.kind.velocity)
        profile = np.ones(self._sites.count) if opening.kind.profile is None else np.ravel(opening.kind.profile)
        excess = np.full(self._sites.count, (density or 1.0) - 1)
        return bring(excess, self._settings.device), bring(profile[:, None] * wanted, self._settings.device)

    def _opening(self, number: int, kind: Open) -> _Opening:
        settings, mask = self._settings, self._geometry.mask
        sites = np.flatnonzero(mask == number) if mask is not None else np.empty(0, np.int64)
        observer = opening_observer(self._lattice, settings, number, kind)
        look = None if observer is None else self._flow.observer(observer)
        values = {n: _on_device(v, settings.device) for n, v in opening_values(settings, number, kind).items()}
        return _Opening(kind, look, bring(sites, settings.device), values)

    def force(self, names: Sequence[str]) -> NDArray[Any]:
        return self._flow.force(self._sites, list(names), weights=True, **self._walls)

    # ------------------------------------------------------------ populations

    def arriving(self) -> NDArray[Any]:
        return self._flow.populations(self._sites, **self._walls)

    def set_arriving(self, populations: NDArray[Any]) -> None:
        self._flow.set_populations(self._sites, populations)

    def save(self) -> Mapping[str, Any]:
        """The bytes of the populations that the next step reads, where in its cycle of phases it is, and what outflows keep."""
        sites = self._sites
        outflow = {f"outflow{axis}{step:+d}": to_host(kept) for (axis, step), kept in sites.outflow.items()}
        return {"populations": to_host(sites.current.data), "step": sites.step, "fresh": sites.fresh, **outflow}

    def restore(self, saved: Mapping[str, Any]) -> None:
        sites = self._sites
        sites.step, sites.fresh = int(saved["step"]), bool(saved["fresh"])
        data = np.asarray(saved["populations"], np.uint8)
        if data.shape != sites.current.data.shape:
            raise InputError(f"damaged checkpoint: it holds {data.size:,} bytes; wanted {sites.current.data.size:,}")
        sites.current.data[...] = bring(data, sites.device)
        for axis, step in sites.edges.outlets:
            if (kept := saved.get(f"outflow{axis}{step:+d}")) is not None:
                before, found = sites.before(axis, step, self._flow.real), np.asarray(kept)
                if (found.shape, found.dtype) != (before.shape, before.dtype):
                    raise InputError(
                        f"damaged checkpoint: what left at axis {axis} has shape {found.shape} of {found.dtype}; "
                        f"wanted {before.shape} of {before.dtype}"
                    )
                before[...] = bring(found, sites.device)


def make_flow(lattice: Lattice, settings: Settings, geometry: Geometry) -> Sitewise:
    """The collision as kind 0, and the kinds of the geometry."""
    operator = find_operator(settings.collision)
    collide = operator.make(lattice, settings.precision, forced=bool(settings.force), eddies=settings.smagorinsky > 0)
    flow = sitewise(lattice)(collide)
    for number, wall in geometry.walls.items():
        flow.wall(number, wall.name, velocity=None if wall.velocity is None else velocity_of(number))
    for number, opening in geometry.openings.items():
        flow.kind(number, opening.name)(opening_function(lattice, settings, number, opening, collide))
    return flow


def collision_values(settings: Settings) -> dict[str, Any]:
    """The uniform parameters of the collision."""
    values: dict[str, Any] = {"omega": settings.omega, **settings.parameters}
    if settings.force:
        values["force"] = settings.force
    if settings.smagorinsky > 0:
        values["smagorinsky"] = settings.smagorinsky
    return values


def velocity_of(number: int) -> str:
    """The name of the uniform that moves walls of a kind."""
    return f"wall_velocity_{number}"


def _on_device(value: Any, device: str) -> Any:
    return bring(value, device) if isinstance(value, np.ndarray) else value
