"""Kernels in place, one element after another: a sum over pairs and then functions of the element, all from the newest values.

What Gauss and Seidel do to equations. On a CPU alone, and on one of its threads: every element waits for the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.errors import ArgumentError
from lanewise.ir.names import COUNT
from lanewise.launch.arguments import Arguments, classify_arguments, flatten_uniforms, name_arguments
from lanewise.launch.support import bind_record, compile_kernel, index_type
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.sequential.build import Pairs, Stage, build_sequential, uniform_name
from lanewise.plan import NEUTRAL
from lanewise.record import Record
from lanewise.target import is_gpu


@dataclass(frozen=True, slots=True)
class Step:
    """An elementwise kernel, where its arrays of values come from, and its uniform arguments.

    takes: parameter -> (number of an earlier step, number of its result); step 0 is the sum over pairs.
    """

    kernel: Elementwise
    takes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])
    uniforms: Mapping[str, Any] = field(default_factory=dict[str, Any])


def bind_in_turn(
    pair: Pairwise, values: Mapping[str, Any], steps: Sequence[Step], records: RecordArray
) -> Callable[[], None]:
    """A launch that takes every element of `records` once through the sum over pairs with all others and through `steps`.

    Raises `ArgumentError` on a GPU, where elements run at the same time.
    """
    if is_gpu(records.device):
        raise ArgumentError(f"elements one after another run on a CPU, and the records lie on {records.device!r}")
    target, source = (n for n, kind in pair.signature.parameters.items() if isinstance(kind, Record))
    named = name_arguments(pair.signature, (), {target: records, source: records, **values})
    given = classify_arguments(pair.signature, named, arrays_allowed=False)
    environment = {**flatten_uniforms(pair.signature, given.uniforms), COUNT: len(records)}
    kinds: dict[str, t.ValueType] = {n: k for n, k in pair.signature.parameters.items() if not isinstance(k, Record)}
    stages: list[Stage] = []
    for number, step in enumerate(steps, 1):
        signature = step.kernel.signature
        record = next(n for n, kind in signature.parameters.items() if isinstance(kind, Record))
        stages.append(Stage(step.kernel.lowered, record, dict(step.takes)))
        own = _values(step, record, records)
        flat = flatten_uniforms(signature, own.uniforms)
        environment |= {uniform_name(number, leaf): value for leaf, value in flat.items()}
    reference = build_sequential(
        Pairs(pair.lowered, target, source, kinds), stages, records.record, records.layout, index_type(records.device)
    )
    executable = compile_kernel(reference, NEUTRAL, records.device)
    return executable.prepare({target: bind_record(records)}, environment)


def _values(step: Step, record: str, records: RecordArray) -> Arguments:
    """The uniform arguments of a step, checked against those of its parameters that no earlier step gives."""
    signature = step.kernel.signature
    own = replace(signature, parameters={n: k for n, k in signature.parameters.items() if n not in step.takes})
    given = name_arguments(own, (), {record: records, **step.uniforms})
    return classify_arguments(own, given, arrays_allowed=False)
