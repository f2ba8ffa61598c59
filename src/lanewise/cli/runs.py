"""What the commands `lanewise PRODUCT run` do alike: follow a run, say how it was interrupted, print its summary as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from lanewise.cli.profile import ProfileReport

INTERRUPTED = 130  # the shell's code for Ctrl-C


def follow_to_the_end(
    run: Callable[[], None], report: ProfileReport, product: str, kept: Path | None, step: Callable[[], int]
) -> None:
    """Run; after Ctrl-C say how to go on, from `kept` if there is such a file, and exit with the code of an interruption.

    `step`: at which it stands.
    """
    try:
        run()
    except KeyboardInterrupt:
        report.finish()
        print(interruption(product, kept, step()), file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def interruption(product: str, kept: Path | None, step: int) -> str:
    """What became of an interrupted run."""
    if kept is None:
        return f"interrupted at step {step:,}; nothing was kept, as there is no --out"
    return f"interrupted; continue with: lanewise {product} run --resume {kept}"


def say_note(note: str) -> None:
    """Why a resumed run may differ from an uninterrupted one, if it may."""
    if note:
        print(f"note: {note}", file=sys.stderr)


def print_json(summary: dict[str, Any]) -> None:
    """One line of JSON, which has neither NaN nor infinity: null stands for both."""
    print(json.dumps(json_value(summary), allow_nan=False))


def json_value(value: Any) -> Any:
    """A summary without what JSON does not have."""
    match value:
        case dict():
            return {name: json_value(v) for name, v in value.items()}
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
