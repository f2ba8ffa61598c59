"""The pattern of sites of a lattice, each updated by itself from what arrives at it."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.names import is_own, own
from lanewise.ir.pattern import Checked, HostCode, Pattern
from lanewise.patterns.sitewise.passes import merging, runs, splitting
from lanewise.target import Target

NO_SUMS = "its sites sum nothing over sources"
DEPARTING = "what departs from a site is computed from all that arrives there: no population is a result by itself"


def divide(kernel: ir.Kernel, target: Target, checked: Checked) -> tuple[ir.Kernel, ...]:
    """The bulk and each kind of site; on a CPU the loop of the bulk takes all sites whose links lead alike."""
    parts = splitting.apply(kernel, spans=not target.has_blocks)
    bulk, *special = (checked("branch splitting", k) for k in parts)
    if not target.has_blocks and runs.legal(bulk) is None:
        bulk = checked("runs of sites", runs.apply(bulk))
    return (bulk, *special)


def whole(kernel: ir.Kernel) -> str | None:
    """Why loop splitting does not apply: populations depart from its sites. An observer only looks."""
    populations = (a for a in kernel.arrays if a.written and (not is_own(a.name) or a.name == own("next")))
    return DEPARTING if any(populations) else None


SITEWISE = Pattern(
    "sitewise",
    host=HostCode(inline=True, separate=True),
    slabs=True,
    divide=divide,
    merging=merging,
    no_sums=NO_SUMS,
    whole=whole,
)
