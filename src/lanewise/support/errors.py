"""Every error that lanewise shows to its user.

An error names what was found, what is wanted and what to do. Errors about a kernel carry a
`Location` and show the source line with a caret.
"""

from __future__ import annotations

import functools
import linecache
import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from lanewise.support.near import meant_by

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
TRACE = "LANEWISE_TRACE"  # a variable: 1 keeps the frames within lanewise


@dataclass(frozen=True, slots=True)
class Location:
    """A range of characters of one line of a source file (line from 1, columns from 0, end
    exclusive).
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def excerpt(self) -> str:
        """The source line with carets under the range, or nothing when the source is gone."""
        text = linecache.getline(self.file, self.line).rstrip("\r\n")
        visible = text.lstrip()
        if not visible:
            return ""
        start = min(max(self.column - (len(text) - len(visible)), 0), len(visible))
        end = max(self.end_column - (len(text) - len(visible)), start)
        return (
            f"    {visible}\n    "
            f"{_blank(visible[:start])}{'^' * max(_columns(visible[start:end]), 1)}"
        )


def _blank(text: str) -> str:
    """White space as wide as `text` on a terminal, whatever its tabs are."""
    return "".join("\t" if c == "\t" else " " * _columns(c) for c in text)


def _columns(text: str) -> int:
    """The columns that text takes: two for wide East Asian characters, none for combining
    accents.
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


NOWHERE = Location("<generated>", 0)


def located(
    message: str, location: Location, *, found: str = "", wanted: str = "", hint: str = ""
) -> str:
    """The text of an error about a line of a kernel."""
    place = (
        f"{location.file}:{location.line}:{location.column + 1}" if location.line else location.file
    )
    lines = [f"{place}: {message}"]
    if excerpt := location.excerpt():
        lines.append(excerpt)
    lines += [
        f"  {label}: {text}"
        for label, text in (("found", found), ("wanted", wanted), ("hint", hint))
        if text
    ]
    return "\n".join(lines)


class LanewiseError(Exception):
    """Base of all errors that are meant for the user."""


class CompileError(LanewiseError):
    """A kernel contains something that the language does not have, or types that do not fit."""

    def __init__(
        self,
        message: str,
        location: Location,
        *,
        found: str = "",
        wanted: str = "",
        hint: str = "",
        calls: tuple[str, ...] = (),
    ) -> None:
        self.message, self.location, self.calls = message, location, calls
        self.found, self.wanted, self.hint = found, wanted, hint
        lines = [located(message, location, found=found, wanted=wanted, hint=hint)]
        lines += [f"  called: {call}" for call in calls]
        super().__init__("\n".join(lines))

    def in_call(self, call: str) -> CompileError:
        """The same error with one more call on the way to it, for example `square(x: vec3) in
        physics.py:12`.
        """
        return CompileError(
            self.message,
            self.location,
            found=self.found,
            wanted=self.wanted,
            hint=self.hint,
            calls=(*self.calls, call),
        )


class RecordError(LanewiseError):
    """lanewise cannot store this record class or layout."""


class ArgumentError(LanewiseError, ValueError):
    """An argument of a call has the wrong name, shape, dtype, layout or value."""


class ArgumentTypeError(ArgumentError, TypeError):
    """A call got a value of another type, where Python itself would raise its TypeError."""


class PlanError(LanewiseError):
    """A plan is illegal for the kernel or does not fit the device."""


class DeviceError(LanewiseError):
    """A device is missing, unknown or out of resources."""


class InputError(LanewiseError, ValueError):
    """A file, an option or a value given by the user cannot be used."""


class StateError(LanewiseError):
    """A simulation was stopped within a step, by a second Ctrl-C or an error: its arrays belong to
    no step.
    """


class ProcessError(LanewiseError):
    """Another process of the mesh has failed, or has already ended."""


class VerificationError(LanewiseError):
    """A kernel accessed an element that does not exist, or two threads raced for one; or the IR is
    inconsistent, which is a bug in lanewise.
    """


class LanewiseWarning(UserWarning):
    """The base of all warnings of lanewise: `warnings.filterwarnings("error",
    category=lw.LanewiseWarning)` stops at each.
    """


class FileWarning(LanewiseWarning):
    """A file contains something that lanewise ignores, or lacks data that newer files have, so the
    result may not be what was meant.
    """


class FarFieldWarning(LanewiseWarning):
    """The results over a tree miss the requested accuracy, or are too far from those over all pairs
    to be useful.
    """


for _shown in (
    LanewiseWarning,
    FileWarning,
    FarFieldWarning,
    LanewiseError,
    *LanewiseError.__subclasses__(),
):
    _shown.__module__ = "lanewise"  # where users import it from, which tracebacks and warnings show


# ------------------------------------------------------------ tracebacks


def shortened(error: LanewiseError) -> LanewiseError:
    """The error without the frames within lanewise, to be raised again: those of its user stay.

    LANEWISE_TRACE=1 keeps all.
    """
    return (
        error
        if os.environ.get(TRACE, "0") not in ("", "0")
        else error.with_traceback(_outside(error.__traceback__))
    )


def _outside(trace: TracebackType | None) -> TracebackType | None:
    if trace is None:
        return None
    rest = _outside(trace.tb_next)
    frame = trace.tb_frame
    if frame.f_code.co_filename.startswith(PACKAGE):
        return rest
    return TracebackType(rest, frame, trace.tb_lasti, trace.tb_lineno)


def brief(function: F) -> F:
    """A public function whose errors show where its user called it, and nothing of lanewise
    below.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except LanewiseError as error:
            raise shortened(error)  # noqa: B904  (its own cause stays)
        except TypeError as error:
            if (meant := meant_by(error, function, function.__qualname__, named)) is None:
                raise
            raise meant from None

    return cast(F, call)
