"""The arguments of a call as tensors of another library: which are there, what each is to the
kernel, and records made of them.

A record is a mapping from fields to tensors, `{"position": x, "mass": m}`. One and the same mapping
for targets and sources is one array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.language import types as t
from lanewise.language.record import Record, make_class, unknown_field
from lanewise.language.target import CPU, CUDA
from lanewise.launch.arguments import name_arguments
from lanewise.layouts import default_layout
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.variables import check_results
from lanewise.records.arrays import RecordArray
from lanewise.runtime.devices import cuda_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

Differentiable = Pairwise | Elementwise


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor belongs: to a parameter, or a field of it. wrt: its name in gradients, empty
    where nothing depends on it.
    """

    parameter: str
    field: str
    wrt: str


@dataclass(frozen=True)
class Inputs:
    """The arguments of one call: `places` of the tensors, and by parameter what else there is.

    twins: a record parameter that is the same array as another one.
    """

    kernel: Differentiable
    places: tuple[TensorPlace, ...]
    constants: Mapping[str, Any]
    twins: Mapping[str, str]

    def arguments(self, tensors: Sequence[Any], device: str) -> dict[str, Any]:
        """What the kernel is called with: records on the device, and values."""
        fields: dict[str, dict[str, Any]] = {
            n: dict(c) for n, c in self.constants.items() if isinstance(c, dict)
        }
        values: dict[str, Any] = {
            n: c for n, c in self.constants.items() if not isinstance(c, dict)
        }
        for place, tensor in zip(self.places, tensors, strict=True):
            if place.field:
                fields.setdefault(place.parameter, {})[place.field] = tensor
            else:
                values[place.parameter] = tensor
        for n, given in fields.items():
            record = self.kernel.signature.parameters[n]
            assert isinstance(record, Record)
            cls = make_class(record, __name__, record.name, None)
            lies = default_layout(record, device)  # they live for one call
            values[n] = RecordArray.from_fields(
                record, given, layout=lies, device=device, python_class=cls
            )
        return values | {n: values[other] for n, other in self.twins.items()}

    def differentiable(self, needed: Sequence[bool]) -> tuple[str, ...]:
        """The names of the tensors whose derivatives are needed and not zero everywhere."""
        return tuple(p.wrt for p, asked in zip(self.places, needed, strict=True) if asked and p.wrt)


def check_kernel(what: str, kernel: Any) -> None:
    """Refuse what has no gradient."""
    if not isinstance(kernel, Differentiable):
        raise ArgumentError(
            f"{what} takes a kernel of @lw.pairwise or @lw.elementwise, found {shown(kernel)}"
        )
    check_results(kernel.signature, kernel.lowered)


def inputs_of(
    kernel: Differentiable,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    is_tensor: Callable[[Any], bool],
) -> tuple[Inputs, list[Any]]:
    """The arguments of a call, and the tensors among them.

    Raises `ArgumentError` for what does not fit the parameters.
    """
    values = name_arguments(kernel.signature, arguments, named)
    used = {p.name for p in kernel.lowered.function.parameters}
    places: list[TensorPlace] = []
    tensors: list[Any] = []
    constants: dict[str, Any] = {}
    twins: dict[str, str] = {}
    seen: dict[int, str] = {}
    records = [n for n, k in kernel.signature.parameters.items() if isinstance(k, Record)]
    for n, kind in kernel.signature.parameters.items():
        value = values[n]
        if not isinstance(kind, Record):
            if is_tensor(value):
                places.append(
                    TensorPlace(
                        n,
                        "",
                        n if t.scalar_of(kind).is_float and used & set(t.leaves(n, kind)) else "",
                    )
                )
                tensors.append(value)
            else:
                constants[n] = value
        elif not isinstance(value, Mapping):
            if not isinstance(value, RecordArray):
                raise ArgumentError(
                    f"{kernel.__name__}: {n!r} is a mapping from the fields of {kind.name} to "
                    f'tensors, {{"{kind.fields[0].name}": ...}}, '
                    f"found {shown(value)}"
                )
            constants[n] = value
        elif id(value) in seen:
            twins[n] = seen[id(value)]
        else:
            seen[id(value)] = n
            same = [r for r in records if values[r] is value]
            _check_fields(kernel, n, kind, value, same, used)
            constants[n] = {f: x for f, x in value.items() if not is_tensor(x)}
            for f, x in value.items():
                if is_tensor(x):
                    places.append(TensorPlace(n, f, _wrt(kind, f, same, used)))
                    tensors.append(x)
    return Inputs(kernel, tuple(places), constants, twins), tensors


