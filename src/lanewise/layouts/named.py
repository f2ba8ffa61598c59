"""Layouts by the names that command lines and files use, and the layout of arrays that name
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.layouts.aoas import AoAS
from lanewise.layouts.aos import AoS
from lanewise.layouts.aosoa import AoSoA
from lanewise.layouts.base import Layout
from lanewise.layouts.soa import SoA
from lanewise.layouts.soaoas import SoAoAS
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

Maker = Callable[[str, str], Layout]
"""The layout for a name and what stands in brackets after it, which may be nothing."""


def plain(layout: Callable[[], Layout]) -> Maker:
    """A layout without numbers."""

    def make(name: str, inside: str) -> Layout:
        if inside:
            kind = name.partition("(")[0].strip().lower()
            raise (
                _unknown(name)
                if not inside.isdigit()
                else InputError(f"the layout {kind} takes no number, found {name!r}")
            )
        return layout()

    return make


def wide(layout: Callable[..., Layout]) -> Maker:
    """A layout with a width, if one is given."""

    def make(name: str, inside: str) -> Layout:
        if inside and not inside.isdigit():
            raise _unknown(name)
        return layout(int(inside)) if inside else layout()

    return make


def _grouped(name: str, inside: str) -> Layout:
    if not inside or inside.strip().isdigit():
        return plain(SoAoAS)(name, inside)
    parts = [part.split() for part in inside.split("|")]
    if not all(parts):
        raise InputError(
            f"the layout {name!r} has an empty group; wanted names of fields between the bars"
        )
    return SoAoAS(parts)


LAYOUTS: Mapping[str, Maker] = MappingProxyType({
    "aos": plain(AoS),
    "soa": plain(SoA),
    "aoas": wide(AoAS),
    "soaoas": _grouped,
    "aosoa": wide(AoSoA),
})  # fmt: skip


COMPARED: tuple[Layout, ...] = (AoS(), SoA(), SoAoAS(), AoAS())
"""What explanations compare the layout of a call with."""


def layout_by_name(name: str) -> Layout:
    """The layout "soa", "aos", "aoas", "aoas(8)", "soaoas", "soaoas(position mass | velocity)" or
    "aosoa(16)".

    Case matters for fields only. Raises `InputError` for another name.
    """
    match = re.fullmatch(r"(\w+)(?:\(([^()]+)\))?", name.strip())
    if match is None or match.group(1).lower() not in LAYOUTS:
        raise _unknown(name)
    return LAYOUTS[match.group(1).lower()](name, match.group(2) or "")


def _unknown(name: str) -> InputError:
    asked = near(name.partition("(")[0].strip().lower(), LAYOUTS)
    return InputError(
        f"unknown layout {name!r}{asked or ';'} wanted {', '.join(LAYOUTS)}, or a width with it as "
        "in aosoa(16)"
    )


def default_layout(record: Record, device: str) -> Layout:
    """SoA for SIMD units, whose lanes read neighbours; SoAoAS for GPUs, whose threads read up to 16
    bytes at once.
    """
    del record
    return SoAoAS() if target_of(device).has_blocks else SoA()
