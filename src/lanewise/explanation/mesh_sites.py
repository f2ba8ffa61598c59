"""Steps over sites on a mesh: parts with ghosts, and what each of them launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd

from lanewise.explanation.mesh_scaling import DividedStep, PartWork, RowsTime, UnknownTime
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.sites import rates_of, rows_of_call
from lanewise.language.lattices.base import Lattice
from lanewise.language.target import is_compiled, target_of
from lanewise.launch.sent import Sent
from lanewise.models.devices import DeviceModel, device_model
from lanewise.patterns.sitewise.blocks import LEAST_LAYERS, Block, Cut, best_cut, ghost_depth
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.halo import GhostLaw, Steps, law_by_steps, leaves_needed
from lanewise.patterns.sitewise.split_calls import SplitCall
from lanewise.patterns.sitewise.split_ghosts import is_cut_in_two
from lanewise.patterns.sitewise.streaming import Form, Phase, form_by_name

TOO_THIN = f"as parts have at least {LEAST_LAYERS} layers"


@dataclass(frozen=True, slots=True)
class SitesDivided:
    """Steps over a box that is cut in slabs or blocks. now: as it is cut; depth: ghost layers on a
    side. periodic: along every axis. sent: what is copied, by how a box is cut.
    """

    now: Cut
    depth: int
    periodic: tuple[bool, ...]
    sent: Callable[[Cut], tuple[Sent, ...]]

    def _of(self, cut: Cut) -> DividedStep:
        blocks = cut.blocks(self.depth, self.periodic)
        rows = tuple(math.prod(block.owned_shape) for block in blocks)
        worked = tuple(math.prod(self._worked(block)) for block in blocks)
        grid = () if cut.in_slabs else cut.grid
        return DividedStep(rows, worked, self.sent(cut), grid=grid)

    def _worked(self, block: Block) -> tuple[int, ...]:
        """What a part updates: of slabs no ghosts but those that it updates as their owners do."""
        if not block.is_slab:
            return block.shape
        layers = block.spans[0].inner(self.depth - 1)
        return (layers.stop - layers.start, *block.shape[1:])

    def on(self, parts: int) -> SitesDivided | str:
        """The same box in so many parts, or why it has not so many."""
        if parts == self.now.parts:
            return self
        cut = best_cut(self.now.shape, parts, self.periodic)
        return TOO_THIN if cut is None else replace(self, now=cut)

    def divide(self, parts: int) -> DividedStep | str:
        """As many sites in all."""
        found = self.on(parts)
        return found if isinstance(found, str) else self._of(found.now)

    def grow(self, parts: int) -> DividedStep | str:
        """As many sites in each part, side by side along the slowest axis that is cut."""
        grid = self.now.grid
        part = [-(-n // times) for n, times in zip(self.now.shape, grid, strict=True)]
        axis = next((n for n, times in enumerate(grid) if times > 1), 0)
        if parts > 1 and part[axis] < LEAST_LAYERS:
            return TOO_THIN
        shape = tuple(n * (parts if a == axis else 1) for a, n in enumerate(part))
        return self._of(Cut(shape, tuple(parts if a == axis else 1 for a in range(len(part)))))


def works_of_sites(
    calls: Sequence[SplitCall], length: int, step: DividedStep | str
) -> list[PartWork]:
    """What parts launch in these calls of so many steps. step: as it is divided now."""
    assert isinstance(step, DividedStep)
    each: list[tuple[str, tuple[SiteCall, ...]]] = []
    faces: tuple[SiteCall, ...] = ()  # of the step whose other layers are in the next call
    for call in calls:
        for beside in call.beside:
            if call.faces:
                faces = beside.calls
            else:
                each.append((call.name, (*beside.calls, *faces)))
                faces = ()
    device = calls[0].sites.device
    model = device_model(device) if is_compiled(device) else None
    firsts = [some[0] for _, some in each if some]
    rates = {} if model is None else rates_of(firsts, model)
    found: dict[str, list[PartWork]] = {}
    for name, some in each:
        if some:
            work = _work(name, some, rates, model, step)
            found.setdefault(f"{name} {work.nbytes}", []).append(work)
    return [_so_often(works, length) for works in found.values()]


def _so_often(works: Sequence[PartWork], length: int) -> PartWork:
    first = works[0]
    if not isinstance(first, RowsTime):
        return UnknownTime(first.name, first.nbytes, len(works) / length)
    return RowsTime(
        first.name, first.rows, first.seconds, first.least, first.near, first.nbytes,
        len(works) / length,
    )  # fmt: skip


def _work(
    name: str,
    calls: Sequence[SiteCall],
    rates: dict[int, float | None],
    model: DeviceModel | None,
    step: DividedStep,
) -> PartWork:
    """The same calls of all parts; their time is that of the first one's rows."""
    if model is None:
        return UnknownTime(name)
    rows = [(c, rows_of_call(c, rates.get(id(calls[0])), model)) for c in calls]
    nbytes = sum(r.nbytes or 0 for _, some in rows for r in some)
    own: list[LaunchRow] = [r for c, some in rows if c.sites is calls[0].sites for r in some]
    times = [r.predicted for r in own if r.predicted is not None]
    if len(times) < len(own):
        return UnknownTime(name, nbytes)
    least = model.loop_launch_seconds * sum(r.times for r in own)
    return RowsTime(name, step.worked[0], sum(times), least, True, nbytes)


def box_division(
    lattice: Lattice, shape: tuple[int, ...], storage: str, device: str
) -> SitesDivided:
    """Steps over the populations of a periodic box, as sites on such devices take them by default.
    storage: of a population, "f32" or "f64".
    """
    form = form_by_name(target_of(device).streaming)
    alone = Cut(shape, (1,) * len(shape))
    size, in_two = {"f32": 4, "f64": 8}[storage], target_of(device).has_blocks
    return cut_anew(alone, lattice, form, size, (True,) * len(shape), in_two=in_two)


def cut_anew(
    now: Cut, lattice: Lattice, form: Form, size: int, periodic: tuple[bool, ...], *, in_two: bool
) -> SitesDivided:
    """Steps over populations of so many bytes, by how they are streamed. in_two: whether long ones
    are cut in two, so that copies run while layers that do not need them are updated.
    """
    depth, laws = ghost_depth(form), list[GhostLaw]()
    for phase in form.phases:

        def nbytes(steps: Steps, phase: Phase = phase) -> int:
            return size * len(leaves_needed(lattice, phase, steps))

        laws.append(law_by_steps("ghosts of populations", depth, periodic, nbytes))

    def sent(cut: Cut) -> tuple[Sent, ...]:
        hides = in_two and is_cut_in_two(cut, lattice.size * size)
        return tuple(replace(s, hidden=hides) for s in once_in_cycle(laws, cut))

    return SitesDivided(now, depth, periodic, sent)


def once_in_cycle(laws: Sequence[GhostLaw], cut: Cut) -> tuple[Sent, ...]:
    """What is copied in a cycle of as many steps as there are laws, each in its own step."""
    found = [law(cut) for law in laws]
    alike = {str(s): found.count(s) for s in found}
    cycle = len(laws)
    unique = {str(s): s for s in found if s.nbytes}
    return tuple(
        replace(s, times=n // gcd(n, cycle), every=cycle // gcd(n, cycle))
        for key, s in unique.items()
        for n in (alike[key],)
    )
