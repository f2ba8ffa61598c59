"""`lw.save` and `lw.load`: arrays in an HDF5 file, with what they are: records, their fields and
types, the layout.

Each array is a group. One of records has a dataset for each field, of shape (n,) or (n,
components); a ragged one has the values or records of all lists one after the other and the offsets
of its levels. Every byte has a checksum (see `io.hdf5`). Nothing in a file is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.io.hdf5 import (
    add_dataset,
    open_hdf5,
    read_text,
    set_attributes,
    warn_without_sums,
    write_hdf5,
)
from lanewise.io.source import FilePath
from lanewise.io.sums import read_array
from lanewise.language import types as t
from lanewise.language.record import Field, Record, RecordValue, make_class, record_of
from lanewise.layouts import Layout, layout_by_name, packed
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.field_values import brought
from lanewise.records.ragged import RaggedArray
from lanewise.records.ragged.array import made_of
from lanewise.records.ragged.memory import FlatValues
from lanewise.runtime.devices import resolve
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import checked, shown
from lanewise.support.errors import ArgumentError, InputError
from lanewise.support.naming import named_object

FORMAT, VERSION = "lanewise arrays", 1
SUFFIXES = (".h5", ".hdf5")
WANTED = "a file that lw.save has written"
MOST = 2**48  # records of an array
ALONE = "array"  # the name of an array that was saved without one
TYPES: dict[str, t.ValueType] = {
    str(kind): kind for s in t.SCALARS for kind in (s, *(t.Vector(s, n) for n in (2, 3, 4)))
}
"""What values can be, by the names that files have for them."""


# ------------------------------------------------------------ writing


@settings_by_name
@checked(InputError)
def save(path: FilePath, array: Any = None, /, *, overwrite: bool = False, **arrays: Any) -> None:
    """Write an array, or several by their names, to an HDF5 file (.h5, .hdf5), in one step:
    `lw.save("run.h5", bodies)`.

    An array is one of records in any layout, also a view or an empty one, a ragged one, or an array
    of numbers of NumPy, CuPy or another library. Records keep their name, their fields and types,
    and their layout; arrays of a GPU come back to whatever device they are loaded to. The file is
    there whole or not at all. Raises `InputError` for another ending, for a file that is there
    already without `overwrite=True`, where the system does not let it be written, and for what is
    no array.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: the ending is {target.suffix or 'missing'}; wanted {' or '.join(SUFFIXES)}"
        )
    if target.is_file() and not overwrite:
        raise InputError(f"{path}: the file exists already; overwrite=True replaces it")
    if (array is None) == (not arrays):
        wanted = "lw.save takes one array, or arrays by their names"
        raise InputError(f"{wanted}, found {'none' if array is None else 'both'}")
    named = arrays if array is None else {ALONE: array}
    _check_names(list(named))
    parts = {name: _described(name, value) for name, value in named.items()}

    def fill(file: Any) -> None:
        about = {
            "format": FORMAT,
            "version": VERSION,
            "names": json.dumps(list(parts)),
            "alone": int(array is not None),
        }
        set_attributes(file, about)
        for name, (attributes, datasets) in parts.items():
            group = file.create_group(name)
            set_attributes(group, attributes)
            for place, values in datasets.items():
                add_dataset(group, place, values)

    write_hdf5(path, fill, overwrite=overwrite)


def _check_names(names: list[str]) -> None:
    """Refuse names that no group of an HDF5 file can have: a slash leads into a group."""
    for name in names:
        if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise InputError(
                f"lw.save: an array cannot be called {name!r}; wanted a name such as 'bodies'"
            )
        if inside := [n for n in names if n.startswith(f"{name}/")]:
            raise InputError(
                f"lw.save: the name {inside[0]!r} leads into the array {name!r}; wanted names "
                "of which none begins with another one and a slash"
            )


Described = tuple[dict[str, Any], dict[str, Any]]
"""The attributes of a group, and its datasets."""


def _described(name: str, array: Any) -> Described:
    if isinstance(array, RecordArray):
        fields = {f"fields/{f.name}": storage_of(array).on_host(f) for f in array.record}
        return {"kind": "records", "count": len(array), **_record(name, array)}, fields
    if isinstance(array, RaggedArray):
        flat, ends = array.numpy()
        offsets = {f"offsets/{n}": e for n, e in enumerate(ends)}
        about: dict[str, Any] = {"kind": "ragged", "levels": len(ends)}
        if isinstance(array.kind, Record):
            about |= {"count": int(ends[-1][-1]), **_record(name, array.data)}
            return about, {f"fields/{n}": values for n, values in flat.items()} | offsets
        return about | {"type": str(array.kind)}, {"values": flat} | offsets
    try:
        values = brought(f"lw.save: {name!r}", array, "cpu")
    except ArgumentError as error:
        raise InputError(str(error)) from error
    if not values.ndim:
        raise InputError(
            f"lw.save: {name!r} is a single value, found {shown(array)}; wanted an array"
        )
    return {"kind": "values"}, {"values": values}


