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
    """The layout "soa", "aos", "aoas", "aoas(8)", "soaoas", "soaoas(position mass | velocity)" or "aosoa(16)".

    Case matters for fields only. Raises `InputError` for another name.
    """
    groups = re.fullmatch(r"soaoas\(([^()]*[^\d\s()][^()]*)\)", name.strip(), re.IGNORECASE)
    if groups is not None:
        parts = [part.split() for part in groups.group(1).split("|")]
        if not all(parts):
            raise InputError(f"the layout {name!r} has an empty group; wanted names of fields between the bars")
        return SoAoAS(parts)
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
