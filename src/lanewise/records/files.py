"""`lw.save` and `lw.load`: arrays in an HDF5 file, with what they are: records, their fields and
types, the layout.

Each array is a group. One of records has a dataset for each field, of shape (n,) or (n,
components); a ragged one has the values or records of all lists one after the other and the offsets
of its levels. Every byte has a checksum (see `io.hdf5`). Nothing in a file is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from lanewise.language.record import Record, record_of
from lanewise.layouts import layout_by_name, packed
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.field_values import brought
from lanewise.records.held_records import as_list, class_held, record_held, text_of, type_of, whole
from lanewise.records.open_layout import AUTO, LayoutArgument
from lanewise.records.ragged import RaggedArray
from lanewise.records.ragged.array import made_of
from lanewise.records.ragged.memory import FlatValues
from lanewise.records.split_array import SplitArray
from lanewise.records.split_rows import SplitRows, split_rows
from lanewise.runtime.mesh import Mesh, place_of
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import checked, shown
from lanewise.support.errors import ArgumentError, InputError

FORMAT, VERSION = "lanewise arrays", 2  # 1: none of its records has others within it
SUFFIXES = (".h5", ".hdf5")
WANTED = "a file that lw.save has written"
MOST = 2**48  # records of an array
ALONE = "array"  # the name of an array that was saved without one

# ------------------------------------------------------------ writing


@settings_by_name
@checked(InputError)
def save(path: FilePath, array: Any = None, /, *, overwrite: bool = False, **arrays: Any) -> None:
    """Write an array, or several by their names, to an HDF5 file (.h5, .hdf5): `lw.save("run.h5",
    bodies)`.

    An array is one of records in any layout, also a view or an empty one, a ragged one, or an array
    of numbers of NumPy, CuPy or another library, also on a mesh. Records keep their name, their
    fields and types, and their layout; `lw.load` determines the device. The file is written
    completely or not at all. All processes save an array of several processes, and the first one
    writes. Raises `InputError` for another suffix, for an existing file without `overwrite=True`,
    if the system does not allow writing, and for anything that is not an array.
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
    nested = any("records" in attributes for attributes, _ in parts.values())

    def fill(file: Any) -> None:
        about = {
            "format": FORMAT,
            "version": VERSION if nested else 1,
            "names": json.dumps(list(parts)),
            "alone": int(array is not None),
        }
        set_attributes(file, about)
        for name, (attributes, datasets) in parts.items():
            group = file.create_group(name)
            set_attributes(group, attributes)
            for place, values in datasets.items():
                add_dataset(group, place, values)

    meshes = (_mesh(a) for a in named.values())
    shared = next((m for m in meshes if m is not None and m.everywhere), None)
    if shared is None or shared.rank == 0:
        write_hdf5(path, fill, overwrite=overwrite)
    if shared is not None:
        shared.transport.barrier()  # the file is there for all of them


def _mesh(array: Any) -> Mesh | None:
    rows = split_rows(storage_of(array)) if isinstance(array, RecordArray) else array
    return rows.mesh if isinstance(rows, SplitArray | SplitRows) else None


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
    if isinstance(array, SplitArray):
        return {"kind": "values"}, {"values": array.numpy()}
    try:
        values = brought(f"lw.save: {name!r}", array, "cpu")
    except ArgumentError as error:
        raise InputError(str(error)) from None  # the same, of another class
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
    within = {"records": json.dumps(record.paths)} if record.parts else {}
    return {
        "record": record.name,
        "fields": json.dumps(fields),
        **within,
        "module": cls.__module__,
        "class": cls.__qualname__,
        "layout": text,
    }


# ------------------------------------------------------------ reading


