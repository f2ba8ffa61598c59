"""Steps over sites on a mesh: slabs with ghosts, and what each part launches."""

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
from lanewise.launch.sent import Sent, even
from lanewise.models.devices import DeviceModel, device_model
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.halo import BoxCut, GhostLaw, leaves_needed
from lanewise.patterns.sitewise.slabs import LEAST_LAYERS, ghost_depth, slabs_of
from lanewise.patterns.sitewise.split_calls import SplitCall
from lanewise.patterns.sitewise.streaming import Form, form_by_name


@dataclass(frozen=True, slots=True)
class SitesDivided:
    """Steps over a box that is cut in slabs. now: the layers of the parts that there are. plane:
    sites of a layer. depth: ghost layers on a side. sent: what is copied, by the layers.
    """

    now: tuple[int, ...]
    plane: int
    depth: int
    periodic: bool
    sent: Callable[[tuple[int, ...]], tuple[Sent, ...]]

    @classmethod
    def of(
        cls, box: BoxCut, form: Form, sent: Callable[[tuple[int, ...]], tuple[Sent, ...]]
    ) -> SitesDivided:
        """A box that was cut so."""
        layers = tuple(len(slab.layers) for slab in box.slabs)
        return cls(layers, box.plane, ghost_depth(form), bool(box.slabs[0].below), sent)

    def _of(self, layers: tuple[int, ...]) -> DividedStep | str:
        if len(layers) > 1 and min(layers) < LEAST_LAYERS:
            return f"as parts have at least {LEAST_LAYERS} layers"
        slabs = slabs_of(layers, self.depth, periodic=self.periodic)
        rows = tuple(len(slab.layers) * self.plane for slab in slabs)
        return DividedStep(
            rows, tuple(slab.count * self.plane for slab in slabs), self.sent(layers)
        )

    def divide(self, parts: int) -> DividedStep | str:
        """As many sites in all."""
        return self._of(self.now if parts == len(self.now) else even(sum(self.now), parts))

    def grow(self, parts: int) -> DividedStep | str:
        """As many sites in each part."""
        return self._of((max(self.now),) * parts)


def works_of_sites(
    calls: Sequence[SplitCall], length: int, step: DividedStep | str
) -> list[PartWork]:
    """What parts launch in these calls of so many steps. step: as it is divided now."""
    assert isinstance(step, DividedStep)
    each = [(call.name, beside.calls) for call in calls for beside in call.beside]
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
    """The same call of all parts; its time is that of the first one's rows."""
    if model is None:
        return UnknownTime(name)
    rows = [rows_of_call(c, rates.get(id(calls[0])), model) for c in calls]
    nbytes = sum(r.nbytes or 0 for some in rows for r in some)
    own: list[LaunchRow] = rows[0]
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
    plane, size = math.prod(shape[1:]), {"f32": 4, "f64": 8}[storage]
    return cut_anew((shape[0],), lattice, form, plane, size, periodic=True)


def cut_anew(
    layers: tuple[int, ...], lattice: Lattice, form: Form, plane: int, size: int, *, periodic: bool
) -> SitesDivided:
    """Steps over populations of so many bytes, by how they are streamed. plane: sites of a layer.
    periodic: across the cut.
    """
    depth = ghost_depth(form)
    around = [n for n in range(-depth, depth + 1) if n]
    laws: list[GhostLaw] = []
    for phase in form.phases:
        each = {n: size * len(leaves_needed(lattice, phase, n)) for n in around}
        laws.append(GhostLaw("ghosts of populations", depth, periodic, plane, each))

    def sent(layers: tuple[int, ...]) -> tuple[Sent, ...]:
        return once_in_cycle(laws, layers)

    return SitesDivided(layers, plane, depth, periodic, sent)


def once_in_cycle(laws: Sequence[GhostLaw], layers: tuple[int, ...]) -> tuple[Sent, ...]:
    """What is copied in a cycle of as many steps as there are laws, each in its own step."""
    found = [law(layers) for law in laws]
    alike = {str(s): found.count(s) for s in found}
    cycle = len(laws)
    unique = {str(s): s for s in found if s.nbytes}
    return tuple(
        replace(s, times=n // gcd(n, cycle), every=cycle // gcd(n, cycle))
        for key, s in unique.items()
        for n in (alike[key],)
    )
