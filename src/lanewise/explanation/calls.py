"""A call, explained for a device that need not be there: its arrays lie on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.compiler.work import describe_work
from lanewise.explanation.offline import Offline, compiled_for, find_model
from lanewise.ir import nodes as ir
from lanewise.ir.names import GATHER_STEP, turns_of
from lanewise.language.target import is_gpu, target_of
from lanewise.launch.arguments import Arguments
from lanewise.launch.support import index_type
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.searched import Searched, structure_of
from lanewise.patterns.segmentwise.kernel import Segmentwise

Kernel = Elementwise | Pairwise | Segmentwise


def compile_call(
    kernel: Kernel,
    *given: Any,
    device: str,
    arch: str | None = None,
    gather_step: float | None = None,
    **named: Any,
) -> Offline:
    """The kernel of a call with its default plan, compiled for "cpu" or "cuda" and loaded nowhere.

    given, named: the arguments, in the layouts of the device. A search builds its structure on the
    host. arch: see `compile_offline`. gather_step: how many elements apart neighbouring elements
    read, for predictions.
    """
    calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
    model = find_model(device, arch)
    arguments = replace(calls.given(given, named), device=device)
    searched = kernel.searched if isinstance(kernel, Pairwise) else None
    reads: dict[str, float] = {} if gather_step is None else {GATHER_STEP: gather_step}
    counts = calls.skeleton.counts(calls.name, arguments)
    if searched is None:
        reference, environment = (
            calls.subject.reference(arguments),
            calls.subject.environment(arguments),
        )
        work = calls.subject.work(arguments)
    else:
        reference, environment = _over(searched, kernel, given, named, arguments)
        work = describe_work(reference, next(iter(counts.values())), target_of(device))
        if is_gpu(device):
            reads = {GATHER_STEP: 1.0, **reads}  # threads are in the order of the structure
    layouts = {n: r.layout for n, r in arguments.records.items()}
    return compiled_for(
        model,
        kernel.__name__,
        reference,
        device,
        {**environment, **reads},
        _by_parameter(kernel, counts, layouts),
        layouts,
        work,
    )


def _by_parameter(
    kernel: Kernel, counts: Mapping[str, int], layouts: Mapping[str, Any]
) -> dict[str, int]:
    """The counts of a call as explanations name them."""
    match kernel:
        case Pairwise():
            return dict(zip(layouts, counts.values(), strict=True))
        case Elementwise():
            return {"elements": next(iter(counts.values()))}
        case _:
            return {"cells": next(iter(counts.values()))}


def _over(
    searched: Searched,
    kernel: Any,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    arguments: Arguments,
) -> tuple[ir.Kernel, Mapping[str, Any]]:
    """The kernel over a structure that lies on the host, and what a call over it is about."""
    call = kernel.bind(*given, **named)
    structure, compiled = structure_of(call), call.compiled
    copied = searched.copied(arguments) if structure.order is not None else ()
    index = index_type(arguments.device)
    reference = searched.reference(arguments, searched.search, structure, copied, index)
    turns = {turns_of(n): often for n, often in compiled.turns().items()}
    return reference, {**compiled.environment, **turns}
