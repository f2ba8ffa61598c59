"""Records: the named, typed fields of one element. Nothing here knows about memory.

`class Body(lw.Record)` is a record class, and so is what `@record` makes of an annotated class:
type checkers and editors know the first one's `array` and `zeros`, and understand the second one
only as far as its fields. Instances are single records for the Python side of a kernel; arrays of
records come from `Body.array(...)` and `Body.zeros(n)`.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, dataclass_transform

import numpy as np

from lanewise.language import types as t
from lanewise.language.nested_records import PartOfRecord, assign_part, check_within, is_itself
from lanewise.language.values import bound_value, to_python_value, type_of_annotation
from lanewise.support.articles import an
from lanewise.support.attributes import fields_by_name, settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, RecordError, brief
from lanewise.support.near import near

if TYPE_CHECKING:
    from lanewise.facade import Layout, LayoutArgument, Mesh, RecordArray


@dataclass(frozen=True, slots=True)
class Field:
    """One named field of a record. That of a record within it has a name with dots:
    `shape.radius`.
    """

    name: str
    type: t.ValueType


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar of a record: a scalar field (`mass`) or a component of a vector field
    (`position.x`).

    within: how many records its field lies in, one within the other; that many dots of the name
    are the field's.
    """

    name: str
    type: t.Scalar
    within: int = 0

    @property
    def field(self) -> str:
        return ".".join(self.name.split(".")[: self.within + 1])


@dataclass(frozen=True, slots=True)
class Record:
    """The name and the fields of a record class.

    parts: the records within it, by their names. Their fields are among its own, with the names of
    both: those of `shape` are called `shape.radius`, `shape.axis`.
    """

    name: str
    fields: tuple[Field, ...]
    parts: tuple[tuple[str, Record], ...] = ()

    def __setstate__(self, state: list[Any]) -> None:
        """What was pickled when no record had others within it has no parts."""
        values = dict(zip(("name", "fields", "parts"), (*state, ())[:3], strict=True))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    def part(self, name: str) -> Record | None:
        """The record within this one that has this name; with dots, the one within that."""
        for own, record in self.parts:
            if name == own:
                return record
            if name.startswith(f"{own}."):
                return record.part(name[len(own) + 1 :])
        return None

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """The names of all records within it, also of those within others, and what each is
        called: `("shape", "Shape"), ("shape.skin", "Skin")`.
        """
        found: list[tuple[str, str]] = []
        for own, record in self.parts:
            found += [(own, record.name), *((f"{own}.{n}", called) for n, called in record.paths)]
        return tuple(found)

    @property
    def names(self) -> tuple[str, ...]:
        """What stands in the class: its fields, and the records within it."""
        return tuple(dict.fromkeys(f.name.partition(".")[0] for f in self.fields))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(
            Leaf(name, t.scalar_of(f.type), f.name.count("."))
            for f in self.fields
            for name in t.leaves(f.name, f.type)
        )

    def __str__(self) -> str:
        kinds = ((n, self.part(n) or self.field(n)) for n in self.names)
        shown = (f"{n}: {k.type if isinstance(k, Field) else k}" for n, k in kinds)
        return f"{self.name}({', '.join(shown)})"


def record_of_fields(
    name: str, fields: tuple[Field, ...], paths: Iterable[tuple[str, str]] = ()
) -> Record:
    """A record of fields that are laid flat. paths: see `Record.paths`.

    Raises `KeyError` for a field that lies in a record which `paths` does not name.
    """
    called = dict(paths)
    inner: dict[str, list[Field]] = {}
    for field in fields:
        own, dot, rest = field.name.partition(".")
        if dot:
            inner.setdefault(own, []).append(Field(rest, field.type))
    parts = tuple(
        (own, record_of_fields(called[own], tuple(held), _below(own, called)))
        for own, held in inner.items()
    )
    return Record(name, fields, parts)


