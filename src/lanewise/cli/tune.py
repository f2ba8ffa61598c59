"""`lanewise tune PRODUCT` and `lanewise tune path/to/file.py:kernel`: measure plans, and remember
the fastest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from lanewise.cli.given import Shape, read_shapes, read_values, refuse_of_files
from lanewise.cli.trees import (
    Accuracy,
    Leaf,
    Method,
    Order,
    Theta,
    Walk,
    asked_method,
    over_method,
)
from lanewise.cli.words import Device, Json, LayoutName, Name, Near, Precision, Shapes, Values
from lanewise.sims.common.commands import at_least, real_number, whole_number
from lanewise.sims.common.completion import completing
from lanewise.support.errors import InputError, LanewiseError

if TYPE_CHECKING:
    from lanewise.explanation.samples import Samples
    from lanewise.patterns.search.tuning.calibration import CalibrationJob
    from lanewise.patterns.search.tuning.job import SearchJob
    from lanewise.patterns.sitewise.tuning import SiteJob
    from lanewise.tuning import Tuning
    from lanewise.tuning.job import Job

    AnyJob = Job | SearchJob | CalibrationJob | SiteJob

BODIES = 16_384

Bodies = Annotated[
    int,
    typer.Option(
        parser=whole_number,
        callback=at_least(1),
        metavar="N",
        help="number of elements, of sites (about), or of templates: tuned plans are for numbers "
        "like this one",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        parser=real_number,
        metavar="X",
        help="seconds that it may take, with compilation (default 60 on a GPU, 120 on a CPU)",
        show_default=False,
    ),
]
Case = Annotated[
    str | None,
    typer.Option(
        "--case",
        metavar="NAME",
        autocompletion=completing("lanewise.sims.lbm.cases.CASES"),
        help="of lbm: the flow, as lanewise lbm run names it (default karman)",
        show_default=False,
    ),
]


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
    from lanewise.tuning.tune import check_seconds

    if seconds is not None:
        check_seconds(seconds)  # before anything is made for it
    numbers = read_values(values or [])
    shapes = read_shapes(shape or [])
    product = product_kernels(name)
    refuse_of_files(name, shapes, near)
    if case is not None and name != "lbm":
        raise InputError(f"--case {case} belongs to lbm; {name} has no cases")
    asked = asked_method(
        name, method=method, accuracy=accuracy, theta=theta, order=order, leaf=leaf, walk=walk
    )
    if hasattr(product, "tuned_call"):
        own = asked if case is None else {"case": case}
        call = product.tuned_call(device, bodies, precision or "f32", layout, numbers, **own)
        job: AnyJob = job_of(call)
    elif precision is not None:
        raise InputError(
            f"--precision belongs to gravity, boids and lbm; the types of {name} are those of its "
            "file"
        )
    else:
        job = _kernel(name, bodies, device, layout, numbers, shapes, near, asked)
    _show(_follow(job, seconds, quiet=json_), json_)


def _kernel(
    name: str,
    count: int,
    device: str,
    layout: str | None,
    values: dict[str, float],
    shapes: dict[str, Shape],
    near: float | None,
    asked: Mapping[str, Any],
) -> Job | SearchJob | CalibrationJob:
    """A kernel of a file on made-up arguments."""
    from lanewise.cli.products import search_job
    from lanewise.cli.target import load_tuned
    from lanewise.explanation.samples import sample_arguments
    from lanewise.explanation.searches import check_near, placed_arguments
    from lanewise.layouts import layout_by_name
    from lanewise.patterns.pairwise.kernel import Pairwise

    kernel = over_method(name, load_tuned(name), asked)
    kind = layout_by_name(layout) if layout else None
    check_near(kernel, near)
    given: dict[str, Any] = {"values": values, "shapes": shapes, "layout": kind}
    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        samples, _ = placed_arguments(kernel, count, device, near=near, **given)
        return search_job(kernel, kernel.searched, (), samples.named)
    samples = sample_arguments(kernel, count, device, **given)
    if kernel.signature.arrays:
        _check_indices(kernel, samples)
    return kernel.tuning_job(**samples.named)


def _check_indices(kernel: Any, samples: Samples) -> None:
    """Run once with tests of all indices: made-up numbers may lead out of arrays, and what is
    measured does not test them. Raises `InputError`.
    """
    from lanewise.explanation.samples import refused

    try:
        kernel(**samples.named, checks=True)
    except LanewiseError as error:
        raise refused(error, samples) from error


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


def _show(result: Tuning, as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        print(json.dumps(result.as_dict(), allow_nan=False))
        return
    console = Console()
    if console.is_terminal:
        console.print(result)
    else:
        print(result)  # no frames and no line breaks in a file
