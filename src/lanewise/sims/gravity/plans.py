"""The plans of the kernels over pairs: what a simulation asks for, and what a checkpoint keeps of
what it got.

Default plans may change with a tuning or a version, and with the plan the order of the sums. Of the
other kernels of a simulation no plan changes the bits: they compute one body at a time, and
reductions have a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

import lanewise as lw

# Partial sums of parts would take more memory than the bodies themselves.
WANTED_POTENTIAL = lw.Plan(parts=1, accumulate="f64")


def wanted_force(precision: str) -> lw.Plan:
    """The fields that a simulation fixes for its force kernel; defaults and tuning decide the
    others.
    """
    return lw.Plan(parts=1, accumulate="f64" if precision == "mixed" else None)


@dataclass(frozen=True, slots=True)
class Plans:
    """The complete plans of a simulation: with them another one on such a device gives the same
    bits.
    """

    force: lw.Plan
    potential: lw.Plan