def _check_fields(
    kernel: Differentiable,
    n: str,
    kind: Record,
    value: Mapping[str, Any],
    same: list[str],
    used: set[str],
) -> None:
    for f in value:
        if kind.field(f) is None:
            raise ArgumentError(f"{kernel.__name__}: {unknown_field(kind, f)}")
    read = [
        f.name for f in kind if any(used & set(t.leaves(f"{r}.{f.name}", f.type)) for r in same)
    ]
    if missing := [f for f in read if f not in value]:
        raise ArgumentError(
            f"{kernel.__name__}: {n!r} has no {', '.join(missing)}, which the kernel reads"
        )


def _wrt(kind: Record, name: str, same: list[str], used: set[str]) -> str:
    """The name of a field in gradients: without a record where targets and sources are one
    array.
    """
    field = kind.field(name)
    assert field is not None
    reading = [r for r in same if used & set(t.leaves(f"{r}.{name}", field.type))]
    if not reading or not t.scalar_of(field.type).is_float:
        return ""
    return name if len(same) > 1 else f"{same[0]}.{name}"


# 3: memory of the host that a GPU reaches
DLPACK_DEVICES = {1: CPU.name, 2: CUDA.name, 3: CPU.name}


def device_of(inputs: Inputs, tensors: Sequence[Any]) -> str:
    """Where a call runs: where its records are, or, without records, its arrays.

    Single values may be on the host.
    """
    of_records = [x for p, x in zip(inputs.places, tensors, strict=True) if p.field]
    try:
        places = dict.fromkeys(x.__dlpack_device__() for x in of_records or tensors if x.ndim)
    except Exception as error:
        # of the other library: tensors without memory, or on several devices
        raise ArgumentError(
            f"{inputs.kernel.__name__}: a tensor cannot be shared by DLPack ({error})"
        ) from error
    names = [
        _device_name(inputs.kernel.__name__, int(kind), int(number)) for kind, number in places
    ]
    if len(set(names)) > 1:
        raise ArgumentError(
            f"{inputs.kernel.__name__}: the tensors are on different devices "
            f"({', '.join(sorted(names))}); move them to one of them"
        )
    return names[0] if names else CPU.name


def _device_name(kernel: str, kind: int, number: int) -> str:
    if kind not in DLPACK_DEVICES:
        raise ArgumentError(
            f"{kernel}: tensors on the CPU or on an NVIDIA GPU are needed, found DLPack's device "
            f"type {kind}"
        )
    name = DLPACK_DEVICES[kind]
    return cuda_name(number) if name == CUDA.name else name


def gradients(
    inputs: Inputs, arguments: Mapping[str, Any], needed: Sequence[bool], cotangents: Sequence[Any]
) -> list[Any]:
    """The derivative with respect to each tensor that is needed, else None. cotangents: one a
    result, None for integers.
    """
    names = inputs.differentiable(needed)
    if not names:
        return [None] * len(inputs.places)
    cotangent = cotangents[0] if len(cotangents) == 1 else tuple(cotangents)
    values = inputs.kernel.gradient(wrt=names)(**arguments, cotangent=cotangent)
    derivatives = dict(zip(names, values, strict=True))
    return [
        derivatives[p.wrt] if asked and p.wrt else None
        for p, asked in zip(inputs.places, needed, strict=True)
    ]


def float_results(kernel: Differentiable) -> list[bool]:
    """Which results are floats."""
    return [t.scalar_of(k).is_float for k in kernel.lowered.results]
