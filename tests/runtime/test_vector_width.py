from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.llvm import emit_llvm
from lanewise.launch.executable import build_executable
from lanewise.planning.plan import Plan
from lanewise.runtime import cpu, host_width, llvm
from tests.corpus import case
from tests.harness import Input, assert_close, expected, program, run_public
from tests.passes.probe import PROBE, refusal

HERE = [b for b in (0, 256, 512) if cpu.width_problem(b) is None]
X86 = re.compile(r"\b([xyz])mm\d")


def machine_code(bits: int) -> str:
    """The assembly of gravity for the CPU."""
    (kernel,) = program(case("gravity"), lw.SoA(), Plan(targets=1), "cpu").kernels
    return llvm.assembly(emit_llvm(kernel, "", vector_bits=bits, locations=False))


@pytest.mark.skipif(512 not in HERE, reason="this CPU has no AVX-512")
def test_each_kernel_has_a_width_of_its_own():
    found = {bits: set(X86.findall(machine_code(bits))) for bits in (512, 256)}
    assert "z" in found[512]
    assert "y" in found[256]
    assert "z" not in found[256]


@pytest.mark.skipif(512 not in HERE, reason="this CPU has no AVX-512")
def test_the_width_is_obeyed_where_the_compiler_prefers_another(tmp_path):
    """LLVM prefers 256 bits on many CPUs that have 512; here it is told to."""
    script = """
from lanewise.runtime import llvm
triple, processor, features = llvm._host()
llvm._host = lambda: (triple, processor, features + ",+prefer-256-bit")
from tests.runtime.test_vector_width import X86, machine_code
print(*("".join(sorted(set(X86.findall(machine_code(bits))) - {"x"})) for bits in (0, 256, 512)))
"""
    environment = {
        **os.environ,
        "LANEWISE_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(["src", ".", *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["y", "y"]
    assert "z" in done.stdout.split()[2]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("bits", HERE)
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "kick_drift"])
def test_results_through_the_public_interface(name, bits):
    given = Input(case(name), 37)
    assert_close(run_public(given, lw.SoA(), "cpu", Plan(vector_bits=bits)), expected(given), case(name))


@pytest.mark.parametrize("bits", HERE)
def test_exact_sums_have_the_same_bits_in_every_width(bits):
    given = Input(PROBE, 33, 21)
    wanted = run_public(given, lw.SoA(), "cpu", Plan(vector_bits=0))
    for f, w in zip(run_public(given, lw.SoA(), "cpu", Plan(vector_bits=bits)), wanted, strict=True):
        np.testing.assert_array_equal(f, w)


def test_the_source_says_the_width():
    (kernel,) = program(case("speed"), lw.SoA(), Plan(), "cpu").kernels
    plain, wide = emit_llvm(kernel, "test"), emit_llvm(kernel, "test", vector_bits=256)
    new = [line.strip() for line in wide.splitlines() if line not in plain.splitlines()]
    (line,) = new
    assert line.endswith('noinline "prefer-vector-width"="256" {')


# ---------------------------------------------------------------- refusals


@lw.record
class Point:
    x: lw.f32


@lw.elementwise
def doubled(p: Point) -> lw.f32:
    return 2 * p.x


@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_other_widths_are_refused(name):
    where = f"SIMD width cannot be applied to {name}:"
    wrong = refusal(lambda: program(case(name), lw.SoA(), Plan(vector_bits=128), "cpu"))
    assert wrong == f"{where} wanted 0, 256 or 512 bits, found 128"
    gpu = refusal(lambda: program(case(name), lw.SoA(), Plan(vector_bits=512), "cuda"))
    assert gpu == f"{where} SIMD registers belong to a CPU; on a GPU vector_bits is 0"


def test_calls_do_not_ask_the_compiler_about_the_cpu_again(monkeypatch):
    """It answers under a lock: a child that was forked while another thread asked would wait for ever."""
    points = Point.array(x=[1, 2])
    doubled(points)
    monkeypatch.setattr(host_width.binding, "get_host_cpu_features", lambda: pytest.fail("asked again"))
    doubled(points)
    doubled.bind(points)()


def test_a_cpu_without_wide_registers_refuses(monkeypatch):
    monkeypatch.setattr(host_width, "_host", lambda: ("haswell", {"avx2": True, "avx512f": False}))
    p = program(case("gravity"), lw.SoA(), Plan(vector_bits=512), "cpu")
    text = refusal(lambda: build_executable(p, "cpu"))
    assert text == (
        "SIMD width cannot be applied to gravity: this CPU (haswell) has no AVX-512; choose a smaller vector_bits, or 0"
    )
    assert cpu.width_problem(256) is None
