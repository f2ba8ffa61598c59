"""How a rung of the ladder `lbm` is checked, timed and predicted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.errors import DeviceError, PlanError
from lanewise.kernels.site_calls import SiteCall
from lanewise.kernels.sitewise import Sitewise
from lanewise.ladders.lbm_flow import Box, Loop, make_flow, values_of
from lanewise.ladders.lbm_model import SiteModel, site_model
from lanewise.ladders.run import skipped
from lanewise.ladders.rung import Options, Rung
from lanewise.lattices.base import Lattice
from lanewise.layouts import Layout
from lanewise.plan import Plan
from lanewise.runtime.memory import array_module, bring
from lanewise.runtime.stepping import LONG_GRAPH
from lanewise.sims.lbm.bandwidth import copy_bandwidth
from lanewise.sites.array import Sites

CHECKED = 1 << 16  # sites of the largest box that is held against float64 as a whole
SMALLER = {2: (200, 232), 3: (32, 36, 40)}  # the box that stands for larger ones
STEPS = 9  # that a check runs: both phases in place, both copies of the others
TOLERANCE = {"f16": 2e-2, "f32": 1e-4, "f64": 1e-10}  # relative to the largest population
LARGEST = 1.0  # deviation of a population in a flow that is not destroyed
RUNS, LEAST, QUICK_LEAST = 5, 0.05, 0.01  # timed runs, and the seconds that one lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One version of the flow. What is None is decided by lanewise; `launched`: each step from Python, not in a graph."""

    name: str
    layout: Layout | None = None
    streaming: str | None = None
    plan: Plan | None = None
    storage: str = "f32"
    loop: Loop = "together"
    walls: bool = False
    launched: bool = False

    @property
    def precision(self) -> str:
        """The arithmetic: float64 is for float64 alone."""
        return "f64" if self.storage == "f64" else "f32"

    def flow(self, lattice: Lattice) -> Sitewise:
        return make_flow(lattice, self.precision, walls=self.walls)

    def sites(self, box: Box, device: str) -> Sites:
        return self.flow(box.lattice).sites(
            box.shape, mask=box.mask(self.loop), storage=self.storage, streaming=self.streaming, layout=self.layout,
            device=device,
        )  # fmt: skip


