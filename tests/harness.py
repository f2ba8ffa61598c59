"""Run the corpus: kernels of any stage with the interpreter, and the public interface on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.ir.names import COUNT, count_of
from lanewise.ir.pattern import COMBINE
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array, flatten_uniforms
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import Layout
from lanewise.passes.uniform_parameters import packed
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.patterns.results import result_arrays
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.records.arrays import RecordArray
from tests.corpus import Case

Array = np.ndarray[Any, Any]

CPU_PLAN = Plan(targets=4).filled(NEUTRAL)
CUDA_PLAN = Plan(tile=32, unroll=4, block=32).filled(NEUTRAL)


@dataclass
class Input:
    """The arguments of one call, made from a seed: the same for every layout, plan and device."""

    case: Case
    targets: int
    sources: int | None = None  # None: target and source are one array
    seed: int = 0
    fields: list[dict[str, Array]] = field(init=False)
    arrays: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.fields = [self.case.fill(rng, self.targets)]
        if self.case.pairwise:
            self.fields.append(self.fields[0] if self.sources is None else self.case.fill(rng, self.sources))
        self.arrays = self.case.arrays(rng, self.targets)

    @property
    def same(self) -> bool:
        return self.sources is None

    def records(self, layout: Layout, device: str = "cpu") -> list[RecordArray]:
        arrays = [
            r.array(**f, layout=layout, device=device) for r, f in zip(self.case.records, self.fields, strict=False)
        ]
        return [arrays[0], arrays[0]] if self.case.pairwise and self.same else arrays

    def reference(self) -> Any:
        """The float64 answer: results, or the fields that change."""
        if self.case.pairwise:
            return self.case.reference(*self.fields, self.same, **self.case.values)
        return self.case.reference(*self.fields[: len(self.case.records)], **self.arrays, **self.case.values)


def reference_kernel(case: Case, layout: Layout, device_kind: str, *, same: bool = True) -> ir.Kernel:
    """The kernel as the pattern writes it."""
    index = t.I32 if device_kind == "cuda" else t.I64
    kinds = case.kernel.signature.parameters
    names = list(kinds)
    uniforms = {n: kinds[n] for n in case.values}
    if case.pairwise:
        pair = [(n, kinds[n], layout) for n in names[:2]]
        return build_pairwise(case.kernel.lowered, PairwiseArguments(pair[0], pair[1], uniforms, same), index)
    records = {n: (kinds[n], layout) for n in names[: len(case.records)]}
    arrays = {n: kinds[n] for n in names if n not in records and n not in uniforms}
    return build_elementwise(case.kernel.lowered, ElementwiseArguments(records, arrays, uniforms), index)


def plan_for(case: Case, plan: Plan, device_kind: str) -> Plan:
    """A complete plan for a case: of what is said about pairs, a case without pairs takes nothing."""
    if case.pairwise:
        return plan.filled(CUDA_PLAN if device_kind == "cuda" else CPU_PLAN)
    about_pairs = ("targets", "tile", "slices", "parts", "unroll", "accumulate")
    return replace(plan, **dict.fromkeys(about_pairs)).filled(
        Plan(block=32 if device_kind == "cuda" else 0).filled(NEUTRAL)
    )


def program(
    case: Case, layout: Layout, plan: Plan, device_kind: str, *, same: bool = True, observe: Any = None
) -> Program:
    reference = reference_kernel(case, layout, device_kind, same=same)
    complete = plan_for(case, plan, device_kind)
    return build_program(reference, complete, device_kind, observe or (lambda stage, kernel: None))


def stages(
    case: Case, layout: Layout, plan: Plan, device_kind: str, *, same: bool = True
) -> list[tuple[str, tuple[ir.Kernel, ...]]]:
    """Every stage of the pipeline by name, as the kernels that do the whole work (the second one adds the parts)."""
    main: list[tuple[str, ir.Kernel]] = []
    combine: list[ir.Kernel] = []

    def observe(stage: str, kernel: ir.Kernel) -> None:
        if kernel.pattern is COMBINE:
            combine.append(kernel)
        else:
            main.append((stage, kernel))

    program(case, layout, plan, device_kind, same=same, observe=observe)
    last = {bool(k.buffers): k for k in combine}
    return [
        (name, (k, last[bool(k.buffers)]) if any(a.name.startswith("$partial") for a in k.arrays) else (k,))
        for name, k in main
    ]


def run_kernels(kernels: Sequence[ir.Kernel], given: Input, layout: Layout) -> tuple[Array, ...]:
    """Interpret kernels in order on fresh memory: the results, then the fields of the record that is updated."""
    case = given.case
    signature = case.kernel.signature
    records = given.records(layout)
    names = list(signature.parameters)
    bound = {n: BoundArray(r.data, r.arrangement, len(r)) for n, r in zip(names, records, strict=False)}
    bound |= {n: bind_value_array(a, signature.parameters[n]) for n, a in given.arrays.items()}
    results: list[Array] = []
    for name, kind in result_arrays(case.kernel.lowered):
        shape = (given.targets, kind.length) if isinstance(kind, t.Vector) else (given.targets,)
        results.append(np.full(shape, 77, t.scalar_of(kind).dtype))
        bound[name] = bind_value_array(results[-1], kind)
    env: dict[str, Any] = dict(flatten_uniforms(signature, _typed(case)))
    env[COUNT] = given.targets
    env |= {count_of(n): len(r) for n, r in zip(names, records, strict=False)}
    for kernel in kernels:
        run_kernel(kernel, bound, env)
    if case.pairwise or not case.records:
        return tuple(results)
    return (*results, *records[0].numpy().values())


def _typed(case: Case) -> dict[str, Any]:
    kinds = case.kernel.signature.parameters
    return {n: t.scalar_of(kinds[n]).dtype.type(v) for n, v in case.values.items()}


def run_kernel(kernel: ir.Kernel, bound: dict[str, BoundArray], env: dict[str, Any]) -> None:
    """Interpret one kernel of any stage on bound memory; its scratch arrays stay in `bound` for the next one."""
    for s in kernel.scratch:
        a, count = kernel.array(s.array), int(evaluate(s.length, env))
        bound[a.name] = BoundArray(
            np.full(a.arrangement.nbytes(count), 0 if s.zeroed else 0xFF, np.uint8), a.arrangement, count
        )
    if (uniforms := packed(kernel, env)) is not None:
        array, data = uniforms
        bound[array.name] = BoundArray(data, array.arrangement, 1)
    typed = {p.name: p.type.dtype.type(env[p.name]) for p in kernel.uniforms + kernel.counts}
    memories = {n: ArrayMemory(b.data, b.arrangement, b.count) for n, b in bound.items()}
    buffers = {b.name: _buffer(b, bound[b.array]) for b in kernel.buffers if b.space == "global"}
    Interpreter(kernel, typed, memories, buffers).run()


def _buffer(b: ir.BufferArgument, bound: BoundArray) -> Array:
    start = bound.arrangement.starts(bound.count)[b.buffer]
    size = bound.arrangement.buffers[b.buffer].bytes_for(bound.count)
    return bound.data[start : start + size].view(b.type.dtype)


def run_public(
    given: Input, layout: Layout, device: str, plan: Plan | None = None, *, bound: bool = True
) -> tuple[Array, ...]:
    """Through the public interface: the results, then the fields of the record that is updated, on the host.

    Not `bound`: an ordinary call, which may go by an earlier one.
    """
    case = given.case
    records = given.records(layout, device)
    arrays = {n: _to(a, device) for n, a in given.arrays.items()}
    if bound:
        out = case.kernel.bind(*records, **arrays, **case.values, plan=plan)()
    else:
        out = case.kernel(*records, **arrays, **case.values)
    results = out if isinstance(out, tuple) else () if out is None else (out,)
    host = tuple(_host(r) for r in results)
    return host if case.pairwise or not case.records else (*host, *(_host(a) for a in records[0].numpy().values()))


def _to(array: Array, device: str) -> Any:
    if not device.startswith("cuda"):
        return array
    import cupy

    return cupy.asarray(array)


def _host(array: Any) -> Array:
    return array.get() if hasattr(array, "get") else np.asarray(array)


def expected(given: Input) -> tuple[Array, ...]:
    """The float64 reference in the order of `run_public`; fields that a kernel leaves alone are as they were."""
    reference = given.reference()
    if given.case.pairwise or not given.case.records:
        return tuple(reference)
    if isinstance(reference, dict):
        return tuple(reference.get(n, a) for n, a in given.fields[0].items())
    return (*reference, *given.fields[0].values())


def assert_close(found: Sequence[Array], wanted: Sequence[Array], case: Case, scale: float = 1.0) -> None:
    """Within the case's tolerances, relative to the largest value of each result (sums cancel); integers exactly."""
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        if f.dtype.kind in "biu":
            np.testing.assert_array_equal(f, w)
        else:
            size = float(np.max(np.abs(w), initial=0.0))
            np.testing.assert_allclose(f, w, rtol=case.rtol * scale, atol=(case.atol + case.rtol * size) * scale)


Observer = Callable[[str, ir.Kernel], None]
__all__ = [
    "Input",
    "assert_close",
    "expected",
    "lw",
    "program",
    "reference_kernel",
    "run_kernel",
    "run_kernels",
    "run_public",
    "stages",
]
