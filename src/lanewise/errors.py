"""Every error that lanewise shows to its user.

An error names what was found, what is wanted and what to do. Errors about a kernel carry a `Location` and show the source line with a caret.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A range of columns of one line of a source file (line from 1, columns from 0, end exclusive)."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def excerpt(self) -> str:
        """The source line with carets under the range, or nothing when the source is gone."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text:
            return ""
        visible = text.lstrip()
        start = max(self.column - (len(text) - len(visible)), 0)
        width = max(min(self.end_column, len(text)) - self.column, 1)
        return f"    {visible}\n    {' ' * start}{'^' * width}"


NOWHERE = Location("<generated>", 0)


class LanewiseError(Exception):
    """Base of all errors that are meant for the user."""


class CompileError(LanewiseError):
    """A kernel holds something that the language does not have, or types that do not fit."""

    def __init__(self, message: str, location: Location, *, found: str = "", wanted: str = "", hint: str = "") -> None:
        self.message, self.location = message, location
        self.found, self.wanted, self.hint = found, wanted, hint
        lines = [f"{location.file}:{location.line}:{location.column + 1}: {message}"]
        if excerpt := location.excerpt():
            lines.append(excerpt)
        lines += [f"  {label}: {text}" for label, text in (("found", found), ("wanted", wanted), ("hint", hint)) if text]
        super().__init__("\n".join(lines))


class RecordError(LanewiseError):
    """A record class or a layout is not what lanewise can store."""


class ArgumentError(LanewiseError, ValueError):
    """A call got a wrong name, shape, dtype, layout or value."""


class PlanError(LanewiseError):
    """A plan is illegal for the kernel or does not fit the device."""


class DeviceError(LanewiseError):
    """A device is missing, unknown or out of resources."""


class InputError(LanewiseError, ValueError):
    """A file, an option or a value given by the user cannot be used."""


class VerificationError(LanewiseError):
    """The IR is inconsistent: an error in lanewise, not in the user's code."""
