"""The `run` of a simulation: pieces of steps, with a progress bar on a terminal and in a notebook, and looks in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

REFRESH = 0.1  # seconds between two looks at the bar


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Generator[Callable[[int], None]]:
    """Within it a bar on standard error, if it shall be shown; call what it gives with the steps that have been taken."""
    if not shown:
        yield lambda taken: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("[bold]{task.description}[/bold]"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=steps)
        yield lambda taken: bar.update(task, advance=taken)


def take_steps(
    title: str, steps: int, advance: Callable[[int], None], look: Callable[[], None] | None, every: int, *, shown: bool,
    most: int | None = None,
) -> None:  # fmt: skip
    """`advance(n)` until all `steps` are taken, at most `most` at a time; `look()` after every `every` of them and after the last.

    shown: with a bar of this title.
    """
    done, pieces = 0, Pieces(shown=shown)
    with progress_bar(title, steps, shown=shown) as taken:
        while done < steps:
            piece = pieces.next(steps - done)
            if most is not None:
                piece = min(piece, most)
            if look is not None:
                piece = min(piece, every - done % every)
            advance(piece)
            done += piece
            taken(piece)
            if look is not None and (done % every == 0 or done == steps):
                look()


class Pieces:
    """How many steps to take at a time so that a bar moves; all at once without one. Pieces grow by twos, as recorded steps do."""

    def __init__(self, *, shown: bool) -> None:
        self._shown, self._steps, self._begin = shown, 1, 0.0

    def next(self, left: int) -> int:
        """The next piece of the steps that are left."""
        if not self._shown:
            return left
        now = time.monotonic()
        if self._begin and now - self._begin < REFRESH:
            self._steps *= 2
        self._begin = now
        return min(self._steps, left)
