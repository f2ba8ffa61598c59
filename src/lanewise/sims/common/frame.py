"""What the commands `lanewise PRODUCT run` do alike: begin a run, follow it to its end or its
interruption, and say what it found.

A product fills in a `Product`; its run is a `Run`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import typer

from lanewise.profiling import Profile
from lanewise.sims.common.cards import TURN
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.processes import joined, writes
from lanewise.sims.common.profile_report import ProfileReport
from lanewise.sims.common.viewing import check_view, viewed
from lanewise.support.command import INTERRUPTED
from lanewise.support.errors import InputError

if TYPE_CHECKING:  # the command line is there without the compiler
    from lanewise.sims.common.run import Run, Simulated

S = TypeVar("S", bound="Simulated")
LEFT = 2**20  # bytes of a GPU that a process may keep which has given it back


@dataclass(frozen=True, slots=True)
class Product(Generic[S]):
    """What is a product's own about its command.

    name: of `lanewise NAME run`. title, rate: what stands before and after the progress bar.
    say: prints the machine-readable result for people.
    """

    name: str
    title: Callable[[Run[S]], str]
    rate: Callable[[Run[S]], str]
    say: Callable[[Run[S], dict[str, Any]], None]


def carry_out(
    product: Product[S], matched: GivenOptions, prepare: Callable[[Profile | None], Run[S]],
    out: Path | None, *others: Path | None,
) -> None:  # fmt: skip
    """Prepare a run, and follow it to the end. out, others: the files that it writes, its
    checkpoint first.
    """
    from lanewise.io.source import existing_file

    resumed, trace = matched["resume"], matched["profile_trace"]
    others = (*others, matched["view_record"])
    if matched["overwrite"] and not any((out, resumed, trace, *others)):
        raise InputError(
            "--overwrite replaces files, and this run writes none; wanted --out or another option "
            "that names one"
        )
    report = ProfileReport(matched["profile"], trace, matched["overwrite"], out, resumed, *others)
    own = existing_file(resumed) if out is None and resumed is not None else out
    with at_work(own, *others, trace):
        check_view(matched)
        run = prepare(report.profile)
        say_note(run.note)
        try:
            with viewed(product.name, run, matched):
                follow(run, product.title(run), product.rate, quiet=matched["quiet"])
        except KeyboardInterrupt:
            report.finish()
            print(_how_to_go_on(product.name, run), file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        summary = run.finish()
        report.finish(summary)
    product.say(run, summary)
    if (ranks := joined()) is not None:
        print(ranks.describe())
    if TURN.is_shared:
        _give_back(run, summary["device"])
    for path in filter(None, (own, *others)):
        print(f"written to {path}")
    if matched["json"]:
        print_json(summary)


def _give_back(run: Run[Any], device: str) -> None:
    """Let others have the card of a unit that is done, once nothing but this process's context is
    there; else they have it when the process ends.
    """
    from lanewise.sims.common.devices import release_memory

    run.let_go()
    if release_memory(device) <= LEFT:
        TURN.end()


@contextmanager
def held(*files: Path | None) -> Generator[None]:
    """Within the block no other run can write these files; says which claims were taken over."""
    from lanewise.io.claims import claimed

    # of several processes the first one writes
    with claimed(files if writes() else ()) as notes:
        for note in notes:
            say_note(note)
        yield


@contextmanager
def at_work(*files: Path | None) -> Generator[None]:
    """Within the block these files are held, and kernels are compiled side by side."""
    from lanewise.sims.common.devices import side_by_side

    with side_by_side(), held(*files):
        yield


def _how_to_go_on(name: str, run: Run[Any]) -> str:
    """What is said after Ctrl-C."""
    kept = run.checkpoints.path
    if run.saved or run.checkpoints.exists:
        return f"interrupted; continue with: lanewise {name} run --resume {kept}"
    reason = "as there is no --out" if kept is None else "as no checkpoint was written yet"
    return f"interrupted at step {run.step:,}; nothing was kept, {reason}"


class Followed(Protocol):
    """What continues from `first_step` to `steps`, and is at `step` now."""

    @property
    def first_step(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    def execute(self, progress: Callable[[Any], None], /) -> None: ...


F = TypeVar("F", bound=Followed)


def follow(run: F, title: str, rate: Callable[[F], str], *, quiet: bool) -> None:
    """Execute a run behind a progress bar on standard error, so output stays machine-readable.

    title, rate: before and after the bar, which also shows the time left.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]{task.description}[/bold]"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, disable=quiet or not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(title, total=run.steps - run.first_step, rate="")
        run.execute(
            lambda now: bar.update(task, completed=now.step - now.first_step, rate=rate(now))
        )


def say_note(note: str) -> None:
    """What the user should know and need not act on: why a resumed run may differ from an
    uninterrupted one, for one.
    """
    if note:
        print(f"note: {note}", file=sys.stderr)


def print_json(summary: dict[str, Any]) -> None:
    """One line of JSON, which has neither NaN nor infinity: null stands for both."""
    print(json.dumps(_json_value(summary), allow_nan=False))


def _json_value(value: Any) -> Any:
    """A summary without what JSON does not have."""
    match value:
        case dict():
            return {name: _json_value(v) for name, v in value.items()}
        case list() | tuple():
            return [_json_value(v) for v in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
