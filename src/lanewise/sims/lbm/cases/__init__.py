"""Flows that people use to test a solver, and to see one: one file each."""

from lanewise.sims.lbm.cases.discovery import CASES, find_case
from lanewise.sims.lbm.cases.registry import Case, Flow, Probe, Request, Setup, State
from lanewise.sims.lbm.cases.series import Series

__all__ = ["CASES", "Case", "Flow", "Probe", "Request", "Series", "Setup", "State", "find_case"]
