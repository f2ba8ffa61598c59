"""Made-up arguments for a kernel, for commands that have only the kernel: reproducible, and named
as made up. What they are, and how large, is in `explanation/shapes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.explanation.rendering import made_up
from lanewise.explanation.shapes import (
    GRID,
    Kernel,
    Roles,
    Shape,
    Shapes,
    sample_roles,
    sample_shapes,
)
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import CPU
from lanewise.language.values import to_python_value
from lanewise.layouts import Layout, default_layout
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.records.ragged import RaggedArray, ragged, unfilled
from lanewise.records.storage import Storage
from lanewise.runtime.devices import resolve
from lanewise.runtime.reserved import reserved
from lanewise.support.articles import an
from lanewise.support.errors import InputError

SMALL = 0.01  # a made-up softening: small compared with distances, large compared with rounding
WHOLE_NUMBERS = 8  # made-up integers are below it


@dataclass(frozen=True, slots=True)
class Samples:
    """Made-up arguments by name, the values among them that were not given, and the sizes of
    all.
    """

    named: dict[str, Any]
    values: tuple[str, ...]
    shapes: Shapes


def sample_values(
    kernel: Kernel,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A value for each uniform parameter, and the names of those that were made up.

    Made up are 0.01 for names with "softening" or "eps" in them, otherwise 1. A number stands for
    all components of a vector. Raises `InputError` for a name that is no such parameter or a number
    that its type cannot hold.
    """
    chosen, roles = dict(values or {}), sample_roles(kernel, values, shapes)
    for name in chosen:
        if name not in roles.uniforms:
            wanted = ", ".join(roles.uniforms) or "no parameter that is a uniform argument"
            raise InputError(f"{kernel.__name__} has no value {name!r} to set; it has {wanted}")
    return typed_values(kernel.__name__, roles.uniforms, chosen)


