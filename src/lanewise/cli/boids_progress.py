"""The progress bar of flocks: steps, agents a second, time left. It goes to standard error, so output stays machine-readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from lanewise.sims.boids.run import Run


def follow(run: Run, *, quiet: bool) -> None:
    """Execute a run of a flock and show how it goes."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]boids[/bold]"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("steps", total=run.steps - run.first_step, rate="")

        def show(current: Run) -> None:
            rate = current.steps_per_second
            done = current.flock.step - current.first_step
            bar.update(task, completed=done, rate=f"{rate:,.1f} steps/s, {rate * len(current.flock):.2e} agents/s")

        run.execute(show)
