"""The `run` of a simulation: pieces of steps, with a progress bar on a terminal and in a notebook,
and looks in between.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from lanewise.support.interrupts import imported

REFRESH = 0.1  # seconds between two looks at the bar


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool) -> Generator[Callable[[int], None]]:
    """Within it a bar, if it shall be shown; call what it gives with the steps that have been
    taken.

    In a notebook it is a piece of HTML in the output of the cell, elsewhere a line on standard
    error.
    """
    if not shown:
        yield lambda taken: None
        return
    if in_notebook():
        notebook = NotebookBar(title, steps)
        try:
            yield notebook
        finally:  # also after an error or Ctrl-C: it says how far the run has come
            notebook.draw()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("[bold]{task.description}[/bold]"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=steps)
        yield lambda taken: bar.update(task, advance=taken)


def in_notebook() -> bool:
    """Whether a cell of a notebook runs, whose output shows HTML."""
    shell = sys.modules.get("IPython.core.getipython")
    return shell is not None and type(shell.get_ipython()).__name__ in (
        "ZMQInteractiveShell",
        "Shell",
    )


class NotebookBar:
    """A bar of plain HTML, which needs no package of widgets.

    Called with the steps that were taken, it draws itself anew.
    """

    def __init__(self, title: str, steps: int) -> None:
        self._title, self._steps, self._taken = title, steps, 0
        self._begin, self._drawn = time.monotonic(), 0.0
        self._place: Any = imported("IPython.display").display(
            self._bundle(), raw=True, display_id=True
        )

    def __call__(self, taken: int) -> None:
        self._taken += taken
        if time.monotonic() - self._drawn >= REFRESH:
            self.draw()

    def draw(self) -> None:
        """Show how many steps have been taken."""
        self._drawn = time.monotonic()
        self._place.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        """The bar as HTML and as text."""
        count = f"{self._taken}/{self._steps}"
        bar = (
            f'{html.escape(self._title)} <progress value="{self._taken}" '
            f'max="{self._steps}"></progress> {count}'
        )
        return {"text/html": f"{bar}{self._left()}", "text/plain": f"{self._title} {count}"}

    def _left(self) -> str:
        """How long the rest will take, once that can be told."""
        if not 0 < self._taken < self._steps:
            return ""
        seconds = round(
            (time.monotonic() - self._begin) * (self._steps - self._taken) / self._taken
        )
        return f", {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


def take_steps(
    title: str,
    steps: int,
    advance: Callable[[int], None],
    look: Callable[[], object] | None,
    every: int,
    *,
    shown: bool,
    most: int | None = None,
) -> None:
    """`advance(n)` until all `steps` are taken, at most `most` at a time; `look()` after every
    `every` of them and after the last.

    shown: with a bar of this title.
    """
    done, pieces = 0, StepPieces(shown=shown)
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


class StepPieces:
    """How many steps to take at a time so that a bar moves; all at once without one.

    Pieces grow by twos, as recorded steps do.
    """

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
