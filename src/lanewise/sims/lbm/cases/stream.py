"""Flow past a body: its mask, its openings, and its drag and lift as coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.cases.oscillation import Oscillation, oscillation, second_half
from lanewise.sims.lbm.cases.registry import Flow, Probe, Series
from lanewise.sims.lbm.kinds import Kind, Open, Wall

WALL, BODY, INLET, OUTLET = 1, 2, 3, 4
STEADY_PERIODS = 0.1  # how much the periods of a vortex street may differ, relative to their mean
LASTING = 0.5  # of the swing of the first third of the periods, which the last third keeps
LEAST_LIFT = 1e-3  # from the lowest to the highest: what oscillates by less is a steady flow
OBSTACLE = "obstacle"
FORCES = {2: ("force_x", "force_y"), 3: ("force_x", "force_y", "force_z")}
COEFFICIENTS = {2: ("drag", "lift"), 3: ("drag", "lift", "side_force")}


def stream_mask(solid: NDArray[np.bool_], *, outlet: bool = True) -> NDArray[np.uint8]:
    """Kinds of the sites: an inlet in the first column of x, an `outlet` of given density in the
    last, the body between them.
    """
    mask = np.where(solid, BODY, 0).astype(np.uint8)
    mask[..., 0] = INLET
    if outlet:
        mask[..., -1] = OUTLET
    return mask


def stream_kinds(velocity: tuple[float, ...], *, outlet: bool = True) -> dict[int, Kind]:
    """A far field with this velocity, an `outlet` of density 1, and a body at rest.

    The far field takes in most of the sound that a body sends out when the stream meets it; between
    an inlet of given velocity and an outlet of given density it would go to and fro for a long
    time.
    """
    kinds: dict[int, Kind] = {
        BODY: Wall(OBSTACLE),
        INLET: Open("inlet", "far-field", "x-", velocity=velocity, density=1.0),
    }
    return {**kinds, OUTLET: Open("outlet", "pressure", "x+", density=1.0)} if outlet else kinds


def force_probe(
    dimension: int,
    scale: float,
    every: int,
    more: Callable[[Flow], tuple[float, ...]] | None = None,
    more_names: tuple[str, ...] = (),
) -> Probe:
    """The force on the body, and its components over `scale` (half the density times velocity
    squared times area).

    The stream meets the body all at once, which excites the momentum that alternates: values are
    means over two steps.
    """

    def measure(flow: Flow) -> tuple[float, ...]:
        force = tuple(float(x) for x in flow.force_on(OBSTACLE))
        return (*force, *(x / scale for x in force), *(more(flow) if more else ()))

    names = (*FORCES[dimension], *COEFFICIENTS[dimension], *more_names)
    return Probe(names, measure, max(1, every), paired=True, walls=(OBSTACLE,))


def shedding(series: Series, length: float, speed: float) -> dict[str, Any]:
    """Drag and lift of the later half of a run, and the Strouhal number St = f length / speed if
    vortices are shed.

    Frequencies come from the lift, and extremes are those of what repeats with it: sound between
    inlet and outlet does not. Vortices grow or stay; what dies away is the sound of the start.
    Without an oscillation that lasts and whose periods are equal, the last values are the result,
    with the step that they were measured at.
    """
    if not len(series):
        return {}
    lift = series.column("lift")
    cycles = oscillation(series.steps, lift)
    if (
        cycles is None
        or cycles.spread > STEADY_PERIODS
        or _amplitude(series) < LEAST_LIFT
        or _dies_away(series, cycles)
    ):
        last = {"drag": float(series.column("drag")[-1]), "lift": float(lift[-1])}
        return {**last, "measured_at_step": int(series.steps[-1])}
    within = (series.steps >= cycles.start) & (series.steps <= cycles.stop)
    drag = series.column("drag")
    lowest, highest = cycles.extremes(series.steps, lift)
    return {
        "drag": float(drag[within].mean()),
        "drag_max": cycles.extremes(series.steps, drag)[1],
        "lift_max": highest,
        "lift_min": lowest,
        "strouhal": cycles.frequency * length / speed,
        "periods": cycles.periods,
        "period_spread": cycles.spread,
    }


def _amplitude(series: Series) -> float:
    _, lift = second_half(series.steps, series.column("lift"))
    return float(np.ptp(lift))


def _dies_away(series: Series, cycles: Oscillation) -> bool:
    """Whether the lift swings by less in the last third of the periods than in the first one."""
    third = max(1, cycles.periods // 3) / cycles.frequency
    lift = series.column("lift")
    first = lift[(series.steps >= cycles.start) & (series.steps <= cycles.start + third)]
    last = lift[(series.steps >= cycles.stop - third) & (series.steps <= cycles.stop)]
    return bool(np.ptp(last) < LASTING * np.ptp(first))
