"""Flows that stay finite: density and speed of every site, looked at on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.errors import InputError
from lanewise.runtime.memory import array_module
from lanewise.sims.lbm.obstacles.boxes import site_text

LEAST_EXCESS, MOST_EXCESS = -0.9, 9.0
"""Of the density over 1. A flow below Mach 0.3 stays within a few hundredths of 1."""

MOST_SPEED = 1.0  # in sites a step: populations are no faster

UPDATES = 1 << 28
MOST_STEPS = 2048  # however small the box: the error names this interval
"""So many updates of sites lie between two looks: a look then costs a fraction of a percent."""

LEAST_STEPS = 16


def check_interval(sites: int) -> int:
    """The steps between two looks."""
    return min(MOST_STEPS, max(LEAST_STEPS, UPDATES // sites))


def check_fields(excess: Any, velocity: Any, shape: tuple[int, ...], device: str, last_good: int, step: int) -> None:
    """Raise `InputError` for a density that is no number or far from 1, or a speed above one site a step.

    excess: the density less 1, (count,); velocity: (count, D). The error names the first such site (in the order of the array).
    """
    module = array_module(device)
    square = module.zeros_like(excess)
    for axis in range(velocity.shape[1]):
        square += velocity[:, axis] * velocity[:, axis]
    good = (excess >= LEAST_EXCESS) & (excess <= MOST_EXCESS) & (square <= MOST_SPEED**2)  # False for NaN
    if bool(good.all()):
        return
    place = int(module.argmin(good))
    speed = float(square[place]) ** 0.5
    bad = int(np.prod(shape)) - int(module.count_nonzero(good))
    raise InputError(
        f"the flow blew up between step {last_good:,} and step {step:,}: site {site_text(np.unravel_index(place, shape))} has "
        f"density {1 + float(excess[place]):.4g} and speed {speed:.4g} ({bad:,} such site{'s' if bad > 1 else ''}); a lower Reynolds "
        "number, more sites, a lower velocity, or another collision operator (--collision) keeps it stable; where the relaxation time is "
        "above 2, a lower velocity or fewer sites"
    )
