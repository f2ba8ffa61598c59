"""Kernels in place, one element after another: a sum over pairs and then functions of the element,
all from the newest values.

What Gauss and Seidel do to equations. On a CPU alone, and on one of its threads: every element
waits for the one before it. The kernel is one piece of work that nothing divides: `parallel for
$turn in range(1)` around the loop over the elements. The results of each function feed the
parameters of those that follow, so nothing but the records is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lanewise.frontend.function import Lowered
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, identifier, own
from lanewise.ir.values import record_array, uniform_leaves
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import target_of
from lanewise.language.types import Scalar
from lanewise.launch.arguments import (
    Arguments,
    classify_arguments,
    flatten_uniforms,
    name_arguments,
)
from lanewise.launch.programs import Programs
from lanewise.launch.support import bind_record, index_type
from lanewise.layouts import Layout
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.planning.plan import NEUTRAL
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import keep_layouts
from lanewise.support.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Step:
    """An elementwise kernel, where its arrays of values come from, and its uniform arguments.

    takes: parameter -> (number of an earlier step, number of its result); step 0 is the sum over
    pairs.
    """

    kernel: Elementwise
    takes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])
    uniforms: Mapping[str, Any] = field(default_factory=dict[str, Any])


def bind_in_turn(
    pair: Pairwise, values: Mapping[str, Any], steps: Sequence[Step], records: RecordArray
) -> Callable[[], None]:
    """A launch that takes every element of `records` once through the sum over pairs with all
    others and through `steps`.

    Raises `ArgumentError` on a GPU, where elements run at the same time.
    """
    if target_of(records.device).has_blocks:
        raise ArgumentError(
            f"elements one after another run on a CPU, and the records lie on {records.device!r}"
        )
    for function in (pair, *(step.kernel for step in steps)):
        if function.signature.arrays or function.lowered.numbered:
            raise ArgumentError(
                f"{function.__name__}: elements one after another read no tables, and have no "
                "lw.index_of"
            )
    target, source = (
        n for n, kind in pair.signature.parameters.items() if isinstance(kind, Record)
    )
    named = name_arguments(pair.signature, (), {target: records, source: records, **values})
    classified = classify_arguments(pair.signature, named, arrays_allowed=False)
    keep_layouts([records], f"a loop of {pair.__name__} over one after another was bound to it")
    environment = {**flatten_uniforms(pair.signature, classified.uniforms), COUNT: len(records)}
    kinds: dict[str, t.ValueType] = {
        n: k for n, k in pair.signature.parameters.items() if not isinstance(k, Record)
    }
    stages: list[Stage] = []
    for number, step in enumerate(steps, 1):
        signature = step.kernel.signature
        record = next(n for n, kind in signature.parameters.items() if isinstance(kind, Record))
        stages.append(Stage(step.kernel.lowered, record, dict(step.takes)))
        own = _values(step, record, records)
        flat = flatten_uniforms(signature, own.uniforms)
        environment |= {_uniform_name(number, leaf): value for leaf, value in flat.items()}
    build = partial(
        _build_sequential,
        Pairs(pair.lowered, target, source, kinds),
        stages,
        records.record,
        records.layout,
        index_type(records.device),
    )
    executable = Programs().get("in turn", build, NEUTRAL, records.device)
    return executable.tasks.bound({target: bind_record(records)}, environment)


def _values(step: Step, record: str, records: RecordArray) -> Arguments:
    """The uniform arguments of a step, checked against those of its parameters that no earlier step
    gives.
    """
    signature = step.kernel.signature
    own = replace(
        signature, parameters={n: k for n, k in signature.parameters.items() if n not in step.takes}
    )
    values = name_arguments(own, (), {record: records, **step.uniforms})
    return classify_arguments(own, values, arrays_allowed=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """A function of one element: its record parameter, and for its other parameters where their
    values come from.

    takes: parameter -> (number of an earlier stage, number of its result); stage 0 is the sum over
    pairs. The others are values for all, called by the number of the stage and their name
    (`_uniform_name`).
    """

    lowered: Lowered
    record: str
    takes: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The function of two elements: its two record parameters and its uniforms."""

    lowered: Lowered
    target: str
    source: str
    uniforms: dict[str, t.ValueType]


