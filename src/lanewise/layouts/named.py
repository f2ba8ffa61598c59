"""Layouts by the names that command lines and files use."""

from __future__ import annotations

import re

from lanewise.errors import InputError
from lanewise.layouts.aoas import AoAS
from lanewise.layouts.aos import AoS
from lanewise.layouts.aosoa import AoSoA
from lanewise.layouts.base import Layout
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS


def layout_by_name(name: str) -> Layout:
    """The layout "soa", "aos", "aoas", "aoas(8)", "soaoas" or "aosoa(16)", in any case; raises `InputError` for another."""
    match = re.fullmatch(r"(aos|soa|aoas|soaoas|aosoa)(?:\((\d+)\))?", name.strip().lower())
    if match is None:
        raise InputError(
            f"unknown layout {name!r}; wanted aos, soa, aoas, soaoas, aosoa, or a width with it as in aosoa(16)"
        )
    kind, number = match.group(1), match.group(2)
    match kind, number:
        case "aos", None:
            return AoS()
        case "soa", None:
            return SoA()
        case "soaoas", None:
            return SoAoAS()
        case "aoas", _:
            return AoAS(int(number)) if number else AoAS()
        case "aosoa", _:
            return AoSoA(int(number)) if number else AoSoA()
        case _:
            raise InputError(f"the layout {kind} takes no number, found {name!r}")
