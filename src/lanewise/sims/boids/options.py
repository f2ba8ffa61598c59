"""What a run of a flock can be told, besides the numbers of the rules (`Parameters`): the flock,
its files, and how it is painted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.sims.common.completion import LAYOUTS
from lanewise.sims.common.films import LOOK, parse_size
from lanewise.sims.common.options import (
    CHECKPOINT_EVERY,
    METHOD,
    OUTPUT,
    OVERWRITE,
    PLACE,
    RESUME,
    STATE,
    Option,
    setting,
)

DT = 1 / 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command gets about a flock: arguments of `Flock`, with its defaults, also a table
    of agents and a checkpoint.
    """

    agents: int | None = setting(
        None, Option(STATE, "N", "number of agents (default 16384, or what the table has)")
    )
    table: Path | None = setting(
        None,
        Option(
            STATE,
            "FILE.csv",
            "start from this table of agents (columns as --final writes)",
            ("--from",),
        ),
    )
    world: float = setting(50.0, Option(STATE, "X", "radius of the world (default {default})"))
    boundary: str = setting(
        "wrap",
        Option(
            STATE,
            "NAME",
            "wrap, open, periodic or bounded; or a scene: inside-sphere, outside-sphere, "
            "outside-spheres, outside-spheres-wrap, "
            "rectangle, rectangle-wrap, outside-box, inside-box (default {default})",
            values="lanewise.sims.boids.boundaries.BOUNDARIES",
        ),
    )
    obstacles: list[str] | None = setting(
        None,
        Option(
            STATE,
            "TEXT|FILE.toml",
            "sphere:x,y,z,r  box:x,y,z,w,h,d  rectangle:x,y,z,w,h  plane:x,y,z,nx,ny,nz, each with "
            ",inside ,outside or ,both; "
            "repeat for more",
            ("--obstacle",),
        ),
    )
    start: str = setting(
        "ball",
        Option(
            STATE,
            "NAME",
            "ball, world, cube, shell, disc or clusters (default {default})",
            values="lanewise.sims.boids.initial.STARTS",
        ),
    )
    start_radius: float | None = setting(
        None, Option(STATE, "X", "radius of the start (default a fraction of the world's)")
    )
    seed: int = setting(0, Option(STATE, "N", "of the random start (default {default})"))
    dimension: int = setting(
        3, Option(STATE, "N", "3, or 2: a flock in the plane y = 0 (default {default})")
    )
    semantics: str = setting(
        "sync",
        Option(
            METHOD,
            "NAME",
            "sync: all steer, then all move; seq: one after another (CPU); thesis (default "
            "{default})",
            values="lanewise.sims.boids.parameters.SEMANTICS",
        ),
    )
    k: int | None = setting(
        None,
        Option(METHOD, "N", "only the k nearest count (default all within the radius; thesis 7)"),
    )
    search: str = setting(
        "auto",
        Option(
            METHOD,
            "NAME",
            "auto, all-pairs, static-grid, cell-array or dynamic-grid (default {default})",
            values="lanewise.sims.boids.choice.SEARCHES",
        ),
    )
    think_every: int = setting(
        1,
        Option(
            METHOD,
            "N",
            "every agent updates its steering in each N-th step only (default {default})",
        ),
    )
    collide: bool = setting(
        False,
        Option(METHOD, "", "agents nearer than twice --agent-radius are moved apart in each step"),
    )
    precision: str = setting(
        "f32",
        Option(
            METHOD,
            "NAME",
            "f32 or f64 (default {default})",
            values="lanewise.sims.boids.rules.RECORDS",
        ),
    )
    device: str | None = setting(None, PLACE)
    layout: str | None = setting(
        None,
        Option(METHOD, "NAME", "soa, aos, soaoas, ... (default the device's best)", values=LAYOUTS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How far a run continues, and in which steps."""

    steps: int = setting(
        1000, Option(METHOD, "N", "steps to take (default {default}; with --resume what is left)")
    )
    dt: float = setting(
        DT, Option(METHOD, "X", "time step (default 1/60; with --resume as before)")
    )


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is painted, and how; None: chosen for the run. `size`: (height, width) in pixels.

    The others: see `view.View`.
    """

    plot: Path | None = setting(None, Option(OUTPUT, "FILE.png", "picture of the flock at the end"))
    movie: Path | None = setting(None, Option(OUTPUT, "FILE.gif|mp4", "animation of the flock"))
    colour: str = setting(
        "heading",
        Option(
            LOOK,
            "NAME",
            "of agents: heading, speed or cluster (default {default})",
            values="lanewise.sims.boids.view.colours.COLOURINGS",
        ),
    )
    cluster_radius: float | None = setting(
        None, Option(LOOK, "X", "agents nearer than this are in one cluster (default 5)")
    )
    camera: str = setting(
        "fixed",
        Option(
            LOOK,
            "NAME",
            "fixed; orbit, around the flock; offset, follow or pov, next to, behind or as one "
            "agent (default {default})",
            values="lanewise.sims.boids.view.camera.CAMERAS",
        ),
    )
    select: int | None = setting(
        None, Option(LOOK, "ID", "the agent to mark, which the camera follows")
    )
    size: tuple[int, int] | None = setting(
        None,
        Option(
            LOOK,
            "WxH",
            "in pixels (default 1920x1080; movies 1280x720 as MP4, 800x450 as GIF)",
            parse=parse_size,
        ),
    )
    fps: float | None = setting(
        None, Option(LOOK, "X", "frames per second of the movie (default 30 as MP4, 25 as GIF)")
    )


NO_PICTURES = Pictures()


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go. Intervals are steps; `every` 0: no frames on the way; `checkpoint_every`,
    `movie_every` 0: the run chooses.
    """

    out: Path | None = setting(
        None,
        Option(
            OUTPUT,
            "FILE.h5",
            "HDF5 file of the trajectory and the state; checkpoints go there on the way",
        ),
    )
    final: Path | None = setting(None, Option(OUTPUT, "FILE.csv", "table of the agents at the end"))
    every: int = setting(
        0,
        Option(
            OUTPUT,
            "N",
            "steps between frames of the trajectory (default none) and of the movie (default the "
            "flock's own pace)",
            minimum=1,
        ),
    )
    checkpoint_every: int = setting(0, CHECKPOINT_EVERY)
    overwrite: bool = setting(False, OVERWRITE)
    pictures: Pictures = NO_PICTURES
    movie_every: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The checkpoint that a run continues from."""

    resume: Path | None = setting(None, RESUME)


ORDER = {
    "steps": "think_every", "dt": "steps", "plot": "final", "movie": "plot", "resume": "every",
}  # fmt: skip
"""Where options stand in the help, if not where they are declared: behind which one."""
