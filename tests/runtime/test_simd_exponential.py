"""Exponentials in the lanes of registers, with the instruction of AVX-512 that scales numbers and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit import llvm_pieces
from lanewise.planning.plan import Plan
from lanewise.runtime import cpu, host_width

EDGES = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 88.72283, 88.72284, -87.4, -103.9, -104.0]
X = np.concatenate([np.linspace(-106, 90, 200_003), EDGES]).astype(np.float32)
NORMAL = np.abs(X) <= 87


@lw.threadwise
def exponential(i: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    c[i] = lw.exp(a[i])


def values(plan: Plan) -> Any:
    """Of a kernel that is compiled anew."""
    exponential._engine._begin()
    cpu._LOADED.clear()
    c = np.empty_like(X)
    exponential(X, c, grid=len(X), plan=plan)
    return c


PLANS = (Plan(across=16, vector_bits=512), Plan(across=16), Plan(across=8, targets=2), Plan(across=4))


@pytest.mark.parametrize("plan", PLANS, ids=Plan.short)
def test_exponentials_are_within_a_unit_in_the_last_place_and_end_where_floats_do(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "with"))
    if plan.vector_bits == 512 and (reason := host_width.problem(512)):
        pytest.skip(reason)
    with np.errstate(all="ignore"):
        exact = np.exp(X.astype(np.float64))
        rounded = exact.astype(np.float32)
    whole = np.isfinite(rounded)
    found = [values(plan)]
    asked = list[int]()
    monkeypatch.setattr(llvm_pieces, "has_scaling", lambda: asked.append(1) or False)
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path / "without"))
    found.append(values(plan))
    assert asked, "nothing was compiled anew"
    for c in found:
        assert (np.abs(c[whole] - exact[whole]) / np.spacing(rounded[whole])).max() < 1.02
        np.testing.assert_array_equal(c[~whole], rounded[~whole])
    np.testing.assert_array_equal(found[0][NORMAL], found[1][NORMAL])
