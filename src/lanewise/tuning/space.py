"""The plans that tuning may try: families of plans, spanned by axes from the catalogue of optimisations.

What the models expect of a program prunes them; only here does tuning ask the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Protocol

from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import predict
from lanewise.optimisations import OPTIMISATIONS, Programs, optimisation, possible, reason_of
from lanewise.pipeline import Program
from lanewise.plan import DECLARED, Decisions, Plan
from lanewise.plans import complete_plan
from lanewise.target import is_gpu
from lanewise.tuning.job import Job

Point = Mapping[str, Any]  # one value for each axis of a family
TILE = "tile"
TILES = (0, 1, 2)  # on a GPU, in blocks: a tile is staged by the threads of a block
# One warp passes the sources round among its threads: what that leaves no choice about, and targets worth trying.
RECIPROCAL: Mapping[str, Any] = dict(DECLARED["reciprocity"].needs) | {
    "block": dict(DECLARED["reciprocity"].shape)["block"]
}
RECIPROCAL_TARGETS = (1, 2, 3, 4, 6, 8, 10, 12, 16)


@dataclass(frozen=True, slots=True)
class Family:
    """Plans that differ from `base` in the axes: a value for each of the axes makes a plan.

    With `relative_tile` the axis "tile" counts in blocks, so that a tile follows the block that stages it.
    """

    name: str
    base: Decisions
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
            return self.base.tile // self.base.block if self.base.block else 0
        return getattr(self.base, axis)

    def plan(self, point: Point) -> Decisions:
        """The plan of a point."""
        plan = replace(self.base, **point)
        if self.relative_tile and TILE in point:
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
    same_as: Decisions | None = None


class Space(Protocol):
    """What a search asks of a space."""

    @property
    def default(self) -> Decisions: ...
    @property
    def families(self) -> tuple[Family, ...]: ...
    def examine(self, plan: Decisions) -> Examined: ...


class KernelSpace:
    """The space of one kernel on one device. Legality comes from building the program: the passes give the reasons."""

    def __init__(self, job: Job, estimator: Estimator) -> None:
        self._programs, self._estimator = Programs(job.reference, job.kind), estimator
        self._examined: dict[Decisions, Examined] = {}
        self._seen: dict[Any, Decisions] = {}
        self.refused: list[tuple[str, Any, str]] = []  # (field, value, reason): optimisations that do not apply at all
        self.default = job.default
        self.families = self._families(job)

    def examine(self, plan: Decisions) -> Examined:
        if plan not in self._examined:
            self._examined[plan] = self._look(plan)
        return self._examined[plan]

    def _look(self, plan: Decisions) -> Examined:
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
        """One for each way to meet the pairs; the default plan lies in the first."""
        own = self.default.reciprocity
        ways: tuple[Any, ...] = (own,)
        if job.work.pattern.over_pairs and job.wish.reciprocity is None:
            every = optimisation("reciprocity").values(job.kind, job.work.pattern)
            ways = (own, *(way for way in every if way != own))
        return tuple(f for way in ways if (f := self._family(job, way)) is not None)

    def _family(self, job: Job, way: Any) -> Family | None:
        """The plans of one way, or None when no plan of that way is legal."""
        shape = Plan(reciprocity=way) if way == "off" else Plan(**RECIPROCAL, reciprocity=way)
        base = self.default
        if way != base.reciprocity:
            base = complete_plan(job.wish.filled(shape), job.machine, job.work)
        if refusal := self._programs.refusal(base):
            self.refused.append(("reciprocity", way, reason_of(refusal)))
            return None
        axes = self._axes(job, base)
        if way != "off":
            axes = {n: v for n, v in axes.items() if n not in RECIPROCAL}
            if "targets" in axes:
                axes["targets"] = _with(RECIPROCAL_TARGETS, base.targets)
            return Family(f"reciprocity {way}", base, axes)
        relative = is_gpu(job.kind) and TILE in axes
        if relative:
            tile, block = base.tile, base.block or 1
            relative = tile % block == 0
            axes[TILE] = _with(TILES, tile // block) if relative else axes[TILE]
        return Family("one-sided", base, axes, relative)

    def _axes(self, job: Job, base: Decisions) -> dict[str, tuple[Any, ...]]:
        """The values worth trying of every field that the caller leaves open, without those that cannot apply."""
        axes: dict[str, tuple[Any, ...]] = {}
        # What matters most comes first: a search that runs out of time has decided the most.
        for o in sorted((o for o in OPTIMISATIONS if o.rank), key=lambda o: o.rank):
            name = o.field
            if o.on_request or getattr(job.wish, name) is not None:
                continue
            chosen = getattr(base, name)
            values = _with(o.values(job.kind, job.work.pattern), chosen)
            if o.apart:  # one look at the default plan decides
                values = tuple(v for v in values if v == chosen or self._applies(job, base, name, v))
            if len(values) > 1:
                axes[name] = values
        return axes

    def _applies(self, job: Job, base: Decisions, name: str, value: Any) -> bool:
        reason = possible(job.reference, base, job.kind, name, value)
        if reason and base.reciprocity == (self.default.reciprocity):
            self.refused.append((name, value, reason_of(reason)))
        return not reason


def _with(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """The values and one more, in order where they have one."""
    if value in values:
        return values
    more = (*values, value)
    return tuple(sorted(more)) if all(type(v) is int for v in more) else more


class Estimator(Protocol):
    """Expected seconds of a program on the job's device and size; None when the models have nothing to say."""

    def seconds(self, program: Program) -> float | None: ...


@dataclass(frozen=True, slots=True)
class ModelEstimator:
    """`models.predict` for one size on one device. Launches count as those of a graph, which is how they are timed."""

    environment: Mapping[str, Any]
    device: DeviceModel

    def seconds(self, program: Program) -> float | None:
        return predict(program, self.environment, self.device, in_graph=is_gpu(self.device.kind)).seconds


def make_estimator(job: Job) -> Estimator:
    """The estimator of a job's device."""
    return ModelEstimator(job.environment, device_model(job.device))
