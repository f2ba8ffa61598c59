"""The store of tuned plans: one JSON file a key, written whole or not at all.

It lies in the folder `tuned` beside the caches of compiled kernels (`$LANEWISE_CACHE_DIR/tuned`, or
`~/.cache/lanewise/tuned`): deleting the cache of a version loses no measurements. Whatever is wrong with a file, a call
goes on with the default plan; the file is set aside as `*.damaged` with a `StoreWarning`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.errors import ArgumentError
from lanewise.launch.trial import changes, plan_from
from lanewise.launch.tuned_key import Key
from lanewise.plan import Decisions
from lanewise.runtime.cache import cache_root, file_problem, folder_problem, make_folders, write_whole

FORMAT = 1
SWITCH = "LANEWISE_TUNED"


class StoreWarning(UserWarning):
    """A file in the store of tuned plans could not be used, or not be written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tuned plan and how it came about: `log` has the candidates with their times, as plain data."""

    plan: Decisions
    seconds: float
    default: Decisions
    default_seconds: float
    log: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "plan": changes(self.plan), "seconds": self.seconds,
            "default": changes(self.default), "default_seconds": self.default_seconds, **self.log,
        }  # fmt: skip


def store_directory() -> Path:
    """The folder of tuned plans."""
    return cache_root() / "tuned"


def store_enabled() -> bool:
    """Whether tuned plans are used: `LANEWISE_TUNED=off` ignores them."""
    chosen = os.environ.get(SWITCH, "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"{SWITCH}={chosen!r}: wanted on or off")
    return chosen == "on"


def read_entry(key: Key, check: Callable[[Entry], object] = lambda entry: None) -> Entry | None:
    """The entry of a key, or None. A file that is damaged, or that belongs to another key, is set aside.

    `check` raises `ValueError` for an entry that lacks what its reader needs.
    """
    path = store_directory() / key.file_name
    try:
        text = path.read_text(encoding="utf-8")
        if problem := folder_problem(path.parent, path.parent) or file_problem(path):
            warnings.warn(f"{path} is not read: {problem}; the default plan is used", StoreWarning, 2)
            return None
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return _set_aside(path, "it is no text")
    except OSError as error:
        warnings.warn(f"{path}: cannot be read: {error.strerror or error}; the default plan is used", StoreWarning, 2)
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _set_aside(path, "it is no JSON")
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("key"), dict):
        return _set_aside(path, f"it is no entry of format {FORMAT}")
    if different := key.differences(data["key"]):
        return _set_aside(path, f"it belongs to something else: {'; '.join(different)}")
    try:
        check(entry := entry_from(data))
    except ValueError as error:
        return _set_aside(path, str(error))
    return entry


def entry_from(data: dict[str, Any]) -> Entry:
    """An entry from its plain data; raises `ValueError` with what is wrong."""
    try:
        plan, default = plan_from(data["plan"]), plan_from(data["default"])
        seconds, default_seconds = float(data["seconds"]), float(data["default_seconds"])
    except KeyError as error:
        raise ValueError(f"{error.args[0]!r} is missing") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"it does not hold what an entry holds: {error}") from error
    used = ("format", "key", "plan", "seconds", "default", "default_seconds")
    return Entry(plan, seconds, default, default_seconds, {n: v for n, v in data.items() if n not in used})


def write_entry(key: Key, entry: Entry) -> Path | None:
    """Put an entry in place of an earlier one; of two writers the last one wins, and a reader sees one of them whole.

    Returns the file, or None with a `StoreWarning` when it cannot be written.
    """
    path = store_directory() / key.file_name
    content = json.dumps({"format": FORMAT, "key": key.as_dict(), **entry.as_dict()}, indent=1)
    try:
        make_folders(path.parent)
        write_whole(path, content.encode())
    except OSError as error:
        warnings.warn(
            f"{path}: cannot be written: {error.strerror or error}; the tuned plan lasts as long as this process",
            StoreWarning,
            2,
        )
        return None
    return path


def _set_aside(path: Path, reason: str) -> None:
    """Rename what cannot be used, so that it is neither read again nor lost."""
    aside = path.with_suffix(".damaged")
    try:
        os.replace(path, aside)
        what = f"it is now {aside.name}"
    except OSError as error:
        what = f"it cannot be renamed: {error.strerror or error}"
    warnings.warn(f"{path} is set aside: {reason}; {what}, and the default plan is used", StoreWarning, 3)
