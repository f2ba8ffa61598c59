"""The plans of the kernels over pairs: what a simulation asks for, and what a checkpoint keeps of
what it got.

Default plans may change with a tuning or a version, and with the plan the order of the sums. Of the
other kernels of a simulation no plan changes the bits: they compute one body at a time, and
reductions have a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

import lanewise as lw


def wanted_force(precision: str, *, tree: bool = False) -> lw.Plan:
    """The fields that a simulation fixes for its force kernel; defaults and tuning decide the
    others.

    Partial sums of parts would take more memory than the bodies themselves. tree: walks through one
    have no tiles, whose sums could be in float64.
    """
    return lw.Plan(parts=1, accumulate="f64" if precision == "mixed" and not tree else None)


def wanted_potential(*, tree: bool = False) -> lw.Plan:
    """The same for the kernel of the potential."""
    return lw.Plan(parts=1, accumulate=None if tree else "f64")


@dataclass(frozen=True, slots=True)
class Plans:
    """The complete plans of a simulation: with them another one on such a device gives the same
    bits.
    """

    force: lw.Plan
    potential: lw.Plan
