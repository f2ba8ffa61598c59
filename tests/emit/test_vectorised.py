"""The CPU kernel of gravity is vectorised: looked up in its machine code."""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import llvm
from tests.corpus import case
from tests.harness import Input


def _has_avx() -> bool:
    from llvmlite import binding

    return platform.machine() == "x86_64" and bool(binding.get_host_cpu_features().get("avx"))


@pytest.mark.skipif(not _has_avx(), reason="the host has no AVX")
def test_gravity_runs_in_simd_lanes() -> None:
    """The inner loop holds a packed approximate square root: it is vectorised over sources."""
    c = case("gravity")
    records = Input(c, 64).records(lw.SoA())
    call = c.kernel.bind(*records, plan=lw.Plan(targets=3), **c.values)  # a plan that no other test compiles
    call()
    executable = call.compiled.executable
    (kernel,) = executable.kernels
    text = llvm.assembly(kernel.written())
    assert re.search(r"vrsqrt14ps|vrsqrtps|\brsqrtps", text)
    assert re.search(r"vf(n?m(add|sub))\d+ps", text) or "vmulps" in text


@lw.record
class Item:
    w: lw.f32
    ident: lw.i32


@lw.elementwise
def looked_up(p: Item, table: lw.Array1[lw.f32]) -> lw.f32:
    e = table[p.ident] * p.w
    p.w = e
    return lw.exp(-e * e)


@lw.pairwise
def looked_up_pairs(target: Item, source: Item, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[source.ident] * lw.exp(-target.w * source.w)


@pytest.mark.skipif(not _has_avx(), reason="the host has no AVX")
@pytest.mark.parametrize("kernel", [looked_up, looked_up_pairs], ids=lambda k: k.__name__)
def test_what_is_read_from_a_table_does_not_keep_code_from_lanes(kernel: Any) -> None:
    """Tables lie apart from what is written, and the compiler knows it: calls refuse others."""
    items = Item.array(w=np.linspace(0, 1, 64), ident=np.arange(64))
    arrays = (items,) if kernel is looked_up else (items, items)
    call = kernel.bind(*arrays, np.ones(64, np.float32), plan=lw.Plan(targets=1))
    call()
    (made,) = call.compiled.executable.kernels
    text = made.written()
    assert re.search(r"ptr noalias %table", text)
    machine = llvm.assembly(text)
    assert len(re.findall(r"vfn?m(?:add|sub)\d+ps|vmulps", machine)) > 10  # the polynomial of the exponential


def test_tables_that_share_memory_with_what_is_written_are_refused() -> None:
    items = Item.array(w=np.zeros(8), ident=np.arange(8))
    table = np.ones(8, np.float32)
    with pytest.raises(lw.ArgumentError, match="shares memory with the table 'table'"):
        looked_up(items, items.w)
    with pytest.raises(lw.ArgumentError, match="out shares memory with the table 'table'"):
        looked_up.bind(items, table, out=table)
    with pytest.raises(lw.ArgumentError, match="out shares memory with the table 'table'"):
        looked_up_pairs.bind(items, items, table, out=table)
