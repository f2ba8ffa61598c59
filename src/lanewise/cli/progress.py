"""A progress bar for runs: steps, rate, pairs a second, time left. It goes to standard error, so output stays machine-readable."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


def follow(run: Any, *, quiet: bool) -> None:
    """Execute a gravity run and show how it goes."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]gravity[/bold]"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("steps", total=run.settings.steps - run.first_step, rate="")

        def show(current: Any) -> None:
            done = current.simulation.step - current.first_step
            rate = done / current.seconds if current.seconds else 0.0
            bar.update(task, completed=done, rate=f"{rate:,.1f} steps/s, {current.pairs_per_second:.2e} pairs/s")

        run.execute(show)