def typed_values(
    kernel: str, kinds: Mapping[str, t.ValueType], chosen: Mapping[str, float]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A value of each of these kinds, and the names of those that were made up; raises `InputError`
    for a number that a type cannot hold.
    """
    numbers = {n: chosen[n] if n in chosen else _made_up(n, k) for n, k in kinds.items()}
    invented = tuple(n for n in kinds if n not in chosen)
    return {n: _typed(kernel, n, numbers[n], k) for n, k in kinds.items()}, invented


def sample_arguments(
    kernel: Kernel,
    count: int,
    device: str,
    *,
    seed: int = 0,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    layout: Layout | None = None,
) -> Samples:
    """Arguments for `kernel(**samples.named)`: `count` records of random fields, arrays of random
    values, and the other parameters. values, shapes: those that are given, by name.

    Vectors and their arrays are normal with variance 1, scalars uniform from 0.5 to 1.5,
    integers from 0 to 7 (below the shortest dimension of an array, if that is less), booleans as
    likely as not; the same `seed` gives the same numbers on every device. Both parameters of a
    pairwise kernel are one array when their record classes and their sizes agree.
    """
    where, rng = resolve(device), np.random.default_rng(seed)

    def fill(shape: Shape, kind: t.ValueType, below: int) -> Any:
        numbers = random_values(rng, shape, kind, below)
        return numbers if where == CPU.name else brought("a made-up array", numbers, where)

    def records(python_class: Any, record: Record, number: int) -> RecordArray:
        fields = {f.name: random_values(rng, number, f.type) for f in record}
        return python_class.array(**fields, layout=layout, device=where)

    def lists(contents: Any, counts: Any) -> RaggedArray:
        return ragged(contents, counts, device=where)

    return _made(kernel, count, values, shapes, _Maker(fill, records, lists))


def unfilled_arguments(
    kernel: Kernel,
    count: int,
    device: str,
    *,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    layout: Layout | None = None,
) -> Samples:
    """The same for a call that is described and not run: arrays on the host, in the layouts of the
    device, whose memory nothing touches.
    """

    def fill(shape: Shape, kind: t.ValueType, below: int) -> Any:
        del below
        scalar, whole = t.scalar_of(kind), (*shape, *t.shape_of(kind))
        return (
            reserved(scalar.size * int(np.prod(whole, dtype=object)))
            .view(scalar.dtype)
            .reshape(whole)
        )

    def records(python_class: Any, record: Record, number: int) -> RecordArray:
        arranged = layout or default_layout(record, device)
        data = reserved(arranged.arrange(record.leaves).nbytes(number))
        return RecordArray(Storage.over(record, number, arranged, CPU.name, data), python_class)

    return _made(kernel, count, values, shapes, _Maker(fill, records, unfilled))


def plain_values(samples: Samples) -> dict[str, Any]:
    """The values that were not given: numbers, and lists of the numbers of vectors."""
    return {n: _plain(samples.named[n]) for n in samples.values}


def refused(error: Exception, samples: Samples) -> InputError:
    """What a made-up call is refused for, with what was not given."""
    lines = made_up(plain_values(samples), samples.shapes.made_up)
    return InputError("\n  made up: ".join((str(error), *lines)))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else [x.item() for x in value]


# ------------------------------------------------------------ making


@dataclass(frozen=True, slots=True)
class _Maker:
    """What makes an array of values (its shape, its type, integers below what), so many
    records, and lists of values or records of these lengths.
    """

    fill: Callable[[Shape, t.ValueType, int], Any]
    records: Callable[[Any, Record, int], RecordArray]
    lists: Callable[[Any, Any], RaggedArray]


def _made(
    kernel: Kernel,
    count: int,
    values: Mapping[str, float] | None,
    asked: Mapping[str, Shape] | None,
    make: _Maker,
) -> Samples:
    roles = sample_roles(kernel, values, asked)
    shapes = sample_shapes(kernel, roles, count, asked)
    uniforms, invented = sample_values(kernel, values, asked)
    classes, sizes = kernel.signature.source.annotations(), shapes.sizes
    named: dict[str, Any] = {}
    shared: dict[tuple[Record, Shape], RecordArray] = {}
    for name, record in roles.records.items():
        key = record, sizes[name]
        if not (isinstance(kernel, Pairwise) and key in shared):
            shared[key] = make.records(classes[name], record, sizes[name][0])
        named[name] = shared[key]
    for name, kind in roles.arrays.items():
        named[name] = make.fill(sizes[name], kind, WHOLE_NUMBERS)
    below = min(WHOLE_NUMBERS, *(n for a in roles.indexed for n in sizes[a]), WHOLE_NUMBERS)
    for name, array in roles.indexed.items():
        named[name] = make.fill(sizes[name], array.element, below)
    named |= _lists(roles, sizes, classes, make)
    if roles.indices:
        named[GRID] = sizes[GRID]
    return Samples({**named, **uniforms}, invented, shapes)


def _lists(
    roles: Roles, sizes: Mapping[str, Shape], classes: Mapping[str, Any], make: _Maker
) -> dict[str, Any]:
    """Lists of items, all of one length, and the rows of these."""
    made: dict[str, Any] = {}
    for name, record in roles.lists.items():
        *outer, length = sizes[name]
        counts = np.full(outer, length, np.int64)
        items = int(counts.sum())
        made[name] = make.lists(make.records(classes[name], record, items), counts)
        for row, kind in roles.rows.items():
            contents = make.fill((items * sizes[row][0],), kind, WHOLE_NUMBERS)
            made[row] = make.lists(contents, np.full(items, sizes[row][0], np.int64))
    return made


def _made_up(name: str, kind: t.ValueType) -> float:
    small = t.scalar_of(kind).is_float and any(
        word in name.lower() for word in ("softening", "eps")
    )
    return SMALL if small else 1


def _typed(kernel: str, name: str, number: float, kind: t.ValueType) -> Any:
    scalar = t.scalar_of(kind)
    low, high = t.limits(scalar)
    whole = scalar.is_float or float(number).is_integer()
    if not np.isfinite(number) or not low <= number <= high or not whole:
        raise InputError(f"{kernel}: {name!r} is {an(kind)}, found {number!r}")
    one = number if scalar.is_float else int(number)
    parts = (
        np.full(kind.length, one, scalar.dtype)
        if isinstance(kind, t.Vector)
        else scalar.dtype.type(one)
    )
    return to_python_value(parts, kind)


def random_values(
    rng: np.random.Generator, count: int | Shape, kind: t.ValueType, below: int = WHOLE_NUMBERS
) -> Any:
    """An array of shape (*count,) or (*count, components); integers are below `below`."""
    scalar = t.scalar_of(kind)
    shape = (*((count,) if isinstance(count, int) else count), *t.shape_of(kind))
    if scalar == t.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if scalar.is_integer:
        return rng.integers(0, below, shape).astype(scalar.dtype)
    numbers = rng.normal(size=shape) if isinstance(kind, t.Vector) else rng.uniform(0.5, 1.5, shape)
    return numbers.astype(scalar.dtype)
