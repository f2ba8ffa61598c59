"""Kernels of hand-written CUDA text, loaded once: a query makes a structure in every call, and loading takes longer than building."""

from __future__ import annotations

from functools import cache

from lanewise.runtime import cuda
from lanewise.runtime.nvrtc import compile_cubin


@cache
def loaded(device: str, text: str, name: str, threads: int) -> cuda.CudaKernel:
    """The kernel of a CUDA text on a device; kept for the life of the program."""
    return cuda.CudaKernel(device, compile_cubin(text, name, cuda.architecture(device)), name, threads)
