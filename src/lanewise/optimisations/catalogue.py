"""The catalogue: every optimisation, those of the plan and the layout of the records. `Plan` declares the former, field by field.

The order is that of the compiler: arithmetic, division into kernels, loops, memory, threads. `explain` makes a row of
each entry, `tune` makes an axis of its values, the ladders climb them.
"""

from __future__ import annotations

from lanewise.decision import Optimisation
from lanewise.plan import OPTIMISATIONS as DECIDED

LAYOUT = "layout"  # the field of the one optimisation that lies in the records and not in the plan
_LAYOUT = Optimisation(
    "memory layout", lambda v, kind: f"records lie as {v}", literature="structure-of-arrays and relatives", place=17, field=LAYOUT,
)  # fmt: skip

OPTIMISATIONS: tuple[Optimisation, ...] = tuple(sorted((*DECIDED, _LAYOUT), key=lambda o: o.place))


def optimisation(field: str) -> Optimisation:
    """The entry of a field of the plan."""
    return next(o for o in OPTIMISATIONS if o.field == field)
