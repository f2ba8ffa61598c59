"""Commands of the products whose pictures are on the page of examples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scene:
    """A command of a product whose `--plot` is shown. title: of its row. command: without
    `--plot`.
    """

    title: str
    command: str
    before: str = ""
    """A command that makes the files that it reads."""


SCENES: dict[str, Scene] = {
    "galaxies": Scene(
        "Gravity: two galaxies",
        "lanewise gravity run --ic galaxies --bodies 6000 --steps 2000 --dt 0.002",
    ),
    "figure_eight": Scene(
        "Gravity: three bodies on a figure eight",
        "lanewise gravity run --ic figure-eight --steps 2000 --dt 0.001 --softening 0",
    ),
    "street": Scene("Flow: a vortex street", "lanewise lbm run karman --re 150 --size 24"),
    "cavity": Scene(
        "Flow: a cavity whose lid moves", "lanewise lbm run cavity --re 400 --size 129"
    ),
    "sphere": Scene("Flow: around a sphere", "lanewise lbm run sphere --size 12 --steps 3000"),
    "flock": Scene("Flocks: boids", "lanewise boids run --agents 500 --steps 1500"),
    "around": Scene(
        "Flocks: around obstacles",
        "lanewise boids run --agents 3000 --obstacle sphere:0,0,0,12 "
        "--obstacle plane:0,-30,0,0,1,0 --steps 800",
    ),
    "waves": Scene(
        "Gravitational waves: a Hough map with a signal",
        "lanewise waves run --sfts 'hough/*.sft' --ref-time 1238166018 --freq 60.0095 --band 0.001 "
        "--f1dot=-4e-10,4e-10 --stack 36000 --residuals 3 --patch 0.02 "
        "--sky isotropic:0.02@2.0,0.3,0.03 --ephemeris EPV00 --out map.csv",
        "lanewise waves make-data --out hough --band 59.85,60.17 --start 1238166018 --sfts 480 "
        "--sqrt-s 1e-23,1e-23 "
        "--signal h0=4e-25,cosi=0.8,freq=60.0101,alpha=2.0,delta=0.3,f1dot=-2e-10 "
        "--ephemeris EPV00",
    ),
}
