"""How a rung of the ladder `lbm` is timed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.lbm_flow import SOLID, SiteBox, values_of
from lanewise.ladders.lbm_model import Equation1, SplitKernel, equation_1
from lanewise.ladders.lbm_sites import (
    SiteCall,
    Sites,
    copy_bandwidth,
    mark_densely,
    occupancies,
    parts_of,
    predicted_seconds,
    set_departing,
)
from lanewise.ladders.lbm_truth import FlowForm, Truth, make_truth
from lanewise.ladders.run import clock, skipped
from lanewise.ladders.rung import Options, Rung, compared
from lanewise.models import device_model
from lanewise.sims.common.devices import array_module, get_device, to_host
from lanewise.support.errors import DeviceError, PlanError
from lanewise.support.whole_steps import LONG_GRAPH

TOLERANCE = {"f16": 2e-2, "f32": 1e-4, "f64": 1e-10}  # relative to the largest population
LARGEST = 1.0  # deviation of a population in a flow that is not destroyed
RUNS, LEAST, QUICK_LEAST = 5, 0.05, 0.01  # timed runs, and the seconds that one lasts
DENSE = "so many sites are special here that each reads its word: there are no lists of them"
ALIKE = "all sites do the same here: there are no branches to split"


@dataclass
class SiteRunner:
    """Measures versions of the flow in one box, and remembers the parts of those that are split."""

    options: Options
    box: SiteBox
    truths: dict[bool, Truth] = field(default_factory=dict[bool, Truth])
    parts: dict[str, tuple[SplitKernel, ...]] = field(
        default_factory=dict[str, tuple[SplitKernel, ...]]
    )
    alone: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])

    def measure(self, form: FlowForm, base: Rung | None) -> Rung:
        """The rung of a version, compared with `base`; skipped with the reason when it is refused,
        too large or wrong.
        """
        blank = Rung(
            name=form.name,
            bodies=self.box.count,
            device=self.options.device,
            skipped="not run",
            extra={
                "lattice": self.box.lattice.name,
                "shape": "x".join(map(str, self.box.shape)),
                "storage": form.storage,
            },
        )
        if form.storage == "f16" and not self.options.on_gpu:
            return skipped(blank, "device", "float16 storage is for GPUs, and this is a CPU")
        try:
            return self._checked(form, blank, base)
        except PlanError as refusal:
            return skipped(blank, "illegal", str(refusal))
        except DeviceError as refusal:
            return skipped(blank, "device", str(refusal))

    def _checked(self, form: FlowForm, blank: Rung, base: Rung | None) -> Rung:
        """The rung with its time, if it is right."""
        sites, allowed = form.sites(self.box, self.options.device), TOLERANCE[form.storage]
        if sites.dense and form.apart:
            return skipped(blank, "illegal", DENSE)
        if form.walls not in self.truths:
            self.truths[form.walls] = make_truth(self.box, self.options.seed, walls=form.walls)
        error = self.truths[form.walls].error(form, self.options.device, dense=sites.dense)
        blank = replace(blank, relative_error=error)
        if not error <= allowed:
            wrong = (
                f"wrong: the relative error against float64 is {error:.1e}, and {allowed:.0e} is "
                "allowed"
            )
            return skipped(blank, "wrong", wrong)
        return self._timed(form, sites, blank, base)

    def _timed(self, form: FlowForm, sites: Sites, blank: Rung, base: Rung | None) -> Rung:
        flow, values = form.flow(self.box.lattice), values_of(self.box.lattice)
        set_departing(sites, self.box.start(self.options.seed, each=False))
        with _last_phase(sites):
            call = flow.compile(sites, plan=form.plan, **values)
        if form.apart and call.plan.branches != "apart":
            return skipped(blank, "illegal", ALIKE)
        if call.plan.branches == "apart":
            self.parts[form.name] = parts_of(sites, call.executable, self._arch)
        seconds = self._seconds(_work(form, flow, sites, values))
        if not _is_sound(sites):
            return skipped(
                blank, "wrong", f"wrong: populations are beyond {LARGEST:g} after the timed steps"
            )
        predicted = predicted_seconds(sites, call.executable, values, device_model(sites.device))
        rung = replace(
            blank, skipped=None, seconds=seconds, layout=str(sites.layout), plan=call.plan.short(),
            predicted_seconds=None if form.launched else predicted,
            extra={**blank.extra, "runs": RUNS, **_facts(sites, call), **_rates(sites, seconds)},
        )  # fmt: skip
        return compared(rung, base)

    @property
    def _arch(self) -> str | None:
        return get_device(self.options.device).architecture() if self.options.on_gpu else None

    def _seconds(self, work: Callable[[int], None]) -> float:
        """The median time of a step."""
        unit = 2 * LONG_GRAPH if self.options.on_gpu else 2  # whole graphs, both phases
        work(unit + 2)  # graphs are made, and what a first run costs is behind
        least = QUICK_LEAST if self.options.quick else LEAST
        steps = unit * max(1, round(least / max(clock(lambda: work(unit)), 1e-9)))
        return statistics.median(clock(lambda: work(steps)) / steps for _ in range(RUNS))

    # ------------------------------------------------------------ equation 1

    def equation(self, together: FlowForm, seconds: float, apart: FlowForm) -> Equation1 | None:
        """Equation 1 for a step that took so long in one kernel; None where nothing was split."""
        parts = self.parts.get(apart.name, ())
        if len(parts) < 2:
            return None
        flow, sites = together.flow(self.box.lattice), together.sites(self.box, self.options.device)
        call = flow.compile(sites, plan=together.plan, **values_of(self.box.lattice))
        (rho,) = occupancies(call.executable, self._arch)
        return equation_1(
            seconds,
            rho,
            parts,
            lambda kind: self._only(together, kind),
            device_model(self.options.device),
        )

    def _only(self, form: FlowForm, kind: int) -> float:
        """The time of a step when all sites take the branch of a kind, but one of each other: the
        kernel is the same then.
        """
        if (form.name, kind) not in self.alone:
            mask = self.box.mask(form.loop)
            others = sorted(set(np.unique(self.box.mask(form.loop)).tolist()) - {kind})
            mask[...] = kind
            mask.reshape(-1)[1 : 1 + len(others)] = others
            flow = form.flow(self.box.lattice)
            sites = form.sites(self.box, self.options.device, mask)
            # the kernel that is to be timed, though many sites are special here
            mark_densely(sites, False)
            set_departing(sites, self.box.start(self.options.seed, each=False))
            self.alone[form.name, kind] = self._seconds(
                _work(form, flow, sites, values_of(self.box.lattice))
            )
        return self.alone[form.name, kind]


def _work(
    form: FlowForm, flow: lw.Sitewise, sites: Sites, values: dict[str, Any]
) -> Callable[[int], None]:
    """Run that many steps, and wait for them."""
    if not form.launched:
        return flow.stepper(sites, plan=form.plan, **values).run

    def one_by_one(steps: int) -> None:
        for _ in range(steps):
            flow(sites, plan=form.plan, **values)

    return one_by_one


@contextmanager
def _last_phase(sites: Sites) -> Generator[None]:
    """The phase that follows links, for forms that have another one."""
    sites.step = len(sites.form.phases) - 1
    try:
        yield
    finally:
        sites.step = 0


def _facts(sites: Sites, call: SiteCall) -> dict[str, float | int | str | None]:
    """How the version was run; of several kernels the registers and occupancy are those of the
    bulk's, the first one.
    """
    resources = call.resources
    return {
        "streaming": sites.form.name,
        "branches": call.plan.branches,
        "kernels": len(call.executable.program.kernels),
        "bytes_per_site": sites.nbytes / sites.count,
        "special_fraction": sites.special / sites.count,
        "registers": resources.get("registers"),
        "occupancy": resources.get("occupancy"),
    }


def _rates(sites: Sites, seconds: float) -> dict[str, float | None]:
    """Millions of sites of fluid and boundary values a second, and the share of a copy's bandwidth
    for all that are updated.
    """
    fluid = sites.count - int(np.count_nonzero(sites.kinds == SOLID))
    moved = 2 * sites.lattice.size * sites.storage.size * (sites.count - sites.wall_sites)
    copy = copy_bandwidth(sites.device)
    return {
        "mlups": fluid / seconds * 1e-6,
        "sites_per_second": fluid / seconds,
        "bytes_per_second": moved / seconds,
        "bandwidth_fraction": moved / seconds / copy if copy else None,
    }


def _is_sound(sites: Sites) -> bool:
    module = array_module(sites.device)
    lines = (getattr(sites.current, f"q{q}") for q in range(sites.lattice.size))
    return all(float(to_host(module.max(module.abs(line)))) < LARGEST for line in lines)
