"""Flows that people use to test a solver, and to see one: found in the modules of this package, so
that a new one is one new file.
"""

from __future__ import annotations

from lanewise.sims.common.checks import known
from lanewise.sims.common.discovered import discovered
from lanewise.sims.lbm.cases.registry import CASES, Case, Flow, Probe, Request, Series, Setup, State

__all__ = ["CASES", "Case", "Flow", "Probe", "Request", "Series", "Setup", "State", "find_case"]


CASES.update({case.name: case for case in discovered(__name__, __path__, "CASE", Case)})


def find_case(name: str) -> Case:
    """The case of this name; raises `InputError` naming the others."""
    return known("case", name, CASES)
