"""The options of `lanewise gravity run`: names, units and help.

Most defaults are None here, so that an option given together with --resume can be told from one left out; the help says
what stands in for it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

STATE, METHOD, OUTPUT = "Initial state", "Method", "Files and output"
INITIAL_CONDITIONS = "plummer, uniform-sphere, two-body, figure-eight, pythagorean, galaxies"


def _option(panel: str, metavar: str, text: str, *names: str, minimum: float | None = None) -> Any:
    return typer.Option(
        *names, metavar=metavar, help=text, rich_help_panel=panel, show_default=False, min=minimum,
        callback=None if minimum is None else _a_number,
    )  # fmt: skip


def _a_number(value: Any) -> Any:
    """Refuse NaN, which some versions of typer take for a number within any range."""
    if isinstance(value, float) and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


Ic = Annotated[
    str | None,
    _option(STATE, "NAME|FILE", f"{INITIAL_CONDITIONS}; or a Gadget HDF5, Tipsy, NPZ or CSV file (default plummer)"),
]
Bodies = Annotated[int | None, _option(STATE, "N", "number of bodies (default 16384, or what the file or problem has)")]
Seed = Annotated[int | None, _option(STATE, "N", "of random initial conditions (default 0)")]
GravitationalConstant = Annotated[
    float | None,
    _option(STATE, "X", "G in the units of the bodies (default 1)", "--gravitational-constant", "-G"),
]

Steps = Annotated[int | None, _option(METHOD, "N", "time steps to take (default 100; with --resume what is left)")]
Dt = Annotated[float | None, _option(METHOD, "X", "time step (default 0.001)")]
Softening = Annotated[float | None, _option(METHOD, "X", "Plummer softening length (default the file's own, or 0)")]
IntegratorName = Annotated[str | None, _option(METHOD, "NAME", "leapfrog, euler or yoshida4 (default leapfrog)")]
Precision = Annotated[
    str | None, _option(METHOD, "NAME", "f32, f64, or mixed: float64 state, float32 forces (default f32)")
]
Device = Annotated[str | None, _option(METHOD, "NAME", "cpu, cuda, cuda:1, ... (default cpu; with --resume as before)")]
LayoutName = Annotated[
    str | None, _option(METHOD, "NAME", "soa, aos, aoas, soaoas or aosoa (default the device's best)")
]

Out = Annotated[
    Path | None, _option(OUTPUT, "FILE", "Gadget HDF5 file of the final state; checkpoints go there on the way")
]
Resume = Annotated[Path | None, _option(OUTPUT, "FILE", "continue this checkpoint, bit-exact on the same device")]
Overwrite = Annotated[bool, _option(OUTPUT, "", "replace files that exist", "--overwrite")]
DiagnosticsEvery = Annotated[
    int, _option(OUTPUT, "N", "measure energies every N steps (default 0: ten times a run)", minimum=0)
]
SnapshotEvery = Annotated[
    int, _option(OUTPUT, "N", "also write OUT_00000100.h5 and so on every N steps (default 0: none)", minimum=0)
]
CheckpointSeconds = Annotated[
    float, _option(OUTPUT, "X", "seconds of wall time between checkpoints (default 10)", minimum=0.0)
]
Plot = Annotated[Path | None, _option(OUTPUT, "FILE.png", "picture of the bodies and of the energy error")]
Json = Annotated[bool, _option(OUTPUT, "", "end with one line of JSON", "--json")]
Quiet = Annotated[bool, _option(OUTPUT, "", "no progress bar", "--quiet")]
