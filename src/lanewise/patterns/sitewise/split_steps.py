"""Steps and looks of sites on a mesh: the calls of all parts, after the ghosts that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.launch.steps.task import has_graphs
from lanewise.patterns.sitewise.calls import STENCIL, STREAM, SiteCall
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.patterns.sitewise.sites import Sites
from lanewise.patterns.sitewise.split_calls import (
    Beside,
    SplitCall,
    SplitValues,
    check_functions,
    part_arguments,
)
from lanewise.patterns.sitewise.split_ghosts import (
    Bring,
    Send,
    StepHalves,
    halves_of,
    is_cut_in_two,
    touched_by_halves,
)
from lanewise.patterns.sitewise.split_sites import AnySites, SplitSites
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.patterns.sitewise.values import Observed, SiteValues, in_order
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.split_array import SplitArray
from lanewise.runtime.memory import array_module, bring, on, to_host

ON_A_MESH = "its sites lie on a mesh, and parts bring to each other what they read"


def alone_on(sites: Sequence[AnySites]) -> str:
    """Why no graph holds the steps of some sites; "" where one can."""
    split = any(isinstance(s, SplitSites) and has_graphs(s.device) for s in sites)
    return ON_A_MESH if split else ""


def split_values(
    kernels: SiteKernels, sites: SplitSites, arguments: Mapping[str, Any]
) -> SplitValues:
    """The values of a call of a flow on a mesh."""
    kinds = kernels.kinds
    kinds.notice()
    kinds.check_sites(sites)
    check_functions(kinds.name, sites, kinds.functions_of(sites))
    varying = {**kinds.parameters(sites), **kinds.read_fields(sites)}
    parts, observed, copied = part_arguments(kinds.name, sites, arguments, varying)
    bound = tuple(kinds.values(p, own) for p, own in zip(sites.parts, parts, strict=True))
    return SplitValues(bound, observed, copied)


def split_observed(
    kernels: SiteKernels, sites: SplitSites, values: SplitValues
) -> tuple[Observed, ...]:
    """What is observed before every step: fields of the flow's own, and what values observe."""
    pairs = zip(sites.parts, values.parts, strict=True)
    each = [kernels.own_fields(part, own) for part, own in pairs]
    fields = [_joined(sites, observed) for observed in zip(*each, strict=True)]
    return (*fields, *values.observed)


def _joined(sites: SplitSites, parts: Sequence[Observed]) -> Observed:
    """What all parts observe, with the ghosts of what they have written."""
    first, ghosts = parts[0], sites.array_exchange(parts[0].name, [o.array for o in parts])
    return Observed(
        first.name,
        sites,
        first.kind,
        tuple(o.array for o in parts),
        lambda step, fresh: looking(
            first.name, sites, step, fresh, [o.look(step, fresh) for o in parts], (ghosts,)
        ),
        no_tests,
    )


def no_tests(step: int, fresh: bool) -> tuple[()]:
    """Of functions without tables."""
    del step, fresh
    return ()


def _reads_ghosts(sites: SplitSites, phase: Phase) -> bool:
    return sites.mesh.parts > 1 and (phase.load_links or phase.put_links)


def looking(
    name: str,
    sites: SplitSites,
    step: int,
    fresh: bool,
    calls: Sequence[SiteCall],
    after: Sequence[Callable[[], None]] = (),
) -> SplitCall:
    """A look of all parts at what arrives before a step."""
    phase = sites.form.phase(step, fresh=fresh)
    before = [_brought(sites, phase, step)] if sites.mesh.parts > 1 and phase.load_links else []
    behind = after if sites.mesh.parts > 1 else ()
    return SplitCall(name, "observe", sites, (*before, Beside(tuple(calls)), *behind))


def split_step(
    kernels: SiteKernels,
    sites: SplitSites,
    plan: Plan | None,
    values: SplitValues,
    step: int,
    fresh: bool,
) -> list[SplitCall]:
    """What a step runs, behind what is observed."""
    kinds, phase = kernels.kinds, sites.form.phase(step, fresh=fresh)
    pairs = list(zip(sites.parts, values.parts, strict=True))
    made: list[SplitCall] = []
    if _reads_ghosts(sites, phase):
        brought = _brought(sites, phase, step)
        made.append(SplitCall(f"ghosts of {kinds.name}", "exchange", sites, (brought,)))
    update = [kernels.step(part, step, fresh, own, plan) for part, own in pairs]
    stage = STENCIL if kinds.stencil else STREAM
    following = sites.form.phase(step + 1, fresh=False)
    halves = _halves(kernels, sites, plan, values, step, fresh, update[0].executable.program.plan)
    if halves is not None:
        return [*made, *halves]
    works: list[Callable[[], None]] = [sites.ghosts.changed, Beside(tuple(update))]
    made.append(SplitCall(update[0].name, stage, sites, tuple(works)))
    if kinds.stencil:
        return made
    if not sites.corrected:
        return made
    between = [kernels.between(part, step + 1, own, first=fresh) for part, own in pairs]
    works = []
    if following.load_links and sites.mesh.parts > 1:
        works.append(_brought(sites, following, step + 1))
    works += [sites.ghosts.changed, Beside(tuple(call for calls in between for call in calls))]
    made.append(SplitCall(f"boundaries of {kinds.name}", "boundaries", sites, tuple(works)))
    return made


