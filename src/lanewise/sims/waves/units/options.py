"""The options of `lanewise waves run` that are about work units."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "Work units"
SECONDS = 10.0  # from one checkpoint of a unit to the next


def _option(metavar: str, text: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=PANEL, show_default=False)


Units = Annotated[int | None, _option("N", "work units at least (default 1, or 4 a worker)", "--units")]
WorkerCount = Annotated[
    int | None, _option("N", "processes of this machine that compute (default this one)", "--workers")
]
Scheduler = Annotated[
    str | None, _option("ADDRESS", "Dask scheduler whose workers compute, such as tcp://host:8786", "--scheduler")
]
CheckpointFolder = Annotated[
    Path | None,
    _option(
        "FOLDER",
        "where units keep their checkpoints (default OUT.units, gone when the list is written)",
        "--checkpoint-folder",
    ),
]
CheckpointEvery = Annotated[
    float, _option("X", "seconds from one checkpoint of a unit to the next (default 10)", "--checkpoint-every")
]
Resume = Annotated[bool, _option("", "go on from the checkpoints of a search that was stopped", "--resume")]
