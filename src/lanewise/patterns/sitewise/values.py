"""The values of a call over sites: one for all, one per site, fields, what is observed, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.array_types import ArrayType
from lanewise.language.types import Scalar
from lanewise.language.values import to_python_value
from lanewise.launch.arguments import Arguments, bind_value_array, describe
from lanewise.launch.by_step import ByStep
from lanewise.launch.copied import is_copy
from lanewise.launch.task_list import BoundArray
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.tables.arguments import NOTHING, Tables, bring_tables, table_lengths
from lanewise.records.field_values import brought, check_type, converted
from lanewise.runtime.memory import bring, on
from lanewise.support.articles import an
from lanewise.support.checks import host_array
from lanewise.support.errors import ArgumentError

OUTFLOW_SPEED = "outflow_speed"


Kinds = Mapping[str, t.ValueType]


@dataclass(frozen=True, slots=True)
class SiteValues:
    """The values of a call, bound: arrays by name, and the scalars of the others by their names in
    the IR.

    copied: whose arrays were copied, so that what is written to them later is not seen.
    """

    arrays_of: tuple[tuple[str, t.ValueType], ...]
    uniforms_of: tuple[tuple[str, t.ValueType], ...]
    arrays: Mapping[str, BoundArray]
    environment: Mapping[str, Any]
    outflow_speed: float = 0.0
    tables_of: tuple[tuple[str, ArrayType], ...] = ()
    fields_of: tuple[tuple[str, Scalar], ...] = ()
    observed: tuple[Observed, ...] = ()
    copied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What an observer sees at the beginning of every step of some sites: a value of a call, one a
    site.

    name: of the observer. sites: on one device, or on a mesh. array: what it writes. look: its
    launch before a step; `fresh` if the populations were set, and no step has run.
    tests: what tests its indices into tables before a step. needs: what is observed before it,
    because it reads that.
    """

    name: str
    sites: Any
    kind: t.ValueType
    array: Any
    look: Callable[[int, bool], Any]
    tests: Callable[[int, bool], Sequence[Any]]
    needs: tuple[Observed, ...] = ()

    def __repr__(self) -> str:
        return f"<what {self.name} observes of {self.sites!r}>"


def is_unchanging(value: Any) -> bool:
    """Whether a value is the same for as long as it is there. An array may be written to."""
    return isinstance(value, (int, float, np.generic)) or (
        isinstance(value, tuple) and all(map(is_unchanging, value))
    )


