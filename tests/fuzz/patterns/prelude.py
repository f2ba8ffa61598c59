"""What stands before every random program: the functions that its own text uses. It is printed with it, as one file
that runs.

A program defines `kernel` and `arguments(device)`, the arguments of a call; or `run(device, plan)` and `called(device)`
of its own: a kernel with the arguments of a call, which is compiled and explained. What `expected()` gives, where there
is one, was computed without lanewise's compiler.
"""

from __future__ import annotations

TEXT = '''import warnings

import numpy as np

import lanewise as lw
from lanewise.language.values import to_python_value


def drawn(seed, kind, shape, wild=0.0):
    """Small numbers, floats as multiples of 1/4; a share of the integers near the limits of their type."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind == "f":
        return (rng.integers(-16, 17, shape) / 4).astype(kind)
    limits = np.iinfo(kind)
    small = rng.integers(max(limits.min, -9), 10, shape).astype(kind)
    edges = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, limits.max // 3], kind)
    return np.where(rng.random(shape) < wild, rng.choice(edges, shape), small).astype(kind)


def on(device, array):
    if not device.startswith("cuda"):
        return np.array(array, order="C")
    import cupy

    return cupy.asarray(array)


def off(value):
    """What a call left behind, as a list of NumPy arrays."""
    if value is None or isinstance(value, (str, lw.Layout)):
        return []
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in off(v)]
    if isinstance(value, lw.RaggedArray):
        return []
    if hasattr(value, "record"):
        return [x for v in value.numpy().values() for x in off(v)]
    return [np.atleast_1d(value.get() if hasattr(value, "get") else np.array(value))]


def run(device, plan=None):
    with lw.device(device):
        given, named = arguments(device)
        out = kernel(*given, **named) if plan is None else kernel.bind(*given, **named, plan=plan)()
        return off([out, given, [v for n, v in named.items() if n != "grid"]])


of_one_call = True  # the results of `run` are those of one call of `kernel`


def called(device):
    given, named = arguments(device)
    return kernel, given, named


def compiled(device, plan=None):
    with lw.device(device):
        called_kernel, given, named = called(device)
        return called_kernel.compile(*given, **named, plan=plan)


@lw.function
def tame(x):
    """A multiple of 1/4 from -4 to 4."""
    return lw.floor(lw.clamp(x, -4, 4) * 4) * 0.25


@lw.function
def finite(x):
    return lw.select(lw.isfinite(x), x, 0.0)
'''
