"""A structure built for some points, and the kernels that run through it for all targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT, count_of, own
from lanewise.ir.pattern import Work
from lanewise.ir.values import value_leaves
from lanewise.language import types as t
from lanewise.language.target import target_of
from lanewise.language.types import I32, Scalar
from lanewise.launch.arguments import values_arrangement
from lanewise.launch.executable import Executable
from lanewise.launch.programs import Programs
from lanewise.launch.support import index_type, machine_of
from lanewise.launch.task_list import BoundArray, Part, Renamed, TaskList
from lanewise.layouts import AoS, Arrangement, SoAoAS
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import ORDER, POSITIONS, RADIUS2, Search, Structure, radius2
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
from lanewise.patterns.search.search_tasks import complete_search_plan
from lanewise.patterns.search.worlds import Periodic
from lanewise.runtime.memory import Need, allocate, require_together

# targets from which on their own order pays: fewer find what they read in the caches anyway
TURNING = 4096


SORTED_COPY = "the sorted copy of 'points'"
REMEDY = "give the queries in parts, or let go of other memory there"
Made = Callable[[Points], Iterable[Need]]


class Queried:
    """The sources of a query in a structure, and its targets: other points, or the sources
    themselves.
    """

    def __init__(
        self,
        search: Search,
        sources: Points,
        targets: Points | None,
        made: Made = lambda targets: (),
        name: str = "a query",
    ) -> None:
        """made: what the call of this name is about to allocate besides, for its targets.

        Raises `DeviceError` where all that does not fit the memory.
        """
        self.search, self.sources = search.plan(sources), sources
        self.structure = self.search.make(sources)
        self.identical, self.targets = targets is None, targets if targets is not None else sources
        self._turning = None if self.identical else self._turned()
        own = (*self._needs(), *made(self.targets))
        require_together(f"{name}: {self.targets.count:,} positions", own, REMEDY)
        self._arrays = self._memory()
        if sources.count:
            self._run_tasks(TaskList("structure", sources.device, self._build()), {})

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
            self.structure.ordered,
            self._turning is not None,
            s.radius is not None,
            isinstance(s.world, Periodic),
            s.k,
            numbered=target_of(device).has_blocks,
        )

    def _build(self) -> tuple[Part, ...]:
        """What comes before the walk: the structure, the sources in its order, that of targets."""
        s, device = self.sources, self.sources.device
        parts = self.structure.parts({POSITIONS: POINTS}, device)
        if self.structure.ordered:
            parts.append(gather_executable(s.precision, s.dimension, device))
        if self._turning is not None:
            names = {n: _turned_name(n) for n in self._turning.buffers()} | {POSITIONS: QUERIES}
            parts += self._turning.parts(names, device)
        return tuple(parts)

    def _walk(self, what: Wanted) -> Part:
        kernel = query_executable(self._arguments(what), self.targets.device)
        return Renamed(kernel, {POINTS: SORTED}) if self.structure.ordered else kernel

    def _run(self, what: Wanted, outputs: dict[str, tuple[Any, Scalar]]) -> None:
        if self.targets.count:
            walk = TaskList(what, self.targets.device, (self._walk(what),))
            self._run_tasks(walk, {n: _bound(a, kind) for n, (a, kind) in outputs.items()})

    def _run_tasks(self, tasks: TaskList, outputs: Mapping[str, BoundArray]) -> None:
        tasks.bound({**self._arrays, **outputs}, self._environment())()

    def _environment(self) -> dict[str, Any]:
        real = self.sources.precision.dtype.type
        values: dict[str, Any] = {count_of(n): self.targets.count for n in (POINTS, QUERIES)}
        values[COUNT] = self.sources.count  # of the gather
        values[RADIUS2] = _radius2(self.search, self.sources.precision)
        if isinstance(self.search.world, Periodic):
            for axis, size in enumerate(self.search.world.size):
                values |= {period(axis): real(size), inverse_period(axis): real(1 / size)}
        return values | dict(self.structure.uniforms)

    # ------------------------------------------------------------ memory

    def _needs(self) -> Iterator[Need]:
        """What the structures and the sorted copy take."""
        s = self.sources
        yield from self.structure.memory
        if self._turning is not None:
            yield from self._turning.memory
        if self.structure.ordered:
            nbytes = sorted_arrangement(s.precision, s.dimension).nbytes(s.count)
            yield Need(s.device, nbytes, SORTED_COPY)

    def _memory(self) -> dict[str, BoundArray]:
        """The arrays of all tasks but what a walk gives."""
        s = self.sources
        arrays = {POINTS: as_bound(s), QUERIES: as_bound(self.targets)}
        arrays |= {**self.structure.arrays, **self.structure.clean}
        if self.structure.ordered:
            arrangement = sorted_arrangement(s.precision, s.dimension)
            data = allocate(s.device, arrangement.nbytes(s.count), SORTED_COPY, zeroed=False)
            arrays[SORTED] = BoundArray(data, arrangement, s.count)
            arrays[ORDER] = _bound(self.structure.order, I32)
        if self._turning is not None:
            arrays[TURNS] = _bound(self._turning.order, I32)
            arrays |= {_turned_name(n): b for n, b in self._turning.clean.items()}
        return arrays

    def _turned(self) -> Structure | None:
        """A structure of the targets, in whose order neighbours in time are neighbours in space;
        None where it does not pay.
        """
        if self.targets.count < TURNING or not self.structure.ordered:
            return None
        return self.search.make(self.targets)


def _turned_name(buffer: str) -> str:
    """What a call names the memory of the structure of its targets."""
    return TURNS if buffer == ORDER else own(f"targets.{buffer.removeprefix(own(''))}")


def _bound(array: Any, kind: Scalar) -> BoundArray:
    """A contiguous array of scalars, which nothing else writes or has frozen."""
    return BoundArray(array.reshape(-1).view("uint8"), values_arrangement(kind), len(array))


# asks NumPy for the limits of a type, which takes as long as a launch
_radius2 = lru_cache(maxsize=64)(radius2)


def as_bound(points: Points) -> BoundArray:
    """Points as an array that takes part in a launch."""
    return BoundArray(points.data, points.arrangement, points.count)


@cache
def sorted_arrangement(precision: Scalar, axes: int) -> Arrangement:
    """Where the coordinates of the sorted copy lie: those of one source are one load."""
    return SoAoAS().arrange(value_leaves(t.Vector(precision, axes)))


# Kernels of queries belong to no kernel of the user's. They are kept by what they are made from,
# which takes a microsecond to ask for; by their plans, as `Programs` do, it were 5 to 45.
@cache
def query_executable(arguments: QueryArguments, device: str) -> Executable:
    """The compiled kernel of a kind of call."""
    plan = complete_search_plan(None, device)
    return Programs().get(
        arguments, lambda: build_query(arguments, index_type(device)), plan, device
    )


@cache
def gather_executable(precision: Scalar, axes: int, device: str) -> Executable:
    """The kernel that makes the sorted copy."""
    leaves, index = value_leaves(t.Vector(precision, axes)), index_type(device)
    return Programs().get(
        (precision, axes),
        lambda: build_gather(POINTS, leaves, AoS(), leaves, SoAoAS(), index),
        complete_plan(None, machine_of(device), Work(ELEMENTWISE, 1)),
        device,
    )
