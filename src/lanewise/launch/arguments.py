"""Match the arguments of a call with the parameters of a kernel.

Each is a record array, an array of values, or a uniform argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from lanewise.frontend.function import Signature
from lanewise.ir.values import value_array
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.language.values import to_python_value
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Primitive
from lanewise.layouts import Arrangement
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import check_usable
from lanewise.records.field_values import brought, check_type, converted
from lanewise.records.parts import PartOfRecords
from lanewise.runtime.devices import default_device
from lanewise.runtime.field_copies import advice_of, is_writable
from lanewise.runtime.memory import array_module, device_of, home, unlocked
from lanewise.support.articles import an
from lanewise.support.checks import check_unmasked, host_array, shown
from lanewise.support.errors import ArgumentError
from lanewise.support.near import near


class Tests(Protocol):
    """The tests of a call's indices, which give each element the number of its first failure.

    within: the kernel makes them as it runs, not a separate kernel before it.
    """

    @property
    def within(self) -> bool: ...
    @property
    def tested(self) -> Hashable:
        """What is tested."""
        ...

    def examine(self, outside: Any) -> None:
        """Raise `VerificationError` for the first element that failed. Waits for the kernel."""
        ...


@dataclass(slots=True)
class Arguments:
    """The arguments of one call, by what they are.

    `arrays` hold the values of one element after the other, `unflattened` are the same with all
    their axes, and `axes` are those of the results' elements, where the pattern gives them any.
    `added` are arrays that the pattern makes of them, and arrays that have indices, each with the
    type of a value; `shaped` are the latter as the caller has them, `lengths` those of their
    dimensions; `summed` are those, in one row each, that words of exact sums replace
    while a kernel runs; `beyond` says of rows how many values all of them have, `totals` what a
    pattern counts besides, `variant` what else a kernel is specialised to. `options` are keywords
    of the call that belong to no parameter; `tests` are those of indices that nothing proves;
    `buckets` stands for the kernel, where the caller chose no plan. `divided`: of a part of a mesh,
    whose choices must not follow from how many rows it has. `asked` is what a bound call
    asks of them again each time.
    """

    records: dict[str, RecordArray] = field(default_factory=dict[str, RecordArray])
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])
    uniforms: dict[str, Any] = field(default_factory=dict[str, Any])
    axes: tuple[int, ...] = ()
    unflattened: dict[str, Any] = field(default_factory=dict[str, Any])
    added: dict[str, tuple[Any, t.ValueType]] = field(
        default_factory=dict[str, tuple[Any, t.ValueType]]
    )
    shaped: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    beyond: dict[str, int] = field(default_factory=dict[str, int])
    totals: dict[str, int] = field(default_factory=dict[str, int])
    variant: tuple[Hashable, ...] = ()
    device: str = "cpu"
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    summed: dict[str, tuple[Any, t.Scalar]] = field(default_factory=dict[str, tuple[Any, t.Scalar]])
    tests: Tests | None = None
    divided: bool = False
    buckets: Primitive | None = None


def name_arguments(
    signature: Signature, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Positional and named arguments by parameter; raises `ArgumentError` for missing, unknown or
    repeated ones.
    """
    kernel, names = signature.source.name, signature.names
    plain = names[: len(names) - len(signature.asked)]
    if len(positional) > len(plain):
        besides = "".join(f", and {n}= by keyword" for n in signature.asked)
        raise ArgumentError(
            f"{kernel} takes {len(plain)} arguments ({', '.join(plain)}){besides}, found "
            f"{len(positional)}"
        )
    values = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names:
            raise ArgumentError(
                f"{kernel} has no parameter {name!r}; its parameters are {', '.join(names)}"
                f"{near(name, names)}"
            )
        if name in values:
            raise ArgumentError(f"{kernel} got {name!r} twice")
        values[name] = value
    if missing := [n for n in names if n not in values]:
        raise ArgumentError(
            f"{kernel} needs {', '.join(missing)}; its parameters are {', '.join(names)}"
        )
    return {n: values[n] for n in names}


def classify_arguments(
    signature: Signature,
    values: Mapping[str, Any],
    *,
    arrays_allowed: bool,
    any_shape: bool = False,
) -> Arguments:
    """Check every argument against its parameter.

    Arrays of values come to the device of the records.

    any_shape: without records they may have several axes of elements, which results have as well.
    """
    kernel, result = signature.source.name, Arguments()
    for name, kind in signature.parameters.items():
        if isinstance(kind, Record):
            value = values[name]
            if not isinstance(value, RecordArray) or value.record != kind:
                raise ArgumentError(
                    f"{kernel}: {name!r} must be an array of {kind.name}, found "
                    f"{_other(value, kind)}"
                )
            check_usable(value, kernel, name)
            result.records[name] = value
    devices = {r.device for r in result.records.values()}
    if len(devices) > 1:
        raise ArgumentError(
            f"{kernel}: the records lie on different devices ({', '.join(sorted(devices))}); move "
            "them with .to(device)"
        )
    result.device = devices.pop() if devices else device_without_records(_gpu_of(kernel, values))
    for name, kind in signature.parameters.items():
        if not isinstance(kind, Record):
            _classify_value(kernel, name, kind, values[name], result, arrays_allowed, any_shape)
    if any_shape and not result.records:
        _lay_out(signature, result)
    return result


