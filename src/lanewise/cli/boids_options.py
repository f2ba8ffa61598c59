"""The options of `lanewise boids run`: names, units and help. None means that the option was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from lanewise.cli.options import METHOD, OUTPUT, STATE

RULES = "Rules (defaults are OpenSteer's; lengths, times and masses in its units)"

ANGLE = "only those at angles to the heading with a larger cosine"


def _option(panel: str, metavar: str, text: str, *names: str, minimum: float | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=False, min=minimum)


Number: TypeAlias = float | None

Agents = Annotated[int | None, _option(STATE, "N", "number of agents (default 16384, or what the table has)")]
From = Annotated[
    Path | None, _option(STATE, "FILE.csv", "start from this table of agents (columns as --final writes)", "--from")
]
World = Annotated[Number, _option(STATE, "X", "radius of the world (default 50)")]
Boundary = Annotated[
    str | None,
    _option(
        STATE, "NAME",
        "wrap, open, periodic or bounded; or a scene: inside-sphere, outside-sphere, outside-spheres, outside-spheres-wrap, "
        "rectangle, rectangle-wrap, outside-box, inside-box (default wrap)",
    ),
]  # fmt: skip
Obstacles = Annotated[
    list[str] | None,
    _option(
        STATE, "TEXT|FILE.toml",
        "sphere:x,y,z,r  box:x,y,z,w,h,d  rectangle:x,y,z,w,h  plane:x,y,z,nx,ny,nz, each with ,inside ,outside or ,both; repeat for more",
        "--obstacle",
    ),
]  # fmt: skip
Start = Annotated[str | None, _option(STATE, "NAME", "ball, world, cube, shell, disc or clusters (default ball)")]
StartRadius = Annotated[Number, _option(STATE, "X", "radius of the start (default a share of the world's)")]
Seed = Annotated[int | None, _option(STATE, "N", "of the random start (default 0)")]

Semantics = Annotated[
    str | None,
    _option(METHOD, "NAME", "sync: all steer, then all move; seq: one after another (CPU); thesis (default sync)"),
]
K = Annotated[int | None, _option(METHOD, "N", "only the k nearest count (default all within the radius; thesis 7)")]
Search = Annotated[str | None, _option(METHOD, "NAME", "auto, all-pairs, static-grid or dynamic-grid (default auto)")]
ThinkEvery = Annotated[int | None, _option(METHOD, "N", "every agent steers anew in each N-th step only (default 1)")]
Steps = Annotated[int | None, _option(METHOD, "N", "steps to take (default 1000; with --resume what is left)")]
Dt = Annotated[Number, _option(METHOD, "X", "time step (default 1/60; with --resume as before)")]
Precision = Annotated[str | None, _option(METHOD, "NAME", "f32 or f64 (default f32)")]
Device = Annotated[str | None, _option(METHOD, "NAME", "cpu, cuda, cuda:1, ... (default cpu; with --resume as before)")]
LayoutName = Annotated[str | None, _option(METHOD, "NAME", "soa, aos, soaoas, ... (default the device's best)")]

Radius = Annotated[Number, _option(RULES, "X", "how far flockmates are seen (default 9; thesis 4.243)")]
NearRadius = Annotated[
    Number, _option(RULES, "X", "nearer ones are seen in every direction (default 1.5; thesis 1.225)")
]
SeparationRadius = Annotated[Number, _option(RULES, "X", "agents get out of the way of nearer ones (default 5)")]
SeparationCosine = Annotated[Number, _option(RULES, "X", f"{ANGLE} (default -0.707)")]
SeparationWeight = Annotated[Number, _option(RULES, "X", "(default 12)")]
AlignmentRadius = Annotated[Number, _option(RULES, "X", "agents turn to where nearer ones head (default 7.5)")]
AlignmentCosine = Annotated[Number, _option(RULES, "X", f"{ANGLE} (default 0.7)")]
AlignmentWeight = Annotated[Number, _option(RULES, "X", "(default 8)")]
CohesionRadius = Annotated[Number, _option(RULES, "X", "agents steer to the middle of nearer ones (default 9)")]
CohesionCosine = Annotated[Number, _option(RULES, "X", f"{ANGLE} (default -0.15)")]
CohesionWeight = Annotated[Number, _option(RULES, "X", "(default 8)")]
MaxForce = Annotated[Number, _option(RULES, "X", "largest force of steering (default 27)")]
MaxSpeed = Annotated[Number, _option(RULES, "X", "(default 9)")]
Mass = Annotated[Number, _option(RULES, "X", "of an agent (default 1)")]
AgentRadius = Annotated[Number, _option(RULES, "X", "room that an agent keeps to obstacles (default 0.5)")]
AvoidTime = Annotated[
    Number, _option(RULES, "X", "an obstacle is avoided when it would be met within this time (default 1)")
]

LOOK = "Pictures and movies"
Colour = Annotated[str | None, _option(LOOK, "NAME", "of agents: heading, speed or cluster (default heading)")]
ClusterRadius = Annotated[Number, _option(LOOK, "X", "agents nearer than this are of one cluster (default 5)")]
Camera = Annotated[
    str | None,
    _option(
        LOOK, "NAME",
        "fixed; orbit, around the flock; offset, follow or pov, beside, behind or as one agent (default fixed)",
    ),
]  # fmt: skip
Select = Annotated[int | None, _option(LOOK, "ID", "the agent that is marked, and that the camera goes with")]
Size = Annotated[
    str | None, _option(LOOK, "WxH", "in pixels (default 1920x1080; movies 1280x720 as MP4, 800x450 as GIF)")
]
Fps = Annotated[Number, _option(LOOK, "X", "frames a second of the movie (default 30 as MP4, 25 as GIF)")]

Out = Annotated[
    Path | None,
    _option(OUTPUT, "FILE.h5", "HDF5 file of the trajectory and the state; checkpoints go there on the way"),
]
Final = Annotated[Path | None, _option(OUTPUT, "FILE.csv", "table of the agents at the end")]
Every = Annotated[
    int | None,
    _option(
        OUTPUT, "N", "steps between frames of the trajectory (default none) and of the movie (default the flock's own pace)", minimum=1
    ),
]  # fmt: skip
Plot = Annotated[Path | None, _option(OUTPUT, "FILE.png", "picture of the flock at the end")]
Movie = Annotated[Path | None, _option(OUTPUT, "FILE.gif|mp4", "animation of the flock")]
Resume = Annotated[Path | None, _option(OUTPUT, "FILE.h5", "continue this checkpoint, bit-exact on the same device")]
CheckpointEvery = Annotated[
    int | None, _option(OUTPUT, "N", "steps between checkpoints (default: a minute or more)", minimum=1)
]
Overwrite = Annotated[bool, _option(OUTPUT, "", "replace files that exist", "--overwrite")]
Json = Annotated[bool, _option(OUTPUT, "", "end with one line of JSON", "--json")]
Quiet = Annotated[bool, _option(OUTPUT, "", "no progress bar", "--quiet")]
