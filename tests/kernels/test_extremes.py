"""`kernel.min` and `kernel.max`: a NaN wins, wherever it lies, as in `numpy.min`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.language.types import F32, F64, I32, Vector
from lanewise.launch.executable import build_executable, generated_texts
from lanewise.patterns.elementwise.build import ELEMENTWISE, ElementwiseArguments, build_reduction

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]

GPU = Machine("cuda", 132)


@lw.record
class Sample:
    value: lw.f32
    pair: lw.dvec2


@lw.elementwise
def values(s: Sample) -> tuple[lw.f32, lw.dvec2, lw.i32]:
    return s.value, s.pair, lw.i32(s.value > 0)


def samples(count: int, places: tuple[int, ...], device: str) -> Any:
    rng = np.random.default_rng(count)
    value, pair = rng.normal(size=count), rng.normal(size=(count, 2))
    for n in places:
        value[n] = pair[n, 1] = np.nan
    return Sample.array(value=value, pair=pair).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 40, 1500])
def test_a_nan_wins(device: str, count: int) -> None:
    for places in {(0,), (count // 2,), (count - 1,), (0, count - 1)}:
        given = samples(count, places, device)
        for reduced, of in ((values.min(given), np.min), (values.max(given), np.max)):
            value, pair, whole = reduced
            assert np.isnan(value)
            np.testing.assert_array_equal(pair, of(given.numpy()["pair"], axis=0))
            assert np.isnan(pair[1])
            assert whole == of(given.numpy()["value"] > 0)


@pytest.mark.parametrize("device", DEVICES)
def test_infinities_and_one_value(device: str) -> None:
    for one in (np.inf, -np.inf, 2.5):
        given = Sample.array(value=np.full(3, one), pair=np.full((3, 2), one)).to(device)
        assert values.min(given)[0] == values.max(given)[0] == one


@pytest.mark.parametrize("operation", ["min", "max"])
def test_it_compiles_for_a_gpu(operation: Any) -> None:
    given = ElementwiseArguments({}, {"x": F32, "v": Vector(F64, 2)}, {})

    @lw.elementwise
    def both(x: lw.f32, v: lw.dvec2) -> tuple[lw.f32, lw.dvec2]:
        return x, v

    kernel = build_reduction(both.lowered, given, I32, operation, strided=True)
    program = build_program(kernel, complete_plan(None, GPU, Work(ELEMENTWISE, 1000)), "cuda")
    (text,) = generated_texts(program, "cuda", locations=False)
    assert f"{operation}(" not in text
    (cubin,) = build_executable(program, "cuda", arch="sm_90").cubins
    assert cubin.resources.spill_stores == 0