def _record(name: str, array: RecordArray) -> dict[str, Any]:
    """What a file says of the record of an array, and of its layout."""
    layout, record = packed(array.layout), array.record
    text = str(layout)
    try:
        known = layout_by_name(text) == layout
    except InputError:
        known = False
    if not known:
        raise InputError(
            f"lw.save: {name!r}: no file has a name for the layout {layout}; save it "
            ".with_layout(lw.SoA())"
        )
    cls = class_of(array)
    fields = [[f.name, str(f.type)] for f in record]
    return {
        "record": record.name,
        "fields": json.dumps(fields),
        "module": cls.__module__,
        "class": cls.__qualname__,
        "layout": text,
    }


# ------------------------------------------------------------ reading


@settings_by_name
@checked(InputError)
def load(
    path: FilePath, record: Any = None, *, layout: Layout | None = None, device: str | None = None
) -> Any:
    """What `lw.save` has written: an array, or a dict of arrays where they were saved by names.

    record: the class of the records, whose fields must be those of the file, or a mapping from
    names of arrays to classes. Without it a class of the same name is taken where there is one in
    the same module, and otherwise one made of the file. layout, device: where the arrays are to
    lie, if not in the layout that they had, on the current device. Raises `InputError` that names
    the file for what is missing, damaged or of another kind, and for records with other fields,
    with what differs.
    """
    where = resolve(device)
    with open_hdf5(path, WANTED) as file:
        names, alone = _contents(file)
        warn_without_sums(file, path)
        classes = _classes(record, names)
        _check_asked(file, names, record, classes)
        arrays = {
            name: _array(file[name], name, classes.get(name), layout, where) for name in names
        }
    return arrays[ALONE] if alone else arrays


def _contents(file: Any) -> tuple[list[str], bool]:
    """The names of the arrays, and whether there is one without a name."""
    found = read_text(file.attrs, "format") if "format" in file.attrs else ""
    if found != FORMAT:
        raise InputError(f"this is another HDF5 file; wanted {WANTED}")
    if (version := _whole(file, "version", 2**31)) > VERSION:
        raise InputError(f"version {version} of the format; this lanewise reads up to {VERSION}")
    names: Any = json.loads(_text(file, "names"))
    if not isinstance(names, list) or not all(isinstance(n, str) for n in _list(names)):
        raise InputError("damaged file: its list of arrays is none")
    for name in _list(names):
        if not hasattr(file.get(name), "keys"):
            raise InputError(f"damaged file: there is no array {name!r}")
    alone = bool(_whole(file, "alone", 1))
    if (alone and names != [ALONE]) or not names or len(set(_list(names))) != len(_list(names)):
        raise InputError(
            f"damaged file: its list of arrays is {shown(names)}, and alone is {int(alone)}"
        )
    return _list(names), alone


def _whole(holder: Any, name: str, most: int) -> int:
    """An attribute that is a whole number from 0 on; raises `InputError` for another one."""
    value = np.asarray(_attribute(holder, name))
    if value.shape != () or value.dtype.kind not in "biu" or not 0 <= int(value) <= most:
        raise InputError(
            f"damaged file: {_place(holder, name)} is "
            f"{shown(value.tolist() if value.ndim == 0 else value)}; wanted 0 to {most:,}"
        )
    return int(value)


def _text(holder: Any, name: str) -> str:
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


def _dataset(group: Any, place: str) -> Any:
    """A dataset of an array; raises `InputError` where there is none.

    Its values are still to be read.
    """
    found = group.get(place)
    if getattr(found, "shape", None) is None:
        raise InputError(f"damaged file: there is no array {group.name.removeprefix('/')}/{place}")
    return found


def _classes(record: Any, names: list[str]) -> dict[str, Any]:
    """The classes that the caller names, by array."""
    if record is None:
        return {}
    given: dict[Any, Any] = (
        dict(record) if isinstance(record, Mapping) else dict.fromkeys(names, record)
    )  # pyright: ignore[reportUnknownArgumentType]
    for name, cls in given.items():
        if record_of(cls) is None:
            raise InputError(
                "lw.load: record is a record class, or a mapping from arrays to them, found "
                f"{shown(cls)}"
            )
        if name not in names:
            raise InputError(f"there is no array {name!r}; the file has {', '.join(names)}")
    return given


