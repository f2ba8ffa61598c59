"""The kernels of queries for a GPU: they compile without one, and the interpreter runs what the GPU gets."""

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of
from lanewise.language.types import F32, F64, I32, I64
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.support import compile_kernel
from lanewise.patterns.search.base import ORDER, RADIUS2
from lanewise.patterns.search.build_queries import (  # fmt: skip
    COUNTS,
    DISTANCES,
    INDICES,
    OFFSETS,
    POINTS,
    QUERIES,
    ROWS,
    QueryArguments,
    Wanted,
    build_query,
)
from lanewise.patterns.search.builders.rows import sort_keys
from lanewise.patterns.search.gather import SORTED
from lanewise.patterns.search.queries import points_from
from lanewise.patterns.search.query_calls import Queried, as_bound
from lanewise.patterns.search.search_tasks import complete_search_plan
from lanewise.planning.plan import Plan
from tests.harness import run_kernel
from tests.search.clouds import cloud

SEARCHES: list[Any] = [
    lw.StaticGrid(radius=0.2, k=3),
    *(pytest.param(x, marks=pytest.mark.slow) for x in (lw.AllPairs(radius=0.2, k=3), lw.DynamicGrid(radius=0.2, k=3))),
]  # fmt: skip
MORE = [lw.StaticGrid(radius=0.2, k=3, world=lw.Periodic((1.0, 1.0, 1.0))), lw.StaticGrid(k=3)]
PLAN = Plan(block=128).filled(complete_search_plan(None, "cpu"))


def queried(search: Any, dtype: str, *, same: bool) -> Queried:
    x, _ = cloud("uniform", 40, 3, dtype)
    points = points_from("test", "points", x, "cpu", search)
    return Queried(search, points, None if same else points_from("test", "queries", x[:7], "cpu", search))


def arguments(call: Queried, wanted: Wanted) -> QueryArguments:
    s = call.search
    return QueryArguments(
        wanted, call.sources.precision, 3, call.structure.walk(I32), call.identical, call.structure.order is not None, False,
        s.radius is not None, isinstance(s.world, lw.Periodic), s.k, numbered=True,
    )  # fmt: skip


@pytest.mark.parametrize("search", [*SEARCHES, *MORE], ids=str)
def test_kernels_compile_for_a_gpu(search):
    """With a result of every kind; no spilled registers."""
    for dtype, same, wanted in (
        ("f4", True, "nearest"),
        ("f8", False, "nearest"),
        ("f4", True, "count"),
        ("f4", False, "fill"),
    ):
        call = queried(search, dtype, same=same)
        reference = build_query(arguments(call, wanted), I32)
        (cubin,) = compile_kernel(reference, PLAN, "cuda", arch="sm_90").cubins
        assert cubin.resources.spill_stores == 0
        assert call.sources.precision == {"f4": F32, "f8": F64}[dtype]


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_the_interpreter_agrees(search, same):
    """What a GPU runs, before its memory is laid out: indices of 32 bits, rows as keys that are sorted at once."""
    call = queried(search, "f4", same=same)
    found = run(call, "nearest", {INDICES: ((call.targets.count, 3), I32), DISTANCES: ((call.targets.count, 3), F32)})
    wanted = lw.nearest(positions(call.sources), 3, 0.2, None if same else positions(call.targets), search=search)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=3e-7)  # a CPU may round a product that is added
    rows = lw.neighbors(positions(call.sources), 0.2, None if same else positions(call.targets))
    (counts,) = run(call, "count", {COUNTS: ((call.targets.count,), I32)})
    assert counts.tolist() == rows.counts.tolist()
    (keys,) = run(call, "fill", {ROWS: ((len(rows.indices),), I64)}, {OFFSETS: rows.offsets.astype("i4")})
    assert sort_keys(np, keys).tolist() == rows.indices.tolist()


def positions(points: Any) -> Any:
    return np.stack(points.columns(), axis=1)


def run(call: Queried, wanted: Wanted, outputs: Any, inputs: Any = None) -> list[Any]:
    kernel: ir.Kernel = build_query(arguments(call, wanted), I32)
    results = [np.zeros(shape, kind.dtype) for shape, kind in outputs.values()]
    bound = {n: bind_value_array(r.reshape(-1), k) for (n, (_, k)), r in zip(outputs.items(), results, strict=True)}
    bound |= {n: bind_value_array(a, I32) for n, a in (inputs or {}).items()}
    bound |= {
        POINTS: call._arrays.get(SORTED, as_bound(call.sources)),
        QUERIES: as_bound(call.targets),
        **call.structure.arrays,
    }
    if call.structure.order is not None:
        bound[ORDER] = bind_value_array(call.structure.order, I32)
    env = {count_of(n): np.int32(call.targets.count) for n in (POINTS, QUERIES)} | {RADIUS2: np.float32(0.2**2)}
    run_kernel(kernel, bound, env | dict(call.structure.uniforms))
    return results
