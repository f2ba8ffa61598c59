"""lw.neighbors and lw.nearest: who is near, without a function of pairs, on the structures and
walks that pair functions run over.

Positions come as plain arrays of any library; they are brought to one device and checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lanewise.language.target import target_of
from lanewise.patterns.search.automatic import Nearest, Neighbors
from lanewise.patterns.search.base import (
    MOST_NEIGHBORS,
    Search,
    check_k,
    check_radius,
    plain_number,
    reach,
)
from lanewise.patterns.search.builders.rows import sort_keys, sort_rows
from lanewise.patterns.search.picker import over_all_pairs
from lanewise.patterns.search.points import Points, points_of_values
from lanewise.patterns.search.query_calls import Made, Queried
from lanewise.patterns.search.ragged import Ragged
from lanewise.patterns.search.worlds import Bounded, Open, Periodic, World
from lanewise.records.field_values import brought
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import Need, allocate, array_module, home, on, unlocked
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

MOST_AXES = 64  # of positions: beyond three all pairs are looked at, with a target in registers
MOST_PAIRS_ON_A_GPU = 2**31 - 2**16  # entries of a list that kernels with indices of 32 bits write


@settings_by_name
def neighbors(
    points: Any,
    radius: float,
    queries: Any = None,
    *,
    world: World | None = None,
    device: str | None = None,
    search: Search | None = None,
) -> Ragged:
    """All points nearer than the radius to each query, strictly: rows of their indices, ascending.

    points: shape (n, axes), with 1 to 64 axes, float32 or float64; a NumPy array, or a CuPy (or any
    DLPack) array, which is searched on its GPU. queries: shape (m, same), same type; without them
    every point is a query, and not its own neighbour. world: `lw.Open()` (the default),
    `lw.Periodic(size)` or `lw.Bounded(low, high)`. device: where to search, if not where the points
    are. search: a structure such as `lw.StaticGrid(radius=...)`, with the same radius and world;
    without it one is chosen. Distances are computed in the type of the positions. Returns m rows on
    that device: `rows[i]`, `rows.indices` (int32), `rows.offsets` (int64).

    Raises `ArgumentError` for a radius that is not positive, other shapes and types, no points,
    positions that are not finite or lie outside a bounded world; `DeviceError` for lists that do
    not fit the memory.
    """
    radius = plain_number(radius)
    _check_given("neighbors", "radius", radius, "a positive number")
    check_radius("neighbors", radius)
    chosen = search if search is not None else Neighbors(radius=radius, world=_world(world))
    _check_search("neighbors", chosen, radius, None, world)
    there = _device_of(points, device)
    with on(there):
        return _rows(_queried("neighbors", chosen, points, queries, there, _ends_of_rows))


@settings_by_name
def nearest(
    points: Any,
    k: int,
    radius: float | None = None,
    queries: Any = None,
    *,
    world: World | None = None,
    device: str | None = None,
    search: Search | None = None,
) -> tuple[Any, Any]:
    """The k nearest points to each query, optionally only those nearer than a radius: (indices,
    distances), each of shape (m, k).

    Nearest first; if distances are equal, the smaller index first. If fewer than k are found, the
    index is -1 (int32) and the distance infinity (in the type of the positions). k: from 1 to 32.
    The other arguments are those of `neighbors`.

    Raises as `neighbors`, and `ArgumentError` for a k larger than the number of points or than 32.
    """
    k, radius = plain_number(k), plain_number(radius)
    _check_given("nearest", "k", k, f"an integer from 1 to {MOST_NEIGHBORS}")
    check_k("nearest", k)
    check_radius("nearest", radius)
    chosen = search if search is not None else Nearest(k=k, radius=radius, world=_world(world))
    _check_search("nearest", chosen, radius, k, world)
    there = _device_of(points, device)
    with on(there):
        made = partial(_found, k)
        return _nearest(_queried("nearest", chosen, points, queries, there, made), k)


def _nearest(call: Queried, k: int) -> tuple[Any, Any]:
    shape, what = (call.targets.count, k), _nearest_of(k, call.targets)
    indices, distances = (
        _empty(call.targets.device, shape, dtype, what)
        for dtype in ("int32", call.sources.precision.dtype)
    )
    call.nearest(indices, distances)
    return indices, distances


def _nearest_of(k: int, targets: Points) -> str:
    return f"the {k} nearest of {targets.count:,} positions"


def _found(k: int, targets: Points) -> Iterator[Need]:
    """What `_nearest` allocates, indices and distances."""
    for size in (4, targets.precision.size):
        yield Need(targets.device, size * targets.count * k, _nearest_of(k, targets))


def _ends_of_rows(targets: Points) -> Iterator[Need]:
    """What `_rows` allocates before it knows how many neighbours there are."""
    yield Need(targets.device, 12 * targets.count + 8, "the numbers of neighbours")


def _queried(
    name: str, search: Search, points: Any, queries: Any, there: str, made: Made
) -> Queried:
    """The structure, built, and all that a walk through it needs. made: see `Queried`."""
    sources = points_from(name, "points", points, there, search)
    if search.k is not None and search.k > sources.count:
        raise ArgumentError(f"{name}: k={search.k} is more than the {sources.count:,} points")
    targets = None
    if queries is not None:
        targets = points_from(name, "queries", queries, there, search)
        _check_alike(name, sources, targets)
    chosen = search if sources.count else over_all_pairs(search)
    return Queried(chosen, sources, targets, made, name)


def _rows(call: Queried) -> Ragged:
    """Count, sum up, fill, and sort each row."""
    device, count = call.targets.device, call.targets.count
    module, what = array_module(device), f"the list of neighbours of {count:,} positions"
    offsets = _empty(device, (count + 1,), "int64", what)
    offsets[0] = 0
    counts = _empty(device, (count,), "int32", what)
    call.count(counts)
    offsets[1:] = module.cumsum(counts, dtype="int64")
    total, as_keys = int(offsets[-1]), target_of(device).has_blocks
    if as_keys and total > MOST_PAIRS_ON_A_GPU:
        raise ArgumentError(
            f"neighbors: {total:,} pairs are nearer than the radius, and a GPU lists at most "
            f"{MOST_PAIRS_ON_A_GPU:,}; choose a smaller "
            "radius, or give the queries in parts"
        )
    entries = _empty(device, (total,), "int64" if as_keys else "int32", what)
    call.fill(offsets, entries)
    if as_keys:
        return Ragged(sort_keys(module, entries), offsets)
    sort_rows(entries, offsets)
    return Ragged(entries, offsets)


def _empty(device: str, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
    """An array whose elements a kernel writes, every one."""
    kind = np.dtype(dtype)
    return (
        allocate(device, math.prod(shape) * kind.itemsize, what, zeroed=False)
        .view(kind)
        .reshape(shape)
    )


# ---------------------------------------------------------------- what is refused


def _world(world: World | None) -> World:
    return world if world is not None else Open()


def _check_given(call: str, name: str, value: Any, wanted: str) -> None:
    if value is None:
        raise ArgumentError(f"{call}({name}=None): wanted {wanted}")


def _check_search(name: str, search: Any, radius: float | None, k: int | None, world: Any) -> None:
    """A search of the caller's has to look for the same."""
    if not isinstance(search, Search):
        raise ArgumentError(
            f"{name}: search takes a structure such as lw.StaticGrid(radius=...), found "
            f"{shown(search)}"
        )
    if search.any_distance:
        raise ArgumentError(
            f"{name}: {search.describe()} has all sources in it, near and far, and no list of "
            "neighbours; wanted a structure such as lw.StaticGrid(radius=...)"
        )
    if search.sees is not None:
        raise ArgumentError(
            f"{name}: {search.describe()}, and points look nowhere; wanted a search without sight"
        )
    if world is not None and not isinstance(world, Open | Periodic | Bounded):
        raise ArgumentError(
            f"{name}(world={shown(world)}): wanted lw.Open(), lw.Periodic(size) or lw.Bounded(low, "
            "high)"
        )
    asked = {"radius": radius, "k": k, **({} if world is None else {"world": world})}
    for part, value in asked.items():
        if (own := getattr(search, part)) != value:
            raise ArgumentError(
                f"{name}: the search has {part}={own}, and the call {part}={value}; they have to "
                "agree"
            )