def _check_asked(file: Any, names: list[str], record: Any, classes: dict[str, Any]) -> None:
    """Refuse a class for an array that holds no records; one class for all is that of those that
    do.
    """
    without = [n for n in names if "fields" not in file[n].attrs]
    asked = [n for n in without if n in classes]
    if asked and (isinstance(record, Mapping) or len(without) == len(names)):
        raise InputError(
            f"lw.load: the array {asked[0]!r} holds numbers and no records; leave record= out for "
            "it"
        )


def _array(group: Any, name: str, cls: Any, layout: Layout | None, device: str) -> Any:
    match _text(group, "kind"):
        case "records":
            return _records(group, name, cls, layout, device)
        case "ragged":
            return _ragged(group, name, cls, layout, device)
        case "values":
            return brought(name, read_array(_dataset(group, "values")), device)
        case other:
            raise InputError(f"damaged file: {name!r} is of the unknown kind {other!r}")


def _records(group: Any, name: str, cls: Any, layout: Layout | None, device: str) -> RecordArray:
    record, count = _record_of(group, name), _whole(group, "count", MOST)
    cls = _class_of(group, name, record, cls)
    held = {f.name: _dataset(group, f"fields/{f.name}") for f in record}
    for field in record:  # before anything is read
        found, dtype = held[field.name], t.scalar_of(field.type).dtype
        shape = (count, *t.shape_of(field.type))
        if found.dtype != dtype or found.shape != shape:
            raise InputError(
                f"damaged file: {name}.{field.name} is {found.shape} of {found.dtype}; wanted "
                f"{shape} of {dtype}"
            )
    fields = {n: read_array(found) for n, found in held.items()}
    lies = layout or layout_by_name(_text(group, "layout"))
    return RecordArray.from_fields(
        cls.__record__, fields, layout=lies, device=device, python_class=cls
    )


def _ragged(group: Any, name: str, cls: Any, layout: Layout | None, device: str) -> RaggedArray:
    ends = [read_array(_dataset(group, f"offsets/{n}")) for n in range(_whole(group, "levels", 64))]
    values: Any
    if "fields" in group.attrs:
        values = _records(group, name, cls, layout, device)
        kind: Record | t.ValueType = values.record
    else:
        kind = _type(_text(group, "type"), name)
        held = _dataset(group, "values")
        width = t.shape_of(kind)
        if (
            held.dtype != t.scalar_of(kind).dtype
            or held.shape[1:] != width
            or held.ndim != 1 + len(width)
        ):
            raise InputError(
                f"damaged file: {name} is {tuple(held.shape)} of {held.dtype}; wanted values of "
                f"{kind}"
            )
        values = brought(name, read_array(held), device)
    for number, end in enumerate(ends):
        count = len(values) if number + 1 == len(ends) else len(ends[number + 1]) - 1
        good = (
            end.dtype == np.int64 and end.ndim == 1 and len(end) and not end[0] and end[-1] == count
        )
        if not good or (np.diff(end) < 0).any():
            raise InputError(
                f"damaged file: the offsets of level {number} of {name} do not go from 0 to {count}"
            )
    if not ends:
        raise InputError(f"damaged file: {name} has no offsets")
    return made_of(FlatValues(values, kind, len(values)), ends, device, values)


# ------------------------------------------------------------ records


def _record_of(group: Any, name: str) -> Record:
    fields: Any = json.loads(_text(group, "fields"))
    if not fields or not isinstance(fields, list) or not all(_is_pair(f) for f in _list(fields)):
        raise InputError(f"damaged file: the fields of {name!r} are no names and types")
    called = _text(group, "record")
    names = [n for n, _ in _list(fields)]
    for word in (called, *names):  # they become names of generated code
        if not word.isidentifier() or iskeyword(word) or names.count(word) > 1:
            raise InputError(
                f"damaged file: the record of {name!r} has the name {shown(word)}; wanted names, "
                "each once"
            )
    return Record(called, tuple(Field(n, _type(kind, name)) for n, kind in _list(fields)))


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(_list(value)) == 2
        and all(isinstance(part, str) for part in _list(value))
    )


def _type(text: str, name: str) -> t.ValueType:
    if text not in TYPES:
        raise InputError(f"damaged file: {name!r} holds values of the unknown type {text!r}")
    return TYPES[text]


def _class_of(group: Any, name: str, record: Record, cls: Any) -> type[RecordValue]:
    """The class that records of a file belong to: the caller's, the one of that name where it is
    loaded, or one made for them.
    """
    module, qualname = _text(group, "module"), _text(group, "class")
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


def _list(value: Any) -> list[Any]:
    return value
