"""Documents: JSON files with a SHA-256 of their content, whole or not there at all.

Python writes floats with the digits that give them back. Such a file is small and read without
tools; what is read is what was written, or an error.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, cast

from lanewise.io.atomic import atomic_path
from lanewise.support.errors import InputError

AGAIN = "delete it to compute its part from the start"
"""What to do about a damaged one."""


def digest_of(values: Any) -> str:
    """SHA-256 of what JSON makes of values: the same on every machine."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """SHA-256 of the bytes of a file; raises InputError for one that cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def write_document(path: Path, kind: str, content: dict[str, Any]) -> None:
    """Replace a document; on a full disk the last one stays as it is, and InputError says so.

    kind: what it is, which `read_document` asks for.
    """
    body = {"format": kind, "version": 1, **content}
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(
            json.dumps({**body, "sha256": digest_of(body)}, allow_nan=False), encoding="utf-8"
        )


def read_document(path: Path, kind: str) -> dict[str, Any]:
    """What a document of this kind says; raises InputError for one that is damaged."""
    try:
        decoded: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise damaged(path, "it is no JSON") from error
    if not isinstance(decoded, dict):
        raise damaged(path, "it is no JSON object")
    body = cast("dict[str, Any]", decoded)
    expected = body.pop("sha256", None)
    if (body.get("format"), body.get("version")) != (kind, 1):
        raise damaged(path, f"it is no {kind} of version 1")
    if not _finite(body) or digest_of(body) != expected:
        raise damaged(path, "its checksum is not that of its content")
    return body


def damaged(path: Path, why: str) -> InputError:
    """The error of a document of which something is missing or wrong."""
    return InputError(f"{path}: damaged: {why}; {AGAIN}")


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be read: {error.strerror or error}")


def _finite(value: Any) -> bool:
    """Whether JSON's numbers are numbers: Python reads NaN and Infinity as well."""
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(map(_finite, cast("list[Any]", value)))
        case dict():
            return all(map(_finite, cast("dict[str, Any]", value).values()))
        case _:
            return True
