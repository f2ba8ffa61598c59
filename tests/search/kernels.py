"""Pair functions over searches, and their kernels for any device, without that device."""

from typing import Any

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.patterns.search import Search
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.search_tasks import complete_search_plan
from lanewise.patterns.search.specialised import Specialiser
from lanewise.planning.plan import Plan


@lw.record
class Boid:
    position: lw.vec3
    forward: lw.vec3
    speed: lw.f32


@lw.pairwise
def steer(target: Boid, source: Boid) -> tuple[lw.vec3, lw.vec3, lw.i32]:
    offset = source.position - target.position
    return offset / (lw.dot(offset, offset) + 0.1), source.forward, 1


def reference_kernel(kernel: Any, search: Search, *records: Any, index: t.Scalar = t.I32, **values: Any) -> ir.Kernel:
    """The reference kernel of a call, with indices of a GPU."""
    given = kernel._calls.given(records, values)
    made = Specialiser(kernel.__name__, kernel.signature, kernel._calls.lowered, search, lambda: None)
    sources = points_of(list(given.records.values())[1], search.position)
    concrete = search.plan(sources)
    structure = concrete.make(sources)
    return made.reference(given, concrete, structure, made.copied(given) if structure.order is not None else (), index)


def cuda_program(kernel: Any, search: Search, *records: Any, plan: Plan | None = None, **values: Any) -> Program:
    reference = reference_kernel(kernel, search, *records, **values)
    complete = Plan(block=128).filled(complete_search_plan(plan, "cpu"))
    return build_program(reference, complete, "cuda")
