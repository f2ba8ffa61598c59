"""What a run of a flow can be told: the flow, how it is computed, when it ends, and its files.

None: the case or the device chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.sims.common.completion import LAYOUTS
from lanewise.sims.common.options import (
    CHECKPOINT_EVERY,
    METHOD,
    OUTPUT,
    OVERWRITE,
    PLACE,
    RESUME,
    Option,
    setting,
)

FLOW = "Flow"
WALLS = (INTERPOLATED, HALF_WAY) = ("interpolated", "half-way")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command gets about the flow: the case, arguments of `Case.request`, and an obstacle
    of the user's own.
    """

    case: str | None = setting(
        None,
        Option(
            FLOW,
            "CASE",
            "cavity, channel, cylinder, duct, karman, sphere or taylor-green (with --resume: left "
            "out)",
            argument=True,
            values="lanewise.sims.lbm.cases.CASES",
        ),
    )
    re: float | None = setting(None, Option(FLOW, "X", "Reynolds number (default the case's)"))
    size: int | None = setting(
        None, Option(FLOW, "N", "sites across the case's length (default the case's)")
    )
    speed: float | None = setting(
        None,
        Option(
            FLOW, "X", "the case's velocity in sites per step, at most 0.173 (default the case's)"
        ),
    )
    drive: str | None = setting(
        None,
        Option(
            FLOW,
            "NAME",
            "what drives the channel: body-force or pressure",
            values="lanewise.sims.lbm.cases.channel.DRIVES",
        ),
    )
    lattice: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "D2Q9, D3Q19 or D3Q27 (default the case's)",
            values="lanewise.sims.lbm.arguments.LATTICES",
        ),
    )
    mask: Path | None = setting(
        None,
        Option(FLOW, "FILE", "obstacle from a picture (dark is solid) or a .npy array (karman)"),
    )
    stl: Path | None = setting(
        None, Option(FLOW, "FILE.stl", "obstacle from a closed mesh, --size sites long (sphere)")
    )


@dataclass(frozen=True, slots=True)
class Method:
    """How a flow is computed.

    walls: "interpolated" (where their surface is known, which is the default) or "half-way".
    """

    collision: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "bgk, trt, regularised, mrt or kbc (default the case's)",
            values="lanewise.sims.lbm.operators.registry.OPERATORS",
        ),
    )
    smagorinsky: float = setting(
        0.0, Option(METHOD, "X", "constant of Smagorinsky's turbulence model (default none)")
    )
    walls: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "of round bodies and meshes: interpolated (at their surface) or half-way (default "
            "interpolated)",
            values=WALLS,
        ),
    )
    precision: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "of the arithmetic: f32 or f64 (default f32)",
            values="lanewise.sims.lbm.arguments.PRECISIONS",
        ),
    )
    storage: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "of populations: f16 (GPU), f32 or f64 (default the precision)",
            values="lanewise.sims.lbm.arguments.STORAGES",
        ),
    )
    streaming: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "in-place (half the memory), pull or push",
            values="lanewise.patterns.sitewise.streaming.FORMS",
        ),
    )
    layout: str | None = setting(
        None,
        Option(
            METHOD, "NAME", "soa, aos, aosoa(32), ... (default the device's best)", values=LAYOUTS
        ),
    )
    device: str | None = setting(None, PLACE)


@dataclass(frozen=True, slots=True)
class End:
    """When a run ends: after `steps`, or before when it is steady.

    until_steady: None leaves it to the case, False runs to the end. tolerance: the relative change
    of the velocity that counts as steady, None for the case's own.
    """

    steps: int | None = setting(
        None, Option(FLOW, "N", "steps to take (default the case's; with --resume what is left)")
    )
    until_steady: bool | None = setting(
        None,
        Option(
            FLOW,
            "",
            "end when the flow is steady, at --steps at the latest",
            ("--until-steady/--no-until-steady",),
        ),
    )
    tolerance: float | None = setting(
        None,
        Option(
            FLOW,
            "X",
            "change of the velocity, while it crosses the case's length, that counts as steady",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where results go. `checkpoint_every` and `movie_every` are steps; 0 leaves the choice to the
    run.
    """

    out: Path | None = setting(
        None,
        Option(
            OUTPUT, "FILE.h5", "HDF5 file of density and velocity; checkpoints go there on the way"
        ),
    )
    checkpoint_every: int = setting(0, CHECKPOINT_EVERY)
    vti: Path | None = setting(
        None, Option(OUTPUT, "FILE.vti", "VTK image data of the end, for ParaView")
    )
    plot: Path | None = setting(
        None, Option(OUTPUT, "FILE.png", "picture of speed or vorticity at the end")
    )
    movie: Path | None = setting(
        None, Option(OUTPUT, "FILE.gif|mp4", "animation of what the picture shows")
    )
    movie_every: int = setting(
        0,
        Option(
            OUTPUT,
            "N",
            "steps between frames of the movie (default 200 frames)",
            ("--every",),
            minimum=1,
        ),
    )
    forces: Path | None = setting(
        None, Option(OUTPUT, "FILE.csv", "what the case measures on the way: drag, lift, energy")
    )
    overwrite: bool = setting(False, OVERWRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The checkpoint that a run continues from."""

    resume: Path | None = setting(None, RESUME)


ORDER = {"lattice": "smagorinsky", "resume": "out"}
"""Where options stand in the help, if not where they are declared: behind which one."""
