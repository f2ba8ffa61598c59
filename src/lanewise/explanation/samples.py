"""Made-up arguments for a kernel, for commands that have only the kernel: reproducible, and named
as made up.

What a parameter becomes depends on its type alone (and on `values`, what the user gave by name):

    a record       an array of records a vector       of an elementwise kernel: an array of them; of
    a pairwise kernel: one uniform value a scalar       one uniform value; but an elementwise kernel
    without any array takes its first scalar as an array
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.values import to_python_value
from lanewise.layouts import Layout
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.runtime.devices import resolve
from lanewise.support.errors import InputError

Kernel = Pairwise | Elementwise
SMALL = 0.01  # a made-up softening: small beside distances of about 1, large beside rounding
WHOLE_NUMBERS = 8  # made-up whole numbers are below it


@dataclass(frozen=True, slots=True)
class Roles:
    """What the parameters of a kernel are in a call: records, arrays of values, uniform
    arguments.
    """

    records: dict[str, Record]
    arrays: dict[str, t.ValueType]
    uniforms: dict[str, t.ValueType]


def sample_roles(kernel: Kernel, values: Mapping[str, float] | None = None) -> Roles:
    """The parameters of a kernel by role; what is named in `values` is uniform."""
    if tables := kernel.signature.arrays:
        raise InputError(
            f"{kernel.__name__} reads the table{'s' if len(tables) > 1 else ''} "
            f"{', '.join(tables)}, which cannot be made up: call "
            f"{kernel.__name__}.compile(...).explain() or {kernel.__name__}.tune(...) with the "
            "arguments of a call"
        )
    chosen, parameters = dict(values or {}), kernel.signature.parameters
    records = {n: k for n, k in parameters.items() if isinstance(k, Record)}
    others: dict[str, t.ValueType] = {
        n: k for n, k in parameters.items() if not isinstance(k, Record)
    }
    arrays: dict[str, t.ValueType] = {}
    if isinstance(kernel, Elementwise):
        open_names = [n for n in others if n not in chosen]
        arrays = {n: others[n] for n in open_names if isinstance(others[n], t.Vector)}
        if not records and not arrays:
            arrays = {n: others[n] for n in open_names[:1]}
        if not records and not arrays:
            raise InputError(
                f"{kernel.__name__}: a value was given for every parameter; at least one is an "
                "array"
            )
    return Roles(records, arrays, {n: k for n, k in others.items() if n not in arrays})


def sample_values(
    kernel: Kernel, values: Mapping[str, float] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A value for each uniform parameter, and the names of those that were made up.

    Made up are 0.01 for names with "softening" or "eps" in them, otherwise 1. A number stands for
    all components of a vector. Raises `InputError` for a name that is no such parameter or a number
    that its type cannot hold.
    """
    chosen, roles = dict(values or {}), sample_roles(kernel, values)
    for name in chosen:
        if name not in roles.uniforms:
            wanted = ", ".join(roles.uniforms) or "no parameter that is a uniform argument"
            raise InputError(f"{kernel.__name__} has no value {name!r} to set; it has {wanted}")
    invented = tuple(n for n in roles.uniforms if n not in chosen)
    numbers = {n: chosen[n] if n in chosen else _made_up(n, k) for n, k in roles.uniforms.items()}
    return {n: _typed(kernel, n, numbers[n], k) for n, k in roles.uniforms.items()}, invented


def sample_arguments(
    kernel: Kernel,
    count: int,
    device: str,
    *,
    seed: int = 0,
    values: Mapping[str, float] | None = None,
    layout: Layout | None = None,
) -> tuple[list[RecordArray], dict[str, Any]]:
    """Arguments for `kernel(*records, **named)`: `count` records of random fields, and the other
    parameters by name.

    Vectors and their arrays are normal with variance 1, scalars uniform from 0.5 to 1.5, whole
    numbers from 0 to 7, truth values as likely as not; the same `seed` gives the same numbers on
    every device. Both parameters of a pairwise kernel are one array when their record classes
    agree. `values` are the uniform arguments by name, see `sample_values` for those that it lacks.
    Records that come after another kind of parameter are among the named ones.
    """
    if count < 1:
        raise InputError(f"{count} elements asked for; wanted at least 1")
    roles, where, rng = sample_roles(kernel, values), resolve(device), np.random.default_rng(seed)
    uniforms, _ = sample_values(kernel, values)
    classes = kernel.signature.source.annotations()
    shared: dict[Record, RecordArray] = {}
    arrays: dict[str, RecordArray] = {}
    for name, record in roles.records.items():
        if isinstance(kernel, Pairwise) and record in shared:
            arrays[name] = shared[record]
            continue
        fields = {f.name: random_values(rng, count, f.type) for f in record}
        arrays[name] = shared[record] = classes[name].array(**fields, layout=layout, device=where)
    leading = [
        n for i, n in enumerate(kernel.signature.parameters) if n in arrays and i < len(arrays)
    ]
    plain = {n: brought(n, random_values(rng, count, k), where) for n, k in roles.arrays.items()}
    late = {n: a for n, a in arrays.items() if n not in leading}
    return [arrays[n] for n in leading], {**late, **plain, **uniforms}


def _made_up(name: str, kind: t.ValueType) -> float:
    small = t.scalar_of(kind).is_float and any(
        word in name.lower() for word in ("softening", "eps")
    )
    return SMALL if small else 1


def _typed(kernel: Kernel, name: str, number: float, kind: t.ValueType) -> Any:
    scalar = t.scalar_of(kind)
    low, high = t.limits(scalar)
    whole = scalar.is_float or float(number).is_integer()
    if not np.isfinite(number) or not low <= number <= high or not whole:
        raise InputError(f"{kernel.__name__}: {name!r} is a {kind}, found {number!r}")
    one = number if scalar.is_float else int(number)
    parts = (
        np.full(kind.length, one, scalar.dtype)
        if isinstance(kind, t.Vector)
        else scalar.dtype.type(one)
    )
    return to_python_value(parts, kind)


def random_values(rng: np.random.Generator, count: int, kind: t.ValueType) -> Any:
    """An array of shape (count,) or (count, components)."""
    scalar = t.scalar_of(kind)
    shape = (count, *t.shape_of(kind))
    if scalar == t.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if scalar.is_integer:
        return rng.integers(0, WHOLE_NUMBERS, shape).astype(scalar.dtype)
    numbers = rng.normal(size=shape) if isinstance(kind, t.Vector) else rng.uniform(0.5, 1.5, shape)
    return numbers.astype(scalar.dtype)
