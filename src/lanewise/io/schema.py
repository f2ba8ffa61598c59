"""What is in a file of ours, declared once: names, types, shapes and ranges, read and checked
together before anything is done with them.

A schema is a mapping of places: `group/name` is a dataset, `group@name` an attribute of a group.
What is not declared is passed over, so that a later version may add something.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from lanewise.io.hdf5 import read_text
from lanewise.io.sums import read_array
from lanewise.support.errors import InputError

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Array:
    """A dataset. Its values are finite, from `low` to `high`, unless `any_number` says that they
    may also be infinite or no number.

    types: the dtypes it may have, as in "f4 f8". shape: numbers, and names of sizes, which are
    equal wherever they come. growing: rows are appended to it; its values are read and checked only
    where it has a single axis. needed: whether it has to be there.
    """

    types: str
    shape: tuple[int | str, ...]
    low: float = -LARGEST
    high: float = LARGEST
    any_number: bool = False
    growing: bool = False
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """An attribute."""

    needed: bool = True


@dataclass(frozen=True, slots=True)
class Whole:
    """An attribute: an integer."""

    low: int
    high: int
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Real:
    """An attribute: a finite number."""

    low: float = -LARGEST
    high: float = LARGEST
    needed: bool = True


Entry = Array | Text | Whole | Real
Schema = Mapping[str, Entry]


def read(file: Any, schema: Schema, sizes: dict[str, int] | None = None) -> dict[str, Any]:
    """The values by place: arrays, text and numbers; None for what may be missing and is.

    `sizes` are known sizes, and gets those that are found. Growing arrays of several axes are
    checked, and not read: None stands for them. Raises `InputError` for the first place where
    something else is, with what was found and what is wanted.
    """
    lengths = {} if sizes is None else sizes
    return {place: _read(file, place, entry, lengths) for place, entry in schema.items()}


def _read(file: Any, place: str, entry: Entry, sizes: dict[str, int]) -> Any:
    if isinstance(entry, Array):
        if place not in file:
            return _missing(place, entry.needed)
        return _array(file[place], place, entry, sizes)
    group, _, name = place.rpartition("@")
    holder = file if not group else file.get(group)
    if holder is None or name not in holder.attrs:
        return _missing(place, entry.needed)
    if isinstance(entry, Text):
        try:
            return read_text(holder.attrs, name)
        except (ValueError, TypeError) as error:
            raise InputError(f"damaged checkpoint: {place} is no text; wanted text") from error
    return _attribute(holder.attrs[name], place, entry)


def _missing(place: str, needed: bool) -> None:
    if needed:
        raise InputError(f"damaged checkpoint: there is no {place}")


def _array(dataset: Any, place: str, entry: Array, sizes: dict[str, int]) -> NDArray[Any] | None:
    # a group has none, and a dataset of nothing None
    shape: tuple[int, ...] = getattr(dataset, "shape", None) or ()
    dtype = getattr(dataset, "dtype", None)
    extents = tuple(sizes.get(n, n) if isinstance(n, str) else n for n in entry.shape)
    fits = len(shape) == len(extents)
    if fits:
        fits = all(isinstance(n, str) or n == m for n, m in zip(extents, shape, strict=True))
    if not fits or dtype not in [np.dtype(t) for t in entry.types.split()]:
        shown = f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"
        what = "no array" if dtype is None else f"{tuple(shape)} of {dtype}"
        kinds = " or ".join(str(np.dtype(t)) for t in entry.types.split())
        raise InputError(f"damaged checkpoint: {place} is {what}; wanted {shown} of {kinds}")
    sizes.update({n: m for n, m in zip(entry.shape, shape, strict=True) if isinstance(n, str)})
    if entry.growing:
        if dataset.chunks is None or dataset.maxshape[0] is not None:
            raise InputError(
                f"damaged checkpoint: {place} cannot grow; wanted chunks without a limit along its "
                "first axis"
            )
        if len(shape) > 1:
            return None
    values = read_array(dataset)
    if not entry.any_number and values.size:
        _check_range(values, place, entry)
    return values


def _check_range(values: NDArray[Any], place: str, entry: Array) -> None:
    good = np.isfinite(values)
    if (entry.low, entry.high) != (-LARGEST, LARGEST):
        good &= (values >= entry.low) & (values <= entry.high)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        where = ", ".join(map(str, at))
        raise InputError(
            f"damaged checkpoint: {place}[{where}] is {values[at]}; wanted "
            f"{_range(entry.low, entry.high)}"
        )


def _attribute(attribute: Any, place: str, entry: Whole | Real) -> float:
    try:
        number = _number(attribute, "iu" if isinstance(entry, Whole) else "iuf")
    except ValueError as error:
        raise InputError(
            f"damaged checkpoint: {place} is {_shown(attribute)}; wanted {_KINDS[type(entry)]}"
        ) from error
    if not entry.low <= number <= entry.high:
        raise InputError(
            f"damaged checkpoint: {place} is {number}; wanted {_range(entry.low, entry.high)}"
        )
    return number


def _number(attribute: Any, kinds: str) -> float:
    value = np.asarray(attribute)
    if value.shape != () or value.dtype.kind not in kinds:
        raise ValueError
    return value[()].item()


_KINDS: dict[type, str] = {Whole: "an integer", Real: "a number"}


def _range(low: float, high: float) -> str:
    return f"{_bound(low)} to {_bound(high)}"


def _bound(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ------------------------------------------------------------ records within text


T = TypeVar("T")


def record(cls: type[T], values: Any, what: str) -> T:
    """A dataclass of what JSON brought, each value of the type that its field is annotated with.

    Integers do for numbers, lists for tuples. Raises `ValueError`,
    naming `what`, for values of another type, unknown and missing ones.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{what} is {_shown(values)}; wanted names and values")
    arguments: dict[str, Any] = {str(n): v for n, v in values.items()}  # pyright: ignore[reportUnknownVariableType]
    hints = get_type_hints(cls)
    declared = fields(cls)  # pyright: ignore[reportArgumentType]
    if unknown := arguments.keys() - hints.keys():
        raise ValueError(f"{what} has no {min(unknown)}")
    for f in declared:
        if f.name not in arguments and f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"{what} lacks {f.name}")
    return cls(
        **{name: converted(value, hints[name], f"its {name}") for name, value in arguments.items()}
    )


def converted(value: Any, annotation: Any, what: str) -> Any:
    """`value` as the annotated type: bool, int, float, str, None, tuples, mappings by text, unions
    and dataclasses of these.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for each in arguments:
            try:
                return converted(value, each, what)
            except ValueError:
                continue
    elif origin is tuple and isinstance(value, list | tuple):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(converted(v, arguments[0], what) for v in items)
        if len(arguments) == len(items):
            return tuple(converted(v, t, what) for v, t in zip(items, arguments, strict=True))
    elif origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
        pairs: dict[Any, Any] = value
        return {str(n): converted(v, arguments[1], what) for n, v in pairs.items()}
    elif is_dataclass(annotation) and isinstance(annotation, type):
        return record(annotation, value, what)
    elif annotation is float and type(value) in (int, float):
        if type(value) is float or abs(value) <= LARGEST:
            return float(value)
    elif annotation is type(None) and value is None:
        return None
    elif annotation in (bool, int, str) and type(value) is annotation:
        return value
    raise ValueError(f"{what} is {_shown(value)}")
