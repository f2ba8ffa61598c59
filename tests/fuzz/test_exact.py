"""Devices without liberties have none, also when the same kernel was compiled with them a moment before."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.launch.executable import generated_texts
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.fuzz.exact import forget, strict_cpu, strict_gpu
from tests.fuzz.texts import executed

TEXT = """@lw.elementwise
def kernel(a: lw.{0}, b: lw.{0}, c: lw.{0}) -> lw.{0}:
    return a * b + c
"""
ONE_ROUNDING = {"f32": 2.0**-24, "f64": 2.0**-54}  # the square of the 1 + x below, less its first two terms


def _called(kind: str, device: str = "cpu") -> float:
    """The program anew, as a campaign that judges a difference has it: a * a - (1 + 2 x), of which rounding leaves
    nothing.
    """
    x = ONE_ROUNDING[kind] ** 0.5
    a, c = (np.array([v], kind.replace("f", "float")) for v in (1 + x, -(1 + 2 * x)))
    with executed(TEXT.format(kind), "fuzz_exact.py") as names:
        if device == "cpu":
            return float(names.kernel(a, a, c)[0])
        import cupy

        a, c = cupy.asarray(a), cupy.asarray(c)
        return float(names.kernel(a, a, c)[0])


@pytest.mark.parametrize("kind", ONE_ROUNDING)
def test_a_strict_cpu_rounds_products(kind: str) -> None:
    assert _called(kind) == ONE_ROUNDING[kind]  # fused, and kept on the disk
    with strict_cpu():
        assert _called(kind) == 0
    assert _called(kind) == ONE_ROUNDING[kind]


def test_a_kernel_that_was_called_is_strict_too() -> None:
    with executed(TEXT.format("f32"), "fuzz_exact.py") as names:
        a = np.full(1, 1 + ONE_ROUNDING["f32"] ** 0.5, np.float32)
        c = -(2 * a - 1)
        assert names.kernel(a, a, c)[0] == ONE_ROUNDING["f32"]
        forget(names.kernel)
        with strict_cpu():
            assert names.kernel(a, a, c)[0] == 0


@pytest.mark.cuda
@pytest.mark.parametrize("kind", ONE_ROUNDING)
def test_a_strict_gpu_rounds_products(kind: str) -> None:
    assert _called(kind, "cuda") == ONE_ROUNDING[kind]
    with strict_gpu():
        assert _called(kind, "cuda") == 0
    assert _called(kind, "cuda") == ONE_ROUNDING[kind]


def _machine_code(text: str = "") -> bytes:
    """Of the program for a GPU: the compiler is at hand without one. `text` is added to what is compiled."""
    with executed(TEXT.format("f32"), "fuzz_exact.py") as names:
        a = np.ones(1, np.float32)
        reference = names.kernel.compile(a, a, a).reference
        made = compile_kernel(reference, Plan(block=32).filled(NEUTRAL), "cuda", arch="sm_90")
    (kernel,) = made.program.kernels
    (written,) = generated_texts(made.program, "cuda", locations=False)
    return compile_cubin(written + text, kernel.name, "sm_90").code if text else made.cubins[0].code


def test_the_machine_code_of_a_strict_gpu_is_other_code() -> None:
    """Though the same program was compiled before, and not for the remark in its text."""
    free = _machine_code()
    assert _machine_code("\n// another remark\n") == free
    with strict_gpu():
        strict = _machine_code()
    assert _machine_code() == free != strict
