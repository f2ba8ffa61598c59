"""The kernels of the benchmark of the optimiser as models see them, without arrays."""

from __future__ import annotations

from typing import Any

from bench.optimiser import Subject, gathered
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of
from lanewise.launch.arguments import flatten_uniforms
from lanewise.layouts import default_layout
from lanewise.passes import gathering
from tests.corpus import Case
from tests.harness import reference_kernel


def nothing(*_: Any) -> Any:
    raise AssertionError("kernels are not run here")


def reference(subject: Subject) -> ir.Kernel:
    """The kernel before any plan, as the benchmark builds it from its arrays."""
    case = Case(subject.name, subject.kernel, (subject.record,), nothing, nothing, values=subject.values)
    found = reference_kernel(case, default_layout(subject.record.__record__, "cuda"), "cuda")
    return gathering.apply(found, "body") if subject.kernel is gathered else found


def environment(subject: Subject, elements: int) -> dict[str, Any]:
    counts = [count_of(n) for n in ("target", "source")] if subject.pairs else [COUNT]
    return {**flatten_uniforms(subject.kernel.signature, subject.values), **dict.fromkeys(counts, elements)}
