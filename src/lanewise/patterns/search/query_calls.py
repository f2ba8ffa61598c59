"""A structure built for some points, and the kernels that run through it for all targets."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import Work
from lanewise.ir.values import value_array, value_leaves
from lanewise.language import types as t
from lanewise.language.target import target_of
from lanewise.language.types import I32, Scalar
from lanewise.launch.executable import Executable
from lanewise.launch.support import compile_kernel, index_type, machine_of
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import AoS, Arrangement, SoAoAS
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import ORDER, RADIUS2, Search, radius2
from lanewise.patterns.search.build_queries import (  # fmt: skip
    COUNTS,
    DISTANCES,
    INDICES,
    OFFSETS,
    POINTS,
    QUERIES,
    ROWS,
    TURNS,
    QueryArguments,
    Wanted,
    build_query,
    row_type,
)
from lanewise.patterns.search.candidates import inverse_period, period
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.searched import complete_search_plan
from lanewise.patterns.search.worlds import Periodic
from lanewise.runtime.memory import allocate

# targets from which on an order of their own pays: fewer find what they read in the caches anyway
TURNING = 4096


class Queried:
    """The sources of a query in a structure, and its targets: other points, or the sources
    themselves.
    """

    def __init__(self, search: Search, sources: Points, targets: Points | None) -> None:
        self.search, self.sources = search.plan(sources), sources
        self.structure = self.search.make(sources)
        self.identical, self.targets = targets is None, targets if targets is not None else sources
        for launch in self.structure.launches():
            launch()
        self._points = self._sorted()
        self._turns = None if self.identical else self._turned()

    def nearest(self, indices: Any, distances: Any) -> None:
        """Fill both, shape (targets, k)."""
        flat = {
            INDICES: (indices.reshape(-1), I32),
            DISTANCES: (distances.reshape(-1), self.sources.precision),
        }
        self._run("nearest", flat)

    def count(self, counts: Any) -> None:
        """Fill int32 counts, shape (targets,)."""
        self._run("count", {COUNTS: (counts, I32)})

    def fill(self, offsets: Any, entries: Any) -> None:
        """Fill entries (int32 indices on a CPU, int64 keys on a GPU) from the offsets of every row
        on.
        """
        kind = row_type(self._arguments("fill"))
        index = index_type(self.targets.device)
        self._run(
            "fill",
            {OFFSETS: (offsets.astype(index.dtype, copy=False), index), ROWS: (entries, kind)},
        )

    # ------------------------------------------------------------ kernels

    def _arguments(self, what: Wanted) -> QueryArguments:
        s, device = self.search, self.sources.device
        return QueryArguments(
            what,
            self.sources.precision,
            self.sources.dimension,
            self.structure.walk(index_type(device)),
            self.identical,
            self.structure.order is not None,
            self._turns is not None,
            s.radius is not None,
            isinstance(s.world, Periodic),
            s.k,
            numbered=target_of(device).has_blocks,
        )

    def _run(self, what: Wanted, outputs: dict[str, tuple[Any, Scalar]]) -> None:
        device, arguments = self.targets.device, self._arguments(what)
        if not self.targets.count:
            return
        executable = query_executable(arguments, device)
        bound = {name: _bound(array, kind) for name, (array, kind) in outputs.items()}
        bound |= {POINTS: self._points, QUERIES: as_bound(self.targets), **self.structure.arrays}
        for name, order in ((ORDER, self.structure.order), (TURNS, self._turns)):
            if order is not None:
                bound[name] = _bound(order, I32)
        used = {a.name for a in executable.program.reference.arrays}
        executable.prepare({n: b for n, b in bound.items() if n in used}, self._environment())()

    def _environment(self) -> dict[str, Any]:
        real = self.sources.precision.dtype.type
        values: dict[str, Any] = {count_of(n): self.targets.count for n in (POINTS, QUERIES)}
        values[RADIUS2] = _radius2(self.search, self.sources.precision)
        if isinstance(self.search.world, Periodic):
            for axis, size in enumerate(self.search.world.size):
                values |= {period(axis): real(size), inverse_period(axis): real(1 / size)}
        return values | dict(self.structure.uniforms)

    # ------------------------------------------------------------ orders

    def _sorted(self) -> BoundArray:
        """The sources in sorted places, in groups that are one load; or as they are."""
        if self.structure.order is None:
            return as_bound(self.sources)
        s = self.sources
        arrangement = sorted_arrangement(s.precision, s.dimension)
        data = allocate(
            s.device, arrangement.nbytes(s.count), "the sorted copy of 'points'", zeroed=False
        )
        copy = BoundArray(data, arrangement, s.count)
        arrays = {POINTS: as_bound(s), ORDER: _bound(self.structure.order, I32), SORTED: copy}
        gather_executable(s.precision, s.dimension, s.device).prepare(arrays, {COUNT: s.count})()
        return copy

    def _turned(self) -> Any:
        """An order of the targets in which neighbours in time are neighbours in space; None where
        it does not pay.
        """
        if self.targets.count < TURNING or self.structure.order is None:
            return None
        structure = self.search.make(self.targets)
        for launch in structure.launches():
            launch()
        return structure.order


def _bound(array: Any, kind: Scalar) -> BoundArray:
    """A contiguous array of scalars, which nobody else writes or has frozen."""
    return BoundArray(array.reshape(-1).view("uint8"), _arrangement(kind), len(array))


@cache
def _arrangement(kind: Scalar) -> Arrangement:
    return value_array("", kind, written=False).arrangement


# asks NumPy for the limits of a type, which takes as long as a launch
_radius2 = lru_cache(maxsize=64)(radius2)


def as_bound(points: Points) -> BoundArray:
    """Points as an array that takes part in a launch."""
    return BoundArray(points.data, points.arrangement, points.count)


@cache
def sorted_arrangement(precision: Scalar, axes: int) -> Arrangement:
    """Where the coordinates of the sorted copy lie: those of one source are one load."""
    return SoAoAS().arrange(value_leaves(t.Vector(precision, axes)))


@cache
def query_executable(arguments: QueryArguments, device: str) -> Executable:
    """The compiled kernel; kept for the life of the program, one for each kind of call."""
    reference = build_query(arguments, index_type(device))
    return compile_kernel(reference, complete_search_plan(None, device), device)


@cache
def gather_executable(precision: Scalar, axes: int, device: str) -> Executable:
    """The kernel that makes the sorted copy; kept for the life of the program."""
    leaves = value_leaves(t.Vector(precision, axes))
    reference = build_gather(POINTS, leaves, AoS(), leaves, SoAoAS(), index_type(device))
    return compile_kernel(
        reference, complete_plan(None, machine_of(device), Work(ELEMENTWISE, 1)), device
    )
