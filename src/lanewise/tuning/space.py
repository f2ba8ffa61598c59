"""The plans that tuning may try: families of plans, spanned by axes from the catalogue of
optimisations.

What the models expect of a program prunes them; only here does tuning ask the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Protocol

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.optimisations import (
    OPTIMISATIONS,
    BuiltPrograms,
    optimisation,
    possible,
    reason_of,
)
from lanewise.compiler.pipeline import Program
from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import predict
from lanewise.planning.plan import DECLARED, NEUTRAL, CompletePlan, Plan
from lanewise.support.errors import PlanError
from lanewise.tuning.job import Job

Point = Mapping[str, Any]  # one value for each axis of a family
TILE = "tile"
EVERY = tuple(o.field for o in OPTIMISATIONS)
TILES = (0, 1, 2)  # on a GPU, in blocks: a tile is staged by the threads of a block
# One warp passes the sources round among its threads: what that leaves no choice about, and targets
# worth trying.
RECIPROCAL: Mapping[str, Any] = dict(DECLARED["reciprocity"].needs) | {
    "block": dict(DECLARED["reciprocity"].shape)["block"]
}
# Threads that share the loops of a point have that one point: what is left to choose about them,
# and elements of rows worth keeping.
SHARED = ("block", "slices", "parts", "unroll", TILE, "min_blocks", "registers")
APART = Plan(slices=1, parts=1)  # a thread has its points alone
SLICED, PARTED = Plan(block=256, slices=32, unroll=4), Plan(block=256, parts=8, unroll=4)
KEPT = (0, 1024, 4096, 8192)
# On a CPU: where to start with points as lanes (a square where rows are another array's columns),
# and with lanes that share rounds.
ON_LANES, ON_ROUNDS = ("across", "targets", "rows", "layers", TILE), ("slices", "targets", TILE)
OF_POINTS = frozenset((*ON_LANES, *ON_ROUNDS))
LANES = tuple(
    Plan(across=n, slices=1, rows=r, vector_bits=b)
    for n, b in ((16, 512), (8, 0), (4, 0))
    for r in (1, n)
)
ROUNDS = tuple(Plan(across=0, slices=n, vector_bits=b) for n, b in ((32, 512), (16, 0)))
WRITTEN = Plan(across=0, slices=1)
_NAMES = {
    ON_LANES[:1]: "points as lanes",
    ON_ROUNDS[:1]: "shared rounds",
    (): "loops as they are written",
}
RECIPROCAL_TARGETS = (1, 2, 3, 4, 6, 8, 10, 12, 16)


@dataclass(frozen=True, slots=True)
class Family:
    """Plans that differ from `base` in the axes: a value for each of the axes makes a plan.

    With `relative_tile` the axis "tile" counts in blocks, so that a tile follows the block that
    stages it.
    """

    name: str
    base: CompletePlan
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

    def plan(self, point: Point) -> CompletePlan:
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

    reason: why it is not legal, or empty; predicted: seconds, by the model; same_as: an earlier
    plan with the same kernels.
    """

    reason: str = ""
    predicted: float | None = None
    same_as: CompletePlan | None = None


class Space(Protocol):
    """What a search asks of a space."""

    @property
    def default(self) -> CompletePlan: ...
    @property
    def families(self) -> tuple[Family, ...]: ...
    def examine(self, plan: CompletePlan) -> Examined: ...


