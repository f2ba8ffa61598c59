"""What the commands `lanewise PRODUCT run` do alike: follow a run, say how it was interrupted, print its summary as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import typer

from lanewise.cli.profile import ProfileReport

INTERRUPTED = 130  # the shell's code for Ctrl-C


class Output(Protocol):
    """Where results of a run go; `out`: its checkpoint."""

    @property
    def out(self) -> Path | None: ...


class Followed(Protocol):
    """A run of any product."""

    @property
    def output(self) -> Output: ...

    @property
    def step(self) -> int: ...


R = TypeVar("R", bound=Followed)


@contextmanager
def claimed_files(*paths: Path | None) -> Generator[None]:
    """Within the block no other run writes these files; says which of them a run that is gone had claimed (see `io.claims`)."""
    from lanewise.io.claims import claimed

    with claimed(paths) as notes:
        for note in notes:
            say_note(note)
        yield


def resumed_file(resume: Path | None) -> Path | None:
    """The file that a run goes on in without `--out`, once it is sure that there is one."""
    from lanewise.io.source import existing_file

    return None if resume is None else existing_file(resume)


def follow_to_the_end(run: R, follow: Callable[[R], None], report: ProfileReport, product: str) -> None:
    """Execute a run; after Ctrl-C say how to go on, and exit with the code of an interruption."""
    try:
        follow(run)
    except KeyboardInterrupt:
        report.finish()
        kept = run.output.out
        nothing = f"interrupted at step {run.step:,}; nothing was kept, as there is no --out"
        further = f"interrupted; continue with: lanewise {product} run --resume {kept}"
        print(nothing if kept is None else further, file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def say_note(note: str) -> None:
    """What the user should know and need not act on: why a resumed run may differ from an uninterrupted one, for one."""
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