def _below(own: str, called: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The paths within a record."""
    return ((n[len(own) + 1 :], c) for n, c in called.items() if n.startswith(f"{own}."))


class RowOf(Protocol):
    """A place of an array of records."""

    def read(self, field: Field) -> Any:
        """The scalar or the components (k,) of a field, on the host."""
        ...

    def write(self, field: Field, value: Any) -> None:
        """Raises `ArgumentError` for what does not fit the field."""
        ...

    def write_component(self, field: Field, component: int, value: Any) -> None:
        """One of the components of a vector."""
        ...


class _Structure:
    """`Body.dtype`: the dtype of a structured array of such records, in the layout AoS."""

    def __get__(self, record: object, owner: type[RecordValue]) -> np.dtype[Any]:
        if record is not None:  # single records have fields, and nothing besides them
            raise AttributeError("dtype")
        from lanewise.facade import structure_of

        return structure_of(owner.__record__)


class RecordValue:
    """Base of every record class: one record whose fields are NumPy scalars and vectors.

    It holds its own values, or is a row of an array: then fields are read from the array, and what
    is assigned to them is written there.
    """

    __record__: Record
    __within__: Mapping[str, type[RecordValue]] = MappingProxyType({})
    """The classes of the records within it."""
    dtype = _Structure()

    @brief
    @fields_by_name(0)
    def __init__(self, **fields: Any) -> None:
        record = self.__record__
        for name in fields:
            if twice := [n for n in fields if n.startswith(f"{name}.")]:
                raise ArgumentError(
                    f"{record.name} got {twice[0]!r} twice, in {name!r} and by its name"
                )
        for field in record.fields:
            setattr(self, field.name, fields.pop(field.name, 0))
        for name in fields:
            if record.part(name) is None:
                raise AttributeError(unknown_field(record, name))
        for name, value in fields.items():
            setattr(self, name, value)

    if not TYPE_CHECKING:  # which knows the fields, and takes other names for mistakes

        def __setattr__(self, name: str, value: Any) -> None:
            field = self.__record__.field(name)
            if field is None and self.__record__.part(name) is not None:
                assign_part(self, name, value)
                return
            if field is None:
                raise AttributeError(unknown_field(self.__record__, name))
            row: RowOf | None = self.__dict__.get("_row")
            if row is not None:
                row.write(field, value)
                return
            try:
                made = to_python_value(value, field.type)
                kept = _is_kept(value, made, field.type)
            except Exception as error:  # of lanewise, or of the user's class
                raise ArgumentError(
                    f"{self.__record__.name}.{name} is {an(field.type)}, found {shown(value)}"
                ) from error
            if not kept:  # as rows and arrays say
                raise ArgumentError(
                    f"{self.__record__.name}.{name} is {an(field.type)}, which cannot hold "
                    f"{shown(value)}; convert it first"
                )
            object.__setattr__(self, name, made)

        def __getattr__(self, name: str) -> Any:
            # Only names that the record itself does not hold come here: those of records within it,
            # and those of fields, where it is a row of an array.
            if (within := self.__within__.get(name)) is not None:
                return within.row_of(PartOfRecord(self, name))
            row: RowOf | None = self.__dict__.get("_row")
            field = None if row is None else self.__record__.field(name)
            if row is None or field is None:
                raise AttributeError(
                    name if name.startswith("_") else unknown_field(self.__record__, name)
                )
            return bound_value(
                row.read(field),
                field.type,
                lambda component, value: row.write_component(field, component, value),
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in self.__record__.names)
        return f"{self.__record__.name}({shown})"

    def copy(self) -> Self:
        """A separate record with the same values, which is not a row of an array."""
        return type(self)(**{f.name: getattr(self, f.name) for f in self.__record__})

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        cls, fields = type(self), {f.name: getattr(self, f.name) for f in self.__record__}
        from lanewise.facade import restored_row

        return restored_row, (cls.__module__, cls.__qualname__, self.__record__, fields)

    @classmethod
    def row_of(cls, row: RowOf) -> Any:
        """The record at a row of an array."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_row", row)
        return made

    @classmethod
    @brief
    @fields_by_name(1, ".array")
    def array(
        cls,
        table: Any = None,
        /,
        *,
        layout: LayoutArgument | None = None,
        device: str | Mesh | None = None,
        copy: bool = True,
        host_layout: Layout | None = None,
        **fields: Any,
    ) -> RecordArray[Self]:
        """An array of records from one array per field; see `RecordArray.from_fields`.

        Fields left out are zero.

        table: a structured array, a DataFrame or a mapping whose columns have the names of fields
        or components, such as `position_x`. copy: with False the array uses the memory of a
        structured array of `dtype`, or of the array for a record's only field.
        layout: by default SoA on a CPU; on a GPU kernels choose ("auto", see docs/layouts.md).
        host_layout: the layout of a second side on the host, see `RecordArray.host`. Raises
        `ArgumentError` for an unknown column, a wrong shape or type, and if copy=False is
        impossible.
        """
        from lanewise.facade import array_of

        return array_of(cls, table, fields, layout, device, copy, host_layout)

    @classmethod
    @settings_by_name
    def zeros(
        cls,
        count: int,
        *,
        layout: LayoutArgument | None = None,
        device: str | Mesh | None = None,
        host_layout: Layout | None = None,
    ) -> RecordArray[Self]:
        """`count` records of zeros in `layout` (by default SoA on a CPU; on a GPU kernels choose,
        see docs/layouts.md) on `device` (by default the current one).

        host_layout: that of a second side on the host, see `RecordArray.host`.
        """
        from lanewise.facade import RecordArray

        return RecordArray.zeros(
            cls.__record__,
            count,
            layout=layout,
            device=device,
            python_class=cls,
            host_layout=host_layout,
        )


