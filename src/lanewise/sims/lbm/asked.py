"""What no flow has, told from the settings of a run before there is a flow."""

from __future__ import annotations

from lanewise.layouts import layout_by_name
from lanewise.sims.common.checks import check_known, check_steps
from lanewise.sims.common.devices import CPU
from lanewise.sims.lbm.arguments import (
    check_smagorinsky,
    chosen_numbers,
    chosen_parameters,
    chosen_streaming,
)
from lanewise.sims.lbm.cases import Case, Request
from lanewise.sims.lbm.checks import check_mach
from lanewise.sims.lbm.options import WALLS, End, Method
from lanewise.support.errors import InputError


def check_asked(case: Case, request: Request, method: Method, end: End) -> None:
    """Raise `InputError` for settings that no flow has, as far as that can be told without one."""
    if end.steps is not None:
        check_steps(end.steps)
    check_mach([request.speed], f"speed of the case, {case.speed_of},")
    if end.tolerance is not None:
        # the setup says of a case that it is never steady by itself
        check_tolerance(end.tolerance, end.until_steady or end.steps is None)
    device = method.device or CPU.name
    chosen_numbers(method.precision, method.storage, device)
    chosen_streaming(method.streaming, device)
    chosen_parameters(method.collision or case.collision, None)
    check_smagorinsky(method.smagorinsky)
    if method.walls is not None:
        check_known("walls", method.walls, WALLS)
    if method.layout:
        layout_by_name(method.layout)


def check_tolerance(tolerance: float, until_steady: bool) -> None:
    """Refuse what no change is below, what every one is, and a tolerance that nothing would look
    at.
    """
    if not 0 < tolerance < 1:
        raise InputError(
            f"the tolerance is {tolerance:g}; wanted above 0 and below 1: a relative change of the "
            "velocity"
        )
    if not until_steady:
        raise InputError(
            f"the tolerance {tolerance:g} would not be looked at, because this run takes all its "
            "steps; add --until-steady"
        )
