"""The engine of a simulation: a `lw.sitewise` function of its collision operator, with walls and
openings as kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.layouts import layout_by_name
from lanewise.patterns.sitewise.site_state import (
    byte_count,
    held_bytes,
    hold_bytes,
    leave_at_outlet,
    left_at_outlets,
    outlet_room,
    parts_of,
)
from lanewise.profiling.profile import Profile
from lanewise.sims.common.devices import bring, on, to_host
from lanewise.sims.common.meshes import values_in_one_place
from lanewise.sims.common.shown import LoopExplanation, TunedCall
from lanewise.sims.lbm.kinds import Open
from lanewise.sims.lbm.openings import opening_function, opening_observer, opening_values
from lanewise.sims.lbm.operators import find_operator, make_macroscopic
from lanewise.sims.lbm.settings import Settings, SiteGeometry
from lanewise.support.errors import InputError
from lanewise.support.whole_steps import WholeSteps


@dataclass(frozen=True, slots=True, eq=False)
class _Opening:
    """What shows the flow at an opening: its sites, the values of its parameters, and the observer
    of its boundary.

    look: None where the flow is what the opening says.
    """

    kind: Open
    look: lw.Observer | None
    sites: Any
    values: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """What follows from the settings: the flow with its kinds, the values of their parameters, and
    what looks at populations.
    """

    settings: Settings
    flow: lw.Sitewise
    look: lw.Observer
    openings: tuple[_Opening, ...]
    forced: Mapping[str, Any]
    walls: Mapping[str, Any]
    values: Mapping[str, Any]


class FlowEngine:
    """Populations of a box of sites, stored as deviations f - w, and the kernels that advance them.

    Populations are those that arrive next. Arrays of fields lie on the device, x fastest, one row
    per site; sites of walls hold zeros. interpolated_links: on which bounce-back is interpolated.
    """

    def __init__(
        self,
        lattice: lw.Lattice,
        settings: Settings,
        geometry: SiteGeometry,
        profile: Profile | None = None,
        mesh: lw.Mesh | None = None,
    ) -> None:
        """mesh: where the sites lie, if not on one device; what is looked at comes to its first
        one.
        """
        self._lattice, self._geometry, self._profile = lattice, geometry, profile
        self._bound = self._bind(settings)
        self._sites = self._bound.flow.sites(
            settings.shape,
            mask=geometry.mask,
            edges=dict(geometry.edges),
            storage=settings.storage,
            streaming=settings.streaming,
            layout=layout_by_name(settings.layout) if settings.layout else None,
            device=settings.device if mesh is None else mesh,
            fractions=geometry.fractions,
        )
        self.interpolated_links = self._interpolated(mesh)
        self._stepper: lw.SiteStepper | None = None
        self._version = 0

    def _bind(self, settings: Settings, before: _Bound | None = None) -> _Bound:
        """`before`: what was bound so far; its kernels are kept where only values change."""
        lattice, geometry = self._lattice, self._geometry
        if before is not None and _functions_of(settings) == _functions_of(before.settings):
            flow, look, openings = before.flow, before.look, before.openings
        else:
            flow = make_flow(lattice, settings, geometry)
            look = flow.observer(
                make_macroscopic(lattice, settings.precision, bool(settings.force))
            )
            openings = tuple(
                self._opening(flow, settings, n, kind) for n, kind in geometry.openings.items()
            )
        walls = {
            velocity_of(n): w.velocity for n, w in geometry.walls.items() if w.velocity is not None
        }
        values: dict[str, Any] = {**collision_values(settings), **walls}
        for opening in openings:
            values |= opening.values
        forced = {"force": settings.force} if settings.force else {}
        return _Bound(settings, flow, look, openings, forced, walls, values)

    def change(self, settings: Settings) -> None:
        """Continue with other settings of the collision, the force or outflows, with the same
        populations.
        """
        bound = self._bind(settings, self._bound)
        self._stepper = None
        self._bound = bound

    @property
    def profile(self) -> Profile | None:
        """What records where the time of steps goes."""
        return self._profile

    @profile.setter
    def profile(self, value: Profile | None) -> None:
        self._stepper, self._profile = None, value

    @property
    def whole(self) -> WholeSteps:
        """Its steps as a unit; observers between them register as `watched`."""
        return self._sites.whole

    def check_whole(self) -> None:
        """Raise `StateError` after steps that were stopped in the middle."""
        self._sites.whole.check()

    @property
    def version(self) -> int:
        """How often the populations were replaced."""
        return self._version

    @property
    def layout(self) -> str:
        """The name of the layout in which the populations are stored."""
        return str(self._sites.layout).lower()

    @property
    def bytes_per_site(self) -> float:
        """Every population is read and written once; in addition a bit, or in place the flags of
        every second step.
        """
        part = parts_of(self._sites)[0]
        flags = 1 / 8 if part.marks is not None else 2 if len(part.copies) == 1 else 4
        return 2 * len(self._lattice) * self._sites.storage.size + flags

    def _interpolated(self, mesh: lw.Mesh | None) -> int:
        each = (part.interpolation for part in parts_of(self._sites))
        own = sum(i.links for i in each if i is not None)
        return own if mesh is None else sum(mesh.transport.agree(own))

    def prepare(self) -> None:
        """Compile what steps need, so that the first one costs no more than the others."""
        self._steps().prepare()

    def prepare_looks(self, steps: int, names: Sequence[str]) -> None:
        """Compile what the moments after `steps` more steps need, at least one.

        names: of walls, whose force is computed there.
        """
        bound, step = self._bound, self._sites.step + steps
        bound.look.prepare(self._sites, step, **bound.forced, **bound.walls)
        for opening in bound.openings:
            if opening.look is not None:
                opening.look.prepare(
                    self._sites, step, **bound.forced, **bound.walls, **opening.values
                )
        if names:
            kinds, kernels = bound.flow.kinds, bound.flow.kernels
            numbers = tuple(sorted(kinds.wall_number(name) for name in names))
            for part in parts_of(self._sites):
                given = {**bound.walls, **kinds.unneeded(part, bound.walls)}
                values = kinds.values(part, given)
                kernels.prepare_force(part, step, values, numbers, weights=True)

    def run(self, steps: int, counted: Callable[[int], None]) -> None:
        """Take steps and wait for them; `counted(n)` is called when n more are done.

        Ctrl-C ends it after whole steps.
        """
        self._steps().run(steps, counted)

    def _steps(self) -> lw.SiteStepper:
        if self._stepper is None:
            bound = self._bound
            speed = bound.settings.outflow_speed
            stepper = bound.flow.stepper(self._sites, outflow_speed=speed, **bound.values)
            self._stepper = stepper.profiled(self._profile)
        return self._stepper

    def explain(self) -> LoopExplanation:
        """What a step launches, and on a mesh what its parts bring each other."""
        return self._steps().explain()

    def tuned_call(self) -> TunedCall:
        """What `lanewise tune` measures: a step."""
        bound = self._bound
        speed = bound.settings.outflow_speed
        return TunedCall(bound.flow, (self._sites,), {"outflow_speed": speed, **bound.values})

    def moments(self) -> tuple[Any, Any]:
        """The density less 1, (count,), and the velocity, (count, D)."""
        bound = self._bound
        excess, velocity = self._looked(bound.look, bound.forced, bound.walls)
        with on(bound.settings.device):
            for opening in bound.openings:
                excess[opening.sites], velocity[opening.sites] = self._at(opening)
        return excess, velocity

    def _looked(self, look: lw.Observer, *values: Mapping[str, Any]) -> tuple[Any, ...]:
        """What an observer sees, as arrays on one device."""
        found = look(self._sites, **{n: v for some in values for n, v in some.items()})
        return tuple(values_in_one_place(array) for array in found)

    def _at(self, opening: _Opening) -> tuple[Any, Any]:
        """Density less 1 and velocity at the sites of an opening."""
        bound, sites = self._bound, opening.sites
        if opening.look is not None:
            everywhere = self._looked(opening.look, bound.forced, bound.walls, opening.values)
            return everywhere[0][sites], everywhere[1][sites]
        kind, device = opening.kind, bound.settings.device
        velocity = np.asarray(kind.velocity)
        profile = (
            np.ones(len(sites)) if kind.profile is None else np.ravel(kind.profile)[to_host(sites)]
        )
        excess = np.full(len(sites), (kind.density or 1.0) - 1)
        return bring(excess, device), bring(profile[:, None] * velocity, device)

    def _opening(self, flow: lw.Sitewise, settings: Settings, number: int, kind: Open) -> _Opening:
        mask = self._geometry.mask
        sites = np.flatnonzero(mask == number) if mask is not None else np.empty(0, np.int64)
        observer = opening_observer(self._lattice, settings, number, kind)
        look = None if observer is None else flow.observer(observer)
        values = {
            n: _on_device(v, settings.device)
            for n, v in opening_values(settings, number, kind).items()
        }
        return _Opening(kind, look, bring(sites, settings.device), values)

    def force(self, names: Sequence[str]) -> NDArray[Any]:
        """What the walls of these names took of the momentum in this step: float64 of shape
        (D,).
        """
        return self._bound.flow.force(self._sites, list(names), weights=True, **self._bound.walls)

    # ------------------------------------------------------------ populations

    def arriving(self) -> NDArray[Any]:
        """The populations, (Q, *shape), on the host."""
        return self._bound.flow.populations(self._sites, **self._bound.walls)

    def set_arriving(self, populations: NDArray[Any]) -> None:
        """Replace them."""
        self._version += 1
        self._bound.flow.set_populations(self._sites, populations)

    def save(self) -> Mapping[str, Any]:
        """The bytes of the populations that the next step reads, where in its cycle of phases it
        is, and what outflows keep; of several processes the first one has the bytes.
        """
        sites = self._sites
        sites.whole.check()
        outflow = {
            f"outflow{axis}{step:+d}": kept for (axis, step), kept in left_at_outlets(sites).items()
        }
        return {
            "populations": held_bytes(sites),
            "step": sites.step,
            "fresh": sites.fresh,
            **outflow,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from what an engine of the same settings and geometry has saved."""
        sites = self._sites
        self._version += 1
        sites.step, sites.fresh = int(saved["step"]), bool(saved["fresh"])
        data = np.asarray(saved["populations"], np.uint8)
        if data.shape != ((wanted := byte_count(sites)),):
            raise InputError(f"damaged checkpoint: it holds {data.size:,} bytes; wanted {wanted:,}")
        hold_bytes(sites, data)
        real = self._bound.flow.real
        for axis, step in sites.edges.outlets:
            if (kept := saved.get(f"outflow{axis}{step:+d}")) is not None:
                left = np.asarray(kept)
                shape, dtype = outlet_room(sites, (axis, step), real)
                if (left.shape, left.dtype) != (shape, dtype):
                    raise InputError(
                        f"damaged checkpoint: what left at axis {axis} has shape {left.shape} of "
                        f"{left.dtype}; wanted {shape} of {dtype}"
                    )
                leave_at_outlet(sites, (axis, step), real, left)
        sites.whole.mended()


def make_flow(lattice: lw.Lattice, settings: Settings, geometry: SiteGeometry) -> lw.Sitewise:
    """The collision as kind 0, and the kinds of the geometry."""
    operator = find_operator(settings.collision)
    collide = operator.make(
        lattice, settings.precision, forced=bool(settings.force), eddies=settings.smagorinsky > 0
    )
    flow = lw.sitewise(lattice)(collide)
    for number, wall in geometry.walls.items():
        flow.wall(
            number, wall.name, velocity=None if wall.velocity is None else velocity_of(number)
        )
    for number, opening in geometry.openings.items():
        flow.kind(number, opening.name)(
            opening_function(lattice, settings, number, opening, collide)
        )
    return flow


def _functions_of(settings: Settings) -> tuple[Any, ...]:
    """What decides about the functions of sites; all else are values of their parameters."""
    return settings.collision, bool(settings.force), settings.smagorinsky > 0


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
