"""`lanewise ladder`: a series of versions of one kernel, checked, timed, and shown next to a
paper's figures.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli.words import Device, Json
from lanewise.language.target import CPU, is_compiled
from lanewise.sims.common.commands import whole_number
from lanewise.sims.common.completion import completing
from lanewise.support.attributes import near
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

if TYPE_CHECKING:
    from lanewise.ladders.rung import Ladder, Options, Rung

IN_A_FILE = 200  # columns where there is no terminal
MOST_BODIES = 2**31 - 2**16  # what a launch on a GPU can count

Names = Annotated[
    str,
    typer.Argument(
        metavar="LADDER",
        autocompletion=completing("lanewise.ladders.LADDERS"),
        help="tutorial (n-body step by step), layouts (of gravity), memory (records), lbm (flow), "
        "boids (searches), waves (F-statistic), "
        "compiler (naive array kernels), tree (far fields) or gravity-mesh (two devices)",
    ),
]
Bodies = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N...]",
        help="numbers of bodies, of sites for lbm, of amplitudes for waves, of elements of a "
        "matrix for compiler "
        "(default: the paper's; fewer on a CPU or with --quick)",
        show_default=False,
    ),
]
Agents = Annotated[
    str | None,
    typer.Option(metavar="N[,N...]", help="for boids: the same as --bodies", show_default=False),
]
Worlds = Annotated[
    str | None,
    typer.Option(
        "--world",
        metavar="R[,R...]",
        help="for boids: radii of worlds (default: the paper's)",
        show_default=False,
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="for compiler: benchmarks (mm, mv, tp, ...; default: all)",
        show_default=False,
    ),
]
Axis = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completing("lanewise.ladders.AXES"),
        help="curves along one setting instead: cells or agents of boids, bodies of layouts, "
        "solid of lbm",
        show_default=False,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="f32|f64",
        autocompletion=completing(("f32", "f64")),
        help="for tutorial: single or double precision (default: f32)",
        show_default=False,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", metavar="", help="few bodies, few versions: under a minute on two cores"
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.png",
        help="the factors here, in the paper and by the model; of boids steps per second",
    ),
]
Seed = Annotated[
    int, typer.Option(parser=whole_number, metavar="N", help="of the random initial conditions")
]


def ladder(
    name: Names,
    bodies: Bodies = None,
    agents: Agents = None,
    worlds: Worlds = None,
    only: Only = None,
    axis: Axis = None,
    precision: Precision = None,
    device: Device = "cpu",
    quick: Quick = False,
    json_: Json = False,
    plot: Plot = None,
    seed: Seed = 0,
) -> None:
    """Climb a ladder: versions of one kernel, each with one more optimisation.

    Each rung is checked against float64 and timed.
    """
    from lanewise.ladders import find_ladder
    from lanewise.ladders.rung import Options, as_json
    from lanewise.runtime.devices import resolve

    chosen = find_ladder(name)
    if axis is not None:
        _check_axis(name, axis)
        chosen = find_ladder(name, axis)
    where = resolve(device)
    if not is_compiled(where):
        raise InputError("the interpreter is no device to measure: wanted cpu or cuda")
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed is {seed}; wanted zero to {2**63 - 1}")
    if plot is not None:
        _check_picture(plot)
    counts = _counts(chosen, bodies, agents) or chosen.sizes(where, quick)
    options = Options(
        where,
        counts,
        quick,
        seed,
        _radii(chosen, worlds),
        _parts(chosen, only),
        _precision(chosen, precision),
    )
    rungs = _follow(chosen, options)
    machine = _machine(where)
    if plot is not None:
        from lanewise.ladders.plot import plot_ladder

        (chosen.draw or plot_ladder)(plot, chosen, rungs, str(machine["name"]))
    if json_:
        print(json.dumps(as_json(machine, chosen, rungs)))
    else:
        _show(chosen, rungs, machine, plot)


def _check_axis(name: str, axis: str) -> None:
    """Refuse an axis that a ladder does not have."""
    from lanewise.ladders import LADDERS

    axes = LADDERS[name]
    if not axes:
        with_axes = " or ".join(n for n, has in LADDERS.items() if has)
        raise InputError(f"--axis {axis}: ladder {name} has no axes; wanted ladder {with_axes}")
    if axis not in axes:
        raise InputError(
            f"--axis {axis}: unknown{near(axis, axes) or ';'} ladder {name} has {', '.join(axes)}"
        )


def _counts(chosen: Ladder, bodies: str | None, agents: str | None) -> tuple[int, ...]:
    """The sizes that are requested, under either name; none where nothing is."""
    if agents is not None and chosen.elements != "agents":
        raise InputError(
            f"--agents {agents}: ladder {chosen.name} counts {chosen.elements}; wanted --bodies"
        )
    if agents is not None and bodies is not None:
        raise InputError(
            f"--agents {agents} and --bodies {bodies} are the same; wanted one of them"
        )
    if agents is not None:
        return _numbers(agents, "agents")
    return () if bodies is None else _numbers(bodies)


def _radii(chosen: Ladder, text: str | None) -> tuple[float, ...]:
    """The radii of worlds as written: finite, positive, each once."""
    if text is None:
        return ()
    if chosen.elements != "agents":
        raise InputError(f"--world {text}: ladder {chosen.name} has no worlds; wanted ladder boids")
    radii: list[float] = []
    for part in text.split(","):
        try:
            radius = float(part)
        except ValueError:
            radius = math.nan
        if not 0 < radius < math.inf:
            raise InputError(
                f"--world {text}: {part.strip()!r} is no radius; wanted a positive number, or "
                "several with commas"
            )
        radii.append(radius)
    return tuple(dict.fromkeys(radii))


def _precision(chosen: Ladder, text: str | None) -> str:
    """The precision that is requested, else the ladder's first."""
    if text is None:
        return chosen.precisions[0]
    if text not in chosen.precisions:
        wanted = " or ".join(chosen.precisions)
        raise InputError(f"--precision {text}: ladder {chosen.name} has {wanted}")
    return text