def _brought(sites: SplitSites, phase: Phase, step: int) -> Bring:
    return Bring(sites.ghosts, sites.exchange(phase, step))


def _halves(
    kernels: SiteKernels,
    sites: SplitSites,
    plan: Plan | None,
    values: SplitValues,
    step: int,
    fresh: bool,
    chosen: CompletePlan,
) -> list[SplitCall] | None:
    """A step as the layers at the faces of parts, what others get of them before their next step,
    and the other layers; None where it is one. chosen: the plan that it has.
    """
    kinds, phase = kernels.kinds, sites.form.phase(step, fresh=fresh)
    following = sites.form.phase(step + 1, fresh=False)
    pairs = list(zip(sites.parts, values.parts, strict=True))
    leaves = len(sites.parts[0].current.record.leaves)
    if (
        not is_cut_in_two(sites.box_cut.cut, leaves * sites.storage.size)
        or sites.corrected  # between two steps, from ghosts
        or sites.mesh.transport.size > 1  # where the host takes part in copies
        or not _reads_ghosts(sites, following)
        or (sites.form.buffers == 1 and (phase.load_links or phase.put_links))
        or not all(kernels.runs_over_layers(p, fresh, own, plan) for p, own in pairs)
    ):
        return None
    thick = chosen.layers if len(sites.shape) > 2 else chosen.rows  # of a thread, which has all
    blocks = sites.box_cut.own
    cuts = [halves_of(b.spans[0], sites.lattice, phase, following, thick) for b in blocks]
    if not all(c.inner.stop - c.inner.start >= thick for c in cuts):
        return None

    def calls(layers_of: Callable[[StepHalves], Sequence[slice]]) -> Beside:
        return Beside(
            tuple(
                kernels.step(part, step, fresh, own, plan, layers)
                for (part, own), cut in zip(pairs, cuts, strict=True)
                for layers in layers_of(cut)
            )
        )

    faces, bulk = calls(lambda c: c.faces), calls(lambda c: (c.inner,))
    name, stage = bulk.calls[0].name, bulk.calls[0].stage
    first, sent, rest = touched_by_halves(sites.form, phase, step)
    works = sites.ghosts.changed, faces
    send = Send(sites.ghosts, sites.exchange(following, step + 1), sent)
    return [
        SplitCall(f"faces of {name}", stage, sites, works, first, faces=True),
        SplitCall(f"ghosts of {kinds.name}", "exchange", sites, (send,), sent),
        SplitCall(name, stage, sites, (bulk,), rest),
    ]


# ------------------------------------------------------------ looking


def look_now(observed: Sequence[Observed]) -> None:
    """Look at all that others need, where it stands."""
    for o in in_order(observed):
        o.sites.whole.check()
        o.look(o.sites.step, o.sites.fresh)()


def split_arriving(
    kernels: SiteKernels, sites: SplitSites, values: SplitValues
) -> npt.NDArray[Any]:
    """The populations that arrive next, (Q, *shape), on the host."""
    pairs = zip(sites.parts, values.parts, strict=True)
    calls, arrays = zip(*(kernels.arriving(p, own) for p, own in pairs), strict=True)
    looking(kernels.kinds.name, sites, sites.step, sites.fresh, calls)()
    size = sites.lattice.size
    leaves = [sites.whole_of([getattr(array, f"q{q}") for array in arrays]) for q in range(size)]
    return np.stack(leaves).reshape(size, *sites.shape)


def split_force(
    kernels: SiteKernels,
    sites: SplitSites,
    values: SplitValues,
    numbers: tuple[int, ...],
    *,
    weights: bool,
) -> Any:
    """The momentum that walls take in this step: what sites next to walls have, brought together
    and summed as on one device.
    """
    step, fresh = sites.step, sites.fresh
    pairs = zip(sites.parts, values.parts, strict=True)
    each = [kernels.momentum(p, step, fresh, v, numbers, weights=weights) for p, v in pairs]
    looking(kernels.kinds.name, sites, step, fresh, [call for call, _ in each])()
    momenta = _in_one_place(sites, [result for _, result in each])
    if (order := sites.walled_order()) is not None:
        with on(sites.device):
            momenta = momenta[bring(order, sites.device)]
    with on(sites.device):
        return to_host(momenta.sum(axis=0))


def _in_one_place(sites: SplitSites, values: Sequence[Any]) -> Any:
    """The rows of all parts on the first device of this process."""
    if sites.mesh.everywhere:
        return bring(SplitArray(sites.mesh, values).numpy(), sites.device)
    with on(sites.device):
        own = [bring(rows, sites.device) for rows in values]
        return array_module(sites.device).concatenate(own)


Bind = Callable[[Sites, SiteValues, tuple[Any, ...]], SiteCall]


def split_look(
    name: str,
    sites: SplitSites,
    step: int,
    fresh: bool,
    values: SplitValues,
    rooms: Sequence[tuple[Any, ...]],
    bind: Bind,
    after: Sequence[Callable[[], None]] = (),
) -> SplitCall:
    """A look of an observer; `bind` gives that of a part, which fills its arrays. after: what
    brings their ghosts.
    """
    triples = zip(sites.parts, values.parts, rooms, strict=True)
    return looking(name, sites, step, fresh, [bind(*one) for one in triples], after)