def _lay_out(signature: Signature, arguments: Arguments) -> None:
    """Values of any shape, which all of them have, as values of one element after the other.

    Differences in length are found elsewhere.
    """
    parameters = signature.parameters.items()
    kinds = {
        n: kind for n, kind in parameters if n in arguments.arrays and not isinstance(kind, Record)
    }
    shapes = {n: axes_of(arguments.arrays[n].shape, kind) for n, kind in kinds.items()}
    axes = next(iter(shapes.values()), ())
    if any(s != axes for s in shapes.values()):
        if any(len(s) > 1 for s in shapes.values()):
            raise ArgumentError(_different(signature.source.name, kinds, arguments.arrays))
        return
    arguments.axes = axes
    if len(axes) > 1:
        arguments.arrays = {n: flat(arguments.arrays[n], kind) for n, kind in kinds.items()}


def _different(kernel: str, kinds: Mapping[str, t.ValueType], arrays: Mapping[str, Any]) -> str:
    found = (
        f"{n} has {(shape := tuple(arrays[n].shape))}"
        + (f", which is {axes_of(shape, kind)} of {kind}" if isinstance(kind, t.Vector) else "")
        for n, kind in kinds.items()
    )
    return (
        f"{kernel}: the arrays differ in shape: {', '.join(found)}; nothing is broadcast: bring "
        "all of them to one shape"
    )


def axes_of(shape: tuple[int, ...], kind: t.ValueType) -> tuple[int, ...]:
    """The axes of the elements of an array of values with that shape: without that of the
    components.
    """
    return shape[:-1] if isinstance(kind, t.Vector) else shape


def flat(array: Any, kind: t.ValueType) -> Any:
    """A contiguous array of values with one axis of elements, in the same memory."""
    count = math.prod(axes_of(array.shape, kind))
    return array.reshape(count, *t.shape_of(kind))


def device_without_records(there: str | None) -> str:
    """Where a call without records runs; `there`: the GPU that its arrays lie on, None if they are
    on the host.
    """
    return default_device() if there is None else there


def _gpu_of(kernel: str, values: Mapping[str, Any]) -> str | None:
    """The GPU that arrays of values lie on; raises `ArgumentError` where there are several."""
    places = {n: found for n, v in values.items() if (found := home(v)) is not None}
    if len(kinds := set(places.values())) > 1:
        lie = ", ".join(f"{n} on {p!r}" for n, p in places.items())
        raise ArgumentError(
            f"{kernel}: the arrays lie on different devices ({lie}); bring them to one"
        )
    return kinds.pop() if kinds else None


def _classify_value(
    kernel: str,
    name: str,
    kind: t.ValueType,
    value: Any,
    result: Arguments,
    arrays_allowed: bool,
    any_shape: bool,
) -> None:
    place, single = f"{kernel}: {name!r}", 1 if isinstance(kind, t.Vector) else 0
    dimensions = _dimensions(value)
    if any_shape and result.records and dimensions > single + 1:
        raise ArgumentError(
            f"{place} has one {kind} for each record, and records have one axis: found "
            f"{describe(value)}; "
            f"reshape it to {_shape(len(next(iter(result.records.values()))), kind)}"
        )
    if arrays_allowed and (dimensions == single + 1 or (any_shape and dimensions > single)):
        array = brought(place, value, result.device)
        if isinstance(kind, t.Vector) and array.shape[-1] != kind.length:
            wanted = _shape("n" if array.ndim == 2 else "...", kind)
            raise ArgumentError(
                f"{place} is {an(kind)}: wanted shape {wanted}, found {tuple(array.shape)}"
            )
        check_type(place, array, kind)
        result.arrays[name] = converted(place, array, t.scalar_of(kind), result.device)
        result.unflattened[name] = result.arrays[name]
        if isinstance(value, np.ma.MaskedArray):
            result.asked.append(partial(check_unmasked, place, value))
        return
    if dimensions != single or isinstance(value, (str, bytes)):
        what = f"one {kind} for all" + (", or an array of them" if arrays_allowed else "")
        raise ArgumentError(f"{place} must be {what}, found {describe(value)}")
    on_gpu = hasattr(value, "__cuda_array_interface__")
    host = brought(place, value, "cpu") if on_gpu else host_array(place, value)
    if host.dtype.kind not in "biuf" or (
        isinstance(kind, t.Vector) and host.shape != (kind.length,)
    ):
        raise ArgumentError(f"{place} must be {an(kind)}, found {describe(value)}")
    check_type(place, host, kind)
    result.uniforms[name] = to_python_value(
        converted(place, host, t.scalar_of(kind), "cpu")[()], kind
    )


