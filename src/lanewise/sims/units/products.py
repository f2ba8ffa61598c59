"""What a scan must know of a product: which numbers of its summary are results, and where its
checkpoint says how far it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from lanewise.sims import PRODUCTS
from lanewise.sims.common.films import LOOK
from lanewise.sims.common.options import OUTPUT
from lanewise.sims.common.viewing import VIEW
from lanewise.support.attributes import frozen, unknown
from lanewise.support.errors import InputError
from lanewise.support.interrupts import interrupts_wait


@frozen
@dataclass(frozen=True, slots=True)
class Scanned:
    """results: names of its summary that depend on its settings alone, not on the machine or on
    where a run was interrupted; of a dictionary, all within. place: the group of the checkpoint
    with the attribute `step`.
    """

    results: tuple[str, ...]
    place: str


SCANNED: Mapping[str, Scanned] = MappingProxyType(
    {
        "gravity": Scanned(
            (
                "step", "time", "energy_initial", "energy_final", "energy_drift", "energy_error",
                "momentum_drift", "angular_momentum_drift", "virial_ratio",
            ),
            "lanewise",
        ),
        "lbm": Scanned(
            ("step", "viscosity", "tau", "mass_drift", "steady", "change", "stagger", "results"),
            "/",
        ),
        "boids": Scanned(
            (
                "step", "time", "polarisation_initial", "polarisation", "speed",
                "nearest_neighbour_distance", "cell_population",
            ),
            "/",
        ),
    }
)  # fmt: skip

PANELS = (OUTPUT, LOOK, VIEW)
"""Of the help: their options are about files, pictures and a window, which a unit decides for
itself, or which name one thing for all units.
"""
OF_UNITS = ("checkpoint_every", "checkpoint_seconds", "diagnostics_every", "every")
"""Options of those panels that a unit may have: what is written into its own checkpoint."""


def scanned(product: str) -> Scanned:
    """What is known of a product; raises InputError for one that has no scans."""
    if product == "waves":
        raise InputError(
            "waves divides its searches itself: wanted lanewise waves run --units N --out FILE"
        )
    if product not in SCANNED:
        raise InputError(unknown("product", product, [n for n in PRODUCTS if n in SCANNED]))
    return SCANNED[product]


def results_of(product: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a summary, those of a dictionary as `speed.mean`."""
    found: dict[str, Any] = {}
    for name in scanned(product).results:
        match summary.get(name):
            case dict() as inner:
                values = cast("dict[str, Any]", inner)
                found.update({f"{name}.{key}": value for key, value in values.items()})
            case value:
                found[name] = value
    return found


@interrupts_wait()
def step_of(product: str, path: Path) -> int | None:
    """The step of a checkpoint; None where there is none that can be read."""
    import h5py

    try:
        with h5py.File(path) as file:
            group = cast("Any", file[scanned(product).place])
            return int(group.attrs["step"])
    except (OSError, KeyError, ValueError):
        return None
