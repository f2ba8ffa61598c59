"""`--profile`: a table of where the time of a command went, and a trace of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lanewise.profiling import Profile
from lanewise.sims.common.processes import writes
from lanewise.support.errors import InputError

FLAG, SUFFIX = "--profile", ".json"


def split_trace(args: list[str]) -> list[str]:
    """`--profile FILE.json` and `--profile=FILE.json` as `--profile --profile-trace=FILE.json`; all
    else stays.
    """
    words: list[str] = []
    for position, word in enumerate(args):
        name, _, value = word.partition("=")
        if word == "--":
            return [*words, *args[position:]]
        if name == FLAG and value:
            words += [FLAG, f"--profile-trace={value}"]
        elif (
            position
            and args[position - 1] == FLAG
            and Path(word).suffix
            and not word.startswith("-")
        ):
            words.append(f"--profile-trace={word}")
        else:
            words.append(word)
    return words


class ProfileReport:
    """The profile of a command, from here to `finish`.

    `profile` is None when none was requested.
    """

    def __init__(
        self, asked: bool, trace: Path | None, overwrite: bool, *others: Path | None
    ) -> None:
        """`others`: the other files of the command.

        Raises `InputError` for a trace that cannot be written.
        """
        if trace is not None:
            check_trace(trace, overwrite, *others)
        self.profile = Profile() if asked or trace is not None else None
        self._trace, self._overwrite = trace, overwrite
        self._whole = None if self.profile is None else self.profile.span("rest", name="run")
        if self._whole is not None:
            self._whole.__enter__()

    def finish(self, summary: dict[str, Any] | None = None) -> None:
        """Print the table on standard error, write the trace, and put the numbers into `summary`,
        as "profile".
        """
        if self.profile is None or self._whole is None:
            return
        from rich.console import Console

        self._whole.__exit__(None, None, None)
        Console(file=sys.stderr).print(self.profile.table())
        if self._trace is not None and writes():
            self.profile.write_trace(self._trace, overwrite=self._overwrite)
            print(
                f"trace written to {self._trace}; https://ui.perfetto.dev opens it", file=sys.stderr
            )
        if summary is not None:
            summary["profile"] = self.profile.summary()


def check_trace(trace: Path, overwrite: bool, *others: Path | None) -> None:
    """Refuse, before anything is computed, a trace that cannot be written or would replace another
    file of the command.
    """
    from lanewise.io.atomic import writable_target

    if trace.suffix.lower() != SUFFIX:
        raise InputError(f"--profile {trace}: wanted a name that ends in {SUFFIX}")
    for other in others:
        if other is not None and other.resolve() == trace.resolve():
            raise InputError(
                f"--profile {trace} would replace another file of this command; wanted another name"
            )
    writable_target(trace, overwrite)
