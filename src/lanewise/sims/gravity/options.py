"""What a run of gravity can be told: its settings, its files, and the command line's words for
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.sims.common.completion import LAYOUTS
from lanewise.sims.common.films import LOOK, parse_size
from lanewise.sims.common.options import METHOD, OUTPUT, OVERWRITE, PLACE, STATE, Option, setting

if TYPE_CHECKING:
    from lanewise.sims.gravity.painting import Look

CHECKPOINT_SECONDS = 10.0
INITIAL_CONDITIONS = "plummer, uniform-sphere, two-body, figure-eight, pythagorean, galaxies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides how a run continues.

    `steps` is the number of steps at which it is complete, `start_time` that of step 0. method:
    "direct" or "tree", once a run has begun. opening: see `patterns.search.tree.choice`.
    """

    ic: str = setting(
        "plummer",
        Option(
            STATE,
            "NAME|FILE",
            f"{INITIAL_CONDITIONS}; a Gadget HDF5, Tipsy, NPZ or CSV file; or your own function, "
            "script.py:function (default {default})",
            values="lanewise.sims.gravity.initial.INITIAL_CONDITIONS",
        ),
    )
    steps: int = setting(
        100,
        Option(METHOD, "N", "time steps to take (default {default}; with --resume what is left)"),
    )
    dt: float = setting(
        1e-3, Option(METHOD, "X", "time step (default that of the initial condition, or {default})")
    )
    softening: float = setting(
        0.0,
        Option(
            METHOD,
            "X",
            "Plummer softening length (default that of the initial condition or file, or "
            "{default})",
        ),
    )
    integrator: str = setting(
        "leapfrog",
        Option(
            METHOD,
            "NAME",
            "leapfrog, euler or yoshida4 (default that of the initial condition, or {default})",
            values="lanewise.sims.gravity.integrators.INTEGRATORS",
        ),
    )
    precision: str = setting(
        "f32",
        Option(
            METHOD,
            "NAME",
            "f32, f64, or mixed: float64 state, float32 forces (default that of the initial "
            "condition, or {default})",
            values="lanewise.sims.gravity.physics.RECORDS",
        ),
    )
    layout: str = setting(
        "",
        Option(
            METHOD,
            "NAME",
            "soa, aos, aoas, soaoas or aosoa (default the device's best)",
            values=LAYOUTS,
        ),
    )
    device: str = setting("", PLACE)
    gravitational_constant: float = setting(
        1.0,
        Option(
            STATE,
            "X",
            "G in the units of the bodies (default {default})",
            ("--gravitational-constant", "-G"),
        ),
    )
    method: str = setting(
        "direct",
        Option(
            METHOD,
            "NAME",
            "direct: all pairs; tree: far bodies in groups; or auto: whichever is faster (default "
            "{default})",
            values="lanewise.sims.gravity.trees.METHODS",
        ),
    )
    accuracy: float | None = setting(
        None,
        Option(
            METHOD, "X", "for a tree: the requested relative error of forces, such as 1e-3 (none)"
        ),
    )
    theta: float | None = setting(
        None,
        Option(
            METHOD,
            "X",
            "for a tree: groups narrower than this times their distance (0.6; with --accuracy 0.7)",
        ),
    )
    order: int | None = setting(
        None,
        Option(
            METHOD,
            "N",
            "for a tree: order of the expansions of groups, 0 to 8 (4; with --accuracy 3 to 5)",
        ),
    )
    leaf: int | None = setting(None, Option(METHOD, "N", "for a tree: bodies per leaf (32)"))
    walk: str | None = setting(
        None,
        Option(
            METHOD,
            "NAME",
            "for a tree: walk: each body meets groups; dual: groups also meet groups (walk)",
            values="lanewise.sims.gravity.trees.WALKS",
        ),
    )
    calibrate: bool = setting(
        False,
        Option(
            METHOD, "", "with --accuracy: first measure which tree reaches it in the least time, "
            "and use that one"
        ),
    )  # fmt: skip
    opening: float | None = None  # of a calibrated tree
    seed: int = setting(0, Option(STATE, "N", "of random initial conditions (default {default})"))
    start_time: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """The film of a run; None: chosen for it, or as before in a resumed run. `size`: (height,
    width) in pixels. The others: see `Look` in `painting`.
    """

    movie: Path | None = setting(
        None,
        Option(OUTPUT, "FILE.gif|mp4", "movie of the bodies; a resumed run makes one of the rest"),
    )
    movie_every: int | None = setting(
        None,
        Option(
            OUTPUT, "N", "steps between its frames (default at most 900 frames, 250 as GIF)",
            minimum=1,
        ),
    )  # fmt: skip
    colour: str | None = setting(
        None,
        Option(
            LOOK,
            "NAME",
            "density of the bodies, or their speed with the density as brightness "
            "(default density)",
            values="lanewise.sims.gravity.painting.COLOURS",
        ),
    )
    projection: str | None = setting(
        None,
        Option(
            LOOK, "NAME", "the plane to show: xy, xz or yz (default xy)",
            values="lanewise.sims.gravity.painting.PROJECTIONS",
        ),
    )  # fmt: skip
    show: str | None = setting(
        None,
        Option(
            LOOK, "NAMES", "only these: gas, halo, disc, bulge, stars, boundary, with commas",
            values="lanewise.sims.gravity.painting.COMPONENTS",
        ),
    )  # fmt: skip
    width: float | None = setting(
        None, Option(LOOK, "X", "width of a frame, a length (default all of the first frame)")
    )
    size: tuple[int, int] | None = setting(
        None, Option(LOOK, "WxH", "in pixels (default 1280x720, as GIF 800x450)", parse=parse_size)
    )
    fps: float | None = setting(
        None, Option(LOOK, "X", "frames per second (default 30 as MP4, 25 as GIF)")
    )

    @property
    def look(self) -> Look:
        """How bodies are looked at, as far as it was said."""
        from lanewise.sims.gravity.painting import Look

        return Look(
            colour=self.colour, projection=self.projection, show=self.show, width=self.width
        )


