"""A search in work units as the command line shows it."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from lanewise.errors import InputError
from lanewise.sims.waves.units.job import Job, Ready
from lanewise.sims.waves.units.partition import Unit
from lanewise.sims.waves.units.run import Found, Workers, search_in_units


def searched(job: Job, folder: Path, workers: Workers, *, seconds: float, quiet: bool, **options: Any) -> Found:
    """`search_in_units` with a progress bar; SFTs that were left out are listed, and a search that stops says how to go on."""
    if not 0 <= seconds < math.inf:
        raise InputError(f"--checkpoint-every is {seconds:g}; wanted seconds, zero or more")
    console = Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal) as progress:
        bar = progress.add_task("searching", total=None)

        def started(ready: Ready, units: tuple[Unit, ...]) -> None:
            for x in ready.left_out:
                print(f"left out: {x}", file=sys.stderr)
            progress.update(bar, total=sum(u.steps for u in units))

        try:
            return search_in_units(
                job, folder, workers=workers, seconds=seconds, started=started,
                report=lambda steps: progress.advance(bar, steps), **options,
            )  # fmt: skip
        except KeyboardInterrupt:
            print(f"stopped; the checkpoints are in {folder}: the same command with --resume goes on", file=sys.stderr)
            raise
