"""The CPU kernel of gravity is vectorised: looked up in its machine code."""

from __future__ import annotations

import platform
import re

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
