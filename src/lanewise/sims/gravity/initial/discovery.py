"""The initial conditions that there are: found in the modules beside this one, so that a new one is one new file."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from lanewise.sims.gravity.initial.registry import InitialCondition


def _found() -> dict[str, InitialCondition]:
    package = __name__.rpartition(".")[0]
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = (importlib.import_module(f"{package}.{name}") for name in names if f"{package}.{name}" != __name__)
    conditions = (vars(module).get("CONDITION") for module in modules)
    return {condition.name: condition for condition in conditions if isinstance(condition, InitialCondition)}


INITIAL_CONDITIONS: dict[str, InitialCondition] = _found()
"""Name -> initial condition, in the order of the file names."""