@dataclass
class SiteRunner:
    """Measures versions of the flow in one box. Raises what `flow.sites` raises, but for a device that is too small."""

    options: Options
    box: Box
    truths: dict[bool, Truth] = field(default_factory=dict[bool, "Truth"])
    models: dict[str, SiteModel] = field(default_factory=dict[str, SiteModel])

    def measure(self, form: Form, base: Rung | None) -> Rung:
        """The rung of a version, compared with `base`; skipped with the reason when it is refused, too large or wrong."""
        blank = Rung(
            name=form.name, bodies=self.box.count, device=self.options.device, skipped="not run",
            extra={"lattice": self.box.lattice.name, "shape": "x".join(map(str, self.box.shape)), "storage": form.storage},
        )  # fmt: skip
        if form.storage == "f16" and not self.options.device.startswith("cuda"):
            return skipped(blank, "device", "float16 storage is for GPUs, and this is a CPU")
        try:
            error = self.error(form)
            if not error <= TOLERANCE[form.storage]:
                wrong = f"wrong: the relative error against float64 is {error:.1e}, and {TOLERANCE[form.storage]:.0e} is allowed"
                return skipped(replace(blank, relative_error=error), "wrong", wrong)
            return self._timed(form, replace(blank, relative_error=error), base)
        except PlanError as refusal:
            return skipped(blank, "illegal", str(refusal))
        except DeviceError as refusal:
            return skipped(blank, "device", str(refusal))

    # ------------------------------------------------------------ right

    def error(self, form: Form) -> float:
        """The largest difference from float64 after some steps, over the largest population."""
        truth = self.truth(form.walls)
        flow, sites = form.flow(self.box.lattice), form.sites(truth.box, self.options.device)
        truth.load(flow, sites)
        flow.run(sites, STEPS, plan=form.plan, **values_of(self.box.lattice))
        found = flow.populations(sites, **values_of(self.box.lattice))
        return float(np.max(np.abs(found - truth.after)) / np.max(np.abs(truth.after)))

    def truth(self, walls: bool) -> Truth:
        if walls not in self.truths:
            small = self.box.count <= CHECKED
            box = self.box if small else replace(self.box, shape=SMALLER[self.box.lattice.dimension])
            self.truths[walls] = make_truth(box, self.options.seed, walls=walls)
        return self.truths[walls]

    # ------------------------------------------------------------ how fast

    def _timed(self, form: Form, blank: Rung, base: Rung | None) -> Rung:
        flow, sites = form.flow(self.box.lattice), form.sites(self.box, self.options.device)
        start = self.box.start(self.options.seed, each=False)
        _set_departing(sites, start)
        values = values_of(self.box.lattice)
        call = flow.compile(sites, plan=form.plan, **values)
        if form.plan is not None and form.plan.branches not in (None, call.plan.branches):
            return skipped(
                blank, "illegal", "so many sites are special here that each reads its word: no list of them is left"
            )
        model = site_model(sites, call.executable, values)
        if model is not None:
            self.models[form.name] = model
        seconds, runs = self._seconds(_work(form, flow, sites, values))
        blank = replace(
            blank, layout=str(sites.layout), plan=call.plan.short(), predicted_seconds=None if model is None else model.seconds(),
            extra={**blank.extra, **_facts(sites, call)},
        )  # fmt: skip
        if not _is_sound(sites):
            return skipped(blank, "wrong", f"wrong: populations are beyond {LARGEST:g} after the timed steps")
        rung = replace(
            blank, skipped=None, seconds=seconds, extra={**blank.extra, "runs": runs, **self._rates(sites, seconds)}
        )
        if base is None or base.seconds is None:
            return rung
        predicted = None
        if rung.predicted_seconds and base.predicted_seconds and not form.launched:
            predicted = base.predicted_seconds / rung.predicted_seconds
        return replace(rung, over=base.name, speedup=base.seconds / seconds, predicted=predicted)

    def _seconds(self, work: Callable[[int], None]) -> tuple[float, int]:
        """The median time of a step, and of how many runs."""
        unit = 2 * LONG_GRAPH if self.options.device.startswith("cuda") else 2  # whole graphs, both phases
        work(unit + 2)  # graphs are made, and what a first run costs is behind
        least = QUICK_LEAST if self.options.quick else LEAST
        steps = unit * max(1, round(least / max(_clock(lambda: work(unit)), 1e-9)))
        times = [_clock(lambda: work(steps)) / steps for _ in range(RUNS)]
        return statistics.median(times), len(times)

    def _rates(self, sites: Sites, seconds: float) -> dict[str, float | None]:
        """Millions of sites of fluid and boundary values a second, and the share of a copy's bandwidth."""
        updated = sites.count - sites.wall_sites
        fluid = sites.count - int(np.count_nonzero(sites.kinds == 1))
        moved = 2 * sites.lattice.size * sites.storage.size * updated
        copy = copy_bandwidth(self.options.device)
        return {
            "mlups": fluid / seconds * 1e-6, "sites_per_second": fluid / seconds, "bytes_per_second": moved / seconds,
            "bandwidth_fraction": moved / seconds / copy if copy else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A box in float64 on the CPU: populations that depart first, those that then arrive, those that arrive after the steps."""

    box: Box
    departing: npt.NDArray[np.float32]
    arriving: npt.NDArray[np.float32]
    after: npt.NDArray[np.float64]

    def load(self, flow: Sitewise, sites: Sites) -> None:
        """Give sites the same state as this box had."""
        if sites.form.first is not None:
            _set_departing(sites, self.departing)
        else:
            flow.set_populations(sites, self.arriving)


def make_truth(box: Box, seed: int, *, walls: bool) -> Truth:
    """The same functions in float64, compiled in the plainest form: pull, SoA, everything in one kernel."""
    form = Form(name="float64", storage="f64", streaming="pull", plan=Plan(branches="together"), walls=walls)
    flow, sites, values = form.flow(box.lattice), form.sites(box, "cpu"), values_of(box.lattice)
    departing = box.start(seed, each=True)
    _set_departing(sites, departing)
    arriving = flow.populations(sites, **values).astype(np.float32)
    _set_departing(sites, departing)
    flow.run(sites, STEPS, plan=form.plan, **values)
    return Truth(box, departing, arriving, flow.populations(sites, **values))


def _set_departing(sites: Sites, populations: npt.NDArray[np.float32]) -> None:
    """As if these populations had left the sites in a step before."""
    sites.step, sites.fresh = 0, False
    for q in range(sites.lattice.size):
        line = bring(np.ascontiguousarray(populations[q].reshape(-1)), sites.device)
        setattr(sites.current, f"q{q}", line.astype(sites.storage.dtype))


def _work(form: Form, flow: Sitewise, sites: Sites, values: dict[str, Any]) -> Callable[[int], None]:
    """Run so many steps, and wait for them."""
    if not form.launched:
        return flow.stepper(sites, plan=form.plan, **values).run

    def one_by_one(steps: int) -> None:
        for _ in range(steps):
            flow(sites, plan=form.plan, **values)

    return one_by_one


def _facts(sites: Sites, call: SiteCall) -> dict[str, float | int | str | None]:
    """How the version was run; of several kernels the registers and occupancy are those of the bulk's, the first one."""
    resources = call.resources
    return {
        "streaming": sites.form.name, "branches": call.plan.branches, "kernels": len(call.executable.program.kernels),
        "bytes_per_site": sites.nbytes / sites.count, "special_fraction": sites.special / sites.count,
        "registers": resources.get("registers"), "occupancy": resources.get("occupancy"),
    }  # fmt: skip


def _is_sound(sites: Sites) -> bool:
    module = array_module(sites.device)
    lines = (getattr(sites.current, f"q{q}") for q in range(sites.lattice.size))
    return all(bool(module.max(module.abs(line)) < LARGEST) for line in lines)


def _clock(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
