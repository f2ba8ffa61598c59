"""Words of exact sums instead of arrays of floats that elements are added to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from lanewise.frontend.function import Signature
from lanewise.frontend.scattered import summed_arrays
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import length_of, own
from lanewise.ir.traverse import flat_map
from lanewise.language import exact_sums
from lanewise.language import types as t
from lanewise.language.target import is_gpu, target_of
from lanewise.launch.arguments import Arguments, values_arrangement
from lanewise.launch.task_list import Written
from lanewise.launch.tasks import Buffer, Primitive, Role, changing
from lanewise.primitives.exact_sums import close, load_close, purpose


def add_words(signature: Signature, arrays: Mapping[str, Any], arguments: Arguments) -> None:
    """Say of which arrays floats are added exactly: a kernel has words in their place."""
    for n in arrays:
        if n in exactly_summed(signature, arguments):
            arguments.summed[n] = arrays[n].reshape(-1), signature.arrays[n].element
            arguments.added.pop(n, None)


def exactly_summed(signature: Signature, arguments: Arguments) -> set[str]:
    """The arrays of floats that a call adds to exactly: of a GPU's all that it adds to."""
    on_gpu = is_gpu(arguments.device)
    return summed_arrays(signature.source, signature.arrays, on_gpu=on_gpu)


def moved(signature: Signature, arguments: Arguments, device: str) -> Arguments:
    """What arguments on the host would be on another device: what is added to one after the other
    on a CPU has words on a GPU, and buckets are those of a CPU.
    """
    buckets = None if is_gpu(device) else arguments.buckets
    result = replace(arguments, device=device, buckets=buckets)
    if exact := exactly_summed(signature, result) - arguments.summed.keys():
        kinds = {n: (arguments.added[n][0], signature.arrays[n].element) for n in exact}
        result.summed = arguments.summed | kinds
        result.added = {n: a for n, a in arguments.added.items() if n not in exact}
    return result


def with_exact_sums(body: ir.Block, arrays: Mapping[str, t.Scalar]) -> ir.Block:
    """Statements whose sums are exact where an array has words."""

    def exact(s: ir.Statement) -> ir.Block:
        match s:
            case ir.ScatterElement(operation="add") if (
                s.value.type.is_float and arrays[s.array] == t.I64
            ):
                return (replace(s, operation="sum"),)
            case _:
                return (s,)

    return flat_map(body, exact)


def words_of(array: str) -> str:
    """What a call names the words of an array."""
    return own(f"words.{array}")


def words_buffer(array: str, kind: t.Scalar, rank: int, device: str) -> Buffer:
    """The words of an array with so many dimensions, which are zero but while a call runs."""
    lengths: list[ir.Expression] = [ir.Local(length_of(array, d), t.I64) for d in range(rank)]
    elements = reduce(build.multiply, lengths)
    format_ = exact_sums.FORMATS[kind.dtype.name]
    target, group = target_of(device), exact_sums.GROUP
    if target.compiled and target.host_memory:
        each = build.multiply(elements, format_.words + 2)
        count = build.add(each, format_.words)  # `exact_sums.length_on_host`
    else:
        places = build.multiply(build.ceil_divide(elements, group), group)
        count = build.multiply(places, format_.words)
    return Buffer(
        words_of(array),
        Role.KEPT,
        values_arrangement(t.I64),
        count,
        clean=True,
        what=purpose(format_),
    )


def rounding(arrays: Mapping[str, t.Scalar], device: str, *, loaded: bool = True) -> list[Written]:
    """What rounds the sums of arrays, each once, and makes their words zero again. loaded: its code
    is on the device before it first runs.
    """
    made: list[Written] = []
    for n, (array, kind) in enumerate(arrays.items(), 1):
        name = "rounding of sums" + ("" if len(arrays) == 1 else f", {n} of {len(arrays)}")
        if loaded and not target_of(device).host_memory:
            load_close(kind.dtype.name, device)
        words, run = words_of(array), partial(close, device=device)
        task = Primitive(name, run, changing(words, array), takes=(words, array))
        rows = values_arrangement(kind)
        buffer = Buffer(array, Role.ARGUMENT, rows)
        made.append(Written(task, device, {array: buffer}, frozenset({array})))
    return made
