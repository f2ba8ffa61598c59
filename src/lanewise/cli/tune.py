"""`lanewise tune PRODUCT` and `lanewise tune path/to/file.py:kernel`: measure plans, and remember
the fastest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from lanewise.cli.given import read_shapes, read_values, refuse_of_files
from lanewise.cli.trees import (
    Accuracy,
    Leaf,
    Method,
    Order,
    Theta,
    Walk,
    asked_method,
)
from lanewise.cli.words import (
    Device,
    Json,
    LayoutName,
    Lists,
    Name,
    Near,
    Precision,
    Shapes,
    Values,
)
from lanewise.language.target import target_of
from lanewise.sims.common.commands import at_least, real_number, whole_number
from lanewise.sims.common.completion import completing
from lanewise.sims.common.tree_options import speaking_options
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.cli.tuned import AnyJob
    from lanewise.tuning import Tuning

BODIES = 16_384

Bodies = Annotated[
    int,
    typer.Option(
        parser=whole_number,
        callback=at_least(1),
        metavar="N",
        help="number of elements, of sites (about), or of templates; the tuned plan is used for "
        "similar numbers",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        parser=real_number,
        metavar="X",
        help="time limit in seconds, with compilation (default 60 on a GPU, 120 on a CPU)",
        show_default=False,
    ),
]
Case = Annotated[
    str | None,
    typer.Option(
        "--case",
        metavar="NAME",
        autocompletion=completing("lanewise.sims.lbm.cases.CASES"),
        help="of lbm: the flow, by its name in lanewise lbm run (default karman)",
        show_default=False,
    ),
]


@speaking_options
def tune(
    name: Name,
    bodies: Bodies = BODIES,
    device: Device = "cpu",
    precision: Precision = None,
    layout: LayoutName = None,
    seconds: Seconds = None,
    case: Case = None,
    values: Values = None,
    shape: Shapes = None,
    lists: Lists = None,
    near: Near = None,
    method: Method = None,
    accuracy: Accuracy = None,
    theta: Theta = None,
    order: Order = None,
    leaf: Leaf = None,
    walk: Walk = None,
    json_: Json = False,
) -> None:
    """Measure plans of a kernel on this machine; later calls like this one use the fastest.

    With a tree and an accuracy, measure which tree keeps it in the least time.
    """
    from lanewise.cli.products import job_of
    from lanewise.cli.target import product_kernels
    from lanewise.cli.tuned import JobList, jobs_of_file
    from lanewise.tuning.tune import check_seconds, time_limit

    if seconds is not None:
        check_seconds(seconds)  # before anything is made for it
    numbers = read_values(values or [])
    shapes = read_shapes(shape or [])
    product = product_kernels(name)
    refuse_of_files(name, shapes, lists, near)
    if case is not None and name != "lbm":
        raise InputError(f"--case {case} belongs to lbm; {name} has no cases")
    asked = asked_method(
        name, method=method, accuracy=accuracy, theta=theta, order=order, leaf=leaf, walk=walk
    )
    if hasattr(product, "tuned_call"):
        own = asked if case is None else {"case": case}
        call = product.tuned_call(device, bodies, precision or "f32", layout, numbers, **own)
        tuned = JobList((job_of(call),))
    elif precision is not None:
        raise InputError(
            f"--precision belongs to gravity, boids and lbm; the types of {name} are those of its "
            "file"
        )
    else:
        tuned = jobs_of_file(name, bodies, device, layout, numbers, shapes, lists, near, asked)
    each = seconds
    if len(tuned.jobs) > 1:
        each = time_limit(target_of(device).name, seconds) / len(tuned.jobs)
    _show(tuned.heading, [_follow(job, each, quiet=json_) for job in tuned.jobs], json_)


def _follow(job: AnyJob, seconds: float | None, *, quiet: bool) -> Tuning:
    """Tune with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from lanewise.patterns.search.tuning.calibration import CalibrationJob, calibrate
    from lanewise.patterns.search.tuning.job import SearchJob
    from lanewise.patterns.search.tuning.tune import tune_search
    from lanewise.patterns.sitewise.tuning import SiteJob, tune_sites
    from lanewise.tuning import tune_job
    from lanewise.tuning.job import Job
    from lanewise.tuning.search import Progress as State

    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]{task.fields[name]}[/bold]"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(
        *columns, console=console, disable=quiet or not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("tune", total=None, name=job.name, state="the default plan")

        def show(state: State) -> None:
            text = (
                f"{state.doing}: {state.measured} measured, {state.refused} refused, "
                f"{state.factor:.2f} times the default"
            )
            bar.update(
                task, total=state.seconds, completed=min(state.elapsed, state.seconds), state=text
            )

        match job:
            case SearchJob():
                return tune_search(job, seconds, progress=show)
            case CalibrationJob():
                return calibrate(job, seconds, progress=show)
            case SiteJob():
                return tune_sites(job, seconds, progress=show)
            case Job():
                return tune_job(job, seconds, progress=show)
            case _:
                assert_never(job)


def _show(heading: str, results: Sequence[Tuning], as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        facts = [r.as_dict() for r in results]
        whole = facts[0] if len(facts) == 1 else {"gradient": heading, "kernels": facts}
        print(json.dumps(whole, allow_nan=False))
        return
    console = Console()
    # no frames and no line breaks in a file
    show = console.print if console.is_terminal else print
    if heading:
        show(f"{heading}\n")
    for number, result in enumerate(results):
        if number:
            show()
        show(result)
