"""The kinds of sites of a flow: which function or wall each number stands for, and what they
take.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, cast

import numpy as np

from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.lattices.base import Lattice
from lanewise.language.types import Scalar
from lanewise.launch.arguments import describe
from lanewise.patterns.sitewise.builder import agreed
from lanewise.patterns.sitewise.function import CALL_ARGUMENTS, SiteFunction
from lanewise.patterns.sitewise.kinds import AXES, OUTFLOW, Wall, check_new
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.values import SiteValues, classify_values
from lanewise.runtime.memory import array_module
from lanewise.support.checks import plain_function, shown
from lanewise.support.errors import ArgumentError


def require_flow(lattice: Lattice, what: str) -> None:
    """Refuse what is about momentum on a lattice for scalars, or on a line.

    Raises `ArgumentError`.
    """
    if lattice.isotropy < 4:
        raise ArgumentError(
            f"{what}, which needs weights that are isotropic up to fourth order; {lattice.name} is "
            "for scalars (second order): wanted a lattice for flow, such as lw.D2Q9 or lw.D3Q19"
        )
    if lattice.dimension < 2:
        raise ArgumentError(f"{what}, which needs two dimensions or three; {lattice.name} has one")


class SiteKinds:
    """Functions and walls of a flow called `name`, by number; kind 0 is the flow's own function."""

    def __init__(
        self, lattice: Lattice, function: Callable[..., Any], *, stencil: bool = False
    ) -> None:
        self.lattice, self.name, self.stencil = lattice, function.__name__, stencil
        main = SiteFunction(function, lattice, stencil=stencil)
        self.functions: dict[int, tuple[str, SiteFunction]] = {0: (self.name, main)}
        # the observers that write what sites read at their neighbours
        self.fields: dict[str, SiteFunction] = {}
        self._walls: dict[int, Wall] = {}

    # ------------------------------------------------------------ what there is

    def add_function(
        self, number: int, name: str
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """What makes a function that of a kind, and returns it.

        Raises `ArgumentError` for a number or name that is taken.
        """
        check_new(number, name, self._taken())

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.functions[number] = (
                name,
                SiteFunction(
                    plain_function(f"{self.pattern}.kind", function),
                    self.lattice,
                    number,
                    self.stencil,
                ),
            )
            return function

        return add

    @property
    def pattern(self) -> str:
        return "stencil" if self.stencil else "sitewise"

    def add_field(self, name: object) -> Callable[[Callable[..., Any]], SiteFunction]:
        """What makes a function the observer that writes a field.

        Raises `ArgumentError` for a name that is no name, or taken.
        """
        if not isinstance(name, str) or not name.isidentifier() or name in CALL_ARGUMENTS:
            raise ArgumentError(
                f'{self.name}.field takes the name of a parameter, for example "psi"; found '
                f"{shown(name)}"
            )
        if name in self.fields:
            raise ArgumentError(
                f"{self.name}: the field {name!r} is written by {self.fields[name].name} already"
            )

        def add(function: Callable[..., Any]) -> SiteFunction:
            self.fields[name] = SiteFunction(
                plain_function("sitewise.field", function), self.lattice
            )
            return self.fields[name]

        return add

    def add_wall(self, wall: Wall) -> None:
        """Raises `ArgumentError` for a number or name that is taken, and for a velocity that the
        call itself has.
        """
        check_new(wall.number, wall.name, self._taken())
        velocity: Any = wall.velocity
        if velocity is not None and (not isinstance(velocity, str) or not velocity.isidentifier()):
            raise ArgumentError(
                f"kind {wall.number} ({wall.name!r}): velocity is the name of a value of the call, "
                f"found {shown(velocity)}"
            )
        for field, value in wall.fields:
            if not isinstance(value, str) or not value.isidentifier() or value in CALL_ARGUMENTS:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ArgumentError(
                    f"kind {wall.number} ({wall.name!r}): {field} is the name of a value of the "
                    f"call, found {shown(value)}"
                )
        if wall.velocity in CALL_ARGUMENTS:
            raise ArgumentError(
                f"kind {wall.number} ({wall.name!r}): the velocity {wall.velocity!r} is an "
                "argument of the call itself; choose another name"
            )
        if wall.velocity is not None:
            require_flow(
                self.lattice,
                f"kind {wall.number} ({wall.name!r}): a wall that moves gives momentum to "
                "populations",
            )
        self._walls[wall.number] = wall

    def _taken(self) -> list[tuple[int, str]]:
        return [(n, name) for n, (name, _) in self.functions.items()] + [
            (w.number, w.name) for w in self.walls
        ]

    @property
    def walls(self) -> tuple[Wall, ...]:
        return tuple(self._walls.values())

    @property
    def numbers(self) -> frozenset[int]:
        """All that a mask may hold."""
        return frozenset(self.functions) | frozenset(self._walls)

    @property
    def main(self) -> SiteFunction:
        """The function of the sites of kind 0."""
        return self.functions[0][1]

    @property
    def real(self) -> Scalar:
        """The type that sites compute in."""
        return self.main.real

    def wall_number(self, name: str) -> int:
        """Raises `ArgumentError` for a name that is no wall."""
        for wall in self.walls:
            if wall.name == name:
                return wall.number
        raise ArgumentError(
            f"{name!r} is no kind of walls; they are "
            f"{', '.join(repr(w.name) for w in self.walls) or 'none'}"
        )

    # ------------------------------------------------------------ what occurs in some sites

    def updates(self, sites: AnySites) -> tuple[SiteFunction, ...]:
        """The functions of the kinds that occur, kind 0 first."""
        return tuple(
            f for n, (_, f) in sorted(self.functions.items()) if n == 0 or n in sites.present
        )

    @property
    def versions(self) -> tuple[int, ...]:
        """What kernels of these functions are known by, besides their numbers."""
        return (
            *[f.version for _, f in self.functions.values()],
            *[f.version for f in self.fields.values()],
        )

    def walls_of(self, sites: AnySites) -> tuple[Wall, ...]:
        """The walls that occur, in the mask or at faces."""
        met = sites.present | sites.edges.walls
        return tuple(w for w in self.walls if w.number in met)

    def parameters(self, sites: AnySites) -> dict[str, t.ValueType]:
        """What the functions that occur take, by name."""
        return agreed((f.name, f.parameters) for f in self.functions_of(sites))

    def writers(self, fields: Container[str]) -> tuple[SiteFunction, ...]:
        """The observers that write these fields, those of them that observers write."""
        return tuple(f for n, f in self.fields.items() if n in fields)

    def functions_of(self, sites: AnySites) -> tuple[SiteFunction, ...]:
        """All that a step of these sites calls: the functions of the kinds that occur, and what
        writes the fields that they read.
        """
        updates = self.updates(sites)
        return (*updates, *self.writers({n for f in updates for n in f.fields}))

    def read_fields(self, sites: AnySites) -> dict[str, Scalar]:
        """What the functions that occur read at neighbours, and no stencil holds itself."""
        fields: dict[str, Scalar] = {}
        for f in self.updates(sites):
            for name, kind in f.fields.items():
                if fields.setdefault(name, kind) != kind:
                    raise ArgumentError(
                        f"{name!r} is a field of {fields[name]}, and of {kind} in {f.name}; wanted "
                        "one type"
                    )
        return {n: k for n, k in fields.items() if n not in self.state}

    @property
    def state(self) -> dict[str, Scalar]:
        """The fields that the sites of a stencil hold: those that its results replace."""
        if not self.stencil:
            return {}
        results = len(self.main.signature.results or [])
        return dict(list(self.main.fields.items())[:results])

    def tables(self, sites: AnySites) -> dict[str, ArrayType]:
        """The tables that the functions that occur read, by name."""
        return agreed((f.name, f.tables) for f in self.functions_of(sites))

    def known_values(self) -> frozenset[str]:
        """Names of values that some kind takes, whether it occurs or not."""
        every = (*(f for _, f in self.functions.values()), *self.fields.values())
        names = {
            n for f in every for n in (*f.parameters, *f.fields, *f.tables)
        } - self.state.keys()
        names |= {w.velocity for w in self.walls if w.velocity is not None}
        return frozenset(names | {value for w in self.walls for _, value in w.fields})

    def wall_velocities(self, sites: AnySites) -> dict[str, t.ValueType]:
        """The velocities of walls that occur and move, and what they have of fields."""
        vector = t.Vector(self.real, self.lattice.dimension)
        values: dict[str, t.ValueType] = {}
        read = {**self.read_fields(sites), **self.state}
        for wall in self.walls_of(sites):
            if wall.velocity is not None:
                values[wall.velocity] = vector
            for field, value in wall.fields:
                if field not in read:
                    raise ArgumentError(
                        f"kind {wall.number} ({wall.name!r}) has a value of {field!r}, which "
                        f"{self.name} does not read at neighbours; "
                        f"its fields are {', '.join(read) or 'none'}"
                    )
                values[value] = read[field]
        return values

    # ------------------------------------------------------------ what a call gives

    def notice(self) -> list[int]:
        """Start anew with functions whose surroundings have changed.

        What kernels of all of them are known by, besides their numbers.
        """
        versions = [f.notice() for _, f in self.functions.values()]
        if self.fields:
            versions += [f.notice() for f in self.fields.values()]
        return versions

    def values(self, sites: Sites, arguments: Mapping[str, Any]) -> SiteValues:
        """What a call gives, by what it is.

        Raises `ArgumentError` for sites of another flow and values that do not fit.
        """
        self.notice()
        self.check_sites(sites)
        return classify_values(
            self.name,
            sites,
            arguments,
            self.parameters(sites),
            self.known_values(),
            self.wall_velocities(sites),
            self.read_fields(sites),
            frozenset(self.fields),
            self.tables(sites),
        )

    def check_motion(self, sites: AnySites, environment: Mapping[str, Any]) -> None:
        """Refuse walls that cannot move as a call says: across a slip face, or so that a closed
        part of the box gains or loses mass.

        environment: the scalars of values. A part is closed where all its sites are of kind 0, and
        none lies at a face of outflow.
        Raises `ArgumentError`.
        """
        moving = {w.number: w for w in self.walls_of(sites) if w.velocity is not None}
        if not moving:
            return
        axes = AXES[: self.lattice.dimension]
        velocities = {
            n: tuple(float(environment[f"{w.velocity}.{a}"]) for a in axes)
            for n, w in moving.items()
        }
        names = {n: w.name for n, w in moving.items()}
        if (reason := sites.balance(velocities).refusal(velocities, names)) is not None:
            raise ArgumentError(f"{self.name}: {reason}")

    def unneeded(self, sites: AnySites, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Zeros for the parameters of functions that looking does not apply."""
        of_functions = {
            n: np.zeros(t.shape_of(k), t.scalar_of(k).dtype)
            for n, k in self.parameters(sites).items()
        }
        fields = {
            n: np.zeros(sites.shape, k.dtype)
            for n, k in self.read_fields(sites).items()
            if n not in self.fields
        }
        of_walls = {n: 0.0 for n, k in self.wall_velocities(sites).items() if isinstance(k, Scalar)}
        zeros = array_module(sites.device).zeros
        tables = {n: zeros((1,) * k.rank, k.element.dtype) for n, k in self.tables(sites).items()}
        return {
            n: v
            for n, v in {**of_functions, **fields, **of_walls, **tables}.items()
            if n not in arguments
        }

    def _check_stencil(self, function: SiteFunction) -> None:
        """Functions of all kinds give the same fields."""
        ours, first = function.signature, self.main.signature
        if len(ours.results or []) != len(first.results or []):
            raise ArgumentError(
                f"{function.name} returns {len(ours.results or [])} values, and {self.name} "
                f"{len(first.results or [])}: "
                f"wanted one for each of {', '.join(self.state)}"
            )

    def check_sites(self, sites: AnySites) -> None:
        """Refuse sites of another lattice, with kinds that are not this flow's, or functions that
        do not fit together.
        """
        name, argument = self.name, cast(Any, sites)
        if not isinstance(argument, Sites | SplitSites):
            raise ArgumentError(
                f"{name} runs on sites, made by {name}.sites(...); found {describe(argument)}"
            )
        if sites.lattice != self.lattice:
            raise ArgumentError(
                f"{name} is a flow on {self.lattice.name}, and the sites are of "
                f"{sites.lattice.name}"
            )
        walls = sites.edges.walls - {OUTFLOW}
        unknown = sorted((sites.present | walls) - self.numbers)
        if unknown or not walls <= self._walls.keys():
            raise ArgumentError(
                f"{name} has no {'wall' if not unknown else 'kind'} "
                f"{(unknown or sorted(walls))[0]}, which the sites have: "
                "they were made for another flow"
            )
        for function in self.updates(sites):
            if function.real != self.real:
                raise ArgumentError(
                    f"{function.name} computes in {function.real}, and {name} in {self.real}: "
                    "wanted one precision for all kinds"
                )
            if self.stencil:
                self._check_stencil(function)
            elif function.update.lowered.results:
                raise ArgumentError(
                    f"{function.name} returns a value, and sites are updated by what is left in "
                    "their populations; "
                    f"{name}.observer(function) looks at values"
                )
            if sites.storage.size > function.real.size:
                raise ArgumentError(
                    f"the sites hold {sites.storage}, more than the {function.real} that {name} "
                    "computes"
                )
