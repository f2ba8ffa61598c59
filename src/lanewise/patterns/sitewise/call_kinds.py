"""The kinds of sites of a flow: which function or wall each number stands for, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from lanewise import types as t
from lanewise.array_types import ArrayType
from lanewise.checks import plain_function, shown
from lanewise.errors import ArgumentError
from lanewise.lattices.base import Lattice
from lanewise.launch.arguments import describe
from lanewise.patterns.sitewise.builder import check_tables, check_uniforms
from lanewise.patterns.sitewise.function import CALL_ARGUMENTS, SiteFunction, SiteValues, classify_values
from lanewise.patterns.sitewise.kinds import OUTFLOW, Wall, check_new
from lanewise.patterns.sitewise.sites import Sites
from lanewise.runtime.memory import array_module
from lanewise.types import Scalar


class SiteKinds:
    """Functions and walls of a flow called `name`, by number; kind 0 is the flow's own function."""

    def __init__(self, lattice: Lattice, function: Callable[..., Any]) -> None:
        self.lattice, self.name = lattice, function.__name__
        self.functions: dict[int, tuple[str, SiteFunction]] = {0: (self.name, SiteFunction(function, lattice))}
        self._walls: dict[int, Wall] = {}

    # ------------------------------------------------------------ what there is

    def add_function(self, number: int, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """What makes a function that of a kind, and returns it. Raises `ArgumentError` for a number or name that is taken."""
        check_new(number, name, self._taken())

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.functions[number] = (
                name,
                SiteFunction(plain_function("sitewise.kind", function), self.lattice, number),
            )
            return function

        return add

    def add_wall(self, wall: Wall) -> None:
        """Raises `ArgumentError` for a number or name that is taken, and for a velocity that the call itself has."""
        check_new(wall.number, wall.name, self._taken())
        velocity: Any = wall.velocity
        if velocity is not None and (not isinstance(velocity, str) or not velocity.isidentifier()):
            raise ArgumentError(
                f"kind {wall.number} ({wall.name!r}): velocity is the name of a value of the call, found {shown(velocity)}"
            )
        if wall.velocity in CALL_ARGUMENTS:
            raise ArgumentError(
                f"kind {wall.number} ({wall.name!r}): the velocity {wall.velocity!r} is an argument of the call itself; choose another name"
            )
        self._walls[wall.number] = wall

    def _taken(self) -> list[tuple[int, str]]:
        return [(n, name) for n, (name, _) in self.functions.items()] + [(w.number, w.name) for w in self.walls]

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
            f"{name!r} is no kind of walls; they are {', '.join(repr(w.name) for w in self.walls) or 'none'}"
        )

    # ------------------------------------------------------------ what occurs in some sites

    def updates(self, sites: Sites) -> tuple[SiteFunction, ...]:
        """The functions of the kinds that occur, kind 0 first."""
        return tuple(f for n, (_, f) in sorted(self.functions.items()) if n == 0 or n in sites.present)

    @property
    def versions(self) -> tuple[int, ...]:
        """What kernels of these functions are known by, beside their numbers."""
        return tuple(f.version for _, f in self.functions.values())

    def walls_of(self, sites: Sites) -> tuple[Wall, ...]:
        """The walls that occur, in the mask or at faces."""
        met = sites.present | sites.edges.walls
        return tuple(w for w in self.walls if w.number in met)

    def parameters(self, sites: Sites) -> dict[str, t.ValueType]:
        """What the functions that occur take, by name."""
        return check_uniforms([(f.name, f.parameters) for f in self.updates(sites)])

    def tables(self, sites: Sites) -> dict[str, ArrayType]:
        """The tables that the functions that occur read, by name."""
        return check_tables([(f.name, f.tables) for f in self.updates(sites)])

    def known_values(self) -> frozenset[str]:
        """Names of values that some kind takes, whether it occurs or not."""
        names = {n for _, f in self.functions.values() for n in (*f.parameters, *f.tables)}
        return frozenset(names | {w.velocity for w in self.walls if w.velocity is not None})

    def wall_velocities(self, sites: Sites) -> dict[str, t.ValueType]:
        """The velocities of walls that occur and move."""
        vector = t.Vector(self.real, self.lattice.dimension)
        return {w.velocity: vector for w in self.walls_of(sites) if w.velocity is not None}

    # ------------------------------------------------------------ what a call gives

    def notice(self) -> None:
        """Start anew with functions whose surroundings have changed."""
        for _, function in self.functions.values():
            function.notice()

    def values(self, sites: Sites, arguments: Mapping[str, Any]) -> SiteValues:
        """What a call gives, by what it is. Raises `ArgumentError` for sites of another flow and values that do not fit."""
        self.notice()
        self.check_sites(sites)
        return classify_values(
            self.name, sites, arguments, self.parameters(sites), self.known_values(), self.wall_velocities(sites),
            self.tables(sites),
        )  # fmt: skip

    def unneeded(self, sites: Sites, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Zeros for the parameters of functions that looking does not apply."""
        values = {
            n: np.zeros(k.length if isinstance(k, t.Vector) else (), t.scalar_of(k).dtype)
            for n, k in self.parameters(sites).items()
            if n not in arguments
        }
        zeros = array_module(sites.device).zeros
        tables = {n: k for n, k in self.tables(sites).items() if n not in arguments}
        return {**values, **{n: zeros((1,) * k.rank, k.element.dtype) for n, k in tables.items()}}

    def check_sites(self, sites: Sites) -> None:
        """Refuse sites of another lattice, with kinds that are not this flow's, or functions that do not fit together."""
        name, argument = self.name, cast(Any, sites)
        if not isinstance(argument, Sites):
            raise ArgumentError(f"{name} runs on sites, made by {name}.sites(...); found {describe(argument)}")
        if sites.lattice != self.lattice:
            raise ArgumentError(f"{name} is a flow on {self.lattice.name}, and the sites are of {sites.lattice.name}")
        walls = sites.edges.walls - {OUTFLOW}
        unknown = sorted((sites.present | walls) - self.numbers)
        if unknown or not walls <= self._walls.keys():
            raise ArgumentError(
                f"{name} has no {'wall' if not unknown else 'kind'} {(unknown or sorted(walls))[0]}, which the sites have: "
                "they were made for another flow"
            )
        for function in self.updates(sites):
            if function.real != self.real:
                raise ArgumentError(
                    f"{function.name} computes in {function.real}, and {name} in {self.real}: wanted one precision for all kinds"
                )
            if function.update.lowered.results:
                raise ArgumentError(
                    f"{function.name} returns a value, and sites are updated by what is left in their populations; "
                    f"{name}.observer(function) looks at values"
                )
            if sites.storage.size > function.real.size:
                raise ArgumentError(
                    f"the sites hold {sites.storage}, more than the {function.real} that {name} computes"
                )
