"""A new pattern is one file and one line: interpreter, CPU, CUDA, plans, explanation and tuning follow."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.language.target import Machine
from lanewise.runtime.memory import to_host
from lanewise.support.errors import ArgumentError, PlanError
from tests.patterns.rowwise import ROWWISE, WIDTH, reference, rowwise

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@rowwise
def power(x: lw.f32, weight: lw.f32) -> lw.f32:
    return weight * x * x


@rowwise
def both(x: lw.f32, y: lw.f32) -> tuple[lw.f32, lw.i32]:
    return x * y, lw.i32(x > y)


def table(rows: int = 37, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((rows, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("device", DEVICES)
def test_runs_everywhere(device: str) -> None:
    x, y = table(), table(seed=1)
    with lw.device(device):
        for _ in range(2):  # the second call goes by the first
            np.testing.assert_allclose(to_host(power(x, 2.0)), 2 * reference(x), rtol=1e-6)
        products, greater = both(x, y)
        assert to_host(greater).tolist() == (x > y).sum(axis=1).tolist()
        np.testing.assert_allclose(to_host(products), (x * y).sum(axis=1), rtol=1e-5)
        call = power.bind(x, 0.5)
        np.testing.assert_allclose(to_host(call()), 0.5 * reference(x), rtol=1e-6)


def test_text_for_a_gpu() -> None:
    reference = power.compile(table(), 1.0).reference
    assert reference.pattern is ROWWISE
    plan = complete_plan(None, Machine("cuda", 132), power._calls.subject.work(power._calls.given((table(), 1.0), {})))
    (kernel,) = build_program(reference, plan, "cuda").kernels
    text = emit_cuda(kernel, "test")
    assert 'extern "C" __global__ void __launch_bounds__(256) power_kernel(' in text
    assert "const float x = x_array[i * 5LL + column];" in text


def test_plans_apply_or_refuse() -> None:
    x = table()
    assert "block" not in power.compile(x, 1.0).plan.short()
    np.testing.assert_allclose(power(x, 1.0, plan=lw.Plan(vector_bits=256)), reference(x), rtol=1e-6)
    with pytest.raises(PlanError, match="tiling cannot be applied to power: it has no loop over sources"):
        power(x, 1.0, plan=lw.Plan(tile=64))
    with pytest.raises(PlanError, match="no sources that several of its elements could share"):
        power(x, 1.0, plan=lw.Plan(targets=2))


def test_explanation() -> None:
    x = table()
    explained = power.compile(x, 1.0).explain()
    assert "power (rowwise, 37 elements)" in str(explained)
    rows = {r.field: r for r in explained.rows}
    assert rows["tile"].reason == "it has no loop over sources"
    measured = power.compile(x, 1.0).explain(x, 1.0, measure=True)
    assert any(r.measured for r in measured.rows)


def test_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    x = table(500)
    tuned = power.tune(x, 1.0, seconds=1.5)
    np.testing.assert_allclose(power(x, 1.0), reference(x), rtol=1e-6)
    assert power.compile(x, 1.0).plan == tuned.plan


def test_refusals_and_reuse() -> None:
    x = table()
    with pytest.raises(ArgumentError, match="wanted tables of 5 columns"):
        both(x, table(3))
    with pytest.raises(ArgumentError, match="needs weight"):
        power(x)
    assert pickle.loads(pickle.dumps(power)) is power
    assert repr(power) == "<lanewise rowwise kernel power>"
    with pytest.raises(AttributeError, match="plans"):
        power.plans = 1  # type: ignore[attr-defined]