@settings_by_name
@checked(InputError)
def load(
    path: FilePath,
    record: Any = None,
    *,
    layout: LayoutArgument | None = None,
    device: str | Mesh | None = None,
) -> Any:
    """Read a file of `lw.save`: an array, or a dict of arrays if they were saved by names.

    record: the class of the records, whose fields must be those of the file, or a mapping from
    names of arrays to classes. Without it lanewise takes a class of the same name in the same
    module, or makes one from the file. layout, device: of the arrays; by default the saved layout
    and the current device. "auto" lets kernels choose the layout; only arrays of records can be on
    a mesh. Raises `InputError` that names the file for what is missing, damaged or of another kind,
    and for records with other fields; the message lists the differences.
    """
    place = place_of(device)
    where = "cpu" if isinstance(place, Mesh) else place
    with open_hdf5(path, WANTED) as file:
        names, alone = _contents(file)
        warn_without_sums(file, path)
        classes = _classes(record, names)
        _check_asked(file, names, record, classes, layout)
        arrays = {
            name: _array(file[name], name, classes.get(name), layout, where) for name in names
        }
    if isinstance(place, Mesh):
        arrays = {name: _on_mesh(name, array, place) for name, array in arrays.items()}
    return arrays[ALONE] if alone else arrays


def _on_mesh(name: str, array: Any, mesh: Mesh) -> RecordArray:
    if not isinstance(array, RecordArray):
        raise InputError(
            f"the array {name!r} holds no records, and cannot lie on a mesh ({mesh}); name one "
            "device"
        )
    return array.to(mesh)


def _contents(file: Any) -> tuple[list[str], bool]:
    """The names of the arrays, and whether there is one without a name."""
    found = read_text(file.attrs, "format") if "format" in file.attrs else ""
    if found != FORMAT:
        raise InputError(f"this is another HDF5 file; wanted {WANTED}")
    if (version := whole(file, "version", 2**31)) > VERSION:
        raise InputError(f"version {version} of the format; this lanewise reads up to {VERSION}")
    names: Any = json.loads(text_of(file, "names"))
    if not isinstance(names, list) or not all(isinstance(n, str) for n in as_list(names)):
        raise InputError("damaged file: its list of arrays is none")
    for name in as_list(names):
        if not hasattr(file.get(name), "keys"):
            raise InputError(f"damaged file: there is no array {name!r}")
    alone = bool(whole(file, "alone", 1))
    if (alone and names != [ALONE]) or not names or len(set(as_list(names))) != len(as_list(names)):
        raise InputError(
            f"damaged file: its list of arrays is {shown(names)}, and alone is {int(alone)}"
        )
    return as_list(names), alone


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


def _check_asked(
    file: Any, names: list[str], record: Any, classes: dict[str, Any], layout: LayoutArgument | None
) -> None:
    """Refuse a class for an array that holds no records; one class for all is that of those that
    do. So is a layout.
    """
    without = [n for n in names if "fields" not in file[n].attrs]
    asked = [n for n in without if n in classes]
    if asked and (isinstance(record, Mapping) or len(without) == len(names)):
        raise InputError(
            f"lw.load: the array {asked[0]!r} holds numbers and no records; leave record= out for "
            "it"
        )
    if layout is not None and not any("layout" in file[n].attrs for n in names):
        raise InputError(
            f"lw.load: the array {names[0]!r} holds numbers and no records, which have a layout; "
            "leave layout= out"
        )


def _array(group: Any, name: str, cls: Any, layout: LayoutArgument | None, device: str) -> Any:
    match text_of(group, "kind"):
        case "records":
            return _records(group, name, cls, layout, device)
        case "ragged":
            return _ragged(group, name, cls, layout, device)
        case "values":
            return brought(name, read_array(_dataset(group, "values")), device)
        case other:
            raise InputError(f"damaged file: {name!r} is of the unknown kind {other!r}")


def _records(
    group: Any, name: str, cls: Any, layout: LayoutArgument | None, device: str
) -> RecordArray:
    record, count = record_held(group, name), whole(group, "count", MOST)
    cls = class_held(group, name, record, cls)
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
    lies = layout or layout_by_name(text_of(group, "layout"))
    return RecordArray.from_fields(
        cls.__record__, fields, layout=lies, device=device, python_class=cls
    )


def _ragged(
    group: Any, name: str, cls: Any, layout: LayoutArgument | None, device: str
) -> RaggedArray:
    if layout == AUTO:
        raise InputError(
            f"layout='auto' is for arrays of records, and {name!r} is a ragged array; give a layout"
        )
    ends = [read_array(_dataset(group, f"offsets/{n}")) for n in range(whole(group, "levels", 64))]
    values: Any
    if "fields" in group.attrs:
        values = _records(group, name, cls, layout, device)
        kind: Record | t.ValueType = values.record
    else:
        kind = type_of(text_of(group, "type"), name)
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
