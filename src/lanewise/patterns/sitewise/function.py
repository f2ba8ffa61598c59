"""A function of one site: its signature, what it computes in, its IR, and the values that it takes: one for all sites, or one a site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.array_types import ArrayType
from lanewise.checks import host_array
from lanewise.errors import ArgumentError
from lanewise.field_values import brought, check_type, converted
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.source import Surroundings
from lanewise.lattices.base import Lattice
from lanewise.launch.arguments import Arguments, bind_value_array, describe
from lanewise.launch.executable import BoundArray
from lanewise.patterns.sitewise.builder import Update
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.tables.arguments import NOTHING, Tables, bring_tables, table_lengths
from lanewise.runtime.memory import to_host
from lanewise.types import Scalar
from lanewise.values import to_python_value

_OUTFLOW_SPEED = "outflow_speed"
Kinds = Mapping[str, t.ValueType]


@dataclass(frozen=True, slots=True)
class SiteValues:
    """The values of a call, bound: arrays by name, and the scalars of the others by their names in the IR."""

    arrays_of: tuple[tuple[str, t.ValueType], ...]
    uniforms_of: tuple[tuple[str, t.ValueType], ...]
    arrays: Mapping[str, BoundArray]
    environment: Mapping[str, Any]
    outflow_speed: float = 0.0
    tables_of: tuple[tuple[str, ArrayType], ...] = ()


def classify_values(
    kernel: str,
    sites: Sites,
    arguments: Mapping[str, Any],
    parameters: Kinds,
    elsewhere: frozenset[str],
    velocities: Kinds,
    tables: Tables = NOTHING,
) -> SiteValues:
    """Check every value against its parameter; `velocities` are those of walls, which are the same for all sites, `tables` are arrays.

    Values that belong to a kind that does not occur (`elsewhere`) are allowed and left alone. Raises `ArgumentError`.
    """
    for name, kind in velocities.items():
        if parameters.get(name, kind) != kind:
            raise ArgumentError(
                f"{name!r} is a {parameters[name]} of {kernel} and the velocity of a wall, a {kind}; wanted one type"
            )
    kinds = {**parameters, **velocities}
    arguments = dict(arguments)
    speed = _outflow_speed(kernel, sites, arguments)
    for name in arguments:
        if name not in kinds and name not in tables and name not in elsewhere:
            wanted = ", ".join([*kinds, *tables]) or "none"
            raise ArgumentError(f"{kernel} has no parameter {name!r}; its parameters are {wanted}")
    if missing := [n for n in (*kinds, *tables) if n not in arguments]:
        raise ArgumentError(f"{kernel} misses {', '.join(missing)}; its parameters are {', '.join([*kinds, *tables])}")
    arrays: dict[str, BoundArray] = {}
    environment: dict[str, Any] = {}
    for name, kind in kinds.items():
        place = f"{kernel}: {name!r}"
        array = None if name in velocities else _array(place, arguments[name], kind, sites)
        if array is not None:
            arrays[name] = bind_value_array(array, kind)
        else:
            environment.update(_uniform(place, name, arguments[name], kind, may_vary=name not in velocities))
    brought_tables = Arguments(device=sites.device)
    bring_tables(kernel, tables, arguments, brought_tables)
    lengths: dict[str, t.ValueType] = table_lengths(tables)
    return SiteValues(
        tuple((n, k) for n, k in kinds.items() if n in arrays),
        (*((n, k) for n, k in kinds.items() if n not in arrays), *lengths.items()),
        {**arrays, **{n: bind_value_array(a, k) for n, (a, k) in brought_tables.added.items()}},
        environment | brought_tables.lengths,
        speed,
        tuple(tables.items()),
    )


def _outflow_speed(kernel: str, sites: Sites, arguments: dict[str, Any]) -> float:
    """The speed at which an outflow carries things out, in links a step; taken from `arguments`, which may have it without an outflow."""
    speed = arguments.pop(_OUTFLOW_SPEED, None)
    if not sites.edges.outlets:
        return 0.0
    if speed is None:
        return 1.0  # what leaves is what arrives further in, with the time lag of a step
    if not (isinstance(speed, int | float | np.number) and 0 < float(speed) <= 1):
        raise ArgumentError(
            f"{kernel}: {_OUTFLOW_SPEED!r} is above 0 and at most 1, in links a step; found {describe(speed)}"
        )
    return float(speed)


def _array(place: str, value: Any, kind: t.ValueType, sites: Sites) -> Any:
    """One value a site, of shape (count[, components]) or (*shape[, components]); None for a single value."""
    row = (kind.length,) if isinstance(kind, t.Vector) else ()
    shape = shape_of(value)
    if shape == row:
        return None
    if shape not in ((sites.count, *row), (*sites.shape, *row)):
        raise ArgumentError(
            f"{place} must be a {kind}, or an array of shape {(*sites.shape, *row)} with one a site; found {describe(value)}"
        )
    array = brought(place, value, sites.device).reshape(sites.count, *row)
    check_type(place, array, kind)
    return converted(place, array, t.scalar_of(kind), sites.device)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """None for what is no array, such as lists of different lengths."""
    try:
        return np.shape(value) if not hasattr(value, "shape") else tuple(value.shape)
    except Exception:  # of the user's class, or of NumPy
        return None


def _uniform(place: str, name: str, value: Any, kind: t.ValueType, *, may_vary: bool) -> dict[str, Any]:
    host = to_host(value) if hasattr(value, "__cuda_array_interface__") else host_array(place, value)
    row = (kind.length,) if isinstance(kind, t.Vector) else ()
    if host.dtype.kind not in "biuf" or host.shape != row:
        also = ", or an array with one a site" if may_vary else ", the same for all sites"
        raise ArgumentError(f"{place} must be a {kind}{also}; found {describe(value)}")
    check_type(place, host, kind)
    python = to_python_value(converted(place, host, t.scalar_of(kind), "cpu")[()], kind)
    parts = tuple(python) if isinstance(kind, t.Vector) else (python,)
    return dict(zip(t.leaves(name, kind), parts, strict=True))


CALL_ARGUMENTS = frozenset({"self", "sites", "plan", "checks", "steps", "walls", "weights", _OUTFLOW_SPEED})
"""What calls, runs and forces take besides the values of a function: no value can have one of these names."""


@dataclass(eq=False)
class SiteFunction:
    """A user's function of one site, read when it is first needed. `version` counts how often it was found to have changed."""

    python: Callable[..., Any]
    lattice: Lattice
    number: int = 0
    version: int = 0
    _seen: Surroundings | None = None
    _signature: Signature | None = None
    _update: Update | None = None

    @property
    def name(self) -> str:
        return self.python.__name__

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or _checked(read_signature(self.python, populations=True, tables=True))
        return self._signature

    @property
    def populations(self) -> str:
        return next(iter(self.signature.populations))

    @property
    def real(self) -> Scalar:
        """The type that it computes in."""
        return self.signature.populations[self.populations]

    @property
    def parameters(self) -> dict[str, t.ValueType]:
        """The parameters behind the populations."""
        kinds: dict[str, t.ValueType] = {}
        for name, kind in self.signature.parameters.items():
            if not isinstance(kind, t.Scalar | t.Vector):
                raise ArgumentError(f"{self.name}: {name!r} is a record; sitewise functions take scalars and vectors")
            kinds[name] = kind
        return kinds

    @property
    def tables(self) -> Tables:
        """The parameters that are tables."""
        return self.signature.arrays

    @property
    def update(self) -> Update:
        if self._update is None:
            self._seen = Surroundings(self.signature.source)
            own = self.populations
            lowered: Lowered = lower_function(
                self.signature, mutable=own, lattice=self.lattice, elements=frozenset((own,))
            )
            self._update = Update(self.number, self.name, lowered, self.populations)
        return self._update

    def notice(self) -> None:
        """Start anew where a helper or a constant stands for something else than it did."""
        if self._seen is not None and not self._seen.same():
            self._signature = self._update = self._seen = None
            self.version += 1


def _checked(signature: Signature) -> Signature:
    """Values are given by name, beside what the call itself takes."""
    source = signature.source
    for parameter in source.tree.args.args:
        if parameter.arg in CALL_ARGUMENTS and parameter.arg in signature.parameters:
            raise source.error(
                f"{parameter.arg!r} is an argument of the call itself",
                parameter,
                found=f"a value of that name of {source.name}",
                wanted="another name",
            )
    return signature
