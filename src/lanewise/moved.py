"""Old names, for one release: what has moved is found under the name that it had, with a `DeprecationWarning` that says the new one.

`MOVED` is all there is to say about a move. Modules that are gone are found by `Moved`, which Python asks when nothing else has a module
of that name; what left a module that is still there is found by its `__getattr__ = forward(__name__)`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

MOVED = {
    "lanewise.explanation.Bound": "lanewise.explanation.Bottleneck",
    "lanewise.kernels": "",
    "lanewise.kernels.arguments": "lanewise.launch.arguments",
    "lanewise.kernels.compiled": "lanewise.launch.compiled",
    "lanewise.kernels.elementwise": "lanewise.patterns.elementwise.kernel",
    "lanewise.kernels.helper": "lanewise.frontend.helpers",
    "lanewise.kernels.pairwise": "lanewise.patterns.pairwise.kernel",
    "lanewise.kernels.reductions": "lanewise.patterns.elementwise.kernel",
    "lanewise.kernels.repeated": "lanewise.launch.repeated",
    "lanewise.kernels.samples": "lanewise.patterns.samples",
    "lanewise.kernels.search_picker": "lanewise.patterns.search.picker",
    "lanewise.kernels.searched": "lanewise.patterns.search.searched",
    "lanewise.kernels.sequential": "lanewise.patterns.sequential",
    "lanewise.kernels.site_calls": "lanewise.patterns.sitewise.calls",
    "lanewise.kernels.site_function": "lanewise.patterns.sitewise.function",
    "lanewise.kernels.site_kernels": "lanewise.patterns.sitewise.kernels",
    "lanewise.kernels.site_kinds": "lanewise.patterns.sitewise.call_kinds",
    "lanewise.kernels.site_observer": "lanewise.patterns.sitewise.kernels",
    "lanewise.kernels.site_stepper": "lanewise.patterns.sitewise.calls",
    "lanewise.kernels.site_values": "lanewise.patterns.sitewise.function",
    "lanewise.kernels.sitewise": "lanewise.patterns.sitewise.kernel",
    "lanewise.kernels.support": "lanewise.launch.support",
    "lanewise.layouts.LayoutChoice": "lanewise.LayoutChoice",
    "lanewise.layouts.Use": "lanewise.Use",
    "lanewise.layouts.choice": "lanewise.advice.choice",
    "lanewise.layouts.choose": "lanewise.advice.choose",
    "lanewise.layouts.choose_layout": "lanewise.choose_layout",
    "lanewise.layouts.uses": "lanewise.advice.uses",
    "lanewise.plot.flow": "lanewise.sims.lbm.view.flow",
    "lanewise.plot.gravity": "lanewise.sims.gravity.view",
    "lanewise.plot.reference": "lanewise.sims.lbm.view.slices",
    "lanewise.runtime.executable": "lanewise.launch.executable",
    "lanewise.runtime.launches": "lanewise.runtime.programs",
    "lanewise.search": "lanewise.patterns.search",
    "lanewise.search.all_pairs": "lanewise.patterns.search.all_pairs",
    "lanewise.search.automatic": "lanewise.patterns.search.automatic",
    "lanewise.search.base": "lanewise.patterns.search.base",
    "lanewise.search.dynamic_grid": "lanewise.patterns.search.dynamic_grid",
    "lanewise.search.queries": "lanewise.patterns.search.queries",
    "lanewise.search.ragged": "lanewise.patterns.search.ragged",
    "lanewise.search.static_grid": "lanewise.patterns.search.static_grid",
    "lanewise.search.worlds": "lanewise.patterns.search.worlds",
    "lanewise.sims.lbm.output": "",
    "lanewise.sims.lbm.output.csv": "lanewise.sims.lbm.files",
    "lanewise.sims.lbm.output.hdf5": "lanewise.sims.lbm.files",
    "lanewise.sites": "",
    "lanewise.sites.array": "lanewise.patterns.sitewise.sites",
    "lanewise.sites.edges": "lanewise.patterns.sitewise.kinds",
    "lanewise.sites.fractions": "lanewise.patterns.sitewise.fractions",
    "lanewise.sites.kinds": "lanewise.patterns.sitewise.kinds",
    "lanewise.sites.streaming": "lanewise.patterns.sitewise.streaming",
    "lanewise.sites.flags": "lanewise.patterns.sitewise.flags",
    "lanewise.tuning.store": "lanewise.launch.tuned_plans",
}
"""The old name of a module, or of something in one, and the new one; "" where only modules within it have one."""


def forward(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that is gone, or that something has left."""

    def forwarded(name: str) -> Any:
        old = f"{module}.{name}"
        from pkgutil import resolve_name  # takes longer to import than all the rest here

        within = MOVED.get(module)
        new = MOVED.get(old) or (f"{within}.{name}" if within and not name.startswith("_") else "")
        try:
            value: Any = resolve_name(new)
        except (AttributeError, ValueError):
            raise AttributeError(f"module {module!r} has no attribute {name!r}") from None
        facade = sys.modules["lanewise"]
        home = f"lanewise.{name}" if name in facade.__all__ and getattr(facade, name) is value else new
        warnings.warn(f"{old} is now {home}; the old name goes with the next release", DeprecationWarning, stacklevel=2)
        return value

    return forwarded


class Moved:
    """Finds the modules of `MOVED`, and makes them: each is empty, and gives what the new one has."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname not in MOVED:
            return None
        return ModuleSpec(fullname, cast(Any, self), is_package=any(m.startswith(f"{fullname}.") for m in MOVED))

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module will do."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = forward(module.__name__)


sys.meta_path.append(cast(Any, Moved()))  # the last one: no module that exists is looked for here
