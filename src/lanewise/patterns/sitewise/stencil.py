"""`@stencil(lattice)`: the next value of a site's fields, from those of its neighbours.

A stencil is a sitewise function on a lattice without populations: its sites hold the fields
themselves, in two copies. Everything else is shared: the box and its edges, kinds, walls, masks,
layouts, the bulk apart from special sites (design/0029-fields-and-stencils.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.record import Record
from lanewise.language.types import Scalar
from lanewise.launch.arguments import describe
from lanewise.layouts import Layout
from lanewise.patterns.sitewise.call_kinds import SiteKinds
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.kinds import Rule, Wall
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.making import field_memory, site_kinds, site_shape
from lanewise.patterns.sitewise.observer import Observer
from lanewise.patterns.sitewise.site_records import field_record
from lanewise.patterns.sitewise.sites import Sites, solid_sites
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites, leaf_of, set_leaf, sites_on
from lanewise.patterns.sitewise.streaming import TWO_COPIES
from lanewise.patterns.sitewise.values import SiteValues
from lanewise.planning.plan import Plan
from lanewise.records.field_values import brought, check_fits
from lanewise.runtime.memory import bring, module_of, on, to_host
from lanewise.runtime.mesh import Mesh, place_of
from lanewise.support.attributes import sealed, settings_by_name
from lanewise.support.checks import plain_function, shown
from lanewise.support.errors import ArgumentError, brief


@sealed()
class Stencil(LatticeKernel):
    """A function of sites whose fields are read at their neighbours, as `@lw.stencil` makes it.

    Calling it runs one step.
    """

    def __init__(self, lattice: Lattice, function: Callable[..., Any]) -> None:
        super().__init__(SiteKinds(lattice, function, stencil=True))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that its sites hold: those that its results replace."""
        return tuple(self.kinds.state)

    def __repr__(self) -> str:
        return f"<lanewise stencil {self.__name__} on {self.lattice.name}>"

    # ------------------------------------------------------------ kinds

    def kind(self, number: int, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Give sites of another kind their function: `@heat.kind(1, "heater")`.

        The function itself is returned.
        """
        return self.kinds.add_function(number, name)

    def wall(self, number: int, name: str, **fields: str) -> None:
        """Make a kind of walls. Its sites are not updated, and no neighbour reads them.

        `fields`: by the name of a field, the name of the value that neighbours read of it there:
        `wall(1, "hot", t="hot_value")`. Of a field without one they read their own value: nothing
        flows through such a wall.
        """
        self.kinds.add_wall(Wall(number, name, None, tuple(fields.items())))

    # ------------------------------------------------------------ sites

    @settings_by_name
    def sites(
        self,
        shape: tuple[int, ...],
        *,
        mask: Any = None,
        edges: Mapping[str, Rule] | None = None,
        storage: str | None = None,
        layout: Layout | None = None,
        device: str | Mesh | None = None,
        **fields: Any,
    ) -> AnySites:
        """The sites of a box.

        shape: (nx,), (ny, nx) or (nz, ny, nx). mask: the kind of every site, integers of that
        shape. edges: the rule of an axis, or of its (low, high) face: "periodic", "slip", "outflow"
        or the name of a wall. storage: "f16" (GPU), "f32" or "f64". device: or a mesh, whose parts
        have at least 8 layers along every axis that is cut. fields: where they begin,
        numbers or arrays of that shape; zero without. Raises `ArgumentError` for what does not fit,
        `DeviceError` when it does not fit the memory, before anything is allocated.
        """
        where, size = place_of(device), site_shape(self.lattice, shape)

        def record_of(scalar: Scalar) -> Record:
            return field_record(self.fields, scalar)

        stored, arranged = field_memory(record_of, size, self.kinds.real, where, storage, layout)
        sites = sites_on(
            where,
            self.lattice,
            size,
            kinds=site_kinds(mask, size, self.kinds.numbers),
            walls=self.kinds.walls,
            edges=edges,
            storage=stored,
            form=TWO_COPIES,
            layout=arranged,
            record=record_of(stored),
        )
        self.set_fields(sites, **fields)
        return sites

    def set_fields(self, sites: AnySites, **fields: Any) -> None:
        """Give fields their values: numbers or arrays of the box's shape; walls have zeros.

        The count of steps continues.

        Raises `ArgumentError`, with the sites as they were, for unknown names, other shapes, and
        numbers that do not fit the storage type.
        """
        self.kinds.check_sites(sites)
        values: dict[str, Any] = {}
        for name, value in fields.items():
            if name not in self.fields:
                raise ArgumentError(
                    f"{self.__name__} has no field {name!r}; its fields are "
                    f"{', '.join(self.fields)}"
                )
            array = brought(f"the field {name!r}", value, sites.device)
            if (
                array.shape not in ((), sites.shape, (sites.count,))
                or array.dtype.kind not in "biuf"
            ):
                raise ArgumentError(
                    f"the field {name!r} is a number or an array of shape {sites.shape}, found "
                    f"{describe(value)}"
                )
            check_fits(f"the field {name!r}", [array], sites.storage)
            values[name] = array
        fluid = bring(~solid_sites(sites.kinds, self.kinds.walls).reshape(-1), sites.device)
        for name, array in values.items():
            with on(sites.device):
                given = array.astype(sites.storage.dtype).reshape(-1)
                # a product would leave what is no number there, and the sign of a zero
                whole = module_of(fluid).where(fluid, given, given.dtype.type(0))
            set_leaf(sites, name, whole)

    def field(self, sites: AnySites, name: str) -> Any:
        """A field as an array of the box's shape on the sites' device, of the type that sites
        compute in. Writing to it changes nothing.
        """
        self.kinds.check_sites(sites)
        sites.whole.check()
        if not isinstance(name, str) or name not in self.fields:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"{self.__name__} has no field {shown(name)}; its fields are "
                f"{', '.join(self.fields)}"
            )
        if isinstance(sites, SplitSites):
            return leaf_of(sites, name, self.kinds.real)
        with on(sites.device):
            return getattr(sites.current, name).astype(self.kinds.real.dtype).reshape(sites.shape)

    # ------------------------------------------------------------ steps

    def _calls(
        self, sites: Sites, plan: Plan | None, values: SiteValues, step: int, fresh: bool
    ) -> list[SiteCall]:
        return [self.kernels.step(sites, step, fresh, values, plan)]

    def _change(
        self, sites: Sites, values: Mapping[str, Any], changed: Callable[[Any], Any]
    ) -> None:
        held = zip(self.fields, self._held(sites, values), strict=True)
        self.set_fields(sites, **{n: changed(array) for n, array in held})

    def _held(self, sites: Sites, values: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
        del values
        return [to_host(self.field(sites, n)) for n in self.fields]

    @brief
    def observer(self, function: Callable[..., Any]) -> Observer:
        """A function of a site and its neighbours that returns values, for sites of every kind but
        walls.
        """
        checked = plain_function("stencil.observer", function)
        return Observer(self.kernels, SiteFunction(checked, self.lattice, looks=True, stencil=True))


def stencil(lattice: Lattice) -> Callable[[Callable[..., Any]], Stencil]:
    """Make a kernel of a function of a site and its neighbours on a lattice.

        @lw.stencil(lw.D2Q5)
        def heat(u: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
            return u[0] + rate * (u[1] + u[2] + u[3] + u[4] - 4.0 * u[0])

        sites = heat.sites((64, 64))
        heat(sites, rate=0.1)  # one step

    `u[q]` is the value of the neighbour in direction q of the lattice, `u[0]` that of the site
    itself. The function returns the next values of the fields that come first among its parameters.
    Further fields are only read, and each call passes them.

    Raises `ArgumentError` for what is no lattice, `CompileError` at the first call for what the
    language does not have.
    """
    argument: Any = lattice
    if not isinstance(argument, Lattice):
        raise ArgumentError(
            "@lw.stencil takes a lattice, for example @lw.stencil(lw.D2Q5); found "
            f"{shown(argument)}"
        )
    return lambda function: Stencil(lattice, plain_function("stencil(lattice)", function))
