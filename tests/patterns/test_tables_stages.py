"""Kernels that read tables, after every pass of plans for both kinds of device; and their CUDA text, compiled without a
GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lanewise.compiler.pipeline import Program, build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, count_of, length_of
from lanewise.ir.pattern import COMBINE
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import AoS, SoA
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.planning.plan import NEUTRAL, Plan
from tests.harness import run_kernel
from tests.patterns import tables as k

COUNT_OF_GRAINS = 37
CUDA = (
    Plan(block=32, tile=0, uniforms="global"),
    Plan(block=32, tile=32, slices=2, targets=2, parts=2, unroll=4),
    Plan(block=32, tile=32, prefetch="registers", accumulate="f64"),
)


def reference(kernel: Any, kind: str) -> ir.Kernel:
    index, record = (t.I32 if kind == "cuda" else t.I64), k.Grain.__record__
    kinds, tables = kernel.signature.parameters, kernel.signature.arrays
    uniforms = {n: x for n, x in kinds.items() if isinstance(x, t.Scalar)}
    if kernel is k.look_up:
        return build_elementwise(
            kernel.lowered, ElementwiseArguments({"a": (record, SoA())}, {}, uniforms, tables), index
        )
    pair = (("a", record, AoS()), ("b", record, AoS()), uniforms, True, tables)
    return build_pairwise(kernel.lowered, PairwiseArguments(*pair), index)


def results(
    kernels: Sequence[ir.Kernel], tables: dict[str, np.ndarray[Any, Any]], **values: Any
) -> np.ndarray[Any, Any]:
    """Interpret kernels on fresh memory."""
    layout = SoA() if "levels" in tables else AoS()
    grains = k.Grain.array(**k.fields(COUNT_OF_GRAINS), layout=layout)
    record = BoundArray(grains.data, grains.arrangement, len(grains))
    width = 3 if "softening2" in values else 1
    out = np.zeros((COUNT_OF_GRAINS, width) if width > 1 else COUNT_OF_GRAINS, np.float32)
    bound = {"a": record, "b": record, "$result": bind_value_array(out, t.Vector(t.F32, 3) if width > 1 else t.F32)}
    env: dict[str, Any] = {
        COUNT: COUNT_OF_GRAINS,
        count_of("a"): COUNT_OF_GRAINS,
        count_of("b"): COUNT_OF_GRAINS,
        **values,
    }
    for name, array in tables.items():
        kind = t.from_dtype(array.dtype)
        assert kind is not None
        bound[name] = bind_value_array(array.reshape(-1), kind)
        env |= {length_of(name, d): n for d, n in enumerate(array.shape)}
    for kernel in kernels:
        run_kernel(kernel, bound, env)
    return np.asarray(grains.level) if "levels" in tables else out


def stages(made: ir.Kernel, plan: Any, kind: str) -> tuple[Program, list[tuple[str, ir.Kernel]]]:
    """The program of a plan, and every stage of it."""
    seen: list[tuple[str, ir.Kernel]] = []
    return build_program(made, plan, kind, lambda stage, kernel: seen.append((stage, kernel))), seen


CASES: dict[str, tuple[Any, dict[str, np.ndarray[Any, Any]], dict[str, Any]]] = {
    "look_up": (k.look_up, {"levels": k.table(k.KINDS), "factors": k.table(k.KINDS, 5, kind=np.float64)}, {}),
    "weighed": (k.weighed, {"w": k.table(COUNT_OF_GRAINS, COUNT_OF_GRAINS)}, {}),
    "by_kind": (k.by_kind, {"w": k.table(k.KINDS, k.KINDS)}, {"softening2": np.float32(0.01)}),
    "drawn": (k.drawn, {}, {"seed": 5}),
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("name", ["look_up", "weighed", "by_kind"])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_stage(name, kind):
    kernel, tables, values = CASES[name]
    made = reference(kernel, kind)
    wanted = results((made,), tables, **values)
    plans = (Plan(targets=4, tile=16), Plan(targets=2)) if kind == "cpu" else CUDA
    for plan in plans:
        if kernel is k.look_up:
            plan = Plan(block=32) if kind == "cuda" else Plan()
        program, seen = stages(made, plan.filled(Plan(block=32 if kind == "cuda" else 0).filled(NEUTRAL)), kind)
        if not any(x.pattern is COMBINE for _, x in seen):
            for stage, one in {id(x): (s, x) for s, x in seen}.values():
                again = results((one,), tables, **values)
                np.testing.assert_allclose(again, wanted, rtol=1e-5, atol=1e-5, err_msg=f"{plan}: {stage}")
        np.testing.assert_allclose(results(program.kernels, tables, **values), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_cuda_texts_compile(name):
    nvrtc = pytest.importorskip("lanewise.runtime.nvrtc", reason="NVRTC is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    kernel = CASES[name][0]
    for plan in (CUDA[0], CUDA[1]):
        plan = Plan(block=32) if kernel is k.look_up else plan
        for made in build_program(reference(kernel, "cuda"), plan.filled(NEUTRAL), "cuda").kernels:
            cubin = nvrtc.compile_cubin(emit_cuda(made, "test"), made.name, "sm_90")
            assert "warning" not in cubin.log.lower(), cubin.log
            assert cubin.resources.spill_stores == 0


def test_reciprocity_is_refused_where_directions_differ():
    from lanewise.support.errors import PlanError

    plan = Plan(reciprocity="ordered", block=32, targets=2).filled(NEUTRAL)
    for kernel in (k.weighed, k.by_kind, k.drawn):
        with pytest.raises(PlanError, match="reciprocity"):
            build_program(reference(kernel, "cuda"), plan, "cuda")
