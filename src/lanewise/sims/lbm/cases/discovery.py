"""The cases that there are: found in the modules beside this one, so that a new one is one new file."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from lanewise.errors import InputError
from lanewise.sims.lbm.cases.registry import Case


def _found() -> dict[str, Case]:
    package = __name__.rpartition(".")[0]
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = (importlib.import_module(f"{package}.{name}") for name in names if f"{package}.{name}" != __name__)
    cases = (vars(module).get("CASE") for module in modules)
    return {case.name: case for case in cases if isinstance(case, Case)}


CASES: dict[str, Case] = _found()
"""Name -> case, in the order of the file names."""


def find_case(name: str) -> Case:
    """The case of this name; raises `InputError` naming the others."""
    if name not in CASES:
        raise InputError(f"unknown case {name!r}; wanted one of {', '.join(CASES)}")
    return CASES[name]
