"""The virtual instructions that NVRTC makes of a kernel: what the hardware is requested, before registers are assigned.
Needs no GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.runtime.nvrtc import compile_cubin

_ARITHMETIC = re.compile(r"\b(add|sub|mul|fma|rsqrt|sqrt|rcp|div)\.(?:\w+\.)*f(?:32|64)\b")


def ptx(kernel: ir.Kernel, arch: str = "compute_90") -> str:
    """The PTX text of one kernel that is mapped to threads."""
    from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

    n: Any = nvrtc
    status, program = n.nvrtcCreateProgram(emit_cuda(kernel, "test").encode(), b"test.cu", 0, [], [])
    assert status == 0
    options = [b"--std=c++17", f"--gpu-architecture={arch}".encode()]
    (status,) = n.nvrtcCompileProgram(program, len(options), options)
    assert status == 0
    _, size = n.nvrtcGetPTXSize(program)
    text = b" " * size
    n.nvrtcGetPTX(program, text)
    n.nvrtcDestroyProgram(program)
    return text.decode()


def arithmetic(kernel: ir.Kernel) -> Counter[str]:
    """How often each kind of float instruction stands in a kernel."""
    return Counter(_ARITHMETIC.findall(ptx(kernel)))


def check_cubin(kernel: ir.Kernel, arch: str = "sm_90") -> None:
    """The kernel compiles to machine code without warnings, spills or a stack."""
    cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, arch)
    found = cubin.resources
    assert "warning" not in cubin.log.lower(), cubin.log
    assert (found.spill_stores, found.spill_loads, found.stack_bytes) == (0, 0, 0), cubin.log
