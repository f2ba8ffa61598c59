"""Flows that people use to test a solver, and to see one: found in the modules of this package, so
that a new one is one new file.
"""

from __future__ import annotations

import importlib
import pkgutil

from lanewise.sims.lbm.cases.registry import CASES, Case, Flow, Probe, Request, Series, Setup, State
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError

__all__ = ["CASES", "Case", "Flow", "Probe", "Request", "Series", "Setup", "State", "find_case"]


def _discovered() -> dict[str, Case]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    cases = (vars(importlib.import_module(f"{__name__}.{name}")).get("CASE") for name in names)
    return {case.name: case for case in cases if isinstance(case, Case)}


CASES.update(_discovered())


def find_case(name: str) -> Case:
    """The case of this name; raises `InputError` naming the others."""
    if name not in CASES:
        raise InputError(unknown("case", name, CASES))
    return CASES[name]
