"""Made-up arguments: they fit every kernel of the corpus, and are the same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.samples import sample_arguments, sample_roles, sample_values
from lanewise.support.errors import InputError
from tests.corpus import CASES, case
from tests.corpus_kernels import Body, Charge


@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_samples_fit_every_kernel(name: str) -> None:
    kernel: Any = case(name).kernel
    result = kernel.bind(**sample_arguments(kernel, 5, "python").named)()
    for array in result if isinstance(result, tuple) else (result,) if result is not None else ():
        assert len(array) == 5


def test_samples_are_reproducible_and_shared() -> None:
    kernel: Any = case("yukawa").kernel
    target, source, length = sample_arguments(kernel, 100, "cpu", layout=lw.AoS()).named.values()
    assert target is source
    assert target.layout == lw.AoS()
    assert length == 1.0
    again = sample_arguments(kernel, 100, "cpu", layout=lw.SoA()).named["source"]
    other = sample_arguments(kernel, 100, "cpu", seed=1).named["source"]
    for field in ("position", "charge", "rank"):
        np.testing.assert_array_equal(getattr(target, field), getattr(again, field))
        assert not np.array_equal(getattr(target, field), getattr(other, field))
    assert target.charge.min() >= 0.5
    assert target.charge.max() <= 1.5
    assert set(target.rank.tolist()) == set(range(8))


@lw.pairwise
def between(target: Body, source: Charge, eps: lw.f32, shift: lw.vec2, times: lw.i32) -> lw.f32:
    return source.charge / (target.mass + eps) + shift.x * lw.f32(times)


@lw.elementwise
def late(rate: lw.f32, body: Body, push: lw.vec3):
    body.velocity += push * rate


def test_roles_and_invented_values() -> None:
    values, invented = sample_values(between, {"times": 3})
    assert (values["eps"], values["times"], invented) == (np.float32(0.01), 3, ("eps", "shift"))
    assert tuple(values["shift"]) == (1.0, 1.0)
    target, source, *_ = sample_arguments(between, 4, "cpu").named.values()
    assert [r.record.name for r in (target, source)] == ["Body", "Charge"]
    assert sample_roles(late).arrays.keys() == {"push"}
    assert sample_roles(late, {"push": 2.0}).uniforms.keys() == {"rate", "push"}
    samples = sample_arguments(late, 4, "cpu")
    assert list(samples.named) == ["body", "push", "rate"]
    late(**samples.named)


@pytest.mark.parametrize(
    ("kernel", "values", "message"),
    [
        (between, {"tmies": 3}, "between has no value 'tmies' to set; it has eps, shift, times"),
        (between, {"target": 3}, "between has no value 'target' to set; it has eps, shift, times"),
        (between, {"times": 2.5}, "between: 'times' is an i32, found 2.5"),
        (between, {"times": 1e12}, "between: 'times' is an i32, found 1000000000000.0"),
        (between, {"eps": float("nan")}, "between: 'eps' is an f32, found nan"),
        (case("speed").kernel, {"x": 1.0}, "speed has no value 'x' to set; it has no parameter that is a uniform argument"),
        (case("histogram").kernel, {"x": 1.0}, "histogram: a value was given for every parameter; at least one is an array"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(kernel: Any, values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        sample_values(kernel, values)
    assert str(caught.value) == message


def test_no_elements() -> None:
    with pytest.raises(InputError, match=r"^0 elements requested; wanted at least 1$"):
        sample_arguments(late, 0, "cpu")
