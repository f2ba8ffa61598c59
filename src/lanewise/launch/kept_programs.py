"""Programs on the disk: what the passes made of a reference kernel, and its text, for processes
that start later.

An entry is named by everything that decides a program: the reference kernel with all that it holds,
the plan, the kind of device, the text of lanewise's own sources, and the versions of Python and
NumPy. It lies in the cache of compiled kernels and is believed like machine code, after the checks
of `runtime/cache.py`; what cannot be read is made again. Classes of lanewise alone are made of it.
"""

from __future__ import annotations

import io
import pickle
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lanewise._version import __version__
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import COMBINE, Pattern
from lanewise.language.target import is_compiled, target_of
from lanewise.launch.executable import generated_text
from lanewise.planning.plan import CompletePlan
from lanewise.runtime.cache import content_key, read_entry, remove_entry, sources_key, write_entry

FORMAT = "2"
PACKAGE = "lanewise"
ABOVE = (
    "advice",
    "cli",
    "explanation",
    "io",
    "ladders",
    "models",
    "plot",
    "profiling",
    "sims",
    "tuning",
)
"""Folders without a part in a program.

No pass imports them, and a function of theirs stands in its reference kernel.
"""

_OWN, _COMBINE = "its own", "combine"
_PROTOCOL, _QUICK = 5, 1


@dataclass(frozen=True, slots=True)
class Built:
    """A program and the text that is compiled of each of its kernels; none for a device that
    interprets.
    """

    program: Program
    texts: tuple[str, ...]


Begin = Callable[[str, ir.Kernel], None]


def _nothing(text: str, kernel: ir.Kernel) -> None:
    """Nothing is begun."""


def built(reference: ir.Kernel, plan: CompletePlan, device: str, begin: Begin = _nothing) -> Built:
    """What passes and emission make of a kernel, or what an earlier process made of the same.

    begin: called with each text that is made, before the next one is. Raises `PlanError` for a plan
    that does not fit the kernel.
    """
    name = entry_name(reference, plan, device)
    if name is None:
        return _build(reference, plan, device, begin)
    content = read_entry(name)
    if content is not None:
        try:
            return _read(content, reference.pattern)
        except Exception:  # written whole, and yet no program: made again like a damaged one
            remove_entry(name)
    made = _build(reference, plan, device, begin)
    if kept := _written(made):
        write_entry(name, kept)
    return made


def _build(reference: ir.Kernel, plan: CompletePlan, device: str, begin: Begin) -> Built:
    texts: list[str] = []

    def done(kernel: ir.Kernel) -> None:
        if is_compiled(device):
            texts.append(generated_text(reference, plan, kernel, device, locations=False))
            begin(texts[-1], kernel)

    return Built(
        build_program(reference, plan, target_of(device).pipeline, done=done), tuple(texts)
    )


# ------------------------------------------------------------ what an entry is called


def entry_name(reference: ir.Kernel, plan: CompletePlan, device: str) -> str | None:
    """The name of a program's entry; None for a kernel that later processes would not know
    again.
    """
    sources, pattern = _sources(), _known(reference.pattern)
    if sources is None or pattern is None:
        return None
    content = _pickled((reference, plan), reference.pattern)
    if content is None:
        return None
    made_by = (
        FORMAT,
        __version__,
        sys.implementation.cache_tag,
        sys.version,
        np.__version__,
        sources,
    )
    kind = target_of(device).name
    return f"programs/{reference.name}-{content_key(*made_by, kind, *pattern, content.hex())}"


def _known(pattern: Pattern) -> tuple[str, ...] | None:
    """What a pattern is, in texts; None for one with code that is not lanewise's own, which may
    change and keep its name.
    """
    texts: list[str] = []
    for field in fields(pattern):
        value = getattr(pattern, field.name)
        if callable(value) or hasattr(value, "apply"):
            module = getattr(value, "__module__", None) or getattr(value, "__name__", "")
            if not str(module).startswith(f"{PACKAGE}.") or getattr(value, "__closure__", None):
                return None
            value = f"{module}:{getattr(value, '__qualname__', '')}"
        texts.append(f"{field.name}={value!r}")
    return tuple(texts)


@cache
def _sources() -> str | None:
    return sources_key(Path(__file__).parent.parent, without=ABOVE)


# ------------------------------------------------------------ what an entry holds


class _Writer(pickle.Pickler):
    """Patterns have functions: they stand for themselves, by name.

    Nodes are written field by field, without what `dataclasses` adds.
    """

    def __init__(self, file: io.BytesIO, own: Pattern) -> None:
        super().__init__(file, _PROTOCOL)
        self._own = own

    def persistent_id(self, obj: Any) -> str | None:
        if type(obj) is not Pattern:
            return None
        if obj is self._own:
            return _OWN
        if obj is COMBINE:
            return _COMBINE
        raise pickle.PicklingError(f"a kernel of another pattern: {obj}")

    def reducer_override(self, obj: Any, /) -> Any:
        slots = _slots(type(obj))
        return (
            NotImplemented
            if slots is None
            else (_restored, (type(obj), *[get(obj) for get, _ in slots]))
        )


# of a field: what reads and what writes its slot
Accessors = tuple[Callable[[Any], Any], Callable[[Any, Any], None]]


@cache
def _slots(kind: type[Any]) -> tuple[Accessors, ...] | None:
    """The slots of a dataclass in the order of its fields; None for a class that is none, or that
    is pickled in its own way.

    A program has tens of thousands of nodes: `dataclasses` asks for the fields of a frozen class
    anew for each of them.
    """
    state = getattr(kind, "__getstate__", None)
    if not is_dataclass(kind) or getattr(state, "__module__", "") != "dataclasses":
        return None
    members = [getattr(kind, field.name) for field in fields(kind)]
    return tuple((m.__get__, m.__set__) for m in members)


def _restored(kind: type[Any], *values: Any) -> Any:
    """A node with these values in its slots; it was checked when it was made."""
    node = object.__new__(kind)
    for (_, put), value in zip(_slots(kind) or (), values, strict=True):
        put(node, value)
    return node


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, own: Pattern) -> None:
        super().__init__(file)
        self._patterns = {_OWN: own, _COMBINE: COMBINE}

    def persistent_load(self, pid: Any) -> Pattern:
        return self._patterns[pid]

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if not module_name.startswith(f"{PACKAGE}."):
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no part of a program")
        return super().find_class(module_name, global_name)


def _pickled(value: Any, own: Pattern) -> bytes | None:
    """The bytes of a value, equal for equal ones that were made alike; None for what has none."""
    file = io.BytesIO()
    try:
        _Writer(file, own).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return file.getvalue()


def _written(made: Built) -> bytes | None:
    """The content of an entry; None where reading it would not give the same program."""
    own = made.program.reference.pattern
    content = _pickled(made, own)
    if content is None:
        return None
    packed = zlib.compress(content, _QUICK)
    try:
        return packed if _read(packed, own) == made else None
    except Exception:  # with something in it that is not lanewise's
        return None


def _read(content: bytes, own: Pattern) -> Built:
    made = _Reader(io.BytesIO(zlib.decompress(content)), own).load()
    if type(made) is not Built:
        raise pickle.UnpicklingError(f"no program, but a {type(made).__name__}")
    return made
