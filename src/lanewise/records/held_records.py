"""Which records a file holds: their names, fields and types, and the class that they belong to."""

from __future__ import annotations

import json
from keyword import iskeyword
from typing import Any

import numpy as np

from lanewise.io.hdf5 import read_text
from lanewise.language import types as t
from lanewise.language.nested_records import DEEPEST
from lanewise.language.record import (
    Field,
    Record,
    RecordValue,
    make_class,
    record_of_fields,
)
from lanewise.support.checks import shown
from lanewise.support.errors import InputError
from lanewise.support.naming import named_object

TYPES: dict[str, t.ValueType] = {
    str(kind): kind
    for s in (*t.SCALARS, *t.STORED)
    for kind in (s, *(t.Vector(s, n) for n in (2, 3, 4)))
}
"""What values can be, by the names that files have for them."""


def whole(holder: Any, name: str, most: int) -> int:
    """An attribute that is an integer from 0 on; raises `InputError` for another one."""
    value = np.asarray(_attribute(holder, name))
    if value.shape != () or value.dtype.kind not in "biu" or not 0 <= int(value) <= most:
        raise InputError(
            f"damaged file: {_place(holder, name)} is "
            f"{shown(value.tolist() if value.ndim == 0 else value)}; wanted 0 to {most:,}"
        )
    return int(value)


def text_of(holder: Any, name: str) -> str:
    """An attribute that is text; raises `InputError` for another one."""
    _attribute(holder, name)
    try:
        return read_text(holder.attrs, name)
    except (TypeError, ValueError) as error:
        raise InputError(f"damaged file: {_place(holder, name)} is no text") from error


def _attribute(holder: Any, name: str) -> Any:
    if name not in holder.attrs:
        raise InputError(f"damaged file: there is no {_place(holder, name)}")
    return holder.attrs[name]


def _place(holder: Any, name: str) -> str:
    """Of an attribute, in words."""
    return (
        f"{name} of the file"
        if holder.name == "/"
        else f"{name} of {holder.name.removeprefix('/')!r}"
    )


def record_held(group: Any, name: str) -> Record:
    """The record of an array of a file."""
    fields: Any = json.loads(text_of(group, "fields"))
    if not fields or not isinstance(fields, list) or not all(_is_pair(f) for f in as_list(fields)):
        raise InputError(f"damaged file: the fields of {name!r} are no names and types")
    called = text_of(group, "record")
    within: Any = json.loads(text_of(group, "records")) if "records" in group.attrs else []
    if not isinstance(within, list) or not all(_is_pair(w) for w in as_list(within)):
        raise InputError(f"damaged file: the records within {name!r} are no names")
    paths: list[tuple[str, str]] = [(n, kind) for n, kind in as_list(within)]
    names = [n for n, _ in (*as_list(fields), *paths)]
    for word in (called, *names, *(kind for _, kind in paths)):  # names of generated code
        parts = word.split(".") if word in names else [word]
        deep = len(parts) > DEEPEST + 1
        if deep or not all(map(_is_name, parts)) or names.count(word) > 1:
            raise InputError(
                f"damaged file: the record of {name!r} has the name {shown(word)}; wanted names, "
                "each once"
            )
    held = tuple(Field(n, type_of(kind, name)) for n, kind in as_list(fields))
    holders = {f.name.rpartition(".")[0] for f in held}
    for path, _ in paths:
        if not any(h == path or h.startswith(f"{path}.") for h in holders):
            raise InputError(f"damaged file: the record {path!r} within {name!r} has no fields")
    try:
        return record_of_fields(called, held, paths)
    except KeyError as error:
        raise InputError(
            f"damaged file: {name!r} has fields of {error.args[0]!r}, which is no record within it"
        ) from error


def _is_name(word: str) -> bool:
    return word.isidentifier() and not iskeyword(word)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(as_list(value)) == 2
        and all(isinstance(part, str) for part in as_list(value))
    )


def type_of(text: str, name: str) -> t.ValueType:
    """A type by its name in files."""
    if text not in TYPES:
        raise InputError(f"damaged file: {name!r} holds values of the unknown type {text!r}")
    return TYPES[text]


def class_held(group: Any, name: str, record: Record, cls: Any) -> type[RecordValue]:
    """The class that records of a file belong to: the caller's, the one of that name where it is
    loaded, or one made for them.
    """
    module, qualname = text_of(group, "module"), text_of(group, "class")
    found = named_object(module, qualname) if cls is None else cls
    if not (isinstance(found, type) and issubclass(found, RecordValue)):
        return make_class(record, module, qualname, None)
    if differs := _differences(record, found.__record__):
        hint = f"; give record=, a class of {record}" if cls is None else ""
        raise InputError(
            f"the records of {name!r} are no {found.__record__.name} of {found.__module__}: "
            f"{differs}{hint}"
        )
    return found


def _differences(file: Record, known: Record) -> str:
    """How the fields of a file differ from those of a class, in words; the order does not
    matter.
    """
    found = [
        f"{f.name!r} is {f.type} in the file and {other.type} in the class"
        for f in file
        if (other := known.field(f.name)) is not None and other.type != f.type
    ]
    for here, there, place in ((file, known, "file"), (known, file, "class")):
        if only := [f"{f.name!r} ({f.type})" for f in here if there.field(f.name) is None]:
            found.append(f"only the {place} has {', '.join(only)}")
    return "; ".join(found)


def as_list(value: Any) -> list[Any]:
    """A value of JSON that is known to be a list."""
    return value
