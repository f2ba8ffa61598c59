from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.launch.support import compile_kernel
from lanewise.passes import register_cap, thread_mapping
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import case
from tests.harness import Input, assert_close, expected, program, reference_kernel, run_public
from tests.passes.probe import PROBE, before_and_after, check, refusal, simple

BIG = Plan(tile=256, block=256, targets=4, unroll=16)


def test_golden(golden):
    before = thread_mapping.apply(simple(case("kick_drift")), 256)
    golden("cap", before_and_after(before, register_cap.apply(before, 40)))


def test_meaning_is_kept():
    given = Input(PROBE, 9, 5)
    p = program(PROBE, lw.SoAoAS(), Plan(block=32, tile=32, registers=40), "cuda", same=False)
    check(given, p.reference, p.kernels)


def test_the_compiler_keeps_the_cap():
    used = {}
    for registers in (0, 40):
        (kernel,) = program(case("gravity"), lw.SoAoAS(), Plan(registers=registers).filled(BIG), "cuda").kernels
        used[registers] = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90").resources
    assert used[0].registers > 40 >= used[40].registers
    assert (used[40].spill_stores, used[40].spill_loads) == (0, 0)


def test_spills_of_a_cap_are_the_users_own_wish():
    """A kernel that spills is compiled again without a cap only when nobody requested one."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    plan = Plan(registers=16).filled(BIG).filled(NEUTRAL)
    (cubin,) = compile_kernel(
        reference_kernel(case("gravity"), lw.SoAoAS(), "cuda"), plan, "cuda", requested=plan, arch="sm_90"
    ).cubins
    assert cubin.resources.registers <= 24  # the least that this compiler works with
    assert cubin.resources.spill_stores > 0


def test_every_kernel_of_a_program_is_capped():
    kernels = program(case("gravity"), lw.SoA(), Plan(block=64, tile=64, parts=2, registers=64), "cuda").kernels
    assert [k.grid.registers for k in kernels if k.grid is not None] == [64, 64]


@pytest.mark.cuda
@pytest.mark.parametrize("registers", [16, 32, 255])
def test_results_on_a_gpu(registers):
    """A cap that the compiler can only keep by spilling, one that it keeps, and one that it does not need."""
    given = Input(case("gravity"), 1000)
    plan = Plan(registers=registers).filled(BIG)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", plan), expected(given), case("gravity"))


WHERE = "register cap cannot be applied to gravity:"
REFUSED = [
    (Plan(registers=8), f"{WHERE} a thread has 16 to 255 registers; a cap of 8 was requested"),
    (Plan(registers=64, min_blocks=2), f"{WHERE} min_blocks=2 caps the registers too; choose one cap"),
    (
        Plan(registers=100, block=1024, tile=1024),
        f"{WHERE} 100 registers for each of the 1,024 threads of a block are 106,496, and a block has 65,536",
    ),
]


@pytest.mark.parametrize(("plan", "text"), REFUSED, ids=lambda x: str(x) if isinstance(x, Plan) else "")
def test_refusals(plan, text):
    assert refusal(lambda: program(case("gravity"), lw.SoA(), plan, "cuda")) == text


@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_a_cpu_has_no_cap(name):
    text = refusal(lambda: program(case(name), lw.SoA(), Plan(registers=64), "cpu"))
    assert (
        text
        == f"register cap cannot be applied to {name}: only the compiler of a GPU takes a cap; on a CPU registers is 0"
    )
