"""What several commands can be told about a kernel and a device."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.sims.common.completion import DEVICES, LAYOUTS, PRECISIONS, completing

Name = Annotated[
    str,
    typer.Argument(
        metavar="KERNEL",
        autocompletion=completing("lanewise.sims.PRODUCTS"),
        help="gravity, boids, lbm, waves, or a kernel of a file: path/to/file.py:name",
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", autocompletion=completing(DEVICES), help="cpu, cuda, cuda:1, ..."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing(PRECISIONS),
        help="for gravity: f32, f64 or mixed; for boids and lbm: f32 or f64 (default f32)",
    ),
]
LayoutName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing(LAYOUTS),
        help="soa, aos, aoas, soaoas or aosoa (default the device's)",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="a parameter other than a record, such as softening2=1e-4; repeat for more",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=SIZES",
        help="for a kernel of a file: the sizes of an array, as a=512x512, of grid, of sites or of "
        "lists; repeat for more",
    ),
]
Lists = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="for a kernel of a file: the number of lists, and of items in each, as 1000x90",
    ),
]
Near = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="of a kernel over a search in an open world: sources within its radius, on average "
        "(32)",
    ),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="as one line of JSON")]