class KernelSpace:
    """The space of one kernel on one device. Legality comes from building the program: the passes
    give the reasons.
    """

    def __init__(self, job: Job, estimator: Estimator) -> None:
        self._programs = BuiltPrograms(job.reference, job.kind, job.unfit)
        self._estimator = estimator
        self._examined: dict[CompletePlan, Examined] = {}
        self._seen: dict[Any, CompletePlan] = {}
        # (field, value, reason): optimisations that do not apply at all
        self.refused: list[tuple[str, Any, str]] = []
        self.default = job.default
        self.families = self._families(job)

    def examine(self, plan: CompletePlan) -> Examined:
        if plan not in self._examined:
            self._examined[plan] = self._look(plan)
        return self._examined[plan]

    def _look(self, plan: CompletePlan) -> Examined:
        program = self._programs.get(plan)
        if isinstance(program, str):
            return Examined(program)
        # What else than kernels the compiler gets makes a difference as well.
        same = (program.kernels, plan.vector_bits, plan.registers, plan.fast_math, plan.schedule)
        first = self._seen.setdefault(same, plan)
        if first != plan:
            return Examined(same_as=first)
        return Examined(predicted=self._estimator.seconds(program))

    def _families(self, job: Job) -> tuple[Family, ...]:
        """One for each way to meet the pairs, or to divide points among threads; the default plan
        lies in the first.
        """
        if job.work.pattern.over_points and job.machine.target.has_blocks:
            ways = (self._points(job), self._loops(job))
            ways = ways[::-1] if self._shares(self.default) else ways
            return tuple(f for f in ways if f is not None)
        if job.work.pattern.over_points:
            return self._on_host(job)
        own = self.default.reciprocity
        ways: tuple[Any, ...] = (own,)
        if job.work.pattern.over_pairs and job.requested.reciprocity is None:
            # on a CPU as well, where the report has the words that refuse them
            every = optimisation("reciprocity").cuda
            ways = (own, *(way for way in every if way != own))
        return tuple(f for way in ways if (f := self._family(job, way)) is not None)

    def _family(self, job: Job, way: Any) -> Family | None:
        """The plans of one way, or None when no plan of that way is legal."""
        shape = Plan(reciprocity=way) if way == "off" else Plan(**RECIPROCAL, reciprocity=way)
        base, refusal = self.default, None
        try:
            if way != base.reciprocity:
                base = complete_plan(job.requested.filled(shape), job.machine, job.work)
        except PlanError as error:  # more elements than it can have
            refusal = str(error)
        if refusal := refusal or self._programs.refusal(base):
            self.refused.append(("reciprocity", way, reason_of(refusal)))
            return None
        axes = self._axes(job, base)
        if way != "off":
            axes = {n: v for n, v in axes.items() if n not in RECIPROCAL}
            if "targets" in axes:
                axes["targets"] = _with(RECIPROCAL_TARGETS, base.targets)
            return Family(f"reciprocity {way}", base, axes)
        relative = job.machine.target.has_blocks and TILE in axes
        if relative:
            tile, block = base.tile, base.block or 1
            relative = tile % block == 0
            axes[TILE] = _with(TILES, tile // block) if relative else axes[TILE]
        return Family("one-sided", base, axes, relative)

    def _shares(self, plan: CompletePlan) -> bool:
        """Whether several threads share a point."""
        return (plan.slices, plan.parts) != (1, 1)

    def _points(self, job: Job) -> Family | None:
        """Plans whose threads have their own points, or None where the caller has them
        shared.
        """
        if job.requested.slices not in (None, 1) or job.requested.parts not in (None, 1):
            return None
        base = self.default
        if self._shares(base):
            base = complete_plan(job.requested.filled(APART), job.machine, job.work)
        axes = self._axes(job, base, [n for n in EVERY if n not in ("slices", "parts")])
        return None if self._programs.refusal(base) else Family("points of a thread", base, axes)

    def _loops(self, job: Job) -> Family | None:
        """Plans whose threads share the loops of a point, or None where the kernel or the caller
        has none of them.
        """
        base = self.default
        if not self._shares(base):
            if (job.requested.slices, job.requested.parts) == (1, 1):
                return None
            start = PARTED if job.requested.slices == 1 else SLICED
            base = job.requested.filled(start.filled(NEUTRAL))
        if refusal := self._programs.refusal(base):
            field = "slices" if base.slices != 1 else "parts"
            self.refused.append((field, getattr(base, field), reason_of(refusal)))
            return None
        axes = self._axes(job, base, SHARED)
        if TILE in axes:
            axes[TILE] = _with(KEPT, base.tile)
        return Family("shared loops", base, axes)

    def _on_host(self, job: Job) -> tuple[Family, ...]:
        """On a CPU points are lanes, lanes share the rounds of a point, or loops run as they are
        written: the default's way first.
        """
        ways = ((LANES, ON_LANES), (ROUNDS, ON_ROUNDS), ((WRITTEN,), ()))
        families: list[Family] = []
        for starts, fields in ways:
            own = all(
                (getattr(self.default, n) != getattr(NEUTRAL, n)) == (n in fields[:1])
                for n in ("across", "slices")
            )
            requests = [
                job.requested.filled(s).filled(NEUTRAL) for s in starts if _agrees(job.requested, s)
            ]
            requests = [self.default] if own else requests
            bases = [b for b in requests if self._programs.refusal(b) is None]
            if bases:
                axes = self._axes(
                    job, bases[0], (*fields, *(n for n in EVERY if n not in OF_POINTS))
                )
                families.insert(
                    0 if own else len(families), Family(_NAMES[fields[:1]], bases[0], axes)
                )
            elif requests and fields:
                reason = reason_of(self._programs.refusal(requests[0]) or "")
                self.refused.append((fields[0], getattr(requests[0], fields[0]), reason))
        self.refused[:] = dict.fromkeys(self.refused)  # what no way allows is said once
        return tuple(families)

    def _axes(
        self, job: Job, base: CompletePlan, fields: Iterable[str] = EVERY
    ) -> dict[str, tuple[Any, ...]]:
        """The values worth trying of these fields, where the caller leaves them open, without those
        that cannot apply.
        """
        axes: dict[str, tuple[Any, ...]] = {}
        # What matters most comes first: a search that runs out of time has decided the most.
        for o in sorted((o for o in OPTIMISATIONS if o.rank), key=lambda o: o.rank):
            name = o.field
            if o.on_request or name not in fields or getattr(job.requested, name) is not None:
                continue
            chosen = getattr(base, name)
            values = _with(o.values(job.kind, job.work.pattern), chosen)
            if o.apart:  # one look at the default plan decides
                values = tuple(
                    v for v in values if v == chosen or self._applies(job, base, name, v)
                )
            if len(values) > 1:
                axes[name] = values
        return axes

    def _applies(self, job: Job, base: CompletePlan, name: str, value: Any) -> bool:
        reason = possible(job.reference, base, job.kind, name, value)
        if reason and base.reciprocity == (self.default.reciprocity):
            self.refused.append((name, value, reason_of(reason)))
        return not reason


def _agrees(requested: Plan, start: Plan) -> bool:
    """Whether a request leaves open what a way begins with, or says the same."""
    return all(getattr(requested, n) in (None, getattr(start, n)) for n in ("across", "slices"))


def _with(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """The values and one more, in order where they have one."""
    if value in values:
        return values
    more = (*values, value)
    return tuple(sorted(more)) if all(type(v) is int for v in more) else more


class Estimator(Protocol):
    """Expected seconds of a program on the job's device and size; None when the models have nothing
    to say.
    """

    def seconds(self, program: Program) -> float | None: ...


@dataclass(frozen=True, slots=True)
class ModelEstimator:
    """`models.predict` for one size on one device.

    Launches count as those of a graph, which is how they are timed.
    """

    environment: Mapping[str, Any]
    device: DeviceModel

    def seconds(self, program: Program) -> float | None:
        return predict(
            program, self.environment, self.device, in_graph=self.device.target.has_blocks
        ).seconds


def make_estimator(job: Job) -> Estimator:
    """The estimator of a job's device."""
    return ModelEstimator(job.environment, device_model(job.device))
