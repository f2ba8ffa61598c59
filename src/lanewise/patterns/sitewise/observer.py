"""Functions that look at the populations that arrive, and return values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lanewise import types as t
from lanewise.errors import ArgumentError
from lanewise.launch.executable import Executable
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.call_values import classify_values
from lanewise.patterns.sitewise.calls import SiteCall, bind_phase, compile_phase
from lanewise.patterns.sitewise.function import SiteFunction
from lanewise.patterns.sitewise.kernels import SiteKernels
from lanewise.patterns.sitewise.sites import Sites
from lanewise.plan import Plan, check_plan
from lanewise.runtime.memory import array_module


@dataclass(eq=False)
class Observer:
    """A function that looks at the populations that arrive, and returns a value or several for each site."""

    kernels: SiteKernels
    function: SiteFunction
    compiled: dict[Any, Executable] = field(default_factory=dict[Any, Executable])

    def __call__(self, sites: Sites, *, plan: Plan | None = None, **values: Any) -> Any:
        """Arrays of shape (count,) or (count, components) on the sites' device: one, or a tuple of them; zeros at walls."""
        check_plan(self.function.name, plan)
        self.kernels.kinds.check_sites(sites)
        sites.whole.check()
        look, arrays = self._bound(sites, sites.step, sites.fresh, plan, values)
        look()
        return arrays[0] if len(arrays) == 1 else arrays

    def prepare(self, sites: Sites, step: int, **values: Any) -> None:
        """Compile what looks at the sites after `step` steps, one at least."""
        self._bound(sites, step, False, None, values)

    def _bound(
        self, sites: Sites, step: int, fresh: bool, plan: Plan | None, values: dict[str, Any]
    ) -> tuple[SiteCall, tuple[Any, ...]]:
        """What looks, and the arrays that it fills."""
        kernels, kinds, f = self.kernels, self.kernels.kinds, self.function
        f.notice()
        if f.real != kinds.real:
            raise ArgumentError(f"{f.name} computes in {f.real}, and {kinds.name} in {kinds.real}")
        given = classify_values(f.name, sites, values, f.parameters, kinds.known_values(), kinds.wall_velocities(sites))
        key = (f.version, sites.form.phase(step, fresh=fresh).name, plan, *kernels.specialisation(sites, given))
        if key not in self.compiled:
            arguments = kernels.arguments(sites, step, fresh, given, (f.update,))
            self.compiled[key] = compile_phase(partial(build_sitewise, arguments), sites, plan)
        module = array_module(sites.device)
        results = tuple(
            (module.zeros((sites.count, k.length) if isinstance(k, t.Vector) else sites.count, t.scalar_of(k).dtype), k)
            for k in f.update.lowered.results
        )
        if not results:
            raise ArgumentError(f"{f.name} returns nothing to observe")
        return bind_phase(self.compiled[key], sites, step, given, results), tuple(r for r, _ in results)
