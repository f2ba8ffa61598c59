"""A version of the flow of the ladder `lbm`, and what is right: the same functions in float64 on
the CPU, in their plainest form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

import lanewise as lw
from lanewise.ladders.lbm_flow import Loop, SiteBox, make_flow, values_of
from lanewise.ladders.lbm_sites import Sites, mark_densely, set_departing

CHECKED = 1 << 16  # sites of the largest box that is held against float64 as a whole
SMALLER = {2: (200, 232), 3: (32, 36, 40)}  # the box that stands for larger ones
STEPS = 9  # that a check runs: both phases in place, both copies of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowForm:
    """One version of the flow. What is None is decided by lanewise; `launched`: each step from
    Python, not in a graph.
    """

    name: str
    layout: lw.Layout | None = None
    streaming: str | None = None
    plan: lw.Plan | None = None
    storage: str = "f32"
    loop: Loop = "together"
    walls: bool = False
    launched: bool = False

    @property
    def precision(self) -> str:
        """The arithmetic: float64 is for float64 alone."""
        return "f64" if self.storage == "f64" else "f32"

    @property
    def apart(self) -> bool:
        """Whether sites of several kinds are to run in separate kernels."""
        return self.plan is not None and self.plan.branches == "apart"

    def flow(self, lattice: lw.Lattice) -> lw.Sitewise:
        return make_flow(lattice, self.precision, walls=self.walls)

    def sites(self, box: SiteBox, device: str, mask: npt.NDArray[np.uint8] | None = None) -> Sites:
        made = self.flow(box.lattice).sites(
            box.shape,
            mask=box.mask(self.loop) if mask is None else mask,
            storage=self.storage,
            streaming=self.streaming,
            layout=self.layout,
            device=device,
        )
        assert isinstance(made, Sites)
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A box in float64 on the CPU: populations that depart first, those that then arrive, those
    that arrive after the steps.
    """

    box: SiteBox
    departing: npt.NDArray[np.float32]
    arriving: npt.NDArray[np.float32]
    after: npt.NDArray[np.float64]

    def error(self, form: FlowForm, device: str, *, dense: bool = False) -> float:
        """The largest difference of a version from float64 after the steps, over the largest
        population.

        dense: as the whole box is (`mark_densely`).
        """
        flow = form.flow(self.box.lattice)
        sites = form.sites(self.box, device)
        values = values_of(self.box.lattice)
        mark_densely(sites, dense)
        self.load(flow, sites)
        flow.run(sites, STEPS, plan=form.plan, **values)
        populations = flow.populations(sites, **values)
        return float(np.max(np.abs(populations - self.after)) / np.max(np.abs(self.after)))

    def load(self, flow: lw.Sitewise, sites: Sites) -> None:
        """Give sites the same state as this box had."""
        if sites.form.first is not None:
            set_departing(sites, self.departing)
        else:
            flow.set_populations(sites, self.arriving)


def make_truth(whole: SiteBox, seed: int, *, walls: bool) -> Truth:
    """Of a box, or of a smaller one in its place: pull, SoA, everything in one kernel."""
    small = whole.count <= CHECKED
    box = whole if small else replace(whole, shape=SMALLER[whole.lattice.dimension])
    form = FlowForm(
        name="float64",
        storage="f64",
        streaming="pull",
        plan=lw.Plan(branches="together"),
        walls=walls,
    )
    flow, sites, values = form.flow(box.lattice), form.sites(box, "cpu"), values_of(box.lattice)
    departing = box.start(seed, each=True)
    set_departing(sites, departing)
    arriving = flow.populations(sites, **values).astype(np.float32)
    set_departing(sites, departing)
    flow.run(sites, STEPS, plan=form.plan, **values)
    return Truth(box, departing, arriving, flow.populations(sites, **values))