NO_PICTURES = Pictures()


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go and how often. `checkpoint_seconds` is wall time; the intervals are steps, 0
    means only at the ends.

    None: as before in a resumed run; else ten measurements a run, no snapshots, and
    `CHECKPOINT_SECONDS`.
    """

    out: Path | None = setting(
        None,
        Option(
            OUTPUT, "FILE", "Gadget HDF5 file of the final state; checkpoints go there on the way"
        ),
    )
    diagnostics_every: int | None = setting(
        None,
        Option(
            OUTPUT,
            "N",
            "measure energies every N steps (default 0: ten times in all; with --resume as before)",
            minimum=0,
        ),
    )
    snapshot_every: int | None = setting(
        None,
        Option(
            OUTPUT,
            "N",
            "also write OUT_00000100.h5 and so on every N steps (default 0: none; with --resume as "
            "before)",
            minimum=0,
        ),
    )
    checkpoint_seconds: float | None = setting(
        None,
        Option(
            OUTPUT,
            "X",
            "seconds of wall time between checkpoints (default 10; with --resume as before)",
            minimum=0.0,
        ),
    )
    overwrite: bool = setting(False, OVERWRITE)  # also snapshots that exist
    plot: Path | None = setting(
        None, Option(OUTPUT, "FILE.png", "picture of the bodies and of the energy error")
    )
    pictures: Pictures = NO_PICTURES


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command alone gets: how many bodies, and the checkpoint to continue from."""

    bodies: int | None = setting(
        None,
        Option(STATE, "N", "number of bodies (default 16384, or what the file or problem has)"),
    )
    resume: Path | None = setting(
        None, Option(OUTPUT, "FILE", "continue this checkpoint, bit-exact on the same device")
    )


ORDER = {
    "bodies": "ic",
    "seed": "bodies",
    "gravitational_constant": "seed",
    "device": "precision",
    "layout": "device",
    "resume": "out",
    "overwrite": "resume",
    "movie": "plot",
    "movie_every": "movie",
}
"""Where options stand in the help, if not where they are declared: behind which one."""