def _is_kept(value: Any, made: Any, kind: t.ValueType) -> bool:
    """Whether `made`, of `kind`, is the number or the numbers that were given: nothing cut off,
    nothing that became infinite, no text.
    """
    parts = value if np.ndim(value) else (value,)
    results: tuple[Any, ...] = tuple(made) if isinstance(kind, t.Vector) else (made,)
    scalar = t.scalar_of(kind)
    for part, result in zip(itertools.cycle(parts), results, strict=False):
        if part is None or isinstance(part, (str, bytes)):
            return False
        if scalar.is_float and bool(np.isinf(result)) and not math.isinf(float(part)):
            return False
        if not scalar.is_float and not bool(result == part):
            return False
    return True


def unknown_field(record: Record, name: str) -> str:
    """The text of the error about a field that is not there, or lies in a record within."""
    if (part := record.part(name)) is not None:
        fields = ", ".join(f"{name}.{f.name}" for f in part)
        return f"{record.name}.{name} is {an(part.name)}; name a field of it: {fields}"
    return (
        f"{record.name} has no field {name!r}; its fields are {', '.join(record.names)}"
        f"{meant_field(record, name)}"
    )


def meant_field(record: Record, name: str) -> str:
    """`; did you mean 'shape.radius'?`: the field of a record within that has this name, or one
    with a name like it.
    """
    within = next((f.name for f in record if f.name.endswith(f".{name}")), None)
    return near(name, record.names) if within is None else f"; did you mean {within!r}?"


RESERVED = frozenset(
    [
        "append",
        "capacity",
        "compact",
        "reserve",
        "array",
        "contiguous",
        "dataframe",
        "dtype",
        "to_structured",
        "zeros",
        "record",
        "layout",
        "device",
        "nbytes",
        "arrangement",
        "data",
        "numpy",
        "with_layout",
        "to",
        "copy",
        "host",
        "host_layout",
        "row_of",
    ]
)


class _NoFields:
    """Instead of the description of a record class that describes none."""

    def __get__(self, record: object, owner: type[Any]) -> Record:
        raise RecordError(
            "lw.Record has no fields; write a class that inherits from it: `class Body(lw.Record):`"
        )


class RecordBase(RecordValue):
    """The base class of records: `class Body(lw.Record)` with lanewise types as annotations.

    Raises `RecordError` for an annotation that is not a lanewise type, for anything but fields in
    the class, for a reserved field name, and for a class that inherits from a record class.
    """

    __record__ = _NoFields()  # pyright: ignore[reportAssignmentType]

    def __init_subclass__(cls, **options: Any) -> None:
        if options:
            raise RecordError(
                f"{cls.__name__}: a record class takes no options, found {', '.join(options)}"
            )
        cls.__record__, cls.__within__ = _described(cls, RecordBase)


@dataclass_transform(kw_only_default=True)
def record(cls: type[Any]) -> Any:
    """Make a record class from a class whose annotations are lanewise types. Editors understand
    `lw.Record` better.

    Raises `RecordError` for an annotation that is not a lanewise type, for anything but fields in
    the class, or for a reserved field name.
    """
    described, within = _described(cls, object)
    return make_class(described, cls.__module__, cls.__qualname__, cls.__doc__, within)


