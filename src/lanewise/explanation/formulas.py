"""The papers' own formulas for the row that they are about, beside the model's prediction."""

from __future__ import annotations

from lanewise.analysis.regions import KernelWork, Region, analyse
from lanewise.explanation.estimate import Estimates
from lanewise.models.branch_splitting import Branch, branch_splitting_speedup
from lanewise.models.predict import predict
from lanewise.models.unrolling import LoopCosts, unrolling_speedup
from lanewise.pipeline import Program
from lanewise.plan import Decisions


def formula(field: str, estimates: Estimates, before: Decisions, after: Decisions) -> str:
    """What a paper's formula says of going from one plan to the other; nothing where there is none."""
    if estimates.subject.model is None:
        return ""
    if field == "unroll" and estimates.subject.reference.pattern.over_pairs:
        return _unrolling(estimates, before, after)
    if field == "branches":
        return _branch_splitting(estimates, before, after)
    return ""


def _unrolling(estimates: Estimates, before: Decisions, after: Decisions) -> str:
    sources = list(estimates.subject.counts.values())[1]
    environment = estimates.subject.environment
    rolled, unrolled = (analyse(estimates.program(p).kernels[0], environment) for p in (before, after))
    if not all(any(r.role == "loop over sources" for r in w.regions) for w in (rolled, unrolled)):
        return ""
    tile = max(after.tile or 0, 1) if after.tile else sources
    factor = unrolling_speedup(loop_costs(rolled, sources, tile), loop_costs(unrolled, sources, tile), sources, tile)
    return f"{factor:.2f} x by eq. 3 of the Gravit paper"


def loop_costs(work: KernelWork, sources: int, tile: int) -> LoopCosts:
    """Instructions of a thread by how often they run: once, once a tile, once a source of all `sources`."""
    inner = sum(_slots(r) for r in work.regions if _within(r, "loop over sources"))
    block = sum(_slots(r) for r in work.regions if _within(r, "loop over tiles")) - (
        inner if any(r.role == "loop over tiles" for r in work.regions) else 0.0
    )
    setup = sum(_slots(r) for r in work.regions) - inner - block
    return LoopCosts(setup, block / (sources / tile), inner / sources)


def _slots(region: Region) -> float:
    return region.executions * region.instructions.slots


def _within(region: Region | None, role: str) -> bool:
    return region is not None and (region.role == role or _within(region.parent, role))


def _branch_splitting(estimates: Estimates, before: Decisions, after: Decisions) -> str:
    subject, model = estimates.subject, estimates.subject.model
    assert model is not None
    split = estimates.program(after)
    together = predict(estimates.program(before), subject.environment, model, estimates.resources.get(before))
    sides = [predict(Program(after, split.reference, (k,)), subject.environment, model) for k in split.kernels]
    if together.occupancy is None or len(sides) < 2 or any(s.occupancy is None for s in sides):
        return ""
    branches = [Branch(s.seconds, s.occupancy.share) for s in sides if s.occupancy is not None]
    factor = branch_splitting_speedup(branches, together.occupancy.share, model.graph_launch_seconds, together.seconds)
    return f"{factor:.2f} x by eq. 1 of the LBM paper"
