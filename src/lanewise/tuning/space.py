"""The plans that tuning may try: families of plans, spanned by axes from the catalogue of optimisations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Protocol

from lanewise.optimisations import LAYOUT, OPTIMISATIONS, Programs, possible, reason_of
from lanewise.plan import NEUTRAL, Plan
from lanewise.tuning.estimate import Estimator
from lanewise.tuning.job import Job

Point = Mapping[str, Any]  # one value for each axis of a family
TILE = "tile"
TILES = (0, 1, 2)  # on a GPU, in blocks: a tile is staged by the threads of a block
RECIPROCAL_TARGETS, RECIPROCAL_BLOCK = (4, 8, 10, 12, 16), 32  # one warp passes the sources round among its threads
# Whether these apply does not hang on the values of other axes: one look at the default plan decides.
_CHOICES = ("fma", "fission", "branches", "self_term", "hoist", "prefetch", "uniforms", "reciprocity")
# What matters most comes first: a search that runs out of time has decided the most.
_ORDER = (
    "reciprocity", "targets", "block", "slices", "unroll", "tile", "vector_bits", "parts", "self_term", "fma", "hoist",
    "prefetch", "min_blocks", "branches", "fission", "registers", "uniforms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """Plans that differ from `base` in the axes: a value for each of the axes makes a plan.

    With `relative_tile` the axis "tile" counts in blocks, so that a tile follows the block that stages it.
    """

    name: str
    base: Plan
    axes: Mapping[str, tuple[Any, ...]]
    relative_tile: bool = False

    @property
    def size(self) -> int:
        return prod(len(values) for values in self.axes.values())

    @property
    def start(self) -> Point:
        """The point of the base."""
        return {axis: self._coordinate(axis) for axis in self.axes}

    def _coordinate(self, axis: str) -> Any:
        if axis == TILE and self.relative_tile:
            return self.base.tile // self.base.block if self.base.tile and self.base.block else 0
        return getattr(self.base, axis)

    def plan(self, point: Point) -> Plan:
        """The plan of a point."""
        plan = replace(self.base, **point)
        if self.relative_tile and TILE in point:
            assert plan.block is not None
            plan = replace(plan, tile=point[TILE] * plan.block)
        return plan

    def points(self, axes: tuple[str, ...] | None = None) -> Iterator[Point]:
        """All points, or those that differ from the base in `axes` only."""
        free = [a for a in self.axes if axes is None or a in axes]
        for values in product(*(self.axes[a] for a in free)):
            yield {**self.start, **dict(zip(free, values, strict=True))}

    def line(self, point: Point, axis: str) -> list[Point]:
        """The other points that differ from this one in one axis."""
        return [{**point, axis: v} for v in self.axes[axis] if v != point[axis]]


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known of a plan before it is compiled.

    reason: why it is not legal, or empty; predicted: seconds, by the model; same_as: an earlier plan with the same
    kernels.
    """

    reason: str = ""
    predicted: float | None = None
    same_as: Plan | None = None


class Space(Protocol):
    """What a search asks of a space."""

    @property
    def default(self) -> Plan: ...
    @property
    def families(self) -> tuple[Family, ...]: ...
    def examine(self, plan: Plan) -> Examined: ...


class KernelSpace:
    """The space of one kernel on one device. Legality comes from building the program: the passes give the reasons."""

    def __init__(self, job: Job, estimator: Estimator) -> None:
        self._programs, self._estimator = Programs(job.naive, job.kind), estimator
        self._known: dict[Plan, Examined] = {}
        self._seen: dict[Any, Plan] = {}
        self.refused: list[tuple[str, Any, str]] = []  # (field, value, reason): optimisations that do not apply at all
        self.default = job.default
        self.families = self._families(job)

    def examine(self, plan: Plan) -> Examined:
        if plan not in self._known:
            self._known[plan] = self._look(plan)
        return self._known[plan]

    def _look(self, plan: Plan) -> Examined:
        program = self._programs.get(plan)
        if isinstance(program, str):
            return Examined(program)
        # What the compiler is told beside the kernels makes a difference, too.
        same = (program.kernels, plan.vector_bits, plan.registers, plan.fast_math)
        first = self._seen.setdefault(same, plan)
        if first != plan:
            return Examined(same_as=first)
        return Examined(predicted=self._estimator.seconds(program))

    def _families(self, job: Job) -> tuple[Family, ...]:
        axes = self._axes(job)
        reciprocal = axes.pop("reciprocity", ())
        relative = job.kind == "cuda" and TILE in axes
        if relative:
            tile, block = self.default.tile or 0, self.default.block or 1
            axes[TILE] = _with(TILES, tile // block) if tile % block == 0 else TILES
        families = [Family("one-sided", self.default, axes, relative)]
        families += [f for way in reciprocal if way != "off" for f in self._reciprocal(job, way, axes)]
        return tuple(families)

    def _axes(self, job: Job) -> dict[str, tuple[Any, ...]]:
        """The values worth trying of every field that the caller leaves open, without those that cannot apply."""
        axes: dict[str, tuple[Any, ...]] = {}
        for o in OPTIMISATIONS:
            if o.on_request or o.field == LAYOUT or getattr(job.wanted, o.field) is not None:
                continue
            chosen = getattr(self.default, o.field)
            values = _with(o.values(job.kind, job.work.pattern), chosen)
            if o.field == "reciprocity":
                axes[o.field] = values
            elif o.field in _CHOICES:
                axes[o.field] = tuple(v for v in values if v == chosen or self._applies(job, o.field, v))
            else:
                axes[o.field] = values
        return {f: axes[f] for f in _ORDER if len(axes.get(f, ())) > 1}

    def _applies(self, job: Job, name: str, value: Any) -> bool:
        if reason := possible(job.naive, self.default, job.kind, name, value):
            self.refused.append((name, value, reason_of(reason)))
            return False
        return True

    def _reciprocal(self, job: Job, way: str, axes: Mapping[str, tuple[Any, ...]]) -> list[Family]:
        """The family that computes each pair once: its shape is its own, so it starts from plans without slices and tiles."""
        shape = Plan(reciprocity=way, block=RECIPROCAL_BLOCK, tile=0, slices=1, parts=1, prefetch="none", hoist=False)  # type: ignore[arg-type]
        reason = ""
        for targets in _with(RECIPROCAL_TARGETS[1::-1] + RECIPROCAL_TARGETS[2:], job.wanted.targets, front=True):
            base = job.wanted.filled(replace(shape, targets=targets)).filled(self.default)
            program = self._programs.get(base)
            if not isinstance(program, str):
                free = {a: v for a, v in axes.items() if a in ("fma", "self_term", "min_blocks", "registers", "unroll")}
                if job.wanted.targets is None:
                    free = {"targets": RECIPROCAL_TARGETS, **free}
                return [Family(f"reciprocity {way}", base, free)]
            reason = reason or reason_of(program)
        self.refused.append(("reciprocity", way, reason))
        return []


def _with(values: tuple[Any, ...], value: Any, *, front: bool = False) -> tuple[Any, ...]:
    """The values and one more, in order where they have one."""
    if value is None or value in values:
        return (value, *(v for v in values if v != value)) if front and value is not None else values
    more = (*values, value)
    whole = all(type(v) is int for v in more)
    return (value, *values) if front else tuple(sorted(more)) if whole and values else more


def neutral_of(plan: Plan) -> Plan:
    """A complete plan from any: fields left open are neutral."""
    return plan.filled(NEUTRAL)
