"""`@sitewise(lattice)`: the update of one site of a lattice, site kinds, walls, and what is
observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.types import Scalar
from lanewise.launch.arguments import describe
from lanewise.layouts import Layout
from lanewise.patterns.no_gradient import no_gradient
from lanewise.patterns.sitewise.call_kinds import SiteKinds, require_flow
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.fractions import WallFractions, make_interpolation
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.kinds import Rule, Wall
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.making import (
    layout_among_walls,
    site_kinds,
    site_memory,
    site_shape,
)
from lanewise.patterns.sitewise.observer import Observer
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites, set_leaf, sites_on
from lanewise.patterns.sitewise.split_steps import (
    split_arriving,
    split_force,
    split_values,
)
from lanewise.patterns.sitewise.values import SiteValues, shape_of
from lanewise.planning.plan import Plan
from lanewise.records.field_values import brought, check_fits
from lanewise.runtime.memory import to_host
from lanewise.runtime.mesh import Mesh, first_of, place_of
from lanewise.support.attributes import sealed, settings_by_name
from lanewise.support.checks import plain_function, shown
from lanewise.support.errors import ArgumentError, brief


@sealed()
class Sitewise(LatticeKernel):
    """A kernel over the sites of a lattice, as `@lw.sitewise(lattice)` makes it: the function of
    the sites of kind 0, and those of the other kinds, which `kind` adds.

    `sites(shape)` makes sites. A call with them and the values of the function by name runs one
    step; `stepper` binds many. Velocities are in links per step, times in steps.
    """

    def __init__(self, lattice: Lattice, function: Callable[..., Any]) -> None:
        super().__init__(SiteKinds(lattice, function))

    def __repr__(self) -> str:
        return f"<lanewise sitewise kernel {self.__name__} on {self.lattice.name}>"

    def gradient(self, wrt: Any) -> Any:
        """Only pairwise and elementwise kernels have derivatives: raises `ArgumentError`."""
        raise no_gradient(self.__name__, "sitewise")

    # ------------------------------------------------------------ kinds

    def kind(self, number: int, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Give sites of another kind their function: `@flow.kind(1, "inlet")`.

        The function itself is returned.
        """
        return self.kinds.add_function(number, name)

    def wall(self, number: int, name: str, velocity: str | None = None, **fields: str) -> None:
        """Make a kind of walls: half-way bounce-back, moving with the uniform called `velocity`
        when there is one.

        `fields`: by the name of a field, the name of the uniform that sites read of it at this
        wall: `wall(1, "floor", psi="wetting")`. Of a field without one they read their own value.
        """
        self.kinds.add_wall(Wall(number, name, velocity, tuple(fields.items())))

    def field(self, name: str) -> Callable[[Callable[..., Any]], Observer]:
        """Make an observer that writes a field before every step: `@flow.field("psi")`.

        The function takes the populations that arrive, and values, and returns the number that
        sites read at their neighbours as `psi[q]` where they take `psi: lw.Field[lw.f32]`. Its
        values are values of the flow's calls. Raises `ArgumentError` for a name that is taken.
        """
        add = self.kinds.add_field(name)
        return lambda function: Observer(self.kernels, add(function))

    @property
    def walls(self) -> tuple[Wall, ...]:
        return self.kinds.walls

    @property
    def main(self) -> SiteFunction:
        """The function of the sites of kind 0."""
        return self.kinds.main

    @property
    def real(self) -> Scalar:
        """The type that sites compute in."""
        return self.kinds.real

    # ------------------------------------------------------------ sites

    @settings_by_name
    def sites(
        self,
        shape: tuple[int, ...],
        *,
        mask: Any = None,
        edges: Mapping[str, Rule] | None = None,
        storage: str | None = None,
        streaming: str | None = None,
        layout: Layout | None = None,
        device: str | Mesh | None = None,
        fractions: WallFractions | None = None,
    ) -> AnySites:
        """The sites of a box, all populations zero.

        shape: (ny, nx) or (nz, ny, nx). mask: the kind of every site, integers of that shape.
        edges: the rule of an axis, or of its (low, high) face: "periodic", "slip" or the name of a
        wall. storage: "f16" (GPU), "f32" or "f64".
        streaming: "pull" or "push" with two copies of the populations, or "in-place" with one.
        device: or a mesh, whose parts have at least 8 layers along every axis that is cut.
        fractions: where walls cut links, if not half-way: bounce-back is then interpolated
        (`patterns/sitewise/fractions.py`). Raises `ArgumentError` for what does not fit,
        `DeviceError` when it does not fit the memory, before anything is allocated.
        """
        where, size = place_of(device), site_shape(self.lattice, shape)
        first = first_of(where)
        stored, form, arranged = site_memory(
            self.lattice, size, self.real, where, storage, streaming, layout
        )
        kinds = site_kinds(mask, size, self.kinds.numbers)
        if layout is None:
            arranged = layout_among_walls(kinds, self.walls, first, stored, form) or arranged
        sites = sites_on(
            where,
            self.lattice,
            size,
            kinds=kinds,
            walls=self.walls,
            edges=edges,
            storage=stored,
            form=form,
            layout=arranged,
        )
        if isinstance(sites, SplitSites):
            sites.interpolate(fractions, self.real)
            return sites
        if fractions is not None:
            numbers = frozenset(w.number for w in self.walls)
            flags = to_host(sites.flags)
            sites.interpolation = make_interpolation(
                self.lattice, fractions, flags, numbers, self.real, first
            )
        return sites

    def set_populations(self, sites: AnySites, populations: Any) -> None:
        """Set the populations that arrive next, an array of shape (Q, *shape); the count of steps
        starts again.

        Raises `ArgumentError`, with the sites as they were, for another shape and for finite
        numbers that the storage type does not hold (float16 ends at 65,504).
        """
        self.kinds.check_sites(sites)
        shape = (self.lattice.size, *sites.shape)
        if (own := shape_of(populations)) != shape:
            raise ArgumentError(
                f"populations have the shape {shape}, found "
                f"{describe(populations) if own is None else own}"
            )

        def each() -> Iterator[Any]:  # one at a time: a second copy of all might not fit the device
            return (
                brought("populations", populations[q], sites.device)
                for q in range(self.lattice.size)
            )

        sites.whole.check_idle()
        check_fits("populations", each(), sites.storage)
        sites.step, sites.fresh = 0, True
        for q, values in enumerate(each()):
            set_leaf(sites, f"q{q}", values)
        sites.whole.mended()

    def populations(self, sites: AnySites, **values: Any) -> npt.NDArray[Any]:
        """The populations that arrive next, a NumPy array of shape (Q, *shape); zeros at walls.

        `values` are the velocities of moving walls, which change the populations that they reflect.
        """
        looking = self._looking(sites, values)
        if isinstance(sites, SplitSites):
            split = split_values(self.kernels, sites, looking)
            sites.whole.check()
            return split_arriving(self.kernels, sites, split)
        classified = self.kinds.values(sites, looking)
        sites.whole.check()
        look, array = self.kernels.arriving(sites, classified)
        look()
        arriving = array.numpy()
        return np.stack([arriving[f"q{q}"] for q in range(self.lattice.size)]).reshape(
            self.lattice.size, *sites.shape
        )

    def _looking(self, sites: AnySites, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a call that looks: those that it does not apply may be left out."""
        self.kinds.check_sites(sites)
        return {**values, **self.kinds.unneeded(sites, values)}

    # ------------------------------------------------------------ steps

    def _calls(
        self, sites: Sites, plan: Plan | None, values: SiteValues, step: int, fresh: bool
    ) -> list[SiteCall]:
        update = self.kernels.step(sites, step, fresh, values, plan)
        return [update, *self.kernels.between(sites, step + 1, values, first=fresh)]

    def _change(
        self, sites: Sites, values: Mapping[str, Any], changed: Callable[[Any], Any]
    ) -> None:
        (held,) = self._held(sites, values)
        self.set_populations(sites, changed(held))

    def _held(self, sites: Sites, values: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
        velocities = {w.velocity for w in self.walls if w.velocity is not None}
        moving = {n: v for n, v in values.items() if n in velocities}
        return [self.populations(sites, **moving)]

    # ------------------------------------------------------------ looking

    @brief
    def observer(self, function: Callable[..., Any]) -> Observer:
        """A sitewise function that returns values of the populations that arrive next, for sites of
        every kind but walls.
        """
        return Observer(
            self.kernels, SiteFunction(plain_function("sitewise.observer", function), self.lattice)
        )

    @settings_by_name
    def force(
        self,
        sites: AnySites,
        walls: list[str] | tuple[str, ...],
        *,
        weights: bool = False,
        **values: Any,
    ) -> Any:
        """The momentum that walls of these kinds receive from the fluid in this step, a float64
        vector (x, y[, z]).

        Momentum exchange over the links that they cut, in the form that also holds for moving
        walls: B. Wen, C. Zhang, Y. Tu, C. Wang, H. Fang, Galilean invariant fluid-solid interfacial
        dynamics in lattice Boltzmann simulations, Journal of Computational Physics 266 (2014),
        161-170. `weights` adds the lattice's weights, for populations that are deviations from
        them. Links at edges and corners of the box where two different walls meet belong to
        neither. A wall without sites receives 0. Raises `ArgumentError` for a name that is not a
        wall.
        """
        require_flow(self.lattice, f"{self.__name__}.force is the momentum that walls take")
        listed: Any = walls
        if (
            not isinstance(listed, (list, tuple))
            or not listed
            or not all(isinstance(w, str) for w in listed)
        ):
            raise ArgumentError(
                f"{self.__name__}.force takes a list of names of walls, found {shown(listed)}"
            )
        if not isinstance(weights, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"{self.__name__}.force(weights={shown(weights)}): wanted True or False"
            )
        numbers = tuple(sorted(self.kinds.wall_number(name) for name in walls))
        looking = self._looking(sites, values)
        if isinstance(sites, SplitSites):
            split = split_values(self.kernels, sites, looking)
            sites.whole.check()
            return split_force(self.kernels, sites, split, numbers, weights=weights)
        classified = self.kinds.values(sites, looking)
        sites.whole.check()
        return self.kernels.force(sites, classified, numbers, weights=weights)


def sitewise(lattice: Lattice) -> Callable[[Callable[..., Any]], Sitewise]:
    """Make a kernel of a function of one site of a lattice: it changes the populations that
    arrive, and lanewise moves them to the neighbours.

        @lw.sitewise(lw.D2Q9)
        def relax(f: lw.populations, omega: lw.f32):
            density = sum(f[q] for q in lw.D2Q9)
            for q in lw.D2Q9:
                f[q] += omega * (q.weight * density - f[q])

        sites = relax.sites((16, 32))  # 16 rows of 32 sites, in float32
        relax(sites, omega=1.0)  # one step

    The function takes `f: lw.populations` (`lw.dpopulations` in float64), then values: uniform, or
    an array with one for each site.

    Raises `ArgumentError` for what is no lattice, `CompileError` at the first call for what the
    language does not have.
    """
    argument: Any = lattice
    if not isinstance(argument, Lattice):
        raise ArgumentError(
            "@lw.sitewise takes a lattice, for example @lw.sitewise(lw.D2Q9); found "
            f"{shown(argument)}"
        )
    return lambda function: Sitewise(lattice, plain_function("sitewise(lattice)", function))