def same_values(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the unchanging values of an earlier call are those of this one: 1 is not 1.0, and 0.0
    is not -0.0.
    """
    if before.keys() != now.keys():
        return False
    for name, value in before.items():
        other = now[name]
        if value is not other and (type(value) is not type(other) or repr(value) != repr(other)):
            return False
    return True


def in_order(observed: Iterable[Observed]) -> tuple[Observed, ...]:
    """What is observed and all that it needs, each once, behind what it needs."""
    order: dict[int, Observed] = {}
    for o in observed:
        for one in (*in_order(o.needs), o):
            order.setdefault(id(one), one)
    return tuple(order.values())


def classify_values(
    kernel: str,
    sites: Sites,
    arguments: Mapping[str, Any],
    parameters: Kinds,
    elsewhere: frozenset[str],
    velocities: Kinds,
    fields: Mapping[str, Scalar] = MappingProxyType({}),
    written: frozenset[str] = frozenset(),
    tables: Tables = NOTHING,
) -> SiteValues:
    """Check every value against its parameter; `velocities` are those of walls, which are the same
    for all sites, `tables` are arrays.

    `fields` are what sites read at their neighbours, of which observers of the flow itself write
    those in `written`: no call brings them. Values that belong to a kind that does not occur
    (`elsewhere`) are allowed and left alone. Raises `ArgumentError`.
    """
    brought_fields = {n: k for n, k in fields.items() if n not in written}
    kinds = {**parameters, **velocities, **brought_fields}
    _check_types(kernel, parameters, velocities, fields, tables, kinds)
    arguments = dict(arguments)
    speed = _outflow_speed(kernel, sites, arguments)
    _check_names(kernel, arguments, [*kinds, *tables], elsewhere, written)
    arrays: dict[str, BoundArray] = {}
    environment: dict[str, Any] = {}
    observed: list[Observed] = []
    copied: list[str] = []
    for name in written & fields.keys():
        arrays[name] = bind_value_array(sites.field(name, fields[name]), fields[name])
    for name, kind in kinds.items():
        place, value, may_vary = f"{kernel}: {name!r}", arguments[name], name not in velocities
        if isinstance(value, Observed):
            _check_observed(place, value, kind, sites, may_vary=may_vary)
            observed.append(value)
            array = value.array
        elif name in brought_fields:
            array = _field(place, value, fields[name], sites)
        else:
            array = _array(place, value, kind, sites) if may_vary else None
        if array is None:
            environment |= _uniform(place, name, value, kind, may_vary=may_vary)
            continue
        copied += [name] if is_copy(value, array) else []
        arrays[name] = bind_value_array(array, kind)
    brought_tables = Arguments(device=sites.device)
    bring_tables(kernel, tables, arguments, brought_tables)
    lengths: dict[str, t.ValueType] = table_lengths(tables)
    return SiteValues(
        tuple((n, k) for n, k in kinds.items() if n in arrays and n not in fields),
        (*((n, k) for n, k in kinds.items() if n not in arrays), *lengths.items()),
        {**arrays, **{n: bind_value_array(a, k) for n, (a, k) in brought_tables.added.items()}},
        environment | brought_tables.lengths,
        speed,
        tables_of=tuple(tables.items()),
        fields_of=tuple(fields.items()),
        observed=tuple(observed),
        copied=tuple(copied),
    )


def _check_types(
    kernel: str,
    parameters: Kinds,
    velocities: Kinds,
    fields: Mapping[str, Scalar],
    tables: Tables,
    brought: Kinds,
) -> None:
    """Refuse a name that has two types. brought: all but tables that a call brings."""
    for name, kind in velocities.items():
        if parameters.get(name, kind) != kind:
            what = "a value" if isinstance(kind, Scalar) else "the velocity"
            raise ArgumentError(
                f"{name!r} is {an(parameters[name])} of {kernel} and {what} of a wall, {an(kind)}; "
                "wanted one type"
            )
    for name in tables.keys() & brought.keys() or fields.keys() & parameters.keys():
        one, other = (
            (tables[name], brought[name])
            if name in tables
            else (f"Field[{fields[name]}]", parameters[name])
        )
        raise ArgumentError(
            f"{name!r} is {one} in one function of {kernel}, and {other} in another; wanted one "
            "type"
        )


def _check_names(
    kernel: str,
    arguments: Mapping[str, Any],
    wanted: Sequence[str],
    elsewhere: frozenset[str],
    written: frozenset[str],
) -> None:
    """Refuse names that the kernel does not have, and a call that misses some."""
    parameters = ", ".join(wanted)
    for name in arguments:
        if name in written:
            raise ArgumentError(
                f"{kernel}: the field {name!r} is written by an observer before every step; no "
                "call brings it"
            )
        if name not in wanted and name not in elsewhere:
            raise ArgumentError(
                f"{kernel} has no parameter {name!r}; its parameters are {parameters or 'none'}"
            )
    if missing := [n for n in wanted if n not in arguments]:
        raise ArgumentError(f"{kernel} needs {', '.join(missing)}; its parameters are {parameters}")


def _check_observed(
    place: str, value: Observed, kind: t.ValueType, sites: Sites, *, may_vary: bool
) -> None:
    if not may_vary:
        raise ArgumentError(f"{place} is the same for all sites; found {value!r}")
    if value.kind != kind:
        raise ArgumentError(f"{place} must be {an(kind)}; {value.name} returns {an(value.kind)}")
    on_one_device = isinstance(value.sites, Sites)
    if not on_one_device or (value.sites.shape, value.sites.device) != (sites.shape, sites.device):
        raise ArgumentError(
            f"{place} is observed of {value.sites!r}; wanted a box of shape {sites.shape} on "
            f"{sites.device}, as its reader has"
        )


def _field(place: str, value: Any, kind: Scalar, sites: Sites) -> Any:
    """A field that a call brings: one number a site."""
    array = _array(place, value, kind, sites) if shape_of(value) not in (None, ()) else None
    if array is None:
        raise ArgumentError(
            f"{place} is read at neighbours: wanted an array of shape {sites.shape} with one "
            f"{kind} per site, or what an observer sees "
            f"(observer.of(sites)); found {describe(value)}"
        )
    return array


def _outflow_speed(kernel: str, sites: Sites, arguments: dict[str, Any]) -> float:
    """The speed at which an outflow carries things out, in links per step; taken from `arguments`,
    which may have it without an outflow.
    """
    speed = arguments.pop(OUTFLOW_SPEED, None)
    if not sites.edges.outlets:
        return 0.0
    if speed is None:
        return 1.0  # what leaves is what arrives further in, with the time lag of a step
    if not (isinstance(speed, int | float | np.number) and 0 < float(speed) <= 1):
        raise ArgumentError(
            f"{kernel}: {OUTFLOW_SPEED!r} is above 0 and at most 1, in links per step; found "
            f"{describe(speed)}"
        )
    return float(speed)


def _array(place: str, value: Any, kind: t.ValueType, sites: Sites) -> Any:
    """One value a site, of shape (count[, components]) or (*shape[, components]); None for a single
    value.
    """
    row = t.shape_of(kind)
    shape = shape_of(value)
    if shape == row:
        return None
    if shape not in ((sites.count, *row), (*sites.shape, *row)):
        raise ArgumentError(
            f"{place} must be {an(kind)}, or an array of shape {(*sites.shape, *row)} with one per "
            f"site; found {describe(value)}"
        )
    array = brought(place, value, sites.device)
    with on(sites.device):
        array = array.reshape(sites.count, *row)
    check_type(place, array, kind)
    return converted(place, array, t.scalar_of(kind), sites.device)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """None for what is no array, such as lists of different lengths."""
    try:
        return np.shape(value) if not hasattr(value, "shape") else tuple(value.shape)
    except Exception:  # of the user's class, or of NumPy
        return None


def _uniform(
    place: str, name: str, value: Any, kind: t.ValueType, *, may_vary: bool
) -> dict[str, Any]:
    if isinstance(value, ByStep):
        raise ArgumentError(
            f"{place} takes no lw.by_step, which is for kernel.bind(...); wanted {an(kind)}"
            + (
                ""
                if not may_vary
                else ", or an array with one value per site that another call of the loop writes"
            )
        )
    host = (
        bring(value, "cpu")
        if hasattr(value, "__cuda_array_interface__")
        else host_array(place, value)
    )
    row = t.shape_of(kind)
    if host.dtype.kind not in "biuf" or host.shape != row:
        also = ", or an array with one per site" if may_vary else ", the same for all sites"
        raise ArgumentError(f"{place} must be {an(kind)}{also}; found {describe(value)}")
    check_type(place, host, kind)
    python = to_python_value(converted(place, host, t.scalar_of(kind), "cpu")[()], kind)
    parts = tuple(python) if isinstance(kind, t.Vector) else (python,)
    return dict(zip(t.leaves(name, kind), parts, strict=True))
