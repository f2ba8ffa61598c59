"""`2 x + y` with other packages, as far as they are installed: what their calls cost the host.

Annotations are evaluated here: some of the packages read them.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.runtime import cuda

Calls = dict[str, Callable[[], Any]]


def peers(device: str, x: Any, y: Any) -> Calls:
    """A call of each package that makes a new array, by the name of the package."""
    calls = _cupy(x, y) if device == "cuda" else _numba(x, y)
    if importlib.util.find_spec("warp"):
        calls |= _warp(device, x, y)
    if importlib.util.find_spec("taichi"):
        calls |= _taichi(device, x, y)
    return calls


def _cupy(x: Any, y: Any) -> Calls:
    module, count = cuda.cupy(), len(x)
    element = module.ElementwiseKernel(
        "float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "axpy"
    )
    text = """extern "C" __global__ void axpy(float a, const float *x, const float *y, float *z, int n)
    { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) z[i] = a * x[i] + y[i]; }"""
    raw = module.RawKernel(text, "axpy")

    def launched() -> Any:
        z = module.empty(count, np.float32)
        raw((-(-count // 256),), (256,), (np.float32(2), x, y, z, np.int32(count)))
        return z

    return {"CuPy ElementwiseKernel": lambda: element(2.0, x, y), "CuPy RawKernel": launched}


def _numba(x: Any, y: Any) -> Calls:
    import numba

    @numba.njit
    def loop(a: float, x: Any, y: Any, z: Any) -> None:
        for i in range(len(x)):
            z[i] = a * x[i] + y[i]

    def filled() -> Any:
        z = np.empty(len(x), np.float32)
        loop(np.float32(2), x, y, z)
        return z

    return {"Numba njit": filled}


def _warp(device: str, x: Any, y: Any) -> Calls:
    """Warp, on arrays of its own; `empty` comes from its memory pool."""
    import warp as wp

    wp.config.quiet = True

    @wp.kernel
    def axpy(
        a: wp.float32,
        x: wp.array(dtype=wp.float32),
        y: wp.array(dtype=wp.float32),
        z: wp.array(dtype=wp.float32),
    ):  # type: ignore
        i = wp.tid()
        z[i] = a * x[i] + y[i]

    inputs = [
        wp.array(np.asarray(v.get() if device == "cuda" else v), dtype=wp.float32, device=device)
        for v in (x, y)
    ]

    def launched() -> Any:
        z = wp.empty(len(x), dtype=wp.float32, device=device)
        wp.launch(axpy, dim=len(x), inputs=[2.0, *inputs, z], device=device)
        return z

    launched()
    wp.synchronize()
    return {"Warp launch": launched}


def _taichi(device: str, x: Any, y: Any) -> Calls:
    """Taichi, into a field that exists: it has no new arrays that cost less."""
    import taichi as ti

    ti.init(arch=ti.cuda if device == "cuda" else ti.cpu, log_level=ti.ERROR)
    if device == "cuda" and ti.cfg.arch != ti.cuda:
        return {}  # it would compute on the CPU
    fields = [ti.field(ti.f32, len(x)) for _ in range(3)]
    for field, v in zip(fields, (x, y), strict=False):
        field.from_numpy(np.asarray(v.get() if device == "cuda" else v))
    u, v, w = fields

    @ti.kernel
    def axpy(a: ti.f32):  # type: ignore
        for i in w:
            w[i] = a * u[i] + v[i]

    def launched() -> Any:
        axpy(2.0)
        return w

    return {"Taichi kernel (into a field)": launched}


def values(result: Any) -> Any:
    """A result of any of them as a NumPy array."""
    for name in ("get", "numpy", "to_numpy"):
        if hasattr(result, name):
            return getattr(result, name)()
    return result
