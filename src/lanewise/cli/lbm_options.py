"""The options of `lanewise lbm run`: names, units and help. None means that the option was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

FLOW, METHOD, OUTPUT = "Flow", "Method", "Files and output"


def _option(panel: str, metavar: str, text: str, *names: str, minimum: float | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=False, min=minimum)


CaseName = Annotated[
    str | None,
    typer.Argument(
        metavar="CASE", show_default=False,
        help="cavity, channel, cylinder, duct, karman, sphere or taylor-green (with --resume: left out)",
    ),
]  # fmt: skip
Re = Annotated[float | None, _option(FLOW, "X", "Reynolds number (default the case's)")]
Size = Annotated[int | None, _option(FLOW, "N", "sites across the case's length (default the case's)")]
Speed = Annotated[
    float | None, _option(FLOW, "X", "the case's velocity in sites a step, at most 0.173 (default the case's)")
]
Drive = Annotated[str | None, _option(FLOW, "NAME", "what drives the channel: body-force or pressure")]
Mask = Annotated[Path | None, _option(FLOW, "FILE", "obstacle from a picture (dark is solid) or a .npy array (karman)")]
Stl = Annotated[Path | None, _option(FLOW, "FILE.stl", "obstacle from a closed mesh, --size sites long (sphere)")]
Steps = Annotated[int | None, _option(FLOW, "N", "steps to take (default the case's; with --resume what is left)")]
UntilSteady = Annotated[
    bool | None,
    _option(FLOW, "", "end when the flow is steady, at --steps at the latest", "--until-steady/--no-until-steady"),
]
Tolerance = Annotated[
    float | None,
    _option(FLOW, "X", "change of the velocity, while it crosses the case's length, that counts as steady"),
]

Collision = Annotated[str | None, _option(METHOD, "NAME", "bgk, trt, regularised, mrt or kbc (default the case's)")]
Smagorinsky = Annotated[float | None, _option(METHOD, "X", "constant of Smagorinsky's turbulence model (default none)")]
LatticeName = Annotated[str | None, _option(METHOD, "NAME", "D2Q9, D3Q19 or D3Q27 (default the case's)")]
Walls = Annotated[
    str | None,
    _option(
        METHOD, "NAME", "of round bodies and meshes: interpolated (at their surface) or half-way (default interpolated)"
    ),
]
Precision = Annotated[str | None, _option(METHOD, "NAME", "of the arithmetic: f32 or f64 (default f32)")]
Storage = Annotated[
    str | None, _option(METHOD, "NAME", "of populations: f16 (GPU), f32 or f64 (default the precision)")
]
Streaming = Annotated[str | None, _option(METHOD, "NAME", "in-place (half the memory), pull or push")]
LayoutName = Annotated[str | None, _option(METHOD, "NAME", "soa, aos, aosoa(32), ... (default the device's best)")]
Device = Annotated[str | None, _option(METHOD, "NAME", "cpu, cuda, cuda:1, ... (default cpu; with --resume as before)")]

Out = Annotated[
    Path | None, _option(OUTPUT, "FILE.h5", "HDF5 file of density and velocity; checkpoints go there on the way")
]
Resume = Annotated[Path | None, _option(OUTPUT, "FILE.h5", "continue this checkpoint, bit-exact on the same device")]
CheckpointEvery = Annotated[
    int | None, _option(OUTPUT, "N", "steps between checkpoints (default: a minute or more)", minimum=1)
]
Vti = Annotated[Path | None, _option(OUTPUT, "FILE.vti", "VTK image data of the end, for ParaView")]
Plot = Annotated[Path | None, _option(OUTPUT, "FILE.png", "picture of speed or vorticity at the end")]
Movie = Annotated[Path | None, _option(OUTPUT, "FILE.gif|mp4", "animation of what the picture shows")]
Every = Annotated[int | None, _option(OUTPUT, "N", "steps between frames of the movie (default 200 frames)", minimum=1)]
Forces = Annotated[Path | None, _option(OUTPUT, "FILE.csv", "what the case measures on the way: drag, lift, energy")]
Overwrite = Annotated[bool, _option(OUTPUT, "", "replace files that exist", "--overwrite")]
Json = Annotated[bool, _option(OUTPUT, "", "end with one line of JSON", "--json")]
Quiet = Annotated[bool, _option(OUTPUT, "", "no progress bar", "--quiet")]
