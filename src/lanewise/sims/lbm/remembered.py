"""What a run adds to its checkpoints, so that it can be resumed as a run: its case, its wishes, its measurements."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.errors import InputError
from lanewise.io.schema import record
from lanewise.sims.common.checks import MOST_STEPS
from lanewise.sims.lbm.cases.bodies import Mask, Obstacle
from lanewise.sims.lbm.cases.registry import Request
from lanewise.sims.lbm.cases.stream import BODY
from lanewise.sims.lbm.checkpoint import Checkpoint

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import Run

PLAN, SERIES = "plan", "series"


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """What `remember` has written. `tolerance` is 0 for a run that ends at its last step only."""

    case: str
    request: Request
    steps: int
    tolerance: float
    initial_mass: float
    rows: list[tuple[int, tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is in the attribute."""

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


def remember(run: Run) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Parameters for everybody, and attributes and arrays for `recall`."""
    r = run.request
    plan = {
        "case": run.case.name, "re": r.re, "size": r.size, "speed": r.speed, "lattice": r.lattice, "drive": r.drive,
        "own_body": r.obstacle is None, "steps": run.steps, "tolerance": run.steadiness.tolerance if run.steadiness else 0.0,
        "initial_mass": run.initial_mass,
    }  # fmt: skip
    parameters = {"case": run.case.name, "re": r.re, "size": r.size, "speed": r.speed, "drive": r.drive or None}
    series = run.series
    table = np.column_stack([series.steps.astype(np.float64), series.values]) if len(series) else np.empty((0, 1))
    return parameters, {PLAN: json.dumps(plan)}, {SERIES: table}


def recall(saved: Checkpoint) -> Remembered:
    """The run of a checkpoint; raises `InputError` for one that `Simulation.checkpoint` wrote."""
    if PLAN not in saved.attributes:
        raise InputError(
            f"{saved.path}: a checkpoint without a case, written by Simulation.checkpoint; continue it with Simulation.resume"
        )
    try:
        plan = record(_Plan, json.loads(saved.attributes[PLAN]), "a run")
        obstacle = None
        if not plan.own_body:
            if saved.geometry.mask is None:
                raise ValueError("a body of its own, and no mask that shows it")
            obstacle = _as_it_was(saved.geometry.mask == BODY)
        request = Request(plan.re, plan.size, plan.speed, plan.lattice, plan.drive, obstacle)
        rows = [(int(row[0]), tuple(map(float, row[1:]))) for row in saved.arrays[SERIES]]
        if not (0 <= plan.tolerance < 1 and 0 < plan.initial_mass < math.inf and 1 <= plan.steps <= 2 * MOST_STEPS):
            raise ValueError(f"steps {plan.steps}, tolerance {plan.tolerance:g}, initial mass {plan.initial_mass:g}")
        return Remembered(plan.case, request, plan.steps, plan.tolerance, plan.initial_mass, rows)
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{saved.path}: damaged checkpoint: its plan cannot be read: {error}") from error


def _as_it_was(solid: Mask) -> Obstacle:
    """The body of the checkpoint, wherever it came from."""

    def place(shape: tuple[int, ...], centre: tuple[float, ...], width: float) -> Mask:
        del centre, width
        if solid.shape != shape:
            raise InputError(f"damaged checkpoint: its mask has shape {solid.shape}, and its case {shape}")
        return solid

    return place
