"""What is assigned to arrays of records: values of a field, records, lists of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field, Record, RecordValue, unknown_field
from lanewise.records.field_values import brought, check_type, rounded
from lanewise.records.storage import Storage
from lanewise.records.two_sides import bit_of
from lanewise.runtime.memory import on
from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError


def field_of(record: Record, name: str, error: type[Exception] = AttributeError) -> Field:
    """The field of that name."""
    field = record.field(name)
    if field is None:
        raise error(unknown_field(record, name))
    return field


def assign_field(storage: Storage, field: Field, value: Any) -> None:
    """Assign a field of all records: an array, or a value for all of them."""
    values = _checked(storage, field, value)
    places, bit = storage.places, bit_of(storage.record, field.name)
    if storage.whole is not None:  # the other records keep theirs
        storage.side.read(bit)
    view = places.strided(field)
    if view is not None:
        with on(storage.device):
            view[...] = values
    else:
        for component, leaf in enumerate(t.leaves(field.name, field.type)):
            vector = isinstance(field.type, t.Vector)
            places.fill(leaf, values[..., component] if vector else values)
    storage.side.write(bit)


def _checked(storage: Storage, field: Field, value: Any) -> Any:
    """Values on the device that fit the field's shape and type."""
    name, one = f"{storage.record.name}.{field.name}", t.shape_of(field.type)
    values = brought(name, value, storage.device)
    shape = (len(storage), *one)
    if values.shape not in (shape, one):
        raise ArgumentError(
            f"{name} is {an(field.type)}: wanted shape {shape}, or {one} for all, found "
            f"{values.shape}"
        )
    check_type(name, values, field.type)
    return rounded(name, values, t.scalar_of(field.type).dtype)


def columns_of(
    record: Record, fields: Mapping[str, Any], device: str
) -> tuple[int, dict[str, Any]]:
    """How many records one array (or a uniform argument) per field are, and the arrays on the
    device.
    """
    for name in fields:
        field_of(record, name, ArgumentError)
    arrays = {n: brought(f"{record.name}.{n}", value, device) for n, value in fields.items()}
    counts: dict[str, int] = {}
    for name, a in arrays.items():
        field = field_of(record, name)
        _check_shape(record, field, a.shape)
        if a.ndim > len(t.shape_of(field.type)):
            counts[name] = len(a)
    if not counts:
        raise ArgumentError(
            f"{record.name}.array needs at least one field with one row for each record, found "
            "only single values"
        )
    if len(set(counts.values())) > 1:
        raise ArgumentError(
            f"the fields of {record.name} differ in length: "
            f"{', '.join(f'{n} has {c}' for n, c in counts.items())}"
        )
    return next(iter(counts.values())), arrays


def _check_shape(record: Record, field: Field, shape: tuple[int, ...]) -> None:
    """Refuse a shape that is neither one row for each record nor a uniform argument, before the
    number of records is known.
    """
    one = t.shape_of(field.type)
    if shape != one and (len(shape) != len(one) + 1 or shape[1:] != one):
        wanted = f"(n, {one[0]})" if one else "(n,)"
        raise ArgumentError(
            f"{record.name}.{field.name} is {an(field.type)}: wanted shape {wanted}, or {one} for "
            f"all, found {shape}"
        )


def check_row(record: Record, key: Any, value: Any) -> None:
    """Refuse what no place of an array of these records can become."""
    if not isinstance(value, RecordValue) or value.__record__ != record:
        raise ArgumentError(
            f"a row of {record.name} is replaced by {an(record.name)}(...), found "
            f"{type(value).__name__}; fields are arrays: .{record.fields[0].name}[{key}] = ..."
        )


def repeated(like: Storage, value: RecordValue, count: int) -> Storage:
    """As many records as that one."""
    check_row(like.record, "...", value)
    made = like.alike(count)
    for f in like.record:
        one = np.asarray(getattr(value, f.name))
        assign_field(made, f, np.broadcast_to(one, (count, *t.shape_of(f.type))))
    return made


def from_rows(like: Storage, records: Any) -> Storage:
    """What is appended: a record, or a list of them."""
    rows = [records] if isinstance(records, RecordValue) else records
    if not isinstance(rows, (list, tuple)):
        raise ArgumentError(
            f"append takes {an(like.record.name)}, a list of them or an array of them, found "
            f"{type(records).__name__}"
        )
    for number, row in enumerate(cast("list[Any]", rows)):
        if not isinstance(row, RecordValue) or row.__record__ != like.record:
            raise ArgumentError(
                f"append takes records of {like.record}, found {_described(row)} at place {number}"
            )
    made = like.alike(len(rows))
    for f in like.record if rows else ():
        assign_field(made, f, np.array([np.asarray(getattr(row, f.name)) for row in rows]))
    return made


def _described(row: Any) -> str:
    """What stands where a record should: another record with its fields, as a class that was made
    anew has the old name.
    """
    return f"one of {row.__record__}" if isinstance(row, RecordValue) else type(row).__name__


def check_alike(storage: Storage, other: Storage) -> None:
    """Refuse other records, and another device."""
    record = storage.record
    if other.record != record:
        raise ArgumentError(f"wanted an array of {record}, found an array of {other.record}")
    if other.device != storage.device:
        raise ArgumentError(
            f"the arrays of {record.name} lie on different devices ({other.device} and "
            f'{storage.device}); move one with .to("{storage.device}")'
        )