def _described(cls: type[Any], base: type[Any]) -> tuple[Record, dict[str, type[RecordValue]]]:
    """The record that a class describes, which inherits from `base` alone, and the classes of the
    records within it.
    """
    _check_plain(cls, base)
    annotations = _annotations(cls)
    fields = tuple(f for name, kind in annotations.items() for f in _fields(cls, name, kind))
    if not fields:
        raise RecordError(
            f"{cls.__name__} has no fields; write them as annotations, for example `mass: lw.f32`"
        )
    within = {n: kind for n, kind in annotations.items() if record_of(kind) is not None}
    parts = tuple((n, kind.__record__) for n, kind in within.items())
    return Record(cls.__name__, fields, parts), within


def make_class(
    record: Record,
    module: str,
    qualname: str,
    doc: str | None,
    within: Mapping[str, type[RecordValue]] | None = None,
) -> type[RecordValue]:
    """The class of single records. within: the classes of the records within them, by default new
    ones.
    """
    if within is None:
        within = {n: make_class(part, module, part.name, None) for n, part in record.parts}
    namespace = {
        "__record__": record,
        "__within__": within,
        "__module__": module,
        "__qualname__": qualname,
        "__doc__": doc,
    }
    return type(record.name, (RecordValue,), namespace)


def _annotations(cls: type[Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls, eval_str=True)
    except Exception as error:
        if isinstance(error, NameError) and error.name == cls.__name__:
            raise RecordError(is_itself(cls)) from error
        # a postponed annotation is an expression of the user's, and may fail in any way
        raise RecordError(
            f"an annotation of {cls.__name__} cannot be evaluated ({type(error).__name__}: "
            f"{error}); with `from __future__ import annotations` its names must be known in the "
            "module"
        ) from error


def _check_plain(cls: type[Any], base: type[Any]) -> None:
    """A record is fields and nothing else: what would silently be lost is refused."""
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RecordError(f"@lw.record stands above a class, found {shown(cls)}")
    if RecordBase in cls.__bases__ and base is object:
        raise RecordError(
            f"{cls.__name__} inherits from lw.Record, which makes it a record class; leave out "
            "@lw.record"
        )
    if cls.__bases__ != (base,):
        other = next((b.__name__ for b in cls.__bases__ if b is not base), "nothing")
        raise RecordError(
            f"{cls.__name__} inherits from {other}; a record names all of its fields itself"
        )
    for name, value in vars(cls).items():
        if name.startswith("__") and name.endswith("__"):
            continue
        if callable(value) or isinstance(value, (property, staticmethod, classmethod)):
            raise RecordError(
                f"{cls.__name__}.{name}: a record holds fields only; write functions outside it, "
                "with @lw.function for kernels"
            )
        raise RecordError(
            f"{cls.__name__}.{name} = {value!r}: fields have no default values; "
            f"`{cls.__name__}.array(...)` fills with zeros"
        )


_HINTS = {float: "; write lw.f32 or lw.f64", int: "; write lw.i32 or lw.i64"}


def _fields(cls: type[Any], name: str, annotation: Any) -> tuple[Field, ...]:
    """What an annotation stands for: a field, or those of a record, laid flat."""
    value_type, inner = type_of_annotation(annotation), record_of(annotation)
    if value_type is None and inner is None:
        hint = next((text for kind, text in _HINTS.items() if annotation is kind), "")
        raise RecordError(
            f"{cls.__name__}.{name} is annotated with {annotation!r}; a record holds lanewise "
            "types: lw.f32, f64, i32, i64, u32, bool, vec2..4, dvec2..4, ivec2..4, f16, u8, u16, "
            f"i8 or i16, or another record{hint}"
        )
    if name.startswith("_"):
        raise RecordError(
            f"{cls.__name__}.{name}: the name of a field cannot start with an underscore"
        )
    if name in RESERVED:
        raise RecordError(
            f"{cls.__name__}.{name}: arrays of records use the name {name!r} themselves; choose "
            "another one"
        )
    if inner is None:
        assert value_type is not None
        return (Field(name, value_type),)
    check_within(cls, name, annotation)
    return tuple(Field(f"{name}.{f.name}", f.type) for f in inner)


def record_of(annotation: Any) -> Record | None:
    """The record that a class annotation stands for, or None."""
    if (
        isinstance(annotation, type)
        and issubclass(annotation, RecordValue)
        and annotation is not RecordBase
    ):
        return annotation.__record__
    return None
