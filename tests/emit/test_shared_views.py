"""A group of a tile with leaves of several types lies in shared memory once, and is viewed in each type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.names import entry_name
from lanewise.ir.shared import shared_bytes, shared_groups
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.layouts import Layout
from lanewise.passes.thread_mapping import MAX_SHARED_BYTES
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.runtime.nvrtc import code_resources, compile_cubin
from tests import corpus
from tests.harness import CUDA_PLAN, Input, assert_close, program, run_kernels

LAYOUTS = (lw.AoS(), lw.SoA(), lw.SoAoAS(), lw.AoSoA(8))
SIZES = (1, 5, 1000, 4096, 16384, 50_000, 1_000_000)


@lw.record
class Mixed:
    weight: lw.f32
    bits: lw.u32
    cell: lw.ivec2
    charge: lw.f32
    place: lw.vec3
    kind: lw.i32
    exact: lw.f64


@lw.pairwise
def many(p: Mixed, q: Mixed) -> tuple[lw.vec3, lw.f32, lw.i32, lw.ivec2, lw.u32, lw.f32, lw.i32, lw.f32]:
    return q.place * p.weight, q.charge, q.cell.x, q.cell, q.bits, q.weight, q.kind * p.cell.y, q.charge * p.charge


@lw.pairwise
def many_wide(p: Mixed, q: Mixed) -> tuple[lw.f64, lw.vec3, lw.i32, lw.ivec2, lw.u32, lw.f64, lw.i32, lw.f64]:
    return q.exact, q.place, q.kind, q.cell, q.bits, q.exact * p.exact, q.kind * p.kind, q.exact - p.exact


KERNELS = (many, many_wide)


def _reference(kernel: Any, layout: Layout) -> Any:
    record = kernel.signature.parameters["p"]
    return build_pairwise(
        kernel.lowered, PairwiseArguments(("p", record, layout), ("q", record, layout), {}, False), t.I32
    )


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_default_plans_fit(kernel: Any, layout: Layout) -> None:
    reference = _reference(kernel, layout)
    work = describe_work(reference, 1)
    for targets in SIZES:
        plan = complete_plan(None, Machine("cuda", 132), replace(work, targets=targets))
        for k in build_program(reference, plan, "cuda").kernels:  # which refuses more than there is
            assert shared_bytes(k) <= MAX_SHARED_BYTES


def test_a_group_is_declared_once() -> None:
    main = build_program(_reference(many, lw.AoS()), CUDA_PLAN, "cuda").kernels[0]
    groups = shared_groups(main)
    assert [len(views) for views in groups] == [3, 1, 1]
    text = emit_cuda(main, "test")
    assert text.count("__shared__") == len(groups)
    assert text.count("= reinterpret_cast<") == sum(len(views) - 1 for views in groups)


def test_the_compiler_counts_the_same() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    for kernel in KERNELS:
        main = build_program(_reference(kernel, lw.AoS()), CUDA_PLAN, "cuda").kernels[0]
        cubin = compile_cubin(emit_cuda(main, "test"), main.name, "sm_90")
        assert code_resources(cubin.code, entry_name(main)).shared_bytes == shared_bytes(main)


def _fill(rng: np.random.Generator, count: int) -> dict[str, Any]:
    return {
        "weight": rng.normal(size=count).astype(np.float32), "bits": rng.integers(0, 99, count).astype(np.uint32),
        "cell": rng.integers(-9, 9, (count, 2)).astype(np.int32), "charge": rng.normal(size=count).astype(np.float32),
        "place": rng.normal(size=(count, 3)).astype(np.float32), "kind": rng.integers(-9, 9, count).astype(np.int32),
        "exact": rng.normal(size=count),
    }  # fmt: skip


def _sums(p: dict[str, Any], q: dict[str, Any], same: bool) -> tuple[Any, ...]:
    n, total = len(p["weight"]), {name: a.sum(axis=0) for name, a in q.items()}
    whole = [np.broadcast_to(total[x], (n, *np.shape(total[x]))) for x in ("charge", "cell", "bits", "weight")]
    charge, cell, bits, weight = whole
    return (
        p["weight"][:, None] * total["place"], charge, cell[:, 0], cell, bits, weight, total["kind"] * p["cell"][:, 1],
        total["charge"] * p["charge"],
    )  # fmt: skip


CASE = corpus.Case("mixed", many, (Mixed, Mixed), _fill, _sums, {}, rtol=2e-5)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("prefetch", [None, "registers", "async"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_views_hold_the_values(layout: Layout, prefetch: Any) -> None:
    given = Input(CASE, 35, 70)
    plan = CUDA_PLAN if prefetch is None else replace(CUDA_PLAN, prefetch=prefetch)
    kernels = program(CASE, layout, plan, "cuda", same=False).kernels
    assert_close(run_kernels(kernels, given, layout), given.reference(), CASE)


@pytest.mark.cuda
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_default_plans_on_a_gpu(layout: Layout, kernel: Any) -> None:
    given = Input(CASE, 3000, 2001)
    wanted = kernel(*given.records(lw.SoA(), "cpu"))
    found = kernel(*given.records(layout, "cuda"))
    assert_close([f.get() for f in found], wanted, CASE, scale=4.0)
