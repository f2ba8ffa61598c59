"""`lw.cumsum`: what it takes, and where it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.checks import shown
from lanewise.errors import ArgumentError
from lanewise.runtime import cuda
from lanewise.runtime.memory import address, overlap
from lanewise.scans import device, host

TYPES = tuple(device.ELEMENTS)


def cumsum(values: Any, *, exclusive: bool = False, out: Any = None) -> Any:
    """The prefix sums of an array: element i of the result is `values[0] + ... + values[i]`, without `values[i]` if `exclusive`.

    values: a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32, int64, float32 or float64. The result has its type, and lies
    where it does; a GPU is not waited for. out: an array of the same shape and type for it, which may be `values` itself.

    Whole numbers wrap. Floats are added in an order that n alone decides: on one device results repeat to the bit. float32 is added in
    float64 and each result rounded once; on a GPU 128 neighbours are added in float32 first, and a result is off by at most 11 * 2^-24 of
    the sum of the magnitudes up to there, however long the array is.

    Raises `ArgumentError` for other arrays.
    """
    _check("cumsum: the array of values", values)
    if out is None:
        out = _empty_like(values)
    else:
        _check("cumsum: out", out)
        _check_out(values, out)
    run = host.cumsum if isinstance(values, np.ndarray) else device.cumsum
    run(values, out, exclusive=bool(exclusive))
    return out


def _check(place: str, array: Any) -> None:
    wanted = f"{place} must be a contiguous array of NumPy or CuPy of shape (n,) of {', '.join(TYPES)}"
    if not _is_array(array):
        raise ArgumentError(f"{wanted}, found {shown(array)}")
    told = f"{wanted}, found one of {array.dtype} with shape {tuple(array.shape)}"
    if array.dtype.name not in TYPES or not array.dtype.isnative:
        raise ArgumentError(f"{told}; .astype(...) converts it, to int64 where sums get large")
    if array.ndim != 1:
        raise ArgumentError(f"{told}; .reshape(-1) makes one row of it")
    if not array.flags.c_contiguous:
        raise ArgumentError(f"{told}, which is not contiguous; pass np.ascontiguousarray(...) of it")


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not isinstance(value, np.ma.MaskedArray)
    return hasattr(value, "__cuda_array_interface__") and type(value).__module__.partition(".")[0] == "cupy"


def _place(array: Any) -> str:
    return "the host" if isinstance(array, np.ndarray) else f"'cuda:{array.data.device_id}'"


def _check_out(values: Any, out: Any) -> None:
    if (_place(out), out.dtype, out.shape) != (_place(values), values.dtype, values.shape):
        raise ArgumentError(
            f"cumsum: out must be an array of {values.dtype} with shape {tuple(values.shape)} on {_place(values)}, as the values are, "
            f"found one of {out.dtype} with shape {tuple(out.shape)} on {_place(out)}"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ArgumentError("cumsum: out is written, and this array is read-only")
    if address(out) != address(values) and overlap(out, values):
        raise ArgumentError(
            "cumsum: out shares a part of its memory with the values; give it memory of its own, or all of theirs"
        )


def _empty_like(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return np.empty(values.shape, values.dtype)
    with cuda.use(f"cuda:{values.data.device_id}"):
        return cuda.cupy().empty(values.shape, values.dtype)