def _build_sequential(
    pairs: Pairs, stages: Sequence[Stage], record: Record, layout: Layout, index: Scalar
) -> ir.Kernel:
    """The kernel; its array is called by the target's name."""
    array = pairs.target
    i, count = ir.Local(own("i"), index), ir.Parameter(COUNT, index)
    body: list[ir.Statement] = [*_sum(pairs, record, array, i, count)]
    written = False
    parameters: dict[str, ir.Parameter] = {
        p.name: p for p in uniform_leaves(pairs.lowered.function, pairs.uniforms)
    }
    lowered = [pairs.lowered, *(stage.lowered for stage in stages)]
    for number, stage in enumerate(stages, 1):
        f = stage.lowered.function
        used, changed = {p.name for p in f.parameters}, {p.name for p in f.parameters if p.mutable}
        body += _load(array, i, record, stage.record, used, number)
        arguments: list[ir.Expression] = []
        for p in f.parameters:
            name = _value(number, stage, p.name, lowered)
            if name.startswith(_uniform_name(number, "")):
                parameters[name] = ir.Parameter(name, p.type)
            arguments.append(ir.Local(name, p.type))
        body.append(
            ir.Apply(f, tuple(arguments), tuple(_result(number, r.name) for r in f.results))
        )
        if changes := tuple(x for x in record.leaves if f"{stage.record}.{x.name}" in changed):
            values = tuple(
                (x.name, ir.Local(_element(number, f"{stage.record}.{x.name}"), x.type))
                for x in changes
            )
            body.append(ir.StoreRecord(array, i, values))
            written = True
    zero, one = ir.Literal(0, index), ir.Literal(1, index)
    loop = ir.For(i.name, zero, ir.Local(COUNT, index), one, tuple(body))
    records = record_array(array, record.leaves, layout, written=written)
    return ir.Kernel(
        identifier(stages[-1].lowered.function.name),
        ELEMENTWISE,
        (records,),
        tuple(parameters.values()),
        (count,),
        (ir.Parallel(own("turn"), one, (loop,)),),
        location=pairs.lowered.function.location,
    )


def _sum(pairs: Pairs, record: Record, array: str, i: ir.Local, count: ir.Parameter) -> ir.Block:
    """The sums of the pair function over all elements, in order, into the results of stage 0."""
    f, j = pairs.lowered.function, ir.Local(own("j"), i.type)
    used = {p.name for p in f.parameters}

    sums = [ir.Local(_result(0, r.name), r.type) for r in f.results]
    terms = [ir.Local(own(f"term.{r.name.removeprefix('$')}"), r.type) for r in f.results]
    loaded = {pairs.target, pairs.source}
    names = {
        p.name: _element(0, p.name) if p.name.partition(".")[0] in loaded else p.name
        for p in f.parameters
    }
    arguments: list[ir.Expression] = [ir.Local(names[p.name], p.type) for p in f.parameters]
    if pairs.lowered.uses_same:  # the last parameter
        arguments[-1] = build.equal(i, j)
    adds = tuple(
        ir.Assign(s.name, ir.Binary("+", s, x, s.type)) for s, x in zip(sums, terms, strict=True)
    )
    inner = (
        *_load(array, j, record, pairs.source, used, 0),
        ir.Apply(f, tuple(arguments), tuple(x.name for x in terms)),
        *adds,
    )
    starts = tuple(
        ir.Assign(s.name, ir.Literal(0.0 if s.type.is_float else 0, s.type)) for s in sums
    )
    zero, one = ir.Literal(0, i.type), ir.Literal(1, i.type)
    return (
        *_load(array, i, record, pairs.target, used, 0),
        *starts,
        ir.For(j.name, zero, ir.Local(count.name, i.type), one, inner),
    )


def _load(
    array: str, place: ir.Local, record: Record, name: str, used: set[str], stage: int
) -> ir.Block:
    """What a function uses of the record that its text calls `name`, if anything."""
    leaves = ((x.name, f"{name}.{x.name}") for x in record.leaves)
    reads = tuple((leaf, _element(stage, full)) for leaf, full in leaves if full in used)
    return (ir.LoadRecord(array, place, reads),) if reads else ()


def _element(stage: int, leaf: str) -> str:
    return own(f"element{stage}.{leaf}")


def _result(stage: int, leaf: str) -> str:
    return own(f"stage{stage}.{leaf.removeprefix('$')}")


def _uniform_name(stage: int, parameter: str) -> str:
    """What a uniform value of a stage is called in the kernel; its components follow a dot."""
    return own(f"uniform{stage}.{parameter}")


def _value(number: int, stage: Stage, leaf: str, lowered: Sequence[Lowered]) -> str:
    """The variable that a parameter leaf takes: of the record, of an earlier result, or uniform."""
    name, dot, component = leaf.partition(".")
    if name == stage.record:
        return _element(number, leaf)
    if name in stage.takes:
        before, result = stage.takes[name]
        base = "result" if len(lowered[before].results) == 1 else f"result{result}"
        return _result(before, f"{base}{dot}{component}")
    return _uniform_name(number, leaf)
