"""What a run adds to its checkpoints, so that it can be resumed as a run: its case, its wishes, its
measurements.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.io.schema import record
from lanewise.sims.common.checks import MOST_STEPS
from lanewise.sims.common.devices import to_host
from lanewise.sims.lbm.cases.bodies import Mask, Obstacle
from lanewise.sims.lbm.cases.registry import Request
from lanewise.sims.lbm.cases.stream import BODY
from lanewise.sims.lbm.checkpoint import Checkpoint
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import SimulatedFlow

PLAN, SERIES, COMPARED = "plan", "series", "compared"


@dataclass(frozen=True, slots=True, eq=False)
class RememberedState:
    """What `remember` has written. `tolerance` is 0 for a run that ends at its last step only.

    compared: the velocity that the next look for a steady flow compares with, None before the
    first; compared_step: its step;
    change: the result of its comparison.
    """

    case: str
    request: Request
    steps: int
    tolerance: float
    initial_mass: float
    rows: list[tuple[int, tuple[float, ...]]]
    checkpoint_every: int
    compared_step: int
    compared: Any
    change: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is in the attribute. Older files lack what has a default."""

    case: str
    re: float
    size: int
    speed: float
    lattice: str
    drive: str
    own_body: bool
    steps: int
    tolerance: float
    initial_mass: float
    checkpoint_every: int = 0
    compared_step: int = -1
    change: float | None = None


def remember(
    flow: SimulatedFlow, steps: int
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Parameters for everybody, and attributes and arrays for `recall`."""
    r, steady = flow.request, flow.steadiness
    plan = {
        "case": flow.case.name,
        "re": r.re,
        "size": r.size,
        "speed": r.speed,
        "lattice": r.lattice,
        "drive": r.drive,
        "own_body": r.obstacle is None,
        "steps": steps,
        "tolerance": steady.tolerance if steady else 0.0,
        "initial_mass": flow.initial_mass,
        "checkpoint_every": flow.output.checkpoint_every,
    }
    parameters = {
        "case": flow.case.name,
        "re": r.re,
        "size": r.size,
        "speed": r.speed,
        "drive": r.drive or None,
    }
    series = flow.series
    table = (
        np.column_stack([series.steps.astype(np.float64), series.values])
        if len(series)
        else np.empty((0, 1))
    )
    arrays = {SERIES: table}
    if steady is not None and steady.before is not None:
        plan |= {
            "compared_step": steady.step,
            "change": steady.change if math.isfinite(steady.change) else None,
        }
        arrays[COMPARED] = to_host(steady.before)
    return parameters, {PLAN: json.dumps(plan)}, arrays


def recall(saved: Checkpoint) -> RememberedState:
    """The run of a checkpoint; raises `InputError` for one that `Simulation.checkpoint` wrote."""
    if PLAN not in saved.attributes:
        raise InputError(
            f"{saved.path}: a checkpoint without a case, written by Simulation.checkpoint; "
            "continue it with Simulation.resume"
        )
    try:
        plan = record(_Plan, json.loads(saved.attributes[PLAN]), "a run")
        obstacle = None
        if not plan.own_body:
            if saved.geometry.mask is None:
                raise ValueError("its own body, and no mask that shows it")
            obstacle = _as_it_was(saved.geometry.mask == BODY)
        request = Request(plan.re, plan.size, plan.speed, plan.lattice, plan.drive, obstacle)
        rows = [(int(row[0]), tuple(map(float, row[1:]))) for row in saved.arrays[SERIES]]
        if not (
            0 <= plan.tolerance < 1
            and 0 < plan.initial_mass < math.inf
            and 1 <= plan.steps <= 2 * MOST_STEPS
        ):
            raise ValueError(
                f"steps {plan.steps}, tolerance {plan.tolerance:g}, initial mass "
                f"{plan.initial_mass:g}"
            )
        compared = saved.arrays.get(COMPARED)
        if not (
            -1 <= plan.compared_step <= saved.step
            and (compared is None) == (plan.compared_step == -1)
        ):
            raise ValueError(
                f"the step that it compares with is {plan.compared_step}, and it is at step "
                f"{saved.step}"
            )
        if not 0 <= plan.checkpoint_every <= MOST_STEPS:
            raise ValueError(f"steps between checkpoints {plan.checkpoint_every}")
        return RememberedState(
            plan.case,
            request,
            plan.steps,
            plan.tolerance,
            plan.initial_mass,
            rows,
            plan.checkpoint_every,
            plan.compared_step,
            compared,
            math.nan if plan.change is None else plan.change,
        )
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(
            f"{saved.path}: damaged checkpoint: its plan cannot be read: {error}"
        ) from error


def _as_it_was(solid: Mask) -> Obstacle:
    """The body of the checkpoint, wherever it came from."""

    def place(shape: tuple[int, ...], centre: tuple[float, ...], width: float) -> Mask:
        del centre, width
        if solid.shape != shape:
            raise InputError(
                f"damaged checkpoint: its mask has shape {solid.shape}, and its case {shape}"
            )
        return solid

    return place