def _shape(elements: object, kind: t.ValueType) -> str:
    return f"({elements}, {kind.length})" if isinstance(kind, t.Vector) else f"({elements},)"


def _dimensions(value: Any) -> int:
    """How many indices a value has; -1 for what is no array, such as lists of different lengths or
    records.
    """
    if isinstance(value, RecordArray | PartOfRecords):  # which may have a field of that name
        return -1
    try:
        dimensions: Any = getattr(value, "ndim", None)
        return dimensions if isinstance(dimensions, int) else np.ndim(value)
    except Exception:  # of the user's class, or of NumPy
        return -1


def _other(value: Any, kind: Record) -> str:
    """What was given instead of an array of this record."""
    if isinstance(value, RecordArray) and value.record.name == kind.name:
        return (
            f"an array of another {kind.name}: its record is {value.record}, and that of the "
            f"{kind.name} that this kernel was made with "
            f"{kind}; run the kernel's cell again"
        )
    if isinstance(value, PartOfRecords) and value.record != kind:
        return f"{value!r}, whose records are {value.record.name}"
    return describe(value)


def describe(value: Any) -> str:
    """A short description of any value for an error message."""
    if isinstance(value, RecordArray):
        return f"an array of {value.record.name}"
    if isinstance(value, PartOfRecords):
        return f"{value!r}, which lies in that array; .copy() is an array of them alone"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        shape: Any = getattr(value, "shape", None)
    except Exception:  # of the user's class
        shape = None
    if isinstance(shape, tuple) and hasattr(value, "dtype") and shape:
        return f"an array of {value.dtype} with shape {tuple(shape)}"
    return f"{type(value).__name__} {shown(value)}"


def bind_value_array(array: Any, kind: t.ValueType) -> BoundArray:
    """A contiguous array of values as bytes."""
    if isinstance(array, np.ma.MaskedArray):
        array = np.asarray(array)  # its own memory: a mask that hides elements was refused
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        array = unlocked(array)
    return BoundArray(
        array.reshape(-1).view("uint8"),
        values_arrangement(kind),
        len(array),
    )


@cache
def values_arrangement(kind: t.ValueType) -> Arrangement:
    """How a contiguous array of values lies in memory."""
    return value_array("", kind, written=False).arrangement


def flatten_uniforms(signature: Signature, uniforms: Mapping[str, Any]) -> dict[str, Any]:
    """Uniform leaves by their IR names."""
    flat: dict[str, Any] = {}
    for name, value in uniforms.items():
        kind = signature.parameters[name]
        assert not isinstance(kind, Record)
        parts = tuple(value) if isinstance(kind, t.Vector) else (value,)
        flat.update(zip(t.leaves(name, kind), parts, strict=True))
    return flat


def make_outputs(
    kernel: str,
    kinds: list[t.ValueType],
    count: int,
    device: str,
    out: Any,
    axes: tuple[int, ...] = (),
) -> list[Any]:
    """One result array for each kind, or the caller's own: one array for a single result, a tuple
    of them for several.

    axes: of the elements, if there are several.
    """
    arrays = (None,) * len(kinds) if out is None else out if isinstance(out, tuple) else (out,)
    if len(arrays) != len(kinds):
        wanted = {0: "no out", 1: "one array"}.get(len(kinds), f"a tuple of {len(kinds)} arrays")
        raise ArgumentError(
            f"{kernel} has {len(kinds)} results: wanted {wanted}, found {len(arrays)}"
        )
    return [
        make_output(kernel, kind, count, device, array, axes)
        for kind, array in zip(kinds, arrays, strict=True)
    ]


def shape_of_result(
    kind: t.ValueType, count: int, axes: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of an array of results. axes: of the elements, if there are several."""
    axes = axes or (count,)
    return (*axes, *t.shape_of(kind)), t.scalar_of(kind).dtype


def make_output(
    kernel: str, kind: t.ValueType, count: int, device: str, out: Any, axes: tuple[int, ...] = ()
) -> Any:
    """A result array of shape (*axes,) or (*axes, components), or the caller's own after a check;
    of shape (n, ...) without axes.
    """
    shape, dtype = shape_of_result(kind, count, axes)
    module = array_module(device)
    if out is None:
        return module.empty(shape, dtype)
    check_unmasked(f"{kernel}: out", out)
    fits = (
        isinstance(out, module.ndarray)
        and out.shape == shape
        and out.dtype == dtype
        and out.flags.c_contiguous
    )
    if fits and not target_of(device).host_memory and device_of(out) != device:
        raise ArgumentError(
            f"{kernel}: out must lie on {device!r}, where the call runs, found it on "
            f"{device_of(out)!r}"
        )
    if not fits or not is_writable(out):
        state = (
            ", which is not contiguous"
            if isinstance(out, module.ndarray) and not out.flags.c_contiguous
            else ""
        )
        state = f", which is read-only{advice_of(out)}" if fits else state
        raise ArgumentError(
            f"{kernel}: out must be a contiguous array of {dtype} with shape {shape} on "
            f"{device!r}, found {describe(out)}{state}"
        )
    return out
