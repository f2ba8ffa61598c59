"""`lanewise units`: a run of a product for every point of a scan, in one folder, that continues
from wherever it was left.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli.words import Json
from lanewise.sims.common.commands import Command, Listed, whole_number
from lanewise.support.command import INTERRUPTED
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.sims.units import Done, Scan, UnitState

HELP = "Scans of parameters: one run per point, on all GPUs or cores; a killed scan continues."
SHOWN = 40  # units that the status lists; --json has all

app = typer.Typer(cls=Listed, no_args_is_help=True, add_completion=False, help=HELP)


@app.callback(help=HELP)
def _units() -> None: ...  # pyright: ignore[reportUnusedFunction]


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of the scan")]
Workers = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="units at a time (default 1 on a CPU, which uses all cores; one per GPU on GPUs, "
        "which more share in turn)",
        show_default=False,
    ),
]
Nice = Annotated[
    int,
    typer.Option(metavar="N", help="0 to 19: how much to prefer other programs", min=0, max=19),
]

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler whose workers compute, such as tcp://host:8786",
        show_default=False,
    ),
]


@app.command(
    cls=Command,
    no_args_is_help=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def run(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a folder to create")],
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="gravity, lbm or boids")],
    scan: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="an option of the product, such as dt=1e-3,5e-4, seed=1..4, re=100:400:4 or "
            "dt=1e-4:1e-2:3log; repeat for all combinations",
        ),
    ] = None,
    quorum: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="how many results of a unit must agree (default 1)",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    nice: Nice = 0,
    scheduler: Scheduler = None,
) -> None:
    """Begin a scan; all other options are those of lanewise PRODUCT run, for every unit.

    Writes DIR/results.csv, with one line per unit, and the final state of each unit.
    """
    from lanewise.sims.units import Scan, axis_of

    if not scan:
        _say(
            "note: without --scan this is one unit; --scan NAME=VALUES makes one for each value, "
            "as --scan seed=1..4"
        )
    asked = Scan(
        product=product,
        options=tuple(context.args),
        axes=tuple(axis_of(text) for text in scan or ()),
        quorum=1 if quorum is None else whole_number(quorum),
    )
    _follow(folder, asked, workers, nice, scheduler)


@app.command(cls=Command, no_args_is_help=True)
def resume(
    folder: Folder, workers: Workers = None, nice: Nice = 0, scheduler: Scheduler = None
) -> None:
    """Continue a scan: check units with a result, run the others from their checkpoints."""
    _follow(folder, None, workers, nice, scheduler)


@app.command(cls=Command, no_args_is_help=True)
def status(folder: Folder, json_: Json = False) -> None:
    """Show how far the units of a scan are, also while it runs."""
    from lanewise.sims.units import read_scan
    from lanewise.sims.units import status as states_of
    from lanewise.sims.waves.units import has_checkpoints

    if has_checkpoints(folder):
        _say_search(folder, json_)
        return
    scan = read_scan(folder)
    states = states_of(scan, folder)
    if json_:
        print(json.dumps({"product": scan.product, "units": [_as_json(scan, s) for s in states]}))
        return
    count = Counter(s.state for s in states)
    print(f"{counted(len(states), 'unit', 'units')} of {scan.product}: " + _parts(count))
    shown = [s for s in states if s.state != "waiting"][:SHOWN]
    for line in _lines(scan, shown):
        print(line)


def _say_search(folder: Path, json_: bool) -> None:
    """The same of a search for waves, which is divided into units itself."""
    from lanewise.sims.waves.units.progress import progress, waiting

    units, waits = progress(folder), waiting(folder)
    if json_:
        said = {
            "product": "waves",
            "units": [asdict(u) for u in units],
            "waiting for a GPU": waits,
        }
        print(json.dumps(said))
        return
    done, steps = sum(u.done for u in units), sum(u.steps for u in units)
    begun = counted(len(units), "unit", "units")
    print(f"{begun} of waves begun: {done:,} of {counted(steps, 'step', 'steps')}")
    for u in units[:SHOWN]:
        print(f"unit {u.number}: {u.done:,} of {counted(u.steps, 'step', 'steps')}")
    if waits:
        print(f"waiting for a GPU: unit {', '.join(map(str, waits))}")


def _follow(
    folder: Path, asked: Scan | None, workers: str | None, nice: int, scheduler: str | None
) -> None:
    from lanewise.sims.units import compute, opened
    from lanewise.sims.units.scan import SCAN

    number = None if workers is None else whole_number(workers)
    try:
        with opened(folder, asked) as scan:
            done = compute(scan, folder, workers=number, nice=nice, scheduler=scheduler, say=_say)
    except KeyboardInterrupt:
        if not (folder / SCAN).exists():  # nothing was begun
            raise
        _say(f"interrupted; continue with: lanewise units resume {folder}")
        raise typer.Exit(INTERRUPTED) from None
    _conclude(folder, done)


def _conclude(folder: Path, done: Done) -> None:
    print(f"{counted(len(done.found), 'unit', 'units')} in {done.table}")
    if done.failed:
        names = ", ".join(str(unit.number) for unit, _ in done.failed)
        raise InputError(
            f"{counted(len(done.failed), 'unit', 'units')} failed: {names}; lanewise units resume "
            f"{folder} tries once more"
        )


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _parts(count: Counter[str]) -> str:
    return ", ".join(f"{n:,} {state}" for state, n in count.most_common())


def _as_json(scan: Scan, s: UnitState) -> dict[str, Any]:
    values = dict(zip((a.name for a in scan.axes), s.unit.values, strict=True))
    return {
        "unit": s.unit.number, "values": values, "state": s.state, "step": s.step,
        "copies": s.copies, "note": s.note or None,
    }  # fmt: skip


def _lines(scan: Scan, states: list[UnitState]) -> list[str]:
    """A table of units."""
    head = ["unit", *(a.name for a in scan.axes), "state", "step", ""]
    rows = [head]
    for s in states:
        step = "" if s.step is None else f"{s.step:,}"
        rows.append([str(s.unit.number), *s.unit.values, s.state, step, s.note])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
