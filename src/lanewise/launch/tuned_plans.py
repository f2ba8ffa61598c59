"""The tuned plans that a kernel knows: what they belong to, the store on disk, and one look into it
for each kind of call and process.

A plan is used for calls with an equal key, and for no others. The store has one JSON file a key,
written whole or not at all. It lies in the folder `tuned` next to the caches of compiled kernels
(`$LANEWISE_CACHE_DIR/tuned`, or `~/.cache/lanewise/tuned`): deleting the cache of a version loses
no measurements. Whatever is wrong with a file, a call continues with the default plan; the file is
set aside as `*.damaged` with a `StoreWarning`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from lanewise._version import __version__
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.ir.printer import print_kernel
from lanewise.language.target import is_compiled
from lanewise.launch.trial import changes, plan_from
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.cache import (
    cache_root,
    content_key,
    file_problem,
    folder_problem,
    make_folders,
    write_whole,
)
from lanewise.runtime.device import get_device
from lanewise.support.errors import ArgumentError, LanewiseWarning
from lanewise.support.warned import warn_user

ANYTHING = Plan()

F = TypeVar("F")


class Recalled(Generic[F]):
    """What the store says for the calls of one kernel, remembered.

    Another process may tune meanwhile: this one continues as it began. read: what an entry says;
    raises `ValueError` for one that lacks it.
    """

    def __init__(self, read: Callable[[Entry], F]) -> None:
        self._read = read
        self._found: dict[Hashable, F | None] = {}

    def find(self, device: str, specialisation: Hashable, key: Callable[[], Key]) -> F | None:
        """What was tuned for calls of this specialisation, or None.

        `key` is asked once: it takes some milliseconds, the specialisation only a few microseconds.
        """
        if not is_compiled(device) or not store_enabled():
            return None
        if specialisation not in self._found:
            entry = read_entry(key(), self._read)
            self._found[specialisation] = None if entry is None else self._read(entry)
        return self._found[specialisation]

    def adopt(self, specialisation: Hashable, found: F) -> None:
        """What was tuned just now."""
        self._found[specialisation] = found


def tuned_plans() -> Recalled[CompletePlan]:
    """The plans of a kernel."""
    return Recalled(attrgetter("plan"))


def is_complete(plan: Plan) -> bool:
    """Whether nothing is left to be tuned."""
    return None not in plan.as_dict().values()


@dataclass(frozen=True, slots=True)
class Key:
    """Everything that decides which plan is best, as far as it can be known before a call.

    kernel: the function's name; function: a hash of its reference kernel, so that an edited
    function is another one;
    layouts: of its records; identical: whether targets and sources are one array; device, arch,
    driver, compiler,
    threads: see `runtime.device_facts.Identity`; version: of lanewise; targets, sources: classes of
    size (see `size_class`);
    wanted: the fields of the plan that the caller fixes; search: the kind of call of a kernel over
    a search, whose structure is chosen as well (see `search_kinds.kind_of_call`), empty for all
    others.
    """

    kernel: str
    function: str
    layouts: str
    identical: bool
    device: str
    arch: str
    driver: str
    compiler: str
    threads: int
    version: str
    targets: int
    sources: int
    wanted: str
    search: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {n: v for n, v in asdict(self).items() if n != "search" or v}

    @property
    def file_name(self) -> str:
        """One file a key: the kernel's name for people, a hash of everything for lanewise."""
        return (
            f"{self.kernel}-{content_key(*(f'{k}={v!r}' for k, v in self.as_dict().items()))}.json"
        )

    def differences(self, content: Mapping[str, Any]) -> list[str]:
        """Where another key's content differs: `driver is 570.1, wanted 580.2`."""
        other = {"search": "", **content}
        return [
            f"{k} is {other.get(k)!r}, wanted {v!r}"
            for k, v in asdict(self).items()
            if other.get(k) != v
        ]


def size_class(count: int) -> int:
    """The power of two that a number of elements is nearest to (by ratio): 14 for 11,586 to 23,170
    elements.
    """
    return round(math.log2(count)) if count > 0 else 0


