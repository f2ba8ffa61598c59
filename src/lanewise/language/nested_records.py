"""Records within records: what stands for one, and which are refused.

A record within a record is no separate object. Its fields are fields of the outer one, with the
names of both (`shape.radius`), so that layouts, kernels and files know flat records alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.language.types import COMPONENTS
from lanewise.support.articles import an
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, RecordError

if TYPE_CHECKING:
    from lanewise.language.record import Field, RecordValue

DEEPEST = 8  # records one within the other: the names of fields have all of theirs


@dataclass(frozen=True, slots=True, eq=False)
class PartOfRecord:
    """The fields of `outer` that a record within it has. See `RowOf`."""

    outer: RecordValue
    name: str

    def read(self, field: Field) -> Any:
        return getattr(self.outer, f"{self.name}.{field.name}")

    def write(self, field: Field, value: Any) -> None:
        setattr(self.outer, f"{self.name}.{field.name}", value)

    def write_component(self, field: Field, component: int, value: Any) -> None:
        setattr(self.read(field), COMPONENTS[component], value)


def assign_part(outer: RecordValue, name: str, value: Any) -> None:
    """Give a record within another one the values of `value`, a record of the same fields."""
    wanted = outer.__record__.part(name)
    assert wanted is not None
    if getattr(type(value), "__record__", None) != wanted:
        raise ArgumentError(
            f"{outer.__record__.name}.{name} is {an(wanted.name)}, found {shown(value)}; wanted "
            f"{wanted.name}({', '.join(f'{n}=...' for n in wanted.names)})"
        )
    values = {f.name: getattr(value, f.name) for f in wanted}  # before the first one changes
    for field, one in values.items():
        setattr(outer, f"{name}.{field}", one)


def class_within(cls: type[RecordValue], name: str) -> type[RecordValue]:
    """The class of a record within those of `cls`; with dots in its name, of one within that."""
    for one in name.split("."):
        cls = cls.__within__[one]
    return cls


def is_itself(cls: type[Any]) -> str:
    """The text of the error about a record within itself."""
    return (
        f"{cls.__name__} has {an(cls.__name__)} within it, which would have no end; keep the index "
        "of another record in a field, lw.i32"
    )


def check_within(cls: type[Any], name: str, inner: type[RecordValue]) -> None:
    """Refuse a record within itself, which a class is that was made again under its name, and
    records too deep in others.
    """
    place, known = (cls.__module__, cls.__qualname__), [inner]
    for one in known:
        if (one.__module__, one.__qualname__) == place:
            raise RecordError(is_itself(cls))
        known += one.__within__.values()
    deep = 1 + max(f.name.count(".") for f in inner.__record__)
    if deep > DEEPEST:
        raise RecordError(
            f"{cls.__name__}.{name}: {deep} records lie one within the other; at most {DEEPEST} do"
        )