def _parts(chosen: Ladder, text: str | None) -> tuple[str, ...]:
    """The parts of a ladder that are requested, each once, in the order of the ladder."""
    if text is None:
        return ()
    if not chosen.parts:
        raise InputError(
            f"--only {text}: ladder {chosen.name} is climbed as a whole; wanted ladder compiler"
        )
    named = [part.strip() for part in text.split(",")]
    for part in named:
        if part not in chosen.parts:
            asked, wanted = near(part, chosen.parts) or ";", ", ".join(chosen.parts)
            raise InputError(
                f"--only {text}: {part!r} is no part of {chosen.name}{asked} wanted {wanted}"
            )
    return tuple(p for p in chosen.parts if p in named)


def _numbers(text: str, what: str = "bodies") -> tuple[int, ...]:
    """The numbers of bodies as written: whole, positive, each once."""
    numbers: list[int] = []
    for part in text.split(","):
        try:
            number = whole_number(part)
        except typer.BadParameter as error:
            raise InputError(
                f"--{what} {text}: {part.strip()!r} is not an integer; wanted one, or several "
                "with commas"
            ) from error
        if number < 1:
            raise InputError(f"--{what} {text}: {number} {what} requested; wanted at least 1")
        if number > MOST_BODIES:
            raise InputError(
                f"--{what} {text}: {number} {what} requested; wanted at most {MOST_BODIES:,}"
            )
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))


def _check_picture(plot: Path) -> None:
    """Before the long run: the picture's name and folder must be usable."""
    from lanewise.io.atomic import writable_target

    if plot.suffix.lower() != ".png":
        raise InputError(f"--plot {plot}: pictures are PNG; wanted a name that ends in .png")
    writable_target(plot, overwrite=True)


def _follow(chosen: Ladder, options: Options) -> list[Rung]:
    """Climb, and show on a terminal (standard error: JSON goes to standard output) what was
    measured last.
    """
    from rich.console import Console

    from lanewise.ladders.rung import seconds_text

    console = Console(stderr=True)
    rungs: list[Rung] = []
    if not console.is_terminal:
        return list(chosen.climb(options))
    with console.status(f"{chosen.name}: {options.bodies[0]:,} {chosen.elements}") as status:
        for rung in chosen.climb(options):
            rungs.append(rung)
            status.update(
                f"{chosen.name}, {rung.bodies:,} {chosen.elements}: {rung.name}, "
                f"{seconds_text(rung.seconds)}"
            )
    return rungs


def _machine(device: str) -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    import datetime

    import numpy

    from lanewise._version import __version__
    from lanewise.runtime.device import get_device

    cpu, measured = get_device(CPU.name), get_device(device)
    facts: dict[str, Any] = {
        "name": measured.title(),
        "device": device,
        "cpu": cpu.title(),
        "threads": cpu.units(),
        "lanewise": __version__,
        "numpy": numpy.__version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }
    if not measured.target.host_memory:
        facts |= {"arch": measured.architecture(), "multiprocessors": measured.units()}
    return facts


def _show(chosen: Ladder, rungs: list[Rung], machine: dict[str, Any], plot: Path | None) -> None:
    from rich.console import Console

    from lanewise.ladders.rung import show

    width = shutil.get_terminal_size((IN_A_FILE, 0)).columns
    console = Console(highlight=False, markup=False, width=width)
    show(console, chosen, rungs)
    console.print()
    console.print(f"figures of: {chosen.source}")
    for line in chosen.summary(rungs):
        console.print(line)
    threads = (
        ""
        if "multiprocessors" in machine
        else f", {counted(machine['threads'], 'thread', 'threads')}"
    )
    console.print(f"measured on {machine['name']}{threads}, {machine['date']}")
    if plot is not None:
        console.print(f"written to {plot}")