def make_key(
    reference: ir.Kernel,
    layouts: Mapping[str, Any],
    device: str,
    work: Work,
    sources: int,
    requested: Plan,
    identical: bool,
) -> Key:
    """The key of a call, on a device of this machine."""
    machine = get_device(device).identity()
    return Key(
        reference.name,
        content_key(print_kernel(reference)),
        ", ".join(f"{n}: {x}" for n, x in layouts.items()),
        identical,
        machine.device,
        machine.arch,
        machine.driver,
        machine.compiler,
        machine.threads,
        __version__,
        size_class(work.targets),
        size_class(sources),
        str(requested),
    )


FORMAT = 1
SWITCH = "LANEWISE_TUNED"
# What `os.environ` looks into, which raises and catches an error for every name that is not set: a
# microsecond of each call.
_VARIABLES: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_SWITCH: Any = SWITCH if _VARIABLES is os.environ else getattr(os.environ, "encodekey", str)(SWITCH)


class StoreWarning(LanewiseWarning):
    """A file in the store of tuned plans could not be used, or not be written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tuned plan and how it came about: `log` has the candidates with their times, as plain
    data.
    """

    plan: CompletePlan
    seconds: float
    default: CompletePlan
    default_seconds: float
    log: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "plan": changes(self.plan),
            "seconds": self.seconds,
            "default": changes(self.default),
            "default_seconds": self.default_seconds,
            **self.log,
        }


def store_directory() -> Path:
    """The folder of tuned plans."""
    return cache_root() / "tuned"


def store_enabled() -> bool:
    """Whether tuned plans are used: `LANEWISE_TUNED=off` ignores them.

    Every call asks, as a program may set it at any time.
    """
    if _SWITCH not in _VARIABLES:
        return True
    chosen = os.environ.get(SWITCH, "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"{SWITCH}={chosen!r}: wanted on or off")
    return chosen == "on"


def has_entries(kernel: str) -> bool:
    """Whether anything was tuned for kernels of this name: where nothing was, a key need not be
    made.
    """
    if not store_enabled():
        return False
    try:
        with os.scandir(store_directory()) as files:
            return any(f.name.startswith(f"{kernel}-") and f.name.endswith(".json") for f in files)
    except OSError:
        return False


def read_entry(key: Key, check: Callable[[Entry], object] = lambda entry: None) -> Entry | None:
    """The entry of a key, or None.

    A file that is damaged, or that belongs to another key, is set aside.

    `check` raises `ValueError` for an entry that lacks what its reader needs.
    """
    path = store_directory() / key.file_name
    try:
        text = path.read_text(encoding="utf-8")
        if problem := folder_problem(path.parent, path.parent) or file_problem(path):
            warn_user(f"{path} is not read: {problem}; the default plan is used", StoreWarning)
            return None
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return _set_aside(path, "it is no text")
    except OSError as error:
        warn_user(
            f"{path}: cannot be read: {error.strerror or error}; the default plan is used",
            StoreWarning,
        )
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _set_aside(path, "it is no JSON")
    if (
        not isinstance(data, dict)
        or data.get("format") != FORMAT
        or not isinstance(data.get("key"), dict)
    ):
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
    return Entry(
        plan, seconds, default, default_seconds, {n: v for n, v in data.items() if n not in used}
    )


def write_entry(key: Key, entry: Entry) -> Path | None:
    """Replace an earlier entry; of two writers the last one wins, and a reader sees
    one of them whole.

    Returns the file, or None with a `StoreWarning` when it cannot be written.
    """
    path = store_directory() / key.file_name
    content = json.dumps({"format": FORMAT, "key": key.as_dict(), **entry.as_dict()}, indent=1)
    try:
        make_folders(path.parent)
        write_whole(path, content.encode())
    except OSError as error:
        warn_user(
            f"{path}: cannot be written: {error.strerror or error}; the tuned plan lasts as long "
            "as this process",
            StoreWarning,
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
    warn_user(f"{path} is set aside: {reason}; {what}, and the default plan is used", StoreWarning)
