"""Every operator, intrinsic and awkward literal on a GPU, against the interpreter. Eighteen kernels are compiled."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise.language.types import Scalar
from lanewise.runtime.memory import to_host
from tests.emit.operators import (
    CLOSE,
    EXACT,
    LITERALS,
    check_classes,
    check_literals,
    check_mathematics,
    interpreted,
    mismatches,
    operands,
    operator_kernel,
)  # fmt: skip

pytestmark = pytest.mark.cuda

DEVICE = "cuda"


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_operators(kind: Scalar) -> None:
    kernel, given = operator_kernel(kind, EXACT[kind]), operands(kind)
    with lw.device(DEVICE):
        found = [to_host(r) for r in kernel(**given)]
    assert mismatches(EXACT[kind], given, found, interpreted(kernel, given)) == []


@pytest.mark.parametrize("kind", CLOSE, ids=str)
def test_mathematics(kind: Scalar) -> None:
    check_mathematics(kind, DEVICE)


@pytest.mark.parametrize("kind", CLOSE, ids=str)
def test_mathematics_of_infinities(kind: Scalar) -> None:
    check_classes(kind, DEVICE)


@pytest.mark.parametrize(("kind", "values"), LITERALS, ids=[str(k) for k, _ in LITERALS])
def test_literals(kind: Scalar, values: tuple[Any, ...]) -> None:
    check_literals(kind, values, DEVICE)