def _check_alike(name: str, sources: Points, targets: Points) -> None:
    if targets.dimension != sources.dimension:
        raise ArgumentError(
            f"{name}: 'queries' have {targets.dimension} axes, and 'points' {sources.dimension}"
        )
    if targets.precision != sources.precision:
        ours, theirs = sources.precision.dtype, targets.precision.dtype
        raise ArgumentError(
            f"{name}: 'queries' are {theirs}, and 'points' {ours}; wanted one type: "
            f"queries.astype('{ours}')"
        )


MOST_POINTS = 2**31 - 2**16  # their numbers have 32 bits


def _device_of(values: Any, device: str | None) -> str:
    """Where a query runs: where it is asked to, else where the points are; from the host, on the
    default device.
    """
    return resolve(device if device is not None else home(values))


def points_from(call: str, name: str, values: Any, device: str, search: Search) -> Points:
    """Positions of shape (n, axes), float32 or float64, as points on `device`.

    Raises `ArgumentError` for other shapes and types, for positions that are not finite, for those
    outside a bounded world, and for those whose distances the type does not hold.
    """
    array = brought(f"{call}: {name!r}", values, device)
    if array.ndim != 2 or not 1 <= array.shape[1] <= MOST_AXES:
        raise ArgumentError(
            f"{call}: {name!r} must have the shape (n, axes) with 1 to {MOST_AXES} axes, found "
            f"{tuple(array.shape)}"
        )
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise ArgumentError(
            f"{call}: {name!r} must be float32 or float64, found {array.dtype}; distances are "
            "computed in the type of the positions: "
            f"{name}.astype('float64')"
        )
    if len(array) > MOST_POINTS:
        raise ArgumentError(
            f"{call}: {name!r} has {len(array):,} positions; wanted at most {MOST_POINTS:,}"
        )
    points = points_of_values(_plain(array, device), device)
    if points.count:
        points.check(
            f"{call}: {name!r}", search.world, reach(search, points.precision, points.dimension)
        )
    return points


def _plain(array: Any, device: str) -> Any:
    """Contiguous, in the byte order of the machine, and writable: kernels are compiled for that."""
    plain = array_module(device).ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    locked = isinstance(plain, np.ndarray) and not plain.flags.writeable
    return unlocked(plain) if locked else plain
