"""The progress bar of flows: steps, MLUPS, time left. It goes to standard error, so output stays machine-readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import Run


def follow(run: Run, *, quiet: bool) -> None:
    """Execute a run of a flow and show how it goes."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]{task.description}[/bold]"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(run.case.name, total=run.steps - run.first_step, rate="")

        def show(current: Run) -> None:
            change = f", change {current.steadiness.change:.1e}" if current.steadiness else ""
            done = current.simulation.step - current.first_step
            bar.update(task, completed=done, rate=f"{current.mlups:,.1f} MLUPS{change}")

        run.execute(show)
